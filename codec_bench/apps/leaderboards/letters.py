"""Letters of significance: rows that share a letter cannot be told from one another (a compact letter display).

Reference: Piepho 2004, "An algorithm for a letter-based representation of all-pairwise comparisons", Journal of Computational and
Graphical Statistics 13 (insert and absorb).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from string import ascii_lowercase


def significance_letters(alike: Sequence[Collection[int]]) -> list[str]:
    """The letters of each row, so that two rows share a letter exactly if they cannot be told apart.

    Args:
        alike: of each row the numbers of the rows that it cannot be told from; the rows in order, the best first. It is
            enough if one of two rows names the other.
    """
    rows = range(len(alike))
    groups: list[frozenset[int]] = [frozenset(rows)] if alike else []
    for first in rows:
        for second in range(first + 1, len(alike)):
            if second in alike[first] or first in alike[second]:
                continue
            split = [part for group in groups for part in _without(group, first, second)]
            groups = [g for n, g in enumerate(split) if not any(g < other or (g == other and n > m) for m, other in enumerate(split))]  # fmt: skip
    groups.sort(key=sorted)
    return ["".join(_letter(n) for n, group in enumerate(groups) if row in group) for row in rows]


def _without(group: frozenset[int], first: int, second: int) -> list[frozenset[int]]:
    """A group in which two rows stand that can be told apart, as two groups without one of them each."""
    if first in group and second in group:
        return [group - {first}, group - {second}]
    return [group]


def _letter(number: int) -> str:
    """a to z, and then aa, ab, and so on, each in brackets so that letters in a row stay apart."""
    if number < len(ascii_lowercase):
        return ascii_lowercase[number]
    return f"({ascii_lowercase[number // 26 - 1]}{ascii_lowercase[number % 26]})"

"""The specification of word splitting and of the edit path, in plain NumPy.

Several paths can have the edit distance: `a b` against `b c` is two substitutions, or a deletion, a hit and an
insertion. The path, and so the error counts, is that of rapidfuzz, which jiwer uses:

1. Items with which both sequences begin, and then items with which both end, are hits.
2. The rest is found backwards through the full table of distances: a deletion wherever it is on a shortest path,
otherwise an insertion if its cell is smaller than the diagonal one, otherwise the diagonal (hit or substitution).
3. A table of `WHOLE_BYTES` or more is not built. The estimate is halved, and the reference is cut at the first smallest
sum of the halves' distances. Each half starts at step 1. This bounds the memory, and for long texts decides the path.

Papers: E. Ukkonen, "Algorithms for Approximate String Matching", Information and Control 64, 1985 (the band). D. S.
Hirschberg, "A linear space algorithm for computing maximal common subsequences", CACM 18(6), 1975 (the halving).
Reference implementations: rapidfuzz 3.14 `Levenshtein.opcodes`, jiwer 4.0 `process_words` and `process_characters`:
equal counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

HIT, SUBSTITUTION, DELETION, INSERTION = range(4)
WHOLE_BYTES = 1 << 20
"""A table takes two bits per cell; one this large or larger is divided."""
SHORT_REFERENCE, SHORT_ESTIMATE = 65, 10
"""A shorter reference or estimate is never divided."""


def split_words(text: str) -> list[str]:
    """Split a text as jiwer 4: at single spaces and runs of white characters.

    A single tab or line break within the text is part of a word. Normalised texts have none.
    """
    if text.isprintable():  # its only white space is the space
        return text.split()
    return [word for word in re.sub(r"\s{2,}", " ", text).strip().split(" ") if word]


def distances(reference: Sequence[int], estimate: Sequence[int]) -> np.ndarray:
    """Compute distances between all prefixes, int64 `(estimate + 1, reference + 1)`."""
    items = np.asarray(reference)
    columns = np.arange(len(reference) + 1)
    table = np.empty((len(estimate) + 1, len(reference) + 1), np.int64)
    table[0] = columns
    for row, item in enumerate(estimate, 1):
        table[row, 0] = row
        table[row, 1:] = np.minimum(table[row - 1, 1:] + 1, table[row - 1, :-1] + (items != item))
        table[row] = np.minimum.accumulate(table[row] - columns) + columns  # deletions
    return table


def path(
    reference: Sequence[int], estimate: Sequence[int], whole_bytes: int = WHOLE_BYTES, limit: int | None = None
) -> list[int]:
    """The edit path: HIT, SUBSTITUTION, DELETION or INSERTION per step.

    Args:
        reference, estimate: items that can be compared, such as numbers of words or code points.
        whole_bytes: size in bytes from which a table is divided.
        limit: an upper bound of the distance, which determines the band's width, and so when to divide the table.
    """
    shorter = min(len(reference), len(estimate))
    before = next((k for k in range(shorter) if reference[k] != estimate[k]), shorter)
    shorter -= before
    after = next((k for k in range(shorter) if reference[-1 - k] != estimate[-1 - k]), shorter)
    reference = reference[before : len(reference) - after]
    estimate = estimate[before : len(estimate) - after]
    return [HIT] * before + _middle(reference, estimate, whole_bytes, limit) + [HIT] * after


def _middle(reference: Sequence[int], estimate: Sequence[int], whole_bytes: int, limit: int | None) -> list[int]:
    longer = max(len(reference), len(estimate))
    limit = longer if limit is None else min(limit, longer)
    band = min(len(reference), 2 * limit + 1)
    if (
        2 * band * len(estimate) // 8 < whole_bytes
        or len(reference) < SHORT_REFERENCE
        or len(estimate) < SHORT_ESTIMATE
    ):
        return _walk(reference, estimate, distances(reference, estimate))
    half = len(estimate) // 2
    left = distances(reference, estimate[:half])[-1]
    right = distances(reference[::-1], estimate[half:][::-1])[-1][::-1]
    cut = int((left + right).argmin())
    return [
        *path(reference[:cut], estimate[:half], whole_bytes, int(left[cut])),
        *path(reference[cut:], estimate[half:], whole_bytes, int(right[cut])),
    ]


def _walk(reference: Sequence[int], estimate: Sequence[int], table: np.ndarray) -> list[int]:
    steps = []
    row, column = len(estimate), len(reference)
    while row and column:
        if table[row, column] == table[row, column - 1] + 1:
            steps.append(DELETION)
            column -= 1
        elif table[row - 1, column] < table[row - 1, column - 1]:
            steps.append(INSERTION)
            row -= 1
        else:
            row, column = row - 1, column - 1
            steps.append(HIT if reference[column] == estimate[row] else SUBSTITUTION)
    return (steps + [DELETION] * column + [INSERTION] * row)[::-1]

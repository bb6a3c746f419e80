"""Edit distance with compounds (`white paper` equals `whitepaper`).

Costs are 1 each. Ties between shortest paths are broken as by kaldialign 0.12 `edit_distance(...,
merge_compounds=True)`, so insertions, deletions and substitutions equal its own.
"""

from __future__ import annotations

import numpy as np

from ..compilation.cpu import jit

_COUNT, _COST = 21, 42
_COUNTED = (1 << _COUNT) - 1
_REPLACED = 1 << _COST
_INSERTED = _REPLACED | 1 << _COUNT
_DELETED = _REPLACED | 1

_jit = jit(nogil=True)


def compound_counts(reference: list[str], estimate: list[str]) -> tuple[int, int, int, int]:
    """Count hits (the reference's other words), and three kinds of errors.

    Args:
        reference, estimate: words, none of them empty, at most two million on each side.
    """
    codes = np.frombuffer("".join((*reference, *estimate)).encode("utf-32-le", "surrogatepass"), "<i4")
    ends = np.cumsum([0, *map(len, reference), *map(len, estimate)]).astype(np.int64)
    insertions, deletions, substitutions = _counts(codes, ends[: len(reference) + 1], ends[len(reference) :])
    return len(reference) - substitutions - deletions, substitutions, deletions, insertions


@_jit
def _counts(codes: np.ndarray, ref: np.ndarray, hyp: np.ndarray) -> tuple[int, int, int]:
    """Count insertions, deletions and substitutions of words, located by their starts in `codes`."""
    rows, columns = ref.size - 1, hyp.size - 1
    longest = 1
    for at in range(columns):
        longest = max(longest, hyp[at + 1] - hyp[at])
    height = min(rows, longest) + 1  # no more words than it has letters make up one word
    # One number holds a path: its cost, and below that how many words it inserts and deletes.
    table = np.zeros((height, columns + 1), np.int64)
    for j in range(columns + 1):
        table[0, j] = j * _INSERTED
    for i in range(1, rows + 1):
        now, above = table[i % height], table[(i - 1) % height]
        now[0] = i * _DELETED
        for j in range(1, columns + 1):
            other = 0 if _same(codes, ref[i - 1], ref[i], hyp[j - 1], hyp[j]) else _REPLACED
            replaced, deleted, inserted = above[j - 1] + other, above[j] + _DELETED, now[j - 1] + _INSERTED
            if replaced >> _COST < min(inserted >> _COST, deleted >> _COST):
                best = replaced
            else:
                best = deleted if deleted >> _COST < inserted >> _COST else inserted
            k = 2
            while k <= i and ref[i] - ref[i - k] <= hyp[j] - hyp[j - 1]:
                before = table[(i - k) % height, j - 1]
                if before >> _COST < best >> _COST and _same(codes, ref[i - k], ref[i], hyp[j - 1], hyp[j]):
                    best = before
                k += 1
            k = 2
            while k <= j and hyp[j] - hyp[j - k] <= ref[i] - ref[i - 1]:
                before = above[j - k]
                if before >> _COST < best >> _COST and _same(codes, hyp[j - k], hyp[j], ref[i - 1], ref[i]):
                    best = before
                k += 1
            now[j] = best
    last = table[rows % height, columns]
    insertions, deletions = (last >> _COUNT) & _COUNTED, last & _COUNTED
    return insertions, deletions, (last >> _COST) - insertions - deletions


@_jit
def _same(codes: np.ndarray, start: int, end: int, other: int, other_end: int) -> bool:
    if end - start != other_end - other:
        return False
    for at in range(end - start):
        if codes[start + at] != codes[other + at]:
            return False
    return True

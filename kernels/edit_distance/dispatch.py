"""Edit paths of pairs: plain for few, then compiled, with equal steps."""

from __future__ import annotations

import numpy as np

from . import ref

PLAIN_ROWS = 20_000
"""Rows of distances that a process computes in NumPy, about a quarter of a second, before it loads compiled code."""
_LONG_ROW = 256  # columns; a longer row counts as several
_plain_rows = 0


def align(
    reference: np.ndarray,
    reference_offsets: np.ndarray,
    estimate: np.ndarray,
    estimate_offsets: np.ndarray,
    symbols: int,
    path: np.ndarray,
) -> np.ndarray:
    """As `cpu.align`, with `ref.WHOLE_BYTES`."""
    global _plain_rows
    columns, rows = np.diff(reference_offsets), np.diff(estimate_offsets)
    _plain_rows += int((rows * (1 + columns // _LONG_ROW)).sum())
    if _plain_rows > PLAIN_ROWS:
        from .cpu import align as compiled

        return np.asarray(
            compiled(reference, reference_offsets, estimate, estimate_offsets, symbols, path, ref.WHOLE_BYTES)
        )
    counts = np.zeros((len(rows), 4), np.int64)
    left, right = reference.tolist(), estimate.tolist()
    for pair in range(len(rows)):
        a, b = reference_offsets[pair : pair + 2]
        c, d = estimate_offsets[pair : pair + 2]
        steps = ref.path(left[a:b], right[c:d])
        counts[pair] = np.bincount(steps, minlength=4)
        if path.size:
            path[path.size - len(steps) :] = steps
    return counts

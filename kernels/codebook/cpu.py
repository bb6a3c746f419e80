"""The same counts as in `ref.py`, compiled. The global interpreter lock is released."""

from __future__ import annotations

import numpy as np
from numba import njit

_DENSE = 1 << 24  # up to this many possible pairs are counted in a table; with more, the keys are sorted


@njit(cache=True, nogil=True)
def _histogram(codes: np.ndarray, cardinality: int, lengths: np.ndarray, counts: np.ndarray) -> None:
    for item in range(codes.shape[0]):
        for codebook in range(codes.shape[1]):
            for frame in range(min(lengths[item], codes.shape[2])):
                code = codes[item, codebook, frame]
                counts[codebook, code if 0 <= code < cardinality else cardinality] += 1


@njit(cache=True, nogil=True)
def _keys(
    codes: np.ndarray, cardinality: int, lengths: np.ndarray, step_codebook: int, step_frame: int, keys: np.ndarray
) -> int:
    found = 0
    for item in range(codes.shape[0]):
        length = min(lengths[item], codes.shape[2])
        for codebook in range(codes.shape[1] - step_codebook):
            for frame in range(length - step_frame):
                first = np.int64(codes[item, codebook, frame])
                second = np.int64(codes[item, codebook + step_codebook, frame + step_frame])
                if 0 <= first < cardinality and 0 <= second < cardinality:
                    keys[found] = (codebook * cardinality + first) * cardinality + second
                    found += 1
    return found


@njit(cache=True, nogil=True)
def _tally(keys: np.ndarray, table: np.ndarray) -> None:
    for key in keys:
        table[key] += 1


def histogram(codes: np.ndarray, cardinality: int, lengths: np.ndarray | None = None) -> np.ndarray:
    """As `ref.histogram`."""
    counts = np.zeros((codes.shape[1], cardinality + 1), np.int64)
    _histogram(codes, cardinality, _lengths(codes, lengths), counts)
    return counts


def pairs(
    codes: np.ndarray, cardinality: int, lengths: np.ndarray | None = None, frames: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """As `ref.pairs`."""
    keys = np.empty(codes.size, np.int64)
    keys = keys[: _keys(codes, cardinality, _lengths(codes, lengths), int(not frames), int(frames), keys)]
    size = codes.shape[1] * cardinality**2
    if size > min(_DENSE, 16 * len(keys)):  # a table that would stay mostly empty takes longer than sorting
        return np.unique(keys, return_counts=True)
    table = np.zeros(size, np.int64)
    _tally(keys, table)
    found = np.flatnonzero(table)
    return found, table[found]


def _lengths(codes: np.ndarray, lengths: np.ndarray | None) -> np.ndarray:
    if lengths is None:
        return np.full(len(codes), codes.shape[2], np.int64)
    return np.ascontiguousarray(lengths, dtype=np.int64)

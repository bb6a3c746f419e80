"""Counts of codes and of pairs of codes, in NumPy.

Conventions
    Codes are integers `(items, codebooks, frames)`; `lengths` `(items,)` says how many frames of each item are counted.
"""

from __future__ import annotations

import numpy as np


def histogram(codes: np.ndarray, cardinality: int, lengths: np.ndarray | None = None) -> np.ndarray:
    """Counts `(codebooks, cardinality + 1)`, int64; the last column counts codes outside [0, cardinality)."""
    counts = np.zeros((codes.shape[1], cardinality + 1), np.int64)
    for item, length in zip(codes, _lengths(codes, lengths)):
        for codebook, values in enumerate(item[:, :length]):
            outside = (values < 0) | (values >= cardinality)
            np.add.at(counts[codebook], np.where(outside, cardinality, values), 1)
    return counts


def pairs(
    codes: np.ndarray, cardinality: int, lengths: np.ndarray | None = None, frames: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Keys `(place * cardinality + first) * cardinality + second` in rising order and their counts, int64.

    A pair is the codes of codebooks q and q + 1 in one frame, or with `frames`, those of frames t and t + 1 in one
    codebook; `place` is the codebook of the first code. A pair with a code outside [0, cardinality) is left out.
    """
    seen: dict[int, int] = {}
    for item, length in zip(codes.astype(np.int64), _lengths(codes, lengths)):
        values = item[:, :length]
        first, second = (values[:, :-1], values[:, 1:]) if frames else (values[:-1], values[1:])
        good = (first >= 0) & (first < cardinality) & (second >= 0) & (second < cardinality)
        places = np.broadcast_to(np.arange(len(first))[:, None], first.shape)
        for key in ((places * cardinality + first) * cardinality + second)[good].tolist():
            seen[key] = seen.get(key, 0) + 1
    keys = sorted(seen)
    return np.asarray(keys, np.int64), np.asarray([seen[key] for key in keys], np.int64)


def _lengths(codes: np.ndarray, lengths: np.ndarray | None) -> np.ndarray:
    return np.full(len(codes), codes.shape[2]) if lengths is None else np.asarray(lengths)

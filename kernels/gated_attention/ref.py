"""Attention with gated bias: softmax(q k / sqrt(width) + gate * bias) v.

That of S. Chen et al., "WavLM", JSTSP 2022, section III-B, of each item's own frames, in float64.
"""

from __future__ import annotations

import numpy as np


def attend(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, gate: np.ndarray, by_distance: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """The package's `attend`, float64 `(items, heads, frames, width)`, zero-padded."""
    out = np.zeros(q.shape)
    for item, count in enumerate(counts):
        positions = np.arange(count)
        bias = by_distance[:, positions[None, :] - positions[:, None] + q.shape[2] - 1] * np.float64(
            gate[item, :, :count]
        )
        one_q, one_k, one_v = (x[item, :, :count].astype(np.float64) for x in (q, k, v))
        scores = one_q @ one_k.swapaxes(1, 2) / np.sqrt(q.shape[3]) + bias
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        out[item, :, :count] = weights / weights.sum(-1, keepdims=True) @ one_v
    return out

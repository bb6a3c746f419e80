"""A convolution over time with a stride of one, in NumPy and float64."""

from __future__ import annotations

import numpy as np


def convolve(
    x: np.ndarray, taps: np.ndarray, bias: np.ndarray | None = None, padding: int = 0, dilation: int = 1
) -> np.ndarray:
    """Sums: `(items, outputs, frames + 2 padding - dilation (kernel - 1))`."""
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding)))
    frames = wide.shape[2] - dilation * (len(taps) - 1)
    y = np.zeros((len(x), taps.shape[1], frames))
    for tap, matrix in enumerate(taps.astype(np.float64)):
        y += matrix @ wide[:, :, tap * dilation : tap * dilation + frames]
    return y if bias is None else y + bias.astype(np.float64)[:, None]

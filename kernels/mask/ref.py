"""An activation of items' own frames, then zeros, in NumPy and float64.

ELU is Clevert et al. 2016 (arXiv:1511.07289) with alpha 1, as in EnCodec; Snake is Ziyin et al. 2020 (arXiv:2006.08195)
with DAC's 1e-9 added to alpha.
"""

from __future__ import annotations

import numpy as np


def activate(
    x: np.ndarray, lengths: np.ndarray, activation: str = "identity", alpha: np.ndarray | None = None
) -> np.ndarray:
    """Apply it to `(items, channels, frames)`, with zeros after each item."""
    y = np.zeros(x.shape)
    for item, length in enumerate(lengths):
        values = x[item, :, :length].astype(np.float64)
        if activation == "elu":
            values = np.where(values > 0, values, np.expm1(np.minimum(values, 0)))
        elif activation == "snake":
            a = np.asarray(alpha, np.float64).reshape(-1, 1)
            values = values + np.square(np.sin(a * values)) / (a + 1e-9)
        y[item, :, :length] = values
    return y

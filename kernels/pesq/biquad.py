"""A filter of second order, in numba. It has a file of its own because what needs nothing else is then loaded soon."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True, error_model="numpy")
def filtered(signal: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """A signal `(samples,)` after one section in its second direct form, in the signal's precision.

    Args:
        coefficients: three of the input, then two of the output, in the same precision.
    """
    b0, b1, b2, a1, a2 = coefficients
    out = np.empty_like(signal)
    before = earlier = signal.dtype.type(0.0)
    for at in range(signal.size):
        state = signal[at] - a1 * before - a2 * earlier
        out[at] = b0 * state + b1 * before + b2 * earlier
        earlier = before
        before = state
    return out

"""Non-speech signals of another's length: the farthest from speech for a score.

Uniform and normal noise are seeded by the signal's own 16-bit samples: the same everywhere for one signal, different
for signals of one length.
"""

from __future__ import annotations

import hashlib

import numpy as np

NOISES = ("uniform", "normal", "ones", "zeros")
FULL_SCALE = 32767.0


def noises(signal: np.ndarray) -> np.ndarray:
    """Return noises as long as a signal, float32 `(4, samples)`, as in NOISES.

    uniform: independent in [-1, 1]. normal: standard normal, divided by the largest magnitude. ones, zeros: constant.

    Args:
        signal: float32 `(samples,)`, finite.
    """
    quantised = np.clip(np.round(signal.astype(np.float64) * FULL_SCALE), -FULL_SCALE, FULL_SCALE).astype("<i2")
    seed = int.from_bytes(hashlib.blake2b(quantised.tobytes(), digest_size=16).digest(), "big")
    rng = np.random.Generator(np.random.PCG64(seed))
    out = np.empty((len(NOISES), signal.size), np.float32)
    out[0] = rng.uniform(-1.0, 1.0, signal.size)
    normal = rng.standard_normal(signal.size)
    out[1] = normal / max(float(np.abs(normal).max(initial=0.0)), np.finfo(np.float64).tiny)
    out[2], out[3] = 1.0, 0.0
    return out

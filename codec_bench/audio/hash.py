"""The hash of a signal. Equal samples at an equal rate have an equal hash, whatever file they came from."""

from __future__ import annotations

import hashlib

import numpy as np


def content_hash(samples: np.ndarray, sample_rate_hz: int) -> str:
    """A 160-bit hash of float32 samples `(channels, samples)` or `(samples,)` and their rate, as hexadecimal."""
    samples = np.ascontiguousarray(samples, dtype=np.float32)
    digest = hashlib.blake2b(digest_size=20)
    digest.update(f"{sample_rate_hz}:{samples.shape}:".encode())
    digest.update(samples.view(np.uint8).reshape(-1).data)
    return digest.hexdigest()

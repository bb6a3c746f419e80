"""The sound that tests of codecs use: a tone that glides, with noise."""

from __future__ import annotations

import numpy as np

from codec_bench.types import Audio


def glide(length: int, seed: int = 0, rate_hz: int = 16000) -> Audio:
    """A glide of so many samples, with noise that depends on seed and length."""
    noise = np.random.default_rng([seed, length]).standard_normal(length)
    return Audio(_tone(length, rate_hz) + 0.05 * noise, rate_hz)


def golden_glide(length: int) -> Audio:
    """The glide at 16 kHz whose codes and waves the golden files hold."""
    noise = np.random.RandomState(length).standard_normal(length)
    return Audio((_tone(length, 16000) + 0.05 * noise).astype(np.float32), 16000)


def _tone(length: int, rate_hz: int) -> np.ndarray:
    time = np.arange(length) / rate_hz
    return 0.3 * np.sin(2 * np.pi * (150 * time + 200 * time**2))

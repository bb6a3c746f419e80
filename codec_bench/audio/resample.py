"""Changes sample rates (soxr HQ) and the number of channels (mean).

`SIGNALS` names this preparation for all metrics and features. It is part of every run's fingerprint.
"""

from __future__ import annotations

import numpy as np

from codec_bench.types import Audio

SIGNALS = "mono-mean/soxr-hq/cut-to-1"
"""A scale-independent metric gets unclipped signals, and its protocol says so."""


def resampled_length(num_samples: int, from_hz: int, to_hz: int) -> int:
    """Return the length after resampling: rounded half up, and at least one sample."""
    return max(1, (2 * num_samples * to_hz + from_hz) // (2 * from_hz)) if num_samples else 0


def fit_length(samples: np.ndarray, length: int) -> np.ndarray:
    """Cut the last axis, or extend it with zeros, to `length`."""
    missing = length - samples.shape[-1]
    if missing == 0:
        return samples
    if missing < 0:
        return samples[..., :length]
    return np.concatenate([samples, np.zeros((*samples.shape[:-1], missing), samples.dtype)], axis=-1)


def resample(samples: np.ndarray, from_hz: int, to_hz: int) -> np.ndarray:
    """Resample the last axis of float32 `(samples,)` or `(channels, samples)`.

    Returns:
        float32, with exactly `resampled_length` samples.
    """
    if from_hz == to_hz:
        return samples
    import soxr

    length = resampled_length(samples.shape[-1], from_hz, to_hz)
    out = soxr.resample(np.ascontiguousarray(samples.T), from_hz, to_hz, quality="HQ").T
    return np.ascontiguousarray(fit_length(out, length), dtype=np.float32)


def to_rate(audio: Audio, rate_hz: int) -> Audio:
    """Resample all channels."""
    same = audio.sample_rate_hz == rate_hz
    return audio if same else Audio(resample(audio.samples, audio.sample_rate_hz, rate_hz), rate_hz)


def mono(samples: np.ndarray) -> np.ndarray:
    """Average the channels: float32 `(channels, samples)` to `(samples,)`."""
    return samples[0] if samples.shape[0] == 1 else samples.mean(axis=0, dtype=np.float32)


def to_signal(audio: Audio, rate_hz: int | None) -> np.ndarray:
    """Convert to one channel at a rate (None: its own), with unchanged level.

    Returns:
        float32 `(samples,)`; beyond [-1, 1] where the audio or the resampler overshoots.
    """
    return resample(mono(audio.samples), audio.sample_rate_hz, rate_hz or audio.sample_rate_hz)


def cut(signal: np.ndarray) -> np.ndarray:
    """Clip the signal to [-1, 1] as a sound card would.

    Codecs and resamplers overshoot, and several networks refuse |x| > 1. A listener hears the clipped signal; rescaling
    would change every level-dependent score.
    """
    if signal.size and max(signal.max(), -signal.min()) > 1.0:
        return np.clip(signal, -1.0, 1.0)
    return signal


def prepare(audio: Audio, rate_hz: int | None) -> np.ndarray:
    """Return the signal for features and metrics: `to_signal`, clipped to [-1, 1]."""
    return cut(to_signal(audio, rate_hz))

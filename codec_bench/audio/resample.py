"""Changing the sample rate and the number of channels. There is one way: soxr at high quality, and the mean of the
channels.

`SIGNALS` names how the signals of all metrics and features are made. It is part of every run's fingerprint.
"""

from __future__ import annotations

import numpy as np

from codec_bench.types import Audio

SIGNALS = "mono-mean/soxr-hq/cut-to-1"
"""A metric that does not depend on the scale gets its signals uncut, and its protocol says so."""


def resampled_length(num_samples: int, from_hz: int, to_hz: int) -> int:
    """How many samples a signal has after resampling: the nearest integer, halves rounded up, and at least one."""
    return max(1, (2 * num_samples * to_hz + from_hz) // (2 * from_hz)) if num_samples else 0


def fit_length(samples: np.ndarray, length: int) -> np.ndarray:
    """Cuts the last axis, or extends it with zeros, to `length`."""
    missing = length - samples.shape[-1]
    if missing == 0:
        return samples
    if missing < 0:
        return samples[..., :length]
    return np.concatenate([samples, np.zeros((*samples.shape[:-1], missing), samples.dtype)], axis=-1)


def resample(samples: np.ndarray, from_hz: int, to_hz: int) -> np.ndarray:
    """Resamples the last axis.

    Args:
        samples: float32 `(samples,)` or `(channels, samples)`.

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
    """The same sound at another rate, all channels."""
    return (
        audio
        if audio.sample_rate_hz == rate_hz
        else Audio(resample(audio.samples, audio.sample_rate_hz, rate_hz), rate_hz)
    )


def mono(samples: np.ndarray) -> np.ndarray:
    """float32 `(channels, samples)` to `(samples,)`: the mean of the channels."""
    return samples[0] if samples.shape[0] == 1 else samples.mean(axis=0, dtype=np.float32)


def to_signal(audio: Audio, rate_hz: int | None) -> np.ndarray:
    """One channel at one rate, with the level that the audio has.

    Args:
        audio: any number of channels, at any rate.
        rate_hz: the rate of the result; None keeps the audio's own.

    Returns:
        float32 `(samples,)`; beyond [-1, 1] where the audio is, and where a resampler overshoots.
    """
    return resample(mono(audio.samples), audio.sample_rate_hz, rate_hz or audio.sample_rate_hz)


def cut(signal: np.ndarray) -> np.ndarray:
    """The signal clipped to [-1, 1] as a sound card would clip it. A signal within full scale is returned as it is.

    Codecs and resamplers overshoot, and several networks refuse |x| > 1. A listener hears the clipped signal; rescaling
    would change every score that depends on the level.
    """
    if signal.size and max(signal.max(), -signal.min()) > 1.0:
        return np.clip(signal, -1.0, 1.0)
    return signal


def prepare(audio: Audio, rate_hz: int | None) -> np.ndarray:
    """The signal that features and most metrics read: mono, at one rate, cut to [-1, 1].

    Arguments and result are those of `to_signal`.
    """
    return cut(to_signal(audio, rate_hz))

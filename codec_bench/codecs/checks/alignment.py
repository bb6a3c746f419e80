"""Delay and polarity of an estimate by cross-correlation.

Delays are samples at the codec's rate, positive if the estimate is late. Waveforms are correlated from 300 Hz on with a
pre-emphasis of 6 dB an octave: speech coders cut below 80 Hz, which shifts the phase of low voices and would give
wrong, negative peaks. Codecs of low bitrates preserve some bands only. `align_coherent` weights bands by the variance
of their phase from the coherence over 32 ms frames (Hannan and Thomson, Biometrika 58, 1971).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_LOWEST_HZ, _SLOPE_HZ = 300.0, 100.0
"""Where the weights are a half, and the width of their rise from 0 to 1."""
_EMPHASIS = 0.9
_PARTS, _NEWTON_STEPS = 4, 5
"""The search divides a sample into parts, and ends with steps of Newton's method."""
_FRAME_S = 0.032
_COHERENT = 0.1
"""The least coherence (power) of a band that counts, plus three times chance, one over the number of frames."""
_LEAST_HZ = 300.0
"""The least common spectrum, so that the phases of a few bands do not pass for a delay."""


@dataclass(frozen=True, slots=True)
class DelayEstimate:
    """The delay at which the cross-correlation of two signals is largest in size.

    Args:
        delay_samples: positive if the estimate is late; may be a fraction.
        correlation: normalised, -1 to 1; negative if one signal is inverted.
    """

    delay_samples: float
    correlation: float


def align_waves(reference: np.ndarray, estimate: np.ndarray, rate_hz: int, longest_samples: int) -> DelayEstimate:
    """Estimate the delay between waveforms `(channels, samples)`, spectrally weighted.

    Args:
        longest_samples: the largest delay that is searched, in both directions.
    """
    return _align(reference, estimate, longest_samples, rate_hz)


def align_envelopes(reference: np.ndarray, estimate: np.ndarray, longest_samples: int) -> DelayEstimate:
    """Estimate the delay between envelopes `(samples,)`, without their means.

    Args:
        longest_samples: the largest delay that is searched, in both directions.
    """
    return _align((reference - reference.mean())[None], (estimate - estimate.mean())[None], longest_samples, None)


def align_coherent(reference: np.ndarray, estimate: np.ndarray, rate_hz: int, about_samples: float) -> DelayEstimate:
    """Estimate the delay between waveforms from coherent bands, near 0 or a guess.

    The returned correlation says how well one delay explains the bands' phases; it is 0 if too few bands are coherent.

    Args:
        about_samples: the guess.
    """
    candidates = [_coherent(reference, estimate, rate_hz, about) for about in {0, round(about_samples)}]
    return max(candidates, key=lambda one: one[1])[0]


def _coherent(reference: np.ndarray, estimate: np.ndarray, rate_hz: int, about: int) -> tuple[DelayEstimate, float]:
    """Estimate the delay from coherent frequency bands, near a known rough delay.

    Args:
        reference, estimate: `(channels, samples)`.
        about: the rough delay in samples.

    Returns:
        The delay, and the total weight of coherent bands; zeros if too few bands are coherent.
    """
    hop = 32 * max(1, round(_FRAME_S * rate_hz / 64))  # a length with a fast transform
    length = reference.shape[1] - abs(about)
    if length < 4 * hop:
        return DelayEstimate(0.0, 0.0), 0.0
    starts = max(0, -about), max(0, about)
    cut = [x[:, start : start + length].astype(np.float64) for x, start in zip((reference, estimate), starts)]
    window = np.hanning(2 * hop)
    frames = [np.lib.stride_tricks.sliding_window_view(x, 2 * hop, axis=1)[:, ::hop] * window for x in cut]
    a, b = (np.fft.rfft(x, 4 * hop).reshape(-1, 2 * hop + 1) for x in frames)
    cross = (np.conj(a) * b).sum(axis=0)
    power = (np.abs(a) ** 2).sum(axis=0) * (np.abs(b) ** 2).sum(axis=0)
    coherence = np.minimum(np.abs(cross) ** 2 / np.maximum(power, 1e-30), 0.99)
    counts = coherence > _COHERENT + 3 / len(a)
    weights = np.where(counts, coherence / (1 - coherence), 0.0)
    total = float(weights.sum())
    if counts.sum() < _LEAST_HZ * 4 * hop / rate_hz:
        return DelayEstimate(0.0, 0.0), 0.0
    lags = np.fft.irfft(weights * cross / np.maximum(np.abs(cross), 1e-30), 4 * hop * _PARTS)
    best = int(np.abs(lags).argmax())
    parts = best if best < len(lags) // 2 else best - len(lags)
    return DelayEstimate(about + parts / _PARTS, float(lags[best]) * len(lags) / 2 / total), total


def _align(reference: np.ndarray, estimate: np.ndarray, longest: int, rate_hz: int | None) -> DelayEstimate:
    """Find the lag of the largest absolute cross-correlation, to sub-sample accuracy.

    Args:
        reference, estimate: `(channels, samples)`.
        longest: the largest lag in samples that is searched, in both directions.
        rate_hz: emphasises high frequencies of audio at this rate; None correlates the signals as they are.
    """
    length = reference.shape[1]
    longest = min(longest, length - 1)
    size = quick_size(length + longest + 1)
    spectra = [np.fft.rfft(signal.astype(np.float64), size) for signal in (reference, estimate)]
    if rate_hz is not None:
        weights = _weights(size, rate_hz)
        spectra = [spectrum * weights for spectrum in spectra]
    power = float(np.sqrt(np.prod([(np.abs(spectrum) ** 2).sum() for spectrum in spectra])))
    if power == 0.0:
        return DelayEstimate(0.0, 0.0)
    cross = (np.conj(spectra[0]) * spectra[1]).sum(axis=0)
    # Search the maximum at quarter samples: halfway between samples, bright sounds correlate with the wrong sign.
    # Newton's method then finds the zero of the derivative.
    near = np.fft.rfft(np.fft.irfft(cross, size)[np.arange(-longest, longest)])
    best = int(np.abs(np.fft.irfft(near, 2 * longest * _PARTS)).argmax()) / _PARTS - longest
    turn = 2 * np.pi / size * np.arange(len(cross))
    lag = best
    for _ in range(_NEWTON_STEPS):
        moved = cross * np.exp(1j * turn * lag)
        slope, bend = -(turn * moved.imag).sum(), -(turn**2 * moved.real).sum()
        lag = float(np.clip(lag - slope / bend if bend else lag, best - 1 / _PARTS, best + 1 / _PARTS))
    peak = float((cross * np.exp(1j * turn * lag)).real.sum())
    return DelayEstimate(lag, float(np.clip(peak / power, -1.0, 1.0)))


def quick_size(least: int) -> int:
    """Return the smallest even FFT length from `least` without a prime above 5."""
    powers = [3**n * 5**m for n in range(least.bit_length()) for m in range(least.bit_length()) if 3**n * 5**m <= least]
    return min(odd << max(1, (-(-least // odd) - 1).bit_length()) for odd in powers)


def _weights(size: int, rate_hz: int) -> np.ndarray:
    frequency = np.arange(size // 2 + 1) * rate_hz / size
    emphasis = np.abs(1 - _EMPHASIS * np.exp(-2j * np.pi * frequency / rate_hz))
    return np.clip((frequency - _LOWEST_HZ) / _SLOPE_HZ + 0.5, 0.0, 1.0) * emphasis

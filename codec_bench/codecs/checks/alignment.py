"""By how much an estimate is late, and whether it has the polarity of its reference, by cross-correlation.

Conventions
    Delays are in samples at the codec's rate, positive if the estimate is late.
    Waveforms are correlated from 300 Hz on, with the highs raised by 6 dB an octave (`_weights`). Speech coders take out
    what lies below 80 Hz, which turns the phase of a low voice by up to half a period: its plain correlation is largest
    at a wrong place, and negative there, although nothing is late and nothing is turned over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_LOWEST_HZ, _SLOPE_HZ = 300.0, 100.0
"""Where the weights are a half, and over how many Hz they rise from 0 to 1."""
_EMPHASIS = 0.9
_PARTS, _NEWTON_STEPS = 4, 5
"""The search for a delay divides a sample into so many parts, and ends with so many steps of Newton's method."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Where the cross-correlation of two signals is largest in size.

    Args:
        delay_samples: by how much the estimate is late; a fraction is possible.
        correlation: the normalised cross-correlation there, from -1 to 1; negative if one signal is turned over.
    """

    delay_samples: float
    correlation: float


def align_waves(reference: np.ndarray, estimate: np.ndarray, rate_hz: int, longest_samples: int) -> Alignment:
    """The alignment of two waveforms `(channels, samples)`; the weighting is explained at the top of this module."""
    return _align(reference, estimate, longest_samples, rate_hz)


def align_envelopes(reference: np.ndarray, estimate: np.ndarray, longest_samples: int) -> Alignment:
    """The alignment of two envelopes `(samples,)`, without their means."""
    return _align((reference - reference.mean())[None], (estimate - estimate.mean())[None], longest_samples, None)


def _align(reference: np.ndarray, estimate: np.ndarray, longest: int, rate_hz: int | None) -> Alignment:
    length = reference.shape[1]
    size = 1 << (2 * length - 1).bit_length()
    spectra = [np.fft.rfft(signal.astype(np.float64), size) for signal in (reference, estimate)]
    if rate_hz is not None:
        spectra = [spectrum * _weights(size, rate_hz) for spectrum in spectra]
    power = float(np.sqrt(np.prod([(np.abs(spectrum) ** 2).sum() for spectrum in spectra])))
    if power == 0.0:
        return Alignment(0.0, 0.0)
    cross = (np.conj(spectra[0]) * spectra[1]).sum(axis=0)
    longest = min(longest, length - 1)
    # The largest value is looked for at quarters of samples: halfway between two samples the correlation of bright sounds
    # is largest in size with the wrong sign. From there Newton's method finds the place where it stops to change.
    lags = np.arange(-longest * _PARTS, longest * _PARTS + 1)
    best = float(lags[np.abs(np.fft.irfft(cross, size * _PARTS)[lags]).argmax()]) / _PARTS
    turn = 2 * np.pi / size * np.arange(len(cross))
    lag = best
    for _ in range(_NEWTON_STEPS):
        moved = cross * np.exp(1j * turn * lag)
        slope, bend = -(turn * moved.imag).sum(), -(turn**2 * moved.real).sum()
        lag = float(np.clip(lag - slope / bend if bend else lag, best - 1 / _PARTS, best + 1 / _PARTS))
    peak = float((cross * np.exp(1j * turn * lag)).real.sum())
    return Alignment(lag, float(np.clip(peak / power, -1.0, 1.0)))


def _weights(size: int, rate_hz: int) -> np.ndarray:
    frequency = np.arange(size // 2 + 1) * rate_hz / size
    emphasis = np.abs(1 - _EMPHASIS * np.exp(-2j * np.pi * frequency / rate_hz))
    return np.clip((frequency - _LOWEST_HZ) / _SLOPE_HZ + 0.5, 0.0, 1.0) * emphasis

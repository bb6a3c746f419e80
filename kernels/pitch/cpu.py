"""The pitch tracker in numba with SciPy's FFT, float32 up to the autocorrelation.

It agrees with `ref` to 1e-4 of the pitch, unless two paths are almost equally good. Viterbi's algorithm chooses among
each frame's candidates, not among bins of pitch.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ..compilation.cpu import jit
from .ref import (
    CANDIDATES,
    CEILING_HZ,
    FFT,
    FINER,
    FIRST_LAG,
    FLOOR_HZ,
    HALF,
    HOP,
    INAUDIBLE,
    JUMP_COST,
    LAGS,
    LONGEST,
    OCTAVE_COST,
    RATE_HZ,
    SILENCE,
    VOICING,
    VOICING_COST,
    autocorrelation,
    num_frames,
    window,
)

BLOCK = 64  # frames that are transformed together; they take 0.8 MB
_EDGE = HALF + LONGEST
_NEAR = LONGEST // 2 + 1

_jit = jit(nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")


@cache
def _tables() -> tuple[np.ndarray, np.ndarray]:
    """Return the window, and the factors from a frame's autocorrelation to that of the voice."""
    of_window = autocorrelation(window())
    return window().astype(np.float32), (of_window[0] / of_window).astype(np.float32)


@_jit
def _frames(
    padded: np.ndarray, first: int, count: int, weights: np.ndarray, frames: np.ndarray, peaks: np.ndarray
) -> None:
    for t in range(count):
        centre = (first + t) * HOP + _EDGE
        total = np.float32(0.0)
        for i in range(centre - LONGEST, centre + LONGEST):
            total += padded[i]
        mean = total / np.float32(2 * LONGEST)
        start = centre - HALF
        for i in range(2 * HALF):
            frames[t, i] = (padded[start + i] - mean) * weights[i]
        peak = np.float32(0.0)
        for i in range(HALF - _NEAR, HALF + _NEAR):
            peak = max(peak, abs(frames[t, i]))
        peaks[first + t] = peak


@_jit
def _power(spectrum: np.ndarray, power: np.ndarray) -> None:
    for t in range(spectrum.shape[0]):
        for k in range(spectrum.shape[1]):
            value = spectrum[t, k]
            power[t, k] = value.real * value.real + value.imag * value.imag
        power[t, spectrum.shape[1] - 1] *= np.float32(0.5)


@_jit
def _candidates(
    correlations: np.ndarray,
    correction: np.ndarray,
    first: int,
    pitches: np.ndarray,
    strengths: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Fill `pitches` and `strengths` (less the cost of the octave) from row `first` and index 1 on."""
    corrected = np.empty(LAGS, np.float32)
    for t in range(correlations.shape[0]):
        energy = correlations[t, 0]
        count = 1
        if energy > 0.0:
            scale = np.float32(1.0) / energy
            for lag in range(FIRST_LAG - 1, LAGS):
                corrected[lag] = correlations[t, lag] * correction[lag] * scale
            for lag in range(FIRST_LAG, LAGS - 1):
                here, left, right = corrected[lag], corrected[lag - 1], corrected[lag + 1]
                if not (here > 0.5 * VOICING and here > left and here >= right):
                    continue
                slope, curvature = 0.5 * (float(right) - left), 2.0 * float(here) - left - right
                pitch = FINER * RATE_HZ / (lag + slope / curvature)
                if pitch < FLOOR_HZ or pitch > CEILING_HZ:
                    continue
                strength = here + 0.5 * slope * slope / curvature
                strength = strength if strength <= 1.0 else 1.0 / strength
                strength -= OCTAVE_COST * math.log2(CEILING_HZ / pitch)
                slot = count
                if count == CANDIDATES:  # the weakest (of equal ones the last) is dropped, the others keep their order
                    slot = 1
                    for n in range(2, CANDIDATES):
                        if strengths[first + t, n] <= strengths[first + t, slot]:
                            slot = n
                    if strength <= strengths[first + t, slot]:
                        continue
                    for n in range(slot, CANDIDATES - 1):
                        pitches[first + t, n] = pitches[first + t, n + 1]
                        strengths[first + t, n] = strengths[first + t, n + 1]
                    slot = CANDIDATES - 1
                else:
                    count += 1
                pitches[first + t, slot] = pitch
                strengths[first + t, slot] = strength
        counts[first + t] = count


@_jit
def _best_path(
    pitches: np.ndarray, strengths: np.ndarray, counts: np.ndarray, peaks: np.ndarray, loudest: float, f0: np.ndarray
) -> None:
    frames = counts.size
    octaves = np.zeros((frames, CANDIDATES))
    back = np.zeros((frames, CANDIDATES), np.int8)
    for t in range(frames):
        intensity = min(1.0, peaks[t] / loudest)
        pitches[t, 0] = 0.0
        strengths[t, 0] = VOICING + max(0.0, 2.0 - intensity * (1.0 + VOICING) / SILENCE)
        for n in range(1, counts[t]):
            octaves[t, n] = math.log2(pitches[t, n])
    total = strengths[0].copy()
    after = np.empty(CANDIDATES)
    for t in range(1, frames):
        for n in range(counts[t]):
            best, previous = -np.inf, 0
            for m in range(counts[t - 1]):
                if m == 0 or n == 0:
                    value = total[m] - (0.0 if m == n else VOICING_COST)
                else:
                    value = total[m] - JUMP_COST * abs(octaves[t - 1, m] - octaves[t, n])
                if value > best:
                    best, previous = value, m
            after[n] = best + strengths[t, n]
            back[t, n] = previous
        total, after = after, total
    previous = 0
    for n in range(1, counts[frames - 1]):
        if total[n] > total[previous]:
            previous = n
    for t in range(frames - 1, -1, -1):
        f0[t] = pitches[t, previous]
        previous = back[t, previous]


def track(signal: np.ndarray) -> np.ndarray:
    """Pitch in Hz per frame of a signal `(samples,)` at 16 kHz; 0 if unvoiced.

    Returns:
        float32 `(frames,)`, a frame every 160 samples, the first at the signal's beginning.
    """
    from scipy import fft

    count = num_frames(signal.size)
    f0 = np.zeros(count, np.float32)
    if count == 0:
        return f0
    mean = signal.mean(dtype=np.float64)
    loudest = float(max(signal.max() - mean, mean - signal.min()))
    if loudest < INAUDIBLE:
        return f0
    weights, correction = _tables()
    padded = np.zeros(count * HOP + 2 * _EDGE, np.float32)
    padded[_EDGE : _EDGE + signal.size] = signal
    frames, peaks = np.zeros((BLOCK, FFT), np.float32), np.empty(count, np.float32)
    power = np.empty((BLOCK, FFT // 2 + 1), np.float32)
    pitches, strengths = np.empty((count, CANDIDATES)), np.empty((count, CANDIDATES))
    counts = np.empty(count, np.int64)
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        _frames(padded, first, size, weights, frames, peaks)
        _power(fft.rfft(frames[:size], workers=1), power)
        correlations = fft.irfft(power[:size], FINER * FFT, workers=1)
        _candidates(correlations, correction, first, pitches, strengths, counts)
    _best_path(pitches, strengths, counts, peaks, loudest, f0)
    return f0

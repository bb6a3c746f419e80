"""PESQ in numba with SciPy's FFT.

It agrees with `ref` as far as rounding lets it. It is fast for these reasons: the filter for alignment works on all its
sections and both signals at once, each a sample behind the one before, and rounds as one after another would; frames
are correlated in blocks in single precision; a histogram of lags is only touched near peaks; and loudness is only
computed above the threshold of hearing.
"""

from __future__ import annotations

import functools
import math

import numba
import numpy as np
from scipy import fft

from . import delays, ref
from .biquad import filtered
from .delays import Aligned
from .tables import Mode

BLOCK = 32  # frames that are transformed together; they stay in the cache
_jit = numba.njit(cache=True, nogil=True, error_model="numpy")
_fast = numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
_LEAST_RATIO = 3.0 ** (1.0 / 1.2)

_soften = _jit(delays.soften)
_hann = functools.cache(delays.hann)
_exponents = functools.cache(ref.exponents)


@functools.cache
def _edges(mode: Mode) -> np.ndarray:
    return np.append(0, np.cumsum(mode.bins))


def section(signal: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """What `ref.section` gives, to the last bit."""
    return filtered(signal, coefficients.astype(np.float32))


@_jit
def _cascade(x: np.ndarray, y: np.ndarray, sections: np.ndarray, out: np.ndarray) -> None:
    lanes = sections.shape[1]
    delay = lanes // 2 - 1
    given = np.zeros(lanes + 2, dtype=np.float32)
    before = np.zeros(lanes, dtype=np.float32)
    earlier = np.zeros(lanes, dtype=np.float32)
    result = np.zeros(lanes, dtype=np.float32)
    for at in range(x.size + delay):
        inside = at < x.size
        given[0] = x[at] if inside else np.float32(0.0)
        given[1] = y[at] if inside else np.float32(0.0)
        for k in range(lanes):
            state = given[k] - sections[3, k] * before[k] - sections[4, k] * earlier[k]
            result[k] = sections[0, k] * state + sections[1, k] * before[k] + sections[2, k] * earlier[k]
            earlier[k] = before[k]
            before[k] = state
        for k in range(lanes):
            given[k + 2] = result[k]
        if at >= delay:
            out[0, at - delay] = result[lanes - 2]
            out[1, at - delay] = result[lanes - 1]


def _aligned(x: np.ndarray, y: np.ndarray, mode: Mode) -> np.ndarray:
    out = np.empty((2, x.size), dtype=np.float32)
    sections = np.ascontiguousarray(np.repeat(mode.alignment_filter, 2, axis=0).T.astype(np.float32))
    _cascade(ref.without_offset(x, mode), ref.without_offset(y, mode), sections, out)
    return out


@_fast
def _windowed(
    x: np.ndarray, y: np.ndarray, starts: np.ndarray, delay: int, window: np.ndarray, out: np.ndarray
) -> None:
    for frame in range(starts.size):
        at = starts[frame]
        for i in range(window.size):
            out[0, frame, i] = window[i] * x[at + i]
            out[1, frame, i] = window[i] * y[at + delay + i]


@_fast
def _collect(height: np.ndarray, histogram: np.ndarray) -> float:
    total = 0.0
    size = histogram.size
    spread = size // 64
    top = np.float32(0.0)
    for lag in range(size):
        top = max(top, abs(height[lag]))
    top *= np.float32(0.99)
    weight = float(top) ** 0.125
    for lag in range(size):
        if abs(height[lag]) > top:
            total += weight
            for k in range(1 - spread, spread):
                histogram[(lag + k) % size] += weight * (spread - abs(k)) / spread
    return total


@_jit
def _histograms(
    heights: np.ndarray, done: int, total: float, histogram: np.ndarray, counts: np.ndarray, out: np.ndarray
) -> float:
    for frame in range(heights.shape[0]):
        total += _collect(heights[frame], histogram)
        for n in range(counts.size):
            if counts[n] == done + frame + 1 and total > 0.0:
                lag = np.argmax(histogram)
                out[n, 0] = lag
                out[n, 1] = histogram[lag] / total
    return total


def prefixes(pair: Aligned, starts: np.ndarray, delay: int, counts: list[int]) -> list[tuple[int, float]]:
    """What `delays.prefixes` finds."""
    histogram, out, total = np.zeros(pair.frame), np.zeros((len(counts), 2)), 0.0
    wanted, window = np.array(counts), _hann(pair.frame).astype(np.float32)
    for first in range(0, len(starts), BLOCK):
        block = starts[first : first + BLOCK]
        frames = np.empty((2, block.size, pair.frame), dtype=np.float32)
        _windowed(pair.reference, pair.estimate, block, delay, window, frames)
        spectra = fft.rfft(frames)
        product = np.conj(spectra[0]) * spectra[1]
        total = _histograms(fft.irfft(product, pair.frame), first, total, histogram, wanted, out)
    half = pair.frame // 2
    return [(delay + int(lag) - (pair.frame if lag >= half else 0), float(confidence)) for lag, confidence in out]


@_fast
def _frames(signal: np.ndarray, starts: np.ndarray, window: np.ndarray) -> np.ndarray:
    out = np.zeros((starts.size, window.size))
    for frame in range(starts.size):
        at = starts[frame]
        if 0 < at < signal.size - window.size:
            for i in range(window.size):
                out[frame, i] = window[i] * signal[at + i]
    return out


@_fast
def _bands(spectra: np.ndarray, edges: np.ndarray, scale: np.ndarray) -> np.ndarray:
    out = np.empty((spectra.shape[0], scale.size))
    for frame in range(spectra.shape[0]):
        for band in range(scale.size):
            power = 0.0
            for k in range(max(1, edges[band]), edges[band + 1]):
                value = spectra[frame, k]
                power += value.real * value.real + value.imag * value.imag
            out[frame, band] = power * scale[band]
    return out


def densities(signal: np.ndarray, starts: np.ndarray, mode: Mode) -> np.ndarray:
    """What `ref.densities` gives."""
    return _bands(fft.rfft(_frames(signal, starts, _hann(mode.frame))), _edges(mode), mode.scale)


@_fast
def _loudness(density: float, threshold: float, exponent: float) -> float:
    if density <= threshold:
        return 0.0
    return (2.0 * threshold) ** exponent * ((0.5 + 0.5 * density / threshold) ** exponent - 1.0)


@_fast
def _disturbances(
    x: np.ndarray,
    y: np.ndarray,
    threshold: np.ndarray,
    exponent: np.ndarray,
    width: np.ndarray,
    scale: float,
    out: np.ndarray,
) -> None:
    total_width = width[1:].sum()
    for frame in range(x.shape[0]):
        squares = added = 0.0
        for band in range(1, width.size):
            a = _loudness(x[frame, band], threshold[band], exponent[band])
            b = _loudness(y[frame, band], threshold[band], exponent[band])
            difference = abs(b - a) - 0.25 * min(a, b)
            if difference > 0.0:
                weighted = scale * difference * width[band]
                squares += weighted * weighted
                ratio = (y[frame, band] + 50.0) / (x[frame, band] + 50.0)
                if ratio >= _LEAST_RATIO:
                    added += weighted * min(ratio**1.2, 12.0)
        out[0, frame] = math.sqrt(squares / total_width) * total_width
        out[1, frame] = added


def disturbances(reference: np.ndarray, estimate: np.ndarray, mode: Mode) -> tuple[np.ndarray, np.ndarray]:
    """What `ref.disturbances` gives."""
    out = np.empty((2, len(reference)))
    _disturbances(reference, estimate, mode.threshold, _exponents(mode), mode.width_bark, ref.LOUDNESS_SCALE, out)
    return out[0], out[1]


def pesq(reference: np.ndarray, estimate: np.ndarray, mode: Mode) -> float | None:
    """PESQ of one pair; see `ref.pesq`. Not a number if the level of a signal cannot be aligned."""
    peak = max(np.abs(reference).max(), np.abs(estimate).max())
    x, y = (ref.heard(signal, peak, mode, section) for signal in (reference, estimate))
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return math.nan
    first, second = _aligned(x, y, mode)
    found = delays.utterances(first, second, mode, prefixes, _soften)
    return ref.mapped(ref.raw_score(x, y, found, mode, densities, disturbances), mode) if found else None

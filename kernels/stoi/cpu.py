"""STOI and ESTOI in numba with NumPy's FFT, in float64; `ref` to 1e-12."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..compilation.cpu import jit
from .ref import (
    BANDS,
    CLIP_DB,
    DYNAMIC_RANGE_DB,
    EPS,
    FRAME,
    HOP,
    NFFT,
    RATE_HZ,
    ROUNDING,
    SEGMENT_FRAMES,
    band_edges,
    no_direction,
    resampling_filter,
    window,
)

OUTPUTS = 5  # outputs of the resampler computed together: independent sums keep the arithmetic units busy
LANES = 8
BLOCK = 64  # neighbouring segments that are correlated together
SPECTRA = 128  # frames whose spectra are made together; they take 0.5 MB a signal
COLUMN_NOISE = no_direction(BANDS, 1.0)
_WINDOW = window()
_EDGES = band_edges()
HEADROOM = 1.0 + 10.0 ** (-CLIP_DB / 20.0)

_jit = jit(nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")


@functools.lru_cache(maxsize=8)
def _filter_bank(rate_hz: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Rearrange the resampling filter by output.

    Returns:
        Taps `(groups, OUTPUTS, width)`: row `r` of group `g` times the input from `start[g] + k * step` on is output
        `(g + k * groups) * OUTPUTS + r`; `start`, int64 `(groups,)`; and `step`.
    """
    taps, up, down = resampling_filter(rate_hz)
    half = (taps.size - 1) // 2
    groups = math.lcm(up, OUTPUTS) // OUTPUTS
    output = np.arange(groups * OUTPUTS).reshape(groups, OUTPUTS)
    start = -((taps.size - 1 - half - output[:, 0] * down) // up)
    stop = (output[:, -1] * down + half) // up + 1
    width = -(-int((stop - start).max()) // LANES) * LANES
    position = output[:, :, None] * down + half - (start[:, None, None] + np.arange(width)) * up
    inside = (position >= 0) & (position < taps.size)
    bank = np.where(inside, taps[np.clip(position, 0, taps.size - 1)], 0.0)
    return np.ascontiguousarray(bank), start.astype(np.int64), groups * OUTPUTS * down // up


@_jit
def _resample(
    padded: np.ndarray, before: int, bank: np.ndarray, start: np.ndarray, step: int, num_outputs: int
) -> np.ndarray:
    groups, _, width = bank.shape
    num_blocks = -(-num_outputs // OUTPUTS)
    out = np.empty((2, num_blocks * OUTPUTS))
    for block in range(num_blocks):
        cycle = block // groups
        group = block - cycle * groups
        first = before + cycle * step + start[group]
        x = padded[0, first : first + width]
        y = padded[1, first : first + width]
        t0 = bank[group, 0]
        t1 = bank[group, 1]
        t2 = bank[group, 2]
        t3 = bank[group, 3]
        t4 = bank[group, 4]
        x0 = x1 = x2 = x3 = x4 = 0.0
        y0 = y1 = y2 = y3 = y4 = 0.0
        for j in range(width):
            x0 += t0[j] * x[j]
            x1 += t1[j] * x[j]
            x2 += t2[j] * x[j]
            x3 += t3[j] * x[j]
            x4 += t4[j] * x[j]
            y0 += t0[j] * y[j]
            y1 += t1[j] * y[j]
            y2 += t2[j] * y[j]
            y3 += t3[j] * y[j]
            y4 += t4[j] * y[j]
        first = block * OUTPUTS
        out[0, first] = x0
        out[0, first + 1] = x1
        out[0, first + 2] = x2
        out[0, first + 3] = x3
        out[0, first + 4] = x4
        out[1, first] = y0
        out[1, first + 1] = y1
        out[1, first + 2] = y2
        out[1, first + 3] = y3
        out[1, first + 4] = y4
    return out


@_jit
def _without_silence(pair: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, int]:
    num_frames = max(0, -(-(pair.shape[1] - FRAME) // HOP))
    level_db = np.empty(num_frames)
    loudest_db = -np.inf
    for frame in range(num_frames):
        energy = 0.0
        for i in range(FRAME):
            value = weights[i] * pair[0, frame * HOP + i]
            energy += value * value
        level_db[frame] = 20.0 * math.log10(math.sqrt(energy) + EPS)
        loudest_db = max(loudest_db, level_db[frame])
    joined = np.zeros((2, (num_frames + 1) * HOP))
    active = 0
    for frame in range(num_frames):
        if loudest_db - DYNAMIC_RANGE_DB - level_db[frame] < 0.0:
            for signal in range(2):
                for i in range(FRAME):
                    joined[signal, active * HOP + i] += weights[i] * pair[signal, frame * HOP + i]
            active += 1
    return joined, active


@_jit
def _band_magnitudes(spectra: np.ndarray, edges: np.ndarray, first: int, out: np.ndarray) -> None:
    for signal in range(2):
        for frame in range(spectra.shape[1]):
            for band in range(BANDS):
                power = 0.0
                for k in range(edges[band, 0], edges[band, 1]):
                    value = spectra[signal, frame, k]
                    power += value.real * value.real + value.imag * value.imag
                out[signal, band, first + frame] = math.sqrt(power)


@_jit
def _stoi(envelopes: np.ndarray) -> float:
    num_segments = envelopes.shape[2] - SEGMENT_FRAMES + 1
    gain = np.empty(BLOCK)
    x_mean = np.empty(BLOCK)
    y_mean = np.empty(BLOCK)
    xx = np.empty(BLOCK)
    yy = np.empty(BLOCK)
    xy = np.empty(BLOCK)
    clipped = np.empty((SEGMENT_FRAMES, BLOCK))
    total = 0.0
    for band in range(BANDS):
        clean = envelopes[0, band]
        processed = envelopes[1, band]
        for first in range(0, num_segments, BLOCK):
            count = min(BLOCK, num_segments - first)
            xx[:] = 0.0
            yy[:] = 0.0
            xy[:] = 0.0
            x_mean[:] = 0.0
            y_mean[:] = 0.0
            for n in range(SEGMENT_FRAMES):
                for s in range(count):
                    x = clean[first + n + s]
                    y = processed[first + n + s]
                    xx[s] += x * x
                    yy[s] += y * y
                    x_mean[s] += x
            for s in range(count):
                gain[s] = math.sqrt(xx[s]) / (math.sqrt(yy[s]) + EPS)
                x_mean[s] /= SEGMENT_FRAMES
            for n in range(SEGMENT_FRAMES):
                for s in range(count):
                    y = min(processed[first + n + s] * gain[s], clean[first + n + s] * HEADROOM)
                    clipped[n, s] = y
                    y_mean[s] += y
            for s in range(count):
                y_mean[s] /= SEGMENT_FRAMES
                xx[s] = 0.0
                yy[s] = 0.0
            for n in range(SEGMENT_FRAMES):
                for s in range(count):
                    x = clean[first + n + s] - x_mean[s]
                    y = clipped[n, s] - y_mean[s]
                    xx[s] += x * x
                    yy[s] += y * y
                    xy[s] += x * y
            for s in range(count):
                total += xy[s] / ((math.sqrt(xx[s]) + EPS) * (math.sqrt(yy[s]) + EPS))
    return total / (BANDS * num_segments)


@_jit
def _normalisers(envelope: np.ndarray, first: int, count: int, mean: np.ndarray, scale: np.ndarray) -> None:
    mean[:count] = 0.0
    scale[:count] = 0.0
    for n in range(SEGMENT_FRAMES):
        for s in range(count):
            mean[s] += envelope[first + n + s]
    for s in range(count):
        mean[s] /= SEGMENT_FRAMES
    for n in range(SEGMENT_FRAMES):
        for s in range(count):
            value = envelope[first + n + s] - mean[s]
            scale[s] += value * value
    for s in range(count):
        noise = EPS * (1.0 + ROUNDING * abs(mean[s]))
        scale[s] = 1.0 / math.sqrt(scale[s]) if scale[s] > SEGMENT_FRAMES * noise * noise else 0.0


@_jit
def _estoi(envelopes: np.ndarray) -> float:
    num_segments = envelopes.shape[2] - SEGMENT_FRAMES + 1
    mean = np.empty((2, BANDS, BLOCK))
    scale = np.empty((2, BANDS, BLOCK))
    rows = np.empty((2, BANDS, BLOCK))
    column_mean = np.empty((2, BLOCK))
    xx = np.empty(BLOCK)
    yy = np.empty(BLOCK)
    xy = np.empty(BLOCK)
    total = 0.0
    for first in range(0, num_segments, BLOCK):
        count = min(BLOCK, num_segments - first)
        for signal in range(2):
            for band in range(BANDS):
                _normalisers(envelopes[signal, band], first, count, mean[signal, band], scale[signal, band])
        for n in range(SEGMENT_FRAMES):
            column_mean[:] = 0.0
            xx[:] = 0.0
            yy[:] = 0.0
            xy[:] = 0.0
            for signal in range(2):
                for band in range(BANDS):
                    for s in range(count):
                        value = (envelopes[signal, band, first + n + s] - mean[signal, band, s]) * scale[
                            signal, band, s
                        ]
                        rows[signal, band, s] = value
                        column_mean[signal, s] += value
            for s in range(count):
                column_mean[0, s] /= BANDS
                column_mean[1, s] /= BANDS
            for band in range(BANDS):
                for s in range(count):
                    x = rows[0, band, s] - column_mean[0, s]
                    y = rows[1, band, s] - column_mean[1, s]
                    xx[s] += x * x
                    yy[s] += y * y
                    xy[s] += x * y
            for s in range(count):
                if xx[s] > COLUMN_NOISE and yy[s] > COLUMN_NOISE:
                    total += xy[s] / math.sqrt(xx[s] * yy[s])
    return total / (SEGMENT_FRAMES * num_segments)


def _at_10_khz(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> np.ndarray:
    """Resample both signals to 10 kHz, float64 `(2, samples)`."""
    if rate_hz == RATE_HZ:
        return np.array([reference, estimate], dtype=np.float64)
    bank, start, step = _filter_bank(rate_hz)
    num_outputs = -(-reference.size * RATE_HZ // rate_hz)
    before = -int(start.min())
    cycles = num_outputs // (len(start) * OUTPUTS) + 1
    padded = np.zeros((2, before + max(reference.size, cycles * step + int(start.max()) + bank.shape[2])))
    padded[0, before : before + reference.size] = reference
    padded[1, before : before + reference.size] = estimate
    resampled = _resample(padded, before, bank, start, step, num_outputs)
    return np.ascontiguousarray(resampled[:, :num_outputs])  # numba compiles again for another layout


def envelopes(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> np.ndarray | None:
    """Compute both signals' band magnitudes without silence, for both measures.

    Args:
        reference, estimate: `(samples,)` each, of one length, of any float type.

    Returns:
        float64 `(2, 15, frames)`, the reference first; None if there are fewer than 30 frames.
    """
    joined, active = _without_silence(_at_10_khz(reference, estimate, rate_hz), _WINDOW)
    num_frames = active - 1  # the last frame ends exactly at the end of the joined signal; it is omitted, as in `ref`
    if num_frames < SEGMENT_FRAMES:
        return None
    frames = sliding_window_view(joined, FRAME, axis=1)[:, ::HOP][:, :num_frames]
    out = np.empty((2, BANDS, num_frames))
    for first in range(0, num_frames, SPECTRA):
        _band_magnitudes(np.fft.rfft(_WINDOW * frames[:, first : first + SPECTRA], NFFT), _EDGES, first, out)
    return out


def stoi(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> float | None:
    """Compute STOI of one pair; see `ref.stoi`."""
    return stoi_of(envelopes(reference, estimate, rate_hz))


def estoi(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> float | None:
    """Compute ESTOI of one pair; see `ref.estoi`."""
    return estoi_of(envelopes(reference, estimate, rate_hz))


def stoi_of(both: np.ndarray | None) -> float | None:
    """Compute STOI from `envelopes`; None if they are."""
    return None if both is None else _stoi(both)


def estoi_of(both: np.ndarray | None) -> float | None:
    """Compute ESTOI from `envelopes`; None if they are."""
    return None if both is None else _estoi(both)

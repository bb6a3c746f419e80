"""ViSQOL's spectrograms and similarities in numba, equal to `ref`."""

from __future__ import annotations

import math

import numpy as np

from ..compilation.cpu import jit
from .ref import C1, C3, WEIGHTS, hann

LANES = 8
"""Bands that pass the samples together."""
_CORNER, _EDGE, _CENTRE = WEIGHTS
_jit = jit(nogil=True, error_model="numpy")


def spectrogram(signal: np.ndarray, window: int, hop: int, coefficients: np.ndarray) -> np.ndarray:
    """As `ref.spectrogram`."""
    bands = coefficients.shape[1]
    padded = np.zeros((coefficients.shape[0], -(-bands // LANES) * LANES))
    padded[:, :bands] = coefficients
    grouped = np.ascontiguousarray(padded.reshape(len(padded), -1, LANES).transpose(1, 0, 2)).reshape(-1, 10 * LANES)
    return _spectrogram(np.ascontiguousarray(signal, np.float64), hann(window), hop, grouped)[:bands]


@_jit
def _spectrogram(signal: np.ndarray, window: np.ndarray, hop: int, coefficients: np.ndarray) -> np.ndarray:
    """Filter eight bands at once: each waits for its own output, not for the others'.

    A group's values are in one array at known positions, so the compiler sees that nothing overlaps.
    """
    size, groups = len(window), len(coefficients)
    frames = (len(signal) - size) // hop + 1
    out = np.empty((groups * LANES, frames))
    frame = np.empty(size)
    s = np.empty(19 * LANES)
    for number in range(frames):
        for k in range(size):
            frame[k] = signal[number * hop + k] * window[k]
        for group in range(groups):
            s[: 10 * LANES] = coefficients[group]
            s[10 * LANES :] = 0.0
            for k in range(size):
                x = frame[k]
                for n in range(LANES):
                    a1, a2 = s[8 * LANES + n], s[9 * LANES + n]
                    y0 = s[n] * x + s[10 * LANES + n]
                    s[10 * LANES + n] = s[LANES + n] * x - a1 * y0 + s[11 * LANES + n]
                    s[11 * LANES + n] = -a2 * y0
                    y1 = s[2 * LANES + n] * y0 + s[12 * LANES + n]
                    s[12 * LANES + n] = s[3 * LANES + n] * y0 - a1 * y1 + s[13 * LANES + n]
                    s[13 * LANES + n] = -a2 * y1
                    y2 = s[4 * LANES + n] * y1 + s[14 * LANES + n]
                    s[14 * LANES + n] = s[5 * LANES + n] * y1 - a1 * y2 + s[15 * LANES + n]
                    s[15 * LANES + n] = -a2 * y2
                    y3 = s[6 * LANES + n] * y2 + s[16 * LANES + n]
                    s[16 * LANES + n] = s[7 * LANES + n] * y2 - a1 * y3 + s[17 * LANES + n]
                    s[17 * LANES + n] = -a2 * y3
                    s[18 * LANES + n] += y3 * y3
            for n in range(LANES):
                out[group * LANES + n, number] = math.sqrt(s[18 * LANES + n] / size)
    return out


def similarity(reference: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """As `ref.similarity`."""
    return _similarity(np.ascontiguousarray(reference), np.ascontiguousarray(estimate))


@_jit
def _similarity(reference: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    bands, width = reference.shape
    ours, theirs = np.empty((bands + 2, width + 2)), np.empty((bands + 2, width + 2))
    _frame(reference, ours)
    _frame(estimate, theirs)
    mean_r, spread_r, mean_e, spread_e = (
        np.empty((bands, width)),
        np.empty((bands, width)),
        np.empty((bands, width)),
        np.empty((bands, width)),
    )
    _moments(ours, mean_r, spread_r)
    _moments(theirs, mean_e, spread_e)
    out, product = np.empty((bands, width)), ours * theirs
    for r in range(bands):
        for c in range(width):
            out[r, c] = _alike(mean_r[r, c], spread_r[r, c], mean_e[r, c], spread_e[r, c], _around(product, r, c))
    return out


def similarities(patches: np.ndarray, levels: np.ndarray, places: np.ndarray, radius: int) -> np.ndarray:
    """As `ref.similarities`."""
    padded = np.pad(levels, ((0, 0), (0, patches.shape[2])))
    return _similarities(np.ascontiguousarray(patches, np.float64), padded, places, radius)


@_jit
def _similarities(patches: np.ndarray, levels: np.ndarray, places: np.ndarray, radius: int) -> np.ndarray:
    count, bands, width = patches.shape
    framed = np.empty((count, bands + 2, width + 2))
    means, spreads = np.empty((count, bands, width)), np.empty((count, bands, width))
    for p in range(count):
        _frame(patches[p], framed[p])
        _moments(framed[p], means[p], spreads[p])
    starts = levels.shape[1] - width
    out = np.zeros((count, starts))
    window, product = np.empty((bands + 2, width + 2)), np.empty((bands + 2, width + 2))
    mean, spread = np.empty((bands, width)), np.empty((bands, width))
    row = np.empty(width)
    for start in range(starts):
        _frame(levels[:, start : start + width], window)
        _moments(window, mean, spread)
        for p in range(count):
            if abs(start - places[p]) > radius:
                continue
            for r in range(bands + 2):
                for c in range(width + 2):
                    product[r, c] = framed[p, r, c] * window[r, c]
            total = 0.0
            for r in range(bands):
                for c in range(width):
                    around = _around(product, r, c)
                    row[c] = _alike(means[p, r, c], spreads[p, r, c], mean[r, c], spread[r, c], around)
                for c in range(width):
                    total += row[c]
            out[p, start] = total / (bands * width)
    return out


@_jit
def _frame(patch: np.ndarray, framed: np.ndarray) -> None:
    """Extend a patch by its outermost cells."""
    rows, columns = patch.shape
    for r in range(rows + 2):
        for c in range(columns + 2):
            framed[r, c] = patch[min(max(r - 1, 0), rows - 1), min(max(c - 1, 0), columns - 1)]


@_jit
def _moments(framed: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> None:
    """Compute the weighted mean around every cell, and that of squares less its square."""
    rows, columns = mean.shape
    squares = framed * framed
    for r in range(rows):
        for c in range(columns):
            mean[r, c] = _around(framed, r, c)
            spread[r, c] = _around(squares, r, c) - mean[r, c] * mean[r, c]


@jit(nogil=True, inline="always")
def _alike(mean_r: float, spread_r: float, mean_e: float, spread_e: float, product: float) -> float:
    both, below = mean_r * mean_e, spread_r * spread_e
    below = C3 if below < 0.0 else math.sqrt(below) + C3
    return (2.0 * both + C1) / (mean_r * mean_r + mean_e * mean_e + C1) * ((product - both + C3) / below)


@jit(nogil=True, inline="always")
def _around(x: np.ndarray, r: int, c: int) -> float:
    corners = x[r, c] + x[r, c + 2] + x[r + 2, c] + x[r + 2, c + 2]
    edges = x[r, c + 1] + x[r + 1, c] + x[r + 1, c + 2] + x[r + 2, c + 1]
    return _CORNER * corners + _EDGE * edges + _CENTRE * x[r + 1, c + 1]

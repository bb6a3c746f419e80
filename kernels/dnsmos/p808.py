"""The P.808 network (`model_v8`) over many windows of one signal, each window by itself (see `cpu`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numba
import numpy as np

from .pictures import (
    FRONT_FRAMES,
    HOP_FRAMES,
    MEL_COLUMNS,
    MEL_ROWS,
    TAPS,
    Crew,
    Layer,
    Scratch,
    WindowNetwork,
    cycle_of,
    pool_rows,
    repeat_rows,
    taps_of,
)
from .ref import (
    BINS,
    FRAMES,
    HOP_SAMPLES,
    MEL_FLOOR,
    MEL_SAMPLES,
    MELS,
    MIDDLE_DB,
    RANGE_DB,
    Weights,
    dense,
    mel_filters,
)
from .winograd import TILE, aligned_zeros, product


@numba.njit(nogil=True, cache=True)
def _first_layer(
    x: np.ndarray,
    row_in: int,
    taps: np.ndarray,
    y: np.ndarray,
    row_out: int,
    count: int,
    width: int,
    patches: np.ndarray,
) -> None:
    """Rows of P.808's first convolution (from one channel), with its bias and without the rectification.

    Args:
        x: `(rows, columns)`; output row n reads three of its rows, from `row_in + n` on. taps: `(10, out)`.
        y: `(rows, columns, out)`; output row n is written to row `row_out + n`, from column 1 on. Columns after the
            width are set to zero.
        patches: working memory `(columns, 10)`.
    """
    channels = taps.shape[1]
    for n in range(count):
        for p in range(width):
            for i in range(3):
                for j in range(3):
                    patches[p, 3 * i + j] = x[row_in + n + i, p + j]
            patches[p, 9] = 1.0
        target = y.ctypes.data + 4 * ((row_out + n) * y.shape[1] + 1) * channels
        product(patches.ctypes.data, 4 * TAPS, taps.ctypes.data, target, width, TAPS, channels)
        for p in range(1 + width, y.shape[1]):
            for c in range(channels):
                y[row_out + n, p, c] = 0.0


@cache
def _half_transform() -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines `(160, columns)` under a periodic Hann window of 321, whose first sample is zero.

    Samples n and 321 - n share their window value and their cosine and have opposite sines, so the transform of their
    sums and differences, half as long, is the transform of the frame.
    """
    n, k = np.arange(1, MEL_SAMPLES // 2 + 1)[:, None], np.arange(BINS)
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * n / MEL_SAMPLES)
    phase = 2.0 * np.pi / MEL_SAMPLES * (n * k % MEL_SAMPLES)
    cosines, sines = (aligned_zeros((MEL_SAMPLES // 2, MEL_COLUMNS)) for _ in range(2))
    cosines[:, :BINS], sines[:, :BINS] = window * np.cos(phase), window * np.sin(phase)
    return cosines, sines


@numba.njit(nogil=True, cache=True)
def _mel_power_spectrum(
    signal: np.ndarray,
    hop: int,
    first: int,
    count: int,
    cosines: np.ndarray,
    sines: np.ndarray,
    out: np.ndarray,
    sums: np.ndarray,
    differences: np.ndarray,
    real: np.ndarray,
    imaginary: np.ndarray,
) -> None:
    """Power spectrum `(count, 161)` of frames of 321 samples, `hop` apart, under the window of `_half_transform`."""
    half, columns = cosines.shape
    for start in range(0, count, FRONT_FRAMES):
        size = min(FRONT_FRAMES, count - start)
        for t in range(size):
            begin = (first + start + t) * hop
            for n in range(half):
                left, right = signal[begin + 1 + n], signal[begin + 2 * half - n]
                sums[t, n] = left + right
                differences[t, n] = left - right
        product(sums.ctypes.data, 4 * half, cosines.ctypes.data, real.ctypes.data, size, half, columns)
        product(differences.ctypes.data, 4 * half, sines.ctypes.data, imaginary.ctypes.data, size, half, columns)
        for t in range(size):
            for k in range(out.shape[1]):
                out[start + t, k] = real[t, k] * real[t, k] + imaginary[t, k] * imaginary[t, k]


def _mel_decibels(s: Scratch, signal: np.ndarray, hop: int, first: int, count: int) -> np.ndarray:
    """Mel power in decibels `(count, 120)`, float32, of frames of 321 samples, `hop` apart."""
    power = np.empty((count, BINS), np.float32)
    _mel_power_spectrum(signal, hop, first, count, *_half_transform(), power, *s.mel_front)
    levels = np.maximum(power @ mel_filters().T, np.float32(MEL_FLOOR))
    np.log10(levels, out=levels)
    levels *= np.float32(10.0)
    return levels


class P808(WindowNetwork):
    """The P.808 network.

    Args:
        weights: five convolutions and three dense layers.
        reflect: whether a window is continued by its mirror image rather than by zeros.
    """

    def __init__(self, weights: Weights, reflect: bool = False) -> None:
        self.reflect = reflect
        self.taps = taps_of(*weights.convolutions[0])
        self.layers = {n: Layer(own) for n, own in enumerate(weights.convolutions[1:], start=2)}
        self.dense = weights.dense

    def start_run(
        self, crew: Crew, signal: np.ndarray, windows: int, period: int | None = None
    ) -> Callable[[], np.ndarray]:
        """See `WindowNetwork`. The results are `(windows,)`."""
        total = FRAMES + HOP_FRAMES * (windows - 1)
        # Frame t is centred on sample 160 t. A window is surrounded by zeros and leaves out its own last 160 samples.
        padded = np.concatenate([np.zeros(HOP_SAMPLES, np.float32), signal[: total * HOP_SAMPLES + 1]])
        levels = np.empty((total, MELS), np.float32)

        def spectrum(s: Scratch, a: int, b: int) -> None:
            levels[a:b] = _mel_decibels(s, padded, HOP_SAMPLES, a, b - a)

        cycle = cycle_of(period, total)
        crew.each(spectrum, crew.pieces(min(cycle + 1, total), FRAMES))
        repeat_rows(levels, cycle + 1, total, cycle)  # the first frame contains zeros from before the run
        features = np.empty((windows, 64), np.float32)
        waits = [crew.start(self._window, padded, levels, HOP_FRAMES * w, features[w]) for w in range(windows)]

        def finish() -> np.ndarray:
            for wait in waits:
                wait()
            return dense(features, self.dense)[:, 0]

        return finish

    def _window(self, s: Scratch, padded: np.ndarray, levels: np.ndarray, first: int, out: np.ndarray) -> None:
        """The convolutions over the window that starts at a frame, and the maximum over the whole picture, `(64,)`."""
        window = levels[first : first + FRAMES].copy()
        ends = np.zeros((2, MEL_SAMPLES), np.float32)
        start, last = first * HOP_SAMPLES, (first + FRAMES - 1) * HOP_SAMPLES
        ends[0, HOP_SAMPLES:] = padded[start + HOP_SAMPLES : start + MEL_SAMPLES]
        ends[1, :-1] = padded[last : last + MEL_SAMPLES - 1]
        if self.reflect:
            ends[0, :HOP_SAMPLES], ends[1, -1] = ends[0, :HOP_SAMPLES:-1], ends[1, -3]
        window[[0, -1]] = _mel_decibels(s, ends.reshape(-1), MEL_SAMPLES, 0, 2)
        window -= window.max()
        np.maximum(window, np.float32(-RANGE_DB), out=window)
        window += np.float32(MIDDLE_DB)
        np.divide(window, np.float32(MIDDLE_DB), out=s.mel_x[1:-1, 1:-1])
        rows, width = FRAMES // 2, MELS // 2
        for n in range(0, rows, MEL_ROWS):
            _first_layer(s.mel_x, 2 * n, self.taps, s.mel_y1, 0, 2 * MEL_ROWS, MELS, s.patches)
            pool_rows(s.mel_y1, 0, s.mel_p1, 1 + n, MEL_ROWS, MELS)
        self.layers[2](s.work, s.mel_p1, 0, s.mel_p2, 1, -(-rows // TILE), width, pool=True)
        rows, width = rows // 2, width // 2
        tiles = -(-rows // TILE)
        s.mel_p2[rows + 1 :] = 0.0
        self.layers[3](s.work, s.mel_p2, 0, s.mel_y3, 1, tiles, width)
        s.mel_y3[rows + 1 :] = 0.0
        self.layers[4](s.work, s.mel_y3, 0, s.mel_p4, 1, tiles, width, pool=True)
        rows, width = rows // 2, width // 2
        s.mel_p4[rows + 1 :] = 0.0
        self.layers[5](s.work, s.mel_p4, 0, s.mel_y5, 1, -(-rows // TILE), width)
        s.mel_y5[1 : rows + 1, 1 : width + 1].max(axis=(0, 1), out=out)

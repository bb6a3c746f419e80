"""The P.808 network (`model_v8`) over windows, each by itself (see `cpu`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ..compilation.cpu import jit
from .pictures import (
    HOP_FRAMES,
    MEL_ROWS,
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
    DnsmosWeights,
    dense,
    mel_filters,
)
from .winograd import TILE, first_layer, multiply_frames, whole_blocks

_INSIDE = np.full(MELS, np.inf, np.float32)


@jit(nogil=True)
def _first_layer(
    x: np.ndarray, row_in: int, taps: np.ndarray, limit: np.ndarray, y: np.ndarray, rows: int, step: int
) -> None:
    """Compute P.808's first convolution from `row_in` on, into `rows` of y, `step` apart, from column 1 on.

    Args:
        x, y: flat pictures of one channel and of the output's channels.
    """
    width = limit.size + 2
    for n in range(rows):
        first_layer(x, (row_in + n) * width, width, taps, limit, y[n * step + taps.shape[1] :])


@cache
def _transform() -> np.ndarray:
    """Return cosines and sines `(320, 322)`, in whole blocks, under a Hann window of 321 with a zero first sample."""
    n, k = np.arange(1, MEL_SAMPLES)[:, None], np.arange(BINS)
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * n / MEL_SAMPLES)
    phase = 2.0 * np.pi / MEL_SAMPLES * (n * k % MEL_SAMPLES)
    return whole_blocks(np.concatenate([window * np.cos(phase), window * np.sin(phase)], axis=1))


@cache
def _filters() -> np.ndarray:
    """Return the mel filters `(160, 120)`, in whole blocks, without the unused lowest bin."""
    return whole_blocks(mel_filters().T[1:])


def _mel_decibels(signal: np.ndarray, hop: int, first: int, count: int) -> np.ndarray:
    """Compute mel power in decibels `(count, 120)`, float32, of frames of 321 samples, `hop` apart."""
    transform, filters = _transform(), _filters()
    spectrum, bands = (np.empty((count, matrix.shape[1]), np.float32) for matrix in (transform, filters))
    multiply_frames(signal[first * hop + 1 :], hop, transform, MEL_SAMPLES - 1, spectrum)
    power = spectrum[:, 1:BINS] ** 2 + spectrum[:, BINS + 1 : 2 * BINS] ** 2
    multiply_frames(power.ravel(), BINS - 1, filters, BINS - 1, bands)
    levels = bands[:, :MELS]
    np.maximum(levels, np.float32(MEL_FLOOR), out=levels)
    np.log10(levels, out=levels)
    levels *= np.float32(10.0)
    return levels


class P808(WindowNetwork):
    """The P.808 network: five convolutions and three dense layers.

    Args:
        reflect: whether a window is continued by its mirror image rather than by zeros.
    """

    def __init__(self, weights: DnsmosWeights, reflect: bool = False) -> None:
        self.reflect = reflect
        self.taps = taps_of(*weights.convolutions[0])
        self.layers = {n: Layer(convolution) for n, convolution in enumerate(weights.convolutions[1:], start=2)}
        self.dense = weights.dense

    def start_run(
        self, crew: Crew, signal: np.ndarray, windows: int, period: int | None = None
    ) -> Callable[[], np.ndarray]:
        """See `WindowNetwork`. The results are `(windows,)`."""
        total = FRAMES + HOP_FRAMES * (windows - 1)
        # Frame t is centred on sample 160 t. A window is surrounded by zeros and omits its own last 160 samples.
        padded = np.concatenate([np.zeros(HOP_SAMPLES, np.float32), signal[: total * HOP_SAMPLES + 1]])
        levels = np.empty((total, MELS), np.float32)

        def spectrum(s: Scratch, a: int, b: int) -> None:
            levels[a:b] = _mel_decibels(padded, HOP_SAMPLES, a, b - a)

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
        """Convolve the window that starts at a frame; return the maximum over its picture, `(64,)`."""
        window = levels[first : first + FRAMES].copy()
        ends = np.zeros((2, MEL_SAMPLES), np.float32)
        start, last = first * HOP_SAMPLES, (first + FRAMES - 1) * HOP_SAMPLES
        ends[0, HOP_SAMPLES:] = padded[start + HOP_SAMPLES : start + MEL_SAMPLES]
        ends[1, :-1] = padded[last : last + MEL_SAMPLES - 1]
        if self.reflect:
            ends[0, :HOP_SAMPLES], ends[1, -1] = ends[0, :HOP_SAMPLES:-1], ends[1, -3]
        window[[0, -1]] = _mel_decibels(ends.reshape(-1), MEL_SAMPLES, 0, 2)
        window -= window.max()
        np.maximum(window, np.float32(-RANGE_DB), out=window)
        window += np.float32(MIDDLE_DB)
        np.divide(window, np.float32(MIDDLE_DB), out=s.mel_x[1:-1, 1:-1])
        rows, width = FRAMES // 2, MELS // 2
        x, y = s.mel_x.reshape(-1), s.mel_y1.reshape(-1)
        for n in range(0, rows, MEL_ROWS):
            _first_layer(x, 2 * n, self.taps, _INSIDE, y, 2 * MEL_ROWS, s.mel_y1[0].size)
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

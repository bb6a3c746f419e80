"""The two DNSMOS networks over many windows of one signal. What windows have in common is computed once.

Windows of 900 frames start every 100 frames. The P.835 network (`sig_bak_ovr`) is a stack of 3x3 convolutions with
2x2 maxima between them, so its activations over the whole signal are those of every window, except near a window's two
ends: there the window is padded with zeros, while the signal goes on. A *run* of windows is therefore computed once, as
one long picture. The rows near each inner end are computed again with the zeros in place, as *edges*. At full, half and
quarter resolution a window starts at a whole row (100, 50, 25); the last stage is computed for each window by itself.
The input of the P.808 network (`model_v8`) is in decibels relative to each window's own maximum, so this network runs
on each window by itself.

Conventions
    As in `winograd`: rows are time, activations are `(rows, columns, channels)`. Row r of a picture is row r + 1
    of its array; row 0 and the rows after the last are zero.
    A result does not depend on how rows are divided into segments, so neither on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import numba
import numpy as np

from .ref import (
    BINS,
    FLOOR,
    FRAME_SAMPLES,
    FRAMES,
    HOP_SAMPLES,
    LN_10,
    MEL_FLOOR,
    MEL_SAMPLES,
    MELS,
    MIDDLE_DB,
    RANGE_DB,
    Convolution,
    Weights,
    dense,
    mel_filters,
)
from .winograd import (
    BLOCK,
    ROWS_OVER,
    TILE,
    aligned,
    aligned_zeros,
    convolve,
    product,
    transform_weights,
    workspace_size,
)

HOP_FRAMES = 100
_FRONT_COLUMNS = -(-2 * BINS // BLOCK) * BLOCK  # real and imaginary parts side by side, rounded up to whole blocks
_MEL_COLUMNS = -(-BINS // BLOCK) * BLOCK
_FRONT_FRAMES = 42  # frames in one product; a multiple of every size of register block
_FRONT_DEPTH = 128  # onnxruntime sums products in groups of 128; the same order gives the same bits
_BAND = 18  # tile rows by which the second layer runs ahead of the fourth; the rows between them fit the cache
_EDGE = 2  # tile rows of the second and third layer that an edge needs; of the fourth it needs one
_MEL_ROWS = 10  # pooled rows of P.808's first layer that are computed at a time; divides 450
_TAPS = 10  # nine inputs and a one for the bias


def _picture(rows: int, width: int, channels: int) -> np.ndarray:
    """A zero array for a picture of this many rows and columns, with room for the padding and for whole tiles.

    If the number of rows or columns is odd, the tiles reach one further after the maxima.
    """
    return aligned_zeros((-(-(rows + 1) // TILE) * TILE + 2, -(-(width + 1) // TILE) * TILE + 2, channels))


def _two_layer_input(rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Zeros for the input of two layers, padded by two on each side, and the limits, which are zero in the padding."""
    rows, columns = -(-rows // TILE) * TILE + 4, -(-width // TILE) * TILE + 4
    return aligned_zeros((rows, columns, 1)), aligned_zeros((rows, columns))


@numba.njit(nogil=True, cache=True)
def _front_power(
    signal: np.ndarray, kernel: np.ndarray, first: int, count: int, out: np.ndarray, scratch: np.ndarray
) -> None:
    """The power spectrum, of which P.835 takes the logarithm.

    Args:
        signal: float32, up to the end of the last frame or further.
        kernel: `(320, _FRONT_COLUMNS)`, real parts and then imaginary parts.
        first, count: which frames to compute; at least `_FRONT_FRAMES` of them.
        out: `(rows, columns, 1)`: power of at least 1e-12, frame t in `out[t + 2, 2:163, 0]`.
    """
    columns = kernel.shape[1]
    for block in range(-(-count // _FRONT_FRAMES)):
        # The last block overlaps the previous one, so that it does not read past the end.
        start = first + min(block * _FRONT_FRAMES, count - _FRONT_FRAMES)
        for stretch in range(3):
            k = stretch * _FRONT_DEPTH
            product(
                signal.ctypes.data + 4 * (start * HOP_SAMPLES + k), 4 * HOP_SAMPLES, kernel.ctypes.data + 4 * k * columns,
                scratch.ctypes.data + 4 * stretch * _FRONT_FRAMES * columns, _FRONT_FRAMES,
                min(_FRONT_DEPTH, FRAME_SAMPLES - k), columns,
            )  # fmt: skip
        for t in range(_FRONT_FRAMES):
            for f in range(BINS):
                real = (scratch[0, t, f] + scratch[1, t, f]) + scratch[2, t, f]
                imaginary = (scratch[0, t, BINS + f] + scratch[1, t, BINS + f]) + scratch[2, t, BINS + f]
                root = np.sqrt(real * real + imaginary * imaginary)
                out[start + t + 2, f + 2, 0] = max(root * root, np.float32(FLOOR))


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
        product(patches.ctypes.data, 4 * _TAPS, taps.ctypes.data, target, width, _TAPS, channels)
        for p in range(1 + width, y.shape[1]):
            for c in range(channels):
                y[row_out + n, p, c] = 0.0


@numba.njit(nogil=True, cache=True)
def _pool(x: np.ndarray, row_in: int, y: np.ndarray, row_out: int, count: int, width: int) -> None:
    """2x2 maxima, rectified, from rows of x to rows of y, both from column 1 on.

    If the width is odd, the last column is left out.
    """
    for n in range(count):
        r = row_in + 2 * n
        for j in range(width // 2):
            for c in range(x.shape[2]):
                above = max(x[r, 2 * j + 1, c], x[r, 2 * j + 2, c])
                below = max(x[r + 1, 2 * j + 1, c], x[r + 1, 2 * j + 2, c])
                y[row_out + n, 1 + j, c] = max(max(above, below), np.float32(0.0))


class _Scratch:
    """Pictures in which one thread works. They are kept between calls, because new memory costs page faults."""

    def __init__(self) -> None:
        self.front = aligned_zeros((3, _FRONT_FRAMES, _FRONT_COLUMNS))
        self.patches = aligned_zeros((MELS + ROWS_OVER, _TAPS))
        self.work = aligned_zeros(workspace_size(128, 64))
        self.y2, self.y3 = _picture((_BAND + 1) * TILE, BINS, 64), _picture((_BAND + 1) * TILE, BINS, 64)
        self.edge, self.edge_limit = _two_layer_input(_EDGE * TILE, BINS)
        self.edge2, self.edge3 = _picture(_EDGE * TILE, BINS, 64), _picture(_EDGE * TILE, BINS, 64)
        self.edge_half, self.edge_quarter = _picture(TILE, BINS // 2, 32), _picture(TILE, BINS // 4, 32)
        self.edge_pooled = _picture(TILE // 2, BINS // 4, 32)
        self.eighth, self.y7 = _picture(FRAMES // 8, BINS // 8, 32), _picture(FRAMES // 8, BINS // 8, 64)
        shapes = [(_FRONT_FRAMES, MEL_SAMPLES // 2)] * 2 + [(_FRONT_FRAMES, _MEL_COLUMNS)] * 2
        self.mel_front = tuple(aligned_zeros(shape) for shape in shapes)
        self.mel_x = aligned_zeros((FRAMES + 2, MELS + 2))
        self.mel_y1 = aligned_zeros((2 * _MEL_ROWS, MELS + 1 + ROWS_OVER, 32))
        self.mel_p1, self.mel_p2 = _picture(FRAMES // 2, MELS // 2, 32), _picture(FRAMES // 4, MELS // 4, 32)
        self.mel_y3, self.mel_p4 = _picture(FRAMES // 4, MELS // 4, 32), _picture(FRAMES // 8, MELS // 8, 32)
        self.mel_y5 = _picture(FRAMES // 8, MELS // 8, 64)


class Crew:
    """Runs pieces of work on a number of threads. If the number is one, they run in the caller's thread.

    Args:
        threads: number of threads. They end with the `with` block, so that a later fork finds no threads.
    """

    def __init__(self, threads: int) -> None:
        self.threads = max(1, threads)
        self._pool: ThreadPoolExecutor | None = None
        self._spare: list[_Scratch] = []

    def __enter__(self) -> Crew:
        if self.threads > 1:
            self._pool = ThreadPoolExecutor(self.threads)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def start(self, work: Callable[..., None], *arguments: object) -> Callable[[], None]:
        """Begins `work(scratch, *arguments)`. The returned function waits for it and raises its exception, if any."""
        if self._pool is None:
            self._run(work, *arguments)
            return lambda: None
        return self._pool.submit(self._run, work, *arguments).result

    def each(self, work: Callable[..., None], pieces: Sequence[tuple[object, ...]]) -> None:
        """Runs `work(scratch, *piece)` for every piece and waits."""
        for wait in [self.start(work, *piece) for piece in pieces]:
            wait()

    def pieces(self, count: int, most: int, least: int = 1) -> list[tuple[int, int]]:
        """Divides range(count) into equal pieces, as many as a multiple of the threads, of at most `most`.

        There are fewer pieces if they would otherwise be shorter than `least`.
        """
        parts = max(1, min(self.threads * -(-count // (self.threads * most)), count // least))
        bounds = [count * n // parts for n in range(parts + 1)]
        return [(a, b) for a, b in pairwise(bounds) if b > a]

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        try:
            scratch = self._spare.pop()
        except IndexError:
            scratch = _Scratch()
        try:
            work(scratch, *arguments)
        finally:
            self._spare.append(scratch)


_NONE = np.zeros((0, 0), np.float32)


def _taps(weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """A first layer's weights `(out, 1, 3, 3)` and bias as `(10, out)`."""
    return aligned(np.concatenate([weights.reshape(len(weights), 9).T, bias[None]]))


class _Layer:
    """A convolution with its weights. With `first`, that convolution (from one channel) is computed before it."""

    def __init__(self, own: Convolution, first: Convolution | None = None) -> None:
        self.weights, self.bias = transform_weights(own[0]), aligned(own[1])
        self.taps = _NONE if first is None else _taps(*first)

    def __call__(
        self, work: np.ndarray, x: np.ndarray, row_in: int, y: np.ndarray, row_out: int, count: int, width: int, *,
        pool: bool = False, limit: np.ndarray = _NONE,
    ) -> None:  # fmt: skip
        """See `convolve`."""
        convolve(x, limit, self.taps, row_in, self.weights, self.bias, y, row_out, count, width, pool, work)


def _cycle(period: int | None, total: int) -> int:
    """Number of frames after which the frames of a signal with this period repeat: even, and at most `total`."""
    if period is None:
        return total
    cycle = period // math.gcd(period, HOP_SAMPLES)
    cycle *= 1 + cycle % 2
    return min(total, cycle * -(-_FRONT_FRAMES // cycle))


def _repeat_rows(rows: np.ndarray, start: int, stop: int, cycle: int) -> None:
    """Fills rows [start, stop) with copies of the rows that lie `cycle` before them."""
    for first in range(start, stop, cycle):
        last = min(stop, first + cycle)
        rows[first:last] = rows[first - cycle : last - cycle]


class SigBakOvr:
    """The P.835 network.

    Args:
        weights: seven convolutions, three dense layers and the front end.
    """

    def __init__(self, weights: Weights) -> None:
        assert weights.front is not None, "the P.835 network has a front end"
        front = np.concatenate(weights.front).T
        self.front = aligned_zeros((FRAME_SAMPLES, _FRONT_COLUMNS))
        self.front[:, : front.shape[1]] = front
        first, second, *rest = weights.convolutions
        self.layers = {2: _Layer(second, first)} | {n: _Layer(own) for n, own in enumerate(rest, start=3)}
        self.dense = weights.dense

    def start_run(
        self, crew: Crew, signal: np.ndarray, windows: int, period: int | None = None
    ) -> Callable[[], np.ndarray]:
        """Begins to score consecutive windows, one second apart.

        Args:
            signal: float32 `(samples,)` from the first window's start to the last one's end.
            period: samples after which the signal repeats itself, or None.

        Returns:
            A function that waits and returns float32 `(windows, 3)`: raw SIG, BAK, OVRL, before the polynomials.
        """
        total = FRAMES + HOP_FRAMES * (windows - 1)
        ends = 2 * (windows - 1)
        x, limit = _two_layer_input(total, BINS)
        limit[1 : total + 1, 1 : BINS + 1] = np.inf
        cycle = _cycle(period, total)
        crew.each(lambda s, a, b: self._log_power(s, signal, x, a, b), crew.pieces(cycle, FRAMES, _FRONT_FRAMES))
        _repeat_rows(x, cycle + 2, total + 2, cycle)
        # The zeros around the run affect four rows at either end. Between them, a repeating signal repeats its rows.
        tiles = -(-total // TILE)
        head = min(tiles, -(-(cycle + 4) // TILE))
        tail = max(head, (total - 4) // TILE)
        half = _picture(total // 2, BINS // 2, 32)
        edge_half = aligned_zeros((TILE // 2 * ends, *half.shape[1:]))
        waits = [
            crew.start(self._rows, x, limit, total, half, a, b)
            for a, b in [*crew.pieces(head, FRAMES // TILE, _BAND), (tail, tiles)]
        ]
        waits += [crew.start(self._edges, x, windows, edge_half, a, b) for a, b in crew.pieces(ends, 6)]

        def finish() -> np.ndarray:
            for wait in waits:
                wait()
            _repeat_rows(half, head * TILE // 2 + 1, tail * TILE // 2 + 1, cycle // 2)
            quarter = self._layer(crew, 5, half, total // 2, BINS // 2)
            last = self._layer(crew, 6, quarter, total // 4, BINS // 4)
            edge_last = aligned_zeros((TILE * ends, *last.shape[1:]))
            crew.each(
                lambda s, a, b: self._low_edges(s, half, quarter, edge_half, windows, edge_last, a, b),
                crew.pieces(ends, 2 * windows),
            )
            features = np.empty((windows, 64), np.float32)
            crew.each(
                lambda s, w: self._finish_window(s, last, edge_last, windows, w, features[w]),
                [(w,) for w in range(windows)],
            )
            return dense(features, self.dense)

        return finish

    def _log_power(self, s: _Scratch, signal: np.ndarray, x: np.ndarray, start: int, stop: int) -> None:
        _front_power(signal, self.front, start, stop - start, x, s.front)
        inside = x[start + 2 : stop + 2, 2 : BINS + 2]
        np.log(inside, out=inside)
        np.divide(inside, LN_10, out=inside)

    def _rows(
        self, s: _Scratch, x: np.ndarray, limit: np.ndarray, total: int, half: np.ndarray, start: int, stop: int
    ) -> None:
        """The four full-resolution layers and the first maxima, for tile rows [start, stop) of a run.

        Each layer runs one tile row behind the layer before it. `y2` and `y3` hold a moving band of rows. The first row
        of each is the last row of the tile row before `base2` or `base3`.
        """
        tiles = -(-total // TILE)
        stop2, stop3 = min(tiles, stop + 2), min(tiles, stop + 1)
        done2, done3, done4 = max(0, start - 2), max(0, start - 1), start
        base2, base3 = done2, done3
        s.y2[0] = s.y3[0] = 0.0
        while done4 < stop:
            band = min(stop2, base2 + _BAND)
            self.layers[2](s.work, x, TILE * done2, s.y2, (done2 - base2) * TILE + 1, band - done2, BINS, limit=limit)
            done2 = band
            if done2 == tiles:
                s.y2[total - base2 * TILE + 1 : (tiles - base2) * TILE + 2] = 0.0
            ready = done2 if done2 == tiles else min(stop3, done2 - 1)
            row = (done3 - base3) * TILE + 1
            self.layers[3](s.work, s.y2, (done3 - base2) * TILE, s.y3, row, ready - done3, BINS)
            done3 = ready
            if done3 == tiles:
                s.y3[total - base3 * TILE + 1 : (tiles - base3) * TILE + 2] = 0.0
            ready = min(stop, done3 if done3 == tiles else done3 - 1)
            row = done4 * TILE // 2 + 1
            self.layers[4](s.work, s.y3, (done4 - base3) * TILE, half, row, ready - done4, BINS, pool=True)
            done4 = ready
            base2 = self._move_up(s.y2, base2, done2, done3)
            base3 = self._move_up(s.y3, base3, done3, done4)
        if stop == tiles:
            half[total // 2 + 1 : tiles * TILE // 2 + 1] = 0.0

    @staticmethod
    def _move_up(band: np.ndarray, base: int, done: int, read: int) -> int:
        """Drops the rows of a band that the next layer, now at tile row `read`, has read; returns the new base."""
        if read == base:
            return base
        rows, shift = (done - read) * TILE + 1, (read - base) * TILE
        band[:rows] = band[shift : shift + rows]
        return read

    def _edges(self, s: _Scratch, x: np.ndarray, windows: int, edge_half: np.ndarray, start: int, stop: int) -> None:
        """The full-resolution layers near the inner ends of windows, with the zeros of the windows' padding.

        Edge e < windows - 1 is the start of window e + 1; the other edges are the ends of windows 0 to windows - 2.
        With each layer the zeros affect one more row, so four rows of the fourth layer differ from the run's. To
        compute them, an edge needs eight rows of the earlier layers. Rows of the third layer that lack a row of the
        second are not used.

        Args:
            edge_half: `(2 * edges, columns, 32)`: two rows per edge at half resolution.
        """
        inner, rows = windows - 1, _EDGE * TILE
        for e in range(start, stop):
            s.edge[:] = s.edge_limit[:] = 0.0
            if e < inner:
                first = HOP_FRAMES * (e + 1) + 2
                s.edge[2:] = x[first : first + rows + 2]
                s.edge_limit[1:, 1 : BINS + 1] = np.inf
            else:
                end = FRAMES + HOP_FRAMES * (e - inner) + 2
                s.edge[:-2] = x[end - rows - 2 : end]
                s.edge_limit[: rows + 1, 1 : BINS + 1] = np.inf
            self.layers[2](s.work, s.edge, 0, s.edge2, 1, _EDGE, BINS, limit=s.edge_limit)
            self.layers[3](s.work, s.edge2, 0, s.edge3, 1, _EDGE, BINS)
            row = 0 if e < inner else rows - TILE
            self.layers[4](s.work, s.edge3, row, edge_half, TILE // 2 * e, 1, BINS, pool=True)

    def _layer(self, crew: Crew, number: int, x: np.ndarray, rows: int, width: int) -> np.ndarray:
        """Layer 5 (followed by maxima) or 6 over a whole run."""
        pool = number == 5
        step = TILE // 2 if pool else TILE
        y = _picture(rows // 2, width // 2, 32) if pool else _picture(rows, width, 32)
        tiles = -(-rows // TILE)
        crew.each(
            lambda s, a, b: self.layers[number](s.work, x, TILE * a, y, 1 + step * a, b - a, width, pool=pool),
            crew.pieces(tiles, tiles),
        )
        y[1 + (rows // 2 if pool else rows) :] = 0.0
        return y

    def _low_edges(
        self, s: _Scratch, half: np.ndarray, quarter: np.ndarray, edge_half: np.ndarray, windows: int,
        edge_last: np.ndarray, start: int, stop: int,
    ) -> None:  # fmt: skip
        """Layers 5 and 6 at the inner ends of windows.

        Args:
            half, quarter: the run's pictures. edge_half: from `_edges`.
            edge_last: `(4 * edges, columns, 32)`: the first or last four rows of a window at quarter resolution.
        """
        inner = windows - 1
        five, six, pooled = s.edge_half, s.edge_quarter, s.edge_pooled
        for e in range(start, stop):
            begins = e < inner
            frame = HOP_FRAMES * (e + 1) if begins else FRAMES + HOP_FRAMES * (e - inner)
            own = edge_half[2 * e : 2 * e + 2]
            self._place(five, own, half, frame // 2 + 1, begins)
            self.layers[5](s.work, five, 0, pooled, 0, 1, BINS // 2, pool=True)
            self._place(six, pooled[:2], quarter, frame // 4 + 1, begins)
            self.layers[6](s.work, six, 0, edge_last, TILE * e, 1, BINS // 4)

    @staticmethod
    def _place(edge: np.ndarray, own: np.ndarray, run: np.ndarray, row: int, begins: bool) -> None:
        """Fills the six rows that a tile reads at a window's end: one of zeros, two of the edge, three of the run."""
        if begins:
            edge[0], edge[1:3], edge[3:6] = 0.0, own, run[row + 2 : row + 5]
        else:
            edge[:3], edge[3:5], edge[5] = run[row - 5 : row - 2], own, 0.0

    def _finish_window(
        self, s: _Scratch, last: np.ndarray, edge_last: np.ndarray, windows: int, window: int, out: np.ndarray
    ) -> None:
        """A window's last maxima, last convolution and the maximum over the whole picture, `(64,)`.

        The first two pooled rows come from the edge at the window's start, and the last one from the edge at its end
        (whose rows are 221 to 224; the last of them is not used). Without an edge, the run's rows are used.
        """
        width, rows = BINS // 4, FRAMES // 8
        head, tail = (0 if window == 0 else 2), (rows if window == windows - 1 else rows - 1)
        if head:
            _pool(edge_last, TILE * (window - 1), s.eighth, 1, head, width)
        _pool(last, 1 + HOP_FRAMES // 4 * window + 2 * head, s.eighth, 1 + head, tail - head, width)
        if tail < rows:
            _pool(edge_last, TILE * (windows - 1 + window) + 1, s.eighth, rows, 1, width)
        width //= 2
        self.layers[7](s.work, s.eighth, 0, s.y7, 1, -(-rows // TILE), width)
        s.y7[1 : rows + 1, 1 : width + 1].max(axis=(0, 1), out=out)


@cache
def _half_transform() -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines `(160, columns)` under a periodic Hann window of 321, whose first sample is zero.

    Samples n and 321 - n share their window value and their cosine and have opposite sines, so the transform of their
    sums and differences, half as long, is the transform of the frame.
    """
    n, k = np.arange(1, MEL_SAMPLES // 2 + 1)[:, None], np.arange(BINS)
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * n / MEL_SAMPLES)
    phase = 2.0 * np.pi / MEL_SAMPLES * (n * k % MEL_SAMPLES)
    cosines, sines = (aligned_zeros((MEL_SAMPLES // 2, _MEL_COLUMNS)) for _ in range(2))
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
    for start in range(0, count, _FRONT_FRAMES):
        size = min(_FRONT_FRAMES, count - start)
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


def _mel_decibels(s: _Scratch, signal: np.ndarray, hop: int, first: int, count: int) -> np.ndarray:
    """Mel power in decibels `(count, 120)`, float32, of frames of 321 samples, `hop` apart."""
    power = np.empty((count, BINS), np.float32)
    _mel_power_spectrum(signal, hop, first, count, *_half_transform(), power, *s.mel_front)
    levels = np.maximum(power @ mel_filters().T, np.float32(MEL_FLOOR))
    np.log10(levels, out=levels)
    levels *= np.float32(10.0)
    return levels


class P808:
    """The P.808 network.

    Args:
        weights: five convolutions and three dense layers.
        reflect: whether a window is continued by its mirror image rather than by zeros.
    """

    def __init__(self, weights: Weights, reflect: bool = False) -> None:
        self.reflect = reflect
        self.taps = _taps(*weights.convolutions[0])
        self.layers = {n: _Layer(own) for n, own in enumerate(weights.convolutions[1:], start=2)}
        self.dense = weights.dense

    def start_run(
        self, crew: Crew, signal: np.ndarray, windows: int, period: int | None = None
    ) -> Callable[[], np.ndarray]:
        """Begins to score consecutive windows, one second apart.

        Args:
            signal: float32 `(samples,)` from the first window's start to the last one's end.
            period: samples after which the signal repeats itself, or None.

        Returns:
            A function that waits and returns float32 `(windows,)`.
        """
        total = FRAMES + HOP_FRAMES * (windows - 1)
        # Frame t is centred on sample 160 t. A window is surrounded by zeros and leaves out its own last 160 samples.
        padded = np.concatenate([np.zeros(HOP_SAMPLES, np.float32), signal[: total * HOP_SAMPLES + 1]])
        levels = np.empty((total, MELS), np.float32)

        def spectrum(s: _Scratch, a: int, b: int) -> None:
            levels[a:b] = _mel_decibels(s, padded, HOP_SAMPLES, a, b - a)

        cycle = _cycle(period, total)
        crew.each(spectrum, crew.pieces(min(cycle + 1, total), FRAMES))
        _repeat_rows(levels, cycle + 1, total, cycle)  # the first frame contains zeros from before the run
        features = np.empty((windows, 64), np.float32)
        waits = [crew.start(self._window, padded, levels, HOP_FRAMES * w, features[w]) for w in range(windows)]

        def finish() -> np.ndarray:
            for wait in waits:
                wait()
            return dense(features, self.dense)[:, 0]

        return finish

    def _window(self, s: _Scratch, padded: np.ndarray, levels: np.ndarray, first: int, out: np.ndarray) -> None:
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
        for n in range(0, rows, _MEL_ROWS):
            _first_layer(s.mel_x, 2 * n, self.taps, s.mel_y1, 0, 2 * _MEL_ROWS, MELS, s.patches)
            _pool(s.mel_y1, 0, s.mel_p1, 1 + n, _MEL_ROWS, MELS)
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

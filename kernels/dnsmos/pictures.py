"""Base of both DNSMOS networks: pictures, threads, layers, repetition."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from ..compilation.cpu import jit
from .ref import BINS, FRAMES, HOP_SAMPLES, MELS, Convolution
from .winograd import TILE, WORKSPACE, aligned, aligned_zeros, convolve, transform_weights

HOP_FRAMES = 100
FRONT_FRAMES = 42  # the fewest frames that a repeating signal's front end computes
BAND = 18  # tile rows by which the second layer runs ahead of the fourth; the rows between them fit the cache
EDGE = 2  # tile rows of the second and third layer that an edge needs; of the fourth it needs one
MEL_ROWS = 10  # pooled rows of P.808's first layer that are computed at a time; divides 450


def picture(rows: int, width: int, channels: int) -> np.ndarray:
    """Zeros for a picture of these rows and columns, padding and whole tiles.

    With an odd number of rows or columns, the tiles reach one further after the maxima.
    """
    return aligned_zeros((-(-(rows + 1) // TILE) * TILE + 2, -(-(width + 1) // TILE) * TILE + 2, channels))


def two_layer_input(rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """A two-layer input, padded by two, and its limits."""
    rows, columns = -(-rows // TILE) * TILE + 4, -(-width // TILE) * TILE + 4
    return aligned_zeros((rows, columns, 1)), aligned_zeros((rows, columns))


@jit(nogil=True)
def pool_rows(x: np.ndarray, row_in: int, y: np.ndarray, row_out: int, count: int, width: int) -> None:
    """Pool 2x2 maxima, rectified, from rows of x to rows of y, both from column 1 on.

    An odd last column is omitted.
    """
    for n in range(count):
        r = row_in + 2 * n
        for j in range(width // 2):
            for c in range(x.shape[2]):
                above = max(x[r, 2 * j + 1, c], x[r, 2 * j + 2, c])
                below = max(x[r + 1, 2 * j + 1, c], x[r + 1, 2 * j + 2, c])
                y[row_out + n, 1 + j, c] = max(max(above, below), np.float32(0.0))


class Scratch:
    """A thread's pictures, reused between calls because new memory costs page faults."""

    def __init__(self) -> None:
        self.work = aligned_zeros(WORKSPACE)
        self.y2, self.y3 = picture((BAND + 1) * TILE, BINS, 64), picture((BAND + 1) * TILE, BINS, 64)
        self.edge, self.edge_limit = two_layer_input(EDGE * TILE, BINS)
        self.edge2, self.edge3 = picture(EDGE * TILE, BINS, 64), picture(EDGE * TILE, BINS, 64)
        self.edge_half, self.edge_quarter = picture(TILE, BINS // 2, 32), picture(TILE, BINS // 4, 32)
        self.edge_pooled = picture(TILE // 2, BINS // 4, 32)
        self.eighth, self.y7 = picture(FRAMES // 8, BINS // 8, 32), picture(FRAMES // 8, BINS // 8, 64)
        self.mel_x = aligned_zeros((FRAMES + 2, MELS + 2))
        self.mel_y1 = aligned_zeros((2 * MEL_ROWS, MELS + 2, 32))
        self.mel_p1, self.mel_p2 = picture(FRAMES // 2, MELS // 2, 32), picture(FRAMES // 4, MELS // 4, 32)
        self.mel_y3, self.mel_p4 = picture(FRAMES // 4, MELS // 4, 32), picture(FRAMES // 8, MELS // 8, 32)
        self.mel_y5 = picture(FRAMES // 8, MELS // 8, 64)


class Crew:
    """Runs work on threads; a single one is the caller's.

    Args:
        threads: they end with the `with` block, so a later fork has no threads.
    """

    def __init__(self, threads: int) -> None:
        self.threads = max(1, threads)
        self._pool: ThreadPoolExecutor | None = None
        self._spare: list[Scratch] = []

    def __enter__(self) -> Crew:
        if self.threads > 1:
            self._pool = ThreadPoolExecutor(self.threads)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def start(self, work: Callable[..., None], *arguments: object) -> Callable[[], None]:
        """Start `work(scratch, *arguments)`; the result waits and raises."""
        if self._pool is None:
            self._run(work, *arguments)
            return lambda: None
        return self._pool.submit(self._run, work, *arguments).result

    def each(self, work: Callable[..., None], pieces: Sequence[tuple[object, ...]]) -> None:
        """Run `work(scratch, *piece)` for every piece and wait."""
        for wait in [self.start(work, *item) for item in pieces]:
            wait()

    def pieces(self, count: int, most: int, least: int = 1) -> list[tuple[int, int]]:
        """Divide range(count) into equal pieces of at most `most`.

        There are fewer pieces if they would otherwise be shorter than `least`.
        """
        parts = max(1, min(self.threads * -(-count // (self.threads * most)), count // least))
        bounds = [count * n // parts for n in range(parts + 1)]
        return [(a, b) for a, b in pairwise(bounds) if b > a]

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        try:
            scratch = self._spare.pop()
        except IndexError:
            scratch = Scratch()
        try:
            work(scratch, *arguments)
        finally:
            self._spare.append(scratch)


NONE = np.zeros((0, 0), np.float32)


def taps_of(weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Join a first layer's weights `(out, 1, 3, 3)` and bias as `(10, out)`."""
    return aligned(np.concatenate([weights.reshape(len(weights), 9).T, bias[None]]))


class Layer:
    """A convolution with weights, perhaps after another one (`first`)."""

    def __init__(self, convolution: Convolution, first: Convolution | None = None) -> None:
        self.weights, self.bias = transform_weights(convolution[0]), aligned(convolution[1])
        self.taps = NONE if first is None else taps_of(*first)

    def __call__(
        self, work: np.ndarray, x: np.ndarray, row_in: int, y: np.ndarray, row_out: int, count: int, width: int, *,
        pool: bool = False, limit: np.ndarray = NONE,
    ) -> None:  # fmt: skip
        """See `convolve`."""
        convolve(x, limit, self.taps, row_in, self.weights, self.bias, y, row_out, count, width, pool, work)


def cycle_of(period: int | None, total: int) -> int:
    """Frames after which a periodic signal repeats: even, at most `total`."""
    if period is None:
        return total
    cycle = period // math.gcd(period, HOP_SAMPLES)
    cycle *= 1 + cycle % 2
    return min(total, cycle * -(-FRONT_FRAMES // cycle))


def repeat_rows(rows: np.ndarray, start: int, stop: int, cycle: int) -> None:
    """Fill rows [start, stop) with copies of the rows `cycle` before them."""
    for first in range(start, stop, cycle):
        last = min(stop, first + cycle)
        rows[first:last] = rows[first - cycle : last - cycle]


class WindowNetwork(ABC):
    """A network that scores windows of a signal."""

    @abstractmethod
    def start_run(
        self, crew: Crew, signal: np.ndarray, windows: int, period: int | None = None
    ) -> Callable[[], np.ndarray]:
        """Start to score consecutive windows, one second apart.

        Args:
            signal: float32 `(samples,)` from the first window's start to the last one's end.
            period: samples after which the signal repeats itself, or None.

        Returns:
            A function that waits and returns the results of the windows, float32.
        """

"""Dynamic time warping in numba, float64, equal to `ref` within rounding.

Distances are computed where they are needed, so memory grows with the sequences and the window's width only.
"""

from __future__ import annotations

import math

import numpy as np

from ..compilation.cpu import jit
from .ref import RADIUS, halved

_jit = jit(nogil=True)


def fast_path(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """As `ref.fast_path`."""
    x, y = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(y, np.float64)
    if len(x) < RADIUS + 2 or len(y) < RADIUS + 2:
        low, high = np.zeros(len(x), np.int64), np.full(len(x), len(y), np.int64)
    else:
        low, high = _window(fast_path(halved(x), halved(y)), len(x), len(y))
    return _path_within(x, y, low, high)


@_jit
def _window(path: np.ndarray, frames_x: int, frames_y: int) -> tuple[np.ndarray, np.ndarray]:
    """As `ref.window`: a row's cells are contiguous, because the halved path advances one step at a time."""
    rows = (frames_x + 1) // 2 + 1
    first, last = np.full(rows, frames_y, np.int64), np.full(rows, -1, np.int64)
    for k in range(len(path)):
        i, j = path[k]
        for row in range(max(0, i - RADIUS), min(rows, i + RADIUS + 1)):
            first[row] = min(first[row], j - RADIUS)
            last[row] = max(last[row], j + RADIUS)
    low, high = np.zeros(frames_x, np.int64), np.zeros(frames_x, np.int64)
    start = 0
    for i in range(frames_x):
        low[i] = max(start, 2 * first[i // 2])
        high[i] = min(frames_y, 2 * last[i // 2] + 2)
        start = low[i]
    return low, high


@_jit
def _path_within(x: np.ndarray, y: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """As `ref.path_within`."""
    widest = 0
    for i in range(len(x)):
        widest = max(widest, high[i] - low[i])
    steps = np.zeros((len(x), widest), np.int8)
    before = np.full(len(y) + 1, math.inf)
    before[0] = 0.0
    now = np.full(len(y) + 1, math.inf)
    for i in range(len(x)):
        now[:] = math.inf
        for j in range(low[i], high[i]):
            distance = 0.0
            for d in range(x.shape[1]):
                distance += (x[i, d] - y[j, d]) ** 2
            distance = math.sqrt(distance)
            best, kind = before[j + 1] + distance, 0
            if now[j] + distance < best:
                best, kind = now[j] + distance, 1
            if before[j] + distance < best:
                best, kind = before[j] + distance, 2
            now[j + 1] = best
            steps[i, j - low[i]] = kind
        before, now = now, before
    path = np.empty((len(x) + len(y), 2), np.int64)
    step = len(path)
    i, j = len(x) - 1, len(y) - 1
    while i >= 0 and j >= 0:
        step -= 1
        path[step, 0], path[step, 1] = i, j
        kind = steps[i, j - low[i]]
        if kind != 1:
            i -= 1
        if kind != 0:
            j -= 1
    return path[step:].copy()


@_jit
def subsequence_costs(patches: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """`ref.subsequence_cost` of several patches of one length, `(patches,)`.

    Args:
        patches: float64 `(patches, frames, dimensions)`. reference: float64 `(more frames, dimensions)`.
    """
    count, frames, dimensions = patches.shape
    columns = len(reference)
    turned = reference.T.copy()
    out = np.empty(count)
    before, now, distances = np.empty(columns), np.empty(columns), np.empty(columns)
    for p in range(count):
        for i in range(frames):
            distances[:] = 0.0
            for d in range(dimensions):
                value = patches[p, i, d]
                row = turned[d]
                for j in range(columns):
                    distances[j] += (value - row[j]) ** 2
            for j in range(columns):
                distances[j] = math.sqrt(distances[j])
            if i == 0:
                now[:] = distances
            else:
                for j in range(columns):
                    best = before[j]
                    if j >= 3:
                        best = min(best, before[j - 3], now[j - 3])
                    now[j] = best + distances[j]
            before, now = now, before
        out[p] = before.min() / frames
    return out


@_jit
def mean_costs_of_vectors(x: np.ndarray, x_starts: np.ndarray, y: np.ndarray, y_starts: np.ndarray) -> np.ndarray:
    """`ref.mean_cost` of vectors' angles over pi, for every pair of sequences.

    Args:
        x, y: float64 `(frames, dimensions)` of length 1, all sequences joined.
        x_starts, y_starts: int64 `(sequences + 1,)`, where each sequence begins.

    Returns:
        float64 `(sequences of x, sequences of y)`.
    """
    out = np.empty((len(x_starts) - 1, len(y_starts) - 1))
    for p in range(len(x_starts) - 1):
        for q in range(len(y_starts) - 1):
            near = x[x_starts[p] : x_starts[p + 1]] @ y[y_starts[q] : y_starts[q + 1]].T
            out[p, q] = _mean_cost(np.arccos(np.minimum(1.0, np.maximum(-1.0, near))) / math.pi)
    return out


@_jit
def mean_costs_of_codes(x: np.ndarray, x_starts: np.ndarray, y: np.ndarray, y_starts: np.ndarray) -> np.ndarray:
    """`ref.mean_cost` of angles over pi whose cosine is the share of equal codes.

    Args:
        x, y: int64 `(frames, codebooks)` of all joined sequences. x_starts, y_starts: as for vectors.

    Returns:
        float64 `(sequences of x, sequences of y)`.
    """
    books = x.shape[1]
    angles = np.arccos(np.arange(books + 1) / books) / math.pi
    out = np.empty((len(x_starts) - 1, len(y_starts) - 1))
    for p in range(len(x_starts) - 1):
        for q in range(len(y_starts) - 1):
            distances = np.empty((x_starts[p + 1] - x_starts[p], y_starts[q + 1] - y_starts[q]))
            for i in range(distances.shape[0]):
                for j in range(distances.shape[1]):
                    equal = 0
                    for book in range(books):
                        equal += x[x_starts[p] + i, book] == y[y_starts[q] + j, book]
                    distances[i, j] = angles[equal]
            out[p, q] = _mean_cost(distances)
    return out


@_jit
def _mean_cost(distances: np.ndarray) -> float:
    """As `ref.mean_cost`, counting the cells of each path on the way."""
    rows, columns = distances.shape
    cost = np.full(columns + 1, math.inf)
    cells = np.zeros(columns + 1, np.int64)
    cost[0] = 0.0
    for i in range(rows):
        corner, corner_cells = cost[0], cells[0]
        cost[0] = math.inf
        for j in range(columns):
            best, count = corner, corner_cells
            if cost[j] < best:
                best, count = cost[j], cells[j]
            if cost[j + 1] < best:
                best, count = cost[j + 1], cells[j + 1]
            corner, corner_cells = cost[j + 1], cells[j + 1]
            cost[j + 1] = best + distances[i, j]
            cells[j + 1] = count + 1
    return float(cost[columns] / cells[columns])

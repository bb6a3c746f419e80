"""Dynamic time warping in plain Python and NumPy, in float64: the specification.

`fast_path` is FastDTW with a radius of 1 (Salvador and Chan 2007), step by step as fastdtw 0.3.4: not always the
cheapest path, but the basis of published numbers. `subsequence_cost` is the cheapest alignment of a patch with a part
of a longer sequence, with WARP-Q's steps. `mean_cost` is the cheapest path's cost per step, as in ABX tests (torchdtw).
"""

from __future__ import annotations

import numpy as np

RADIUS = 1
STEPS = ((1, 0), (0, 3), (1, 3))
"""WARP-Q's steps: (frames of the patch, frames of the reference)."""


def fast_path(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the path of FastDTW with a radius of 1 and Euclidean distances.

    Both sequences are halved by averaging neighbours until one is shorter than three, where the path is exact. At each
    longer pair, only cells near the shorter pair's path are searched. Of equally cheap steps, one along x comes first,
    then one along y, then one along both.

    Args:
        x, y: `(frames, dimensions)`, at least one frame each.

    Returns:
        int64 `(steps, 2)`: indexes in x and y, from the first to the last of both.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(x) < RADIUS + 2 or len(y) < RADIUS + 2:
        low, high = np.zeros(len(x), np.int64), np.full(len(x), len(y), np.int64)
    else:
        low, high = window(fast_path(halved(x), halved(y)), len(x), len(y))
    return path_within(x, y, low, high)


def halved(x: np.ndarray) -> np.ndarray:
    """Average neighbours: `(frames // 2, dimensions)`, without an odd last one."""
    even = len(x) - len(x) % 2
    return (x[0:even:2] + x[1:even:2]) / 2


def window(path: np.ndarray, frames_x: int, frames_y: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells to search around the path of the halved sequences.

    Returns:
        For each index in x, the first one in y and the one after the last, int64 `(frames_x,)` each. As in fastdtw, a
        row holds the first contiguous cells of the widened path from the row before's first cell on.
    """
    near = {
        (i + a, j + b) for i, j in path.tolist() for a in range(-RADIUS, RADIUS + 1) for b in range(-RADIUS, RADIUS + 1)
    }
    cells = {(2 * i + a, 2 * j + b) for i, j in near for a in (0, 1) for b in (0, 1)}
    low, high = np.zeros(frames_x, np.int64), np.zeros(frames_x, np.int64)
    start = 0
    for i in range(frames_x):
        first = next(j for j in range(start, frames_y) if (i, j) in cells)
        last = first
        while last < frames_y and (i, last) in cells:
            last += 1
        low[i], high[i], start = first, last, first
    return low, high


def path_within(x: np.ndarray, y: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Find the cheapest path from the first cell to the last within a window.

    Args:
        x, y: `(frames, dimensions)`. low, high: the first index in y, and the one after the last, for each in x.
    """
    cost = np.full((len(x) + 1, len(y) + 1), np.inf)
    cost[0, 0] = 0.0
    step = np.zeros(cost.shape, np.int64)
    for i in range(1, len(x) + 1):
        for j in range(low[i - 1] + 1, high[i - 1] + 1):
            distance = float(np.sqrt(((x[i - 1] - y[j - 1]) ** 2).sum()))
            before = [cost[i - 1, j] + distance, cost[i, j - 1] + distance, cost[i - 1, j - 1] + distance]
            step[i, j] = int(np.argmin(before))
            cost[i, j] = before[step[i, j]]
    path = []
    i, j = len(x), len(y)
    while i or j:
        path.append((i - 1, j - 1))
        kind = step[i, j]
        i, j = i - (kind != 1), j - (kind != 0)
    return np.asarray(path[::-1], np.int64)


def subsequence_cost(patch: np.ndarray, reference: np.ndarray) -> float:
    """The cheapest cost per frame of a patch along part of the reference.

    The alignment begins and ends anywhere in the reference. A step advances one frame of the patch, three of the
    reference, or both; its cost is the Euclidean distance at its end. It equals `librosa.sequence.dtw(subseq=True,
    step_sizes_sigma=[[1, 0], [0, 3], [1, 3]])`'s least cost in the last row.

    Args:
        patch: `(frames, dimensions)`. reference: `(more frames, dimensions)`.
    """
    patch, reference = np.asarray(patch, np.float64), np.asarray(reference, np.float64)
    distances = np.sqrt(((patch[:, None] - reference[None]) ** 2).sum(axis=2))
    cost = np.full(distances.shape, np.inf)
    cost[0] = distances[0]
    for i in range(len(patch)):
        for j in range(len(reference)):
            for a, b in STEPS:
                if i >= a and j >= b:
                    cost[i, j] = min(cost[i, j], cost[i - a, j - b] + distances[i, j])
    return float(cost[-1].min()) / len(patch)


def mean_cost(distances: np.ndarray) -> float:
    """Return the cheapest path's cost from the first cell to the last, per cell.

    Of equally cheap steps back, the one along both sequences comes first, then columns, then rows.

    Args:
        distances: distances `(frames of one sequence, frames of the other)`, at least one each.
    """
    rows, columns = distances.shape
    cost = np.full((rows + 1, columns + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(rows):
        for j in range(columns):
            cost[i + 1, j + 1] = distances[i, j] + min(cost[i, j + 1], cost[i, j], cost[i + 1, j])
    i, j, cells = rows, columns, 1
    while (i, j) != (1, 1):
        before = ((i - 1, j - 1), (i, j - 1), (i - 1, j))
        i, j = min(before, key=lambda cell: cost[cell])
        cells += 1
    return float(cost[rows, columns] / cells)

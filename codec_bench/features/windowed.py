"""Windows of signals as padded passes, and the results by signal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.audio.padded_passes import SLACK, passes
from codec_bench.features.base import Unavailable
from codec_bench.features.padded import PaddedPass


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """The size of a pass in samples.

    Args:
        slack: the largest ratio of windows in one pass on a CPU.
    """

    on_cpu: int
    on_gpu: int
    slack: float = SLACK


@dataclass(frozen=True, slots=True, eq=False)
class WindowedBatch:
    """A prepared batch of windows of signals.

    Args:
        passes: the windows of each pass; their places index all windows, in order.
        owners: the signal of each window.
        obstacles: by index, why a signal has no window.
        signals: the number of signals.
    """

    passes: list[PaddedPass]
    owners: list[int]
    obstacles: Mapping[int, Unavailable]
    signals: int

    def results(self, outputs: Sequence[Any], result: Callable[[np.ndarray], Any]) -> list[Any]:
        """Build one result per signal, in order.

        Args:
            outputs: of each pass, an array with a row per window.
            result: a function of a signal's rows, float64 `(windows, ...)`.
        """
        of_window: dict[int, Any] = {}
        for one, rows in zip(self.passes, outputs, strict=True):
            of_window.update(zip(one.places, rows, strict=True))
        rows_of: list[list[Any]] = [[] for _ in range(self.signals)]
        for window, owner in enumerate(self.owners):
            rows_of[owner].append(of_window[window])
        return [self.obstacles.get(index) or result(np.asarray(rows, np.float64)) for index, rows in enumerate(rows_of)]


def cut_windows(
    signals: Sequence[np.ndarray],
    obstacle: Callable[[np.ndarray], Unavailable | None],
    cut: Callable[[np.ndarray], list[np.ndarray]],
) -> tuple[dict[int, Unavailable], list[int], list[np.ndarray]]:
    """Cut each signal into windows, unless `obstacle` returns why it has no result.

    Args:
        obstacle: returns None for a signal that can be cut.
        cut: returns the windows of a signal.

    Returns:
        By index, why a signal has no windows; the signal's index of each window; the windows.
    """
    obstacles = {index: why for index, signal in enumerate(signals) if (why := obstacle(signal)) is not None}
    cuts = [(index, window) for index, signal in enumerate(signals) if index not in obstacles for window in cut(signal)]
    return obstacles, [index for index, _ in cuts], [window for _, window in cuts]


def windowed_batch(
    signals: Sequence[np.ndarray],
    obstacle: Callable[[np.ndarray], Unavailable | None],
    cut: Callable[[np.ndarray], list[np.ndarray]],
    device: str,
    limits: WindowLimits,
    room: Callable[[int], int] = lambda size: size,
) -> WindowedBatch:
    """Cut signals `(samples,)`, float32, into windows, and group these into passes.

    The windows of a pass are zero-padded to one size and uploaded.

    Args:
        obstacle: returns why a signal has no result, or None.
        cut: returns the windows of a signal.
        limits: the size of a pass.
        room: returns the zero-padded size of a window in a separate pass.
    """
    from codec_bench.networks.transfer import padded_rows

    obstacles, owners, windows = cut_windows(signals, obstacle, cut)
    rooms = [room(window.size) for window in windows]
    batches = []
    for group in passes(rooms, device, most=limits.on_gpu, most_on_cpu=limits.on_cpu, slack=limits.slack):
        waves = padded_rows([windows[index] for index in group], max(rooms[index] for index in group), device)
        batches.append(PaddedPass(group, waves, [windows[index].size for index in group]))
    return WindowedBatch(batches, owners, obstacles, len(signals))

"""Signals that a network hears in windows: all windows of a batch as padded passes, and what it gave for them by
signal.
"""

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
    """How many samples go through the network in one pass.

    Args:
        on_cpu, on_gpu: at most. slack: by what factor the windows of one pass may differ on a CPU.
    """

    on_cpu: int
    on_gpu: int
    slack: float = SLACK


@dataclass(frozen=True, slots=True, eq=False)
class WindowedBatch:
    """A batch that is ready.

    Args:
        passes: windows that go through the network together; their places are those among all windows, in order.
        owners: for each window, the place of its signal. obstacles: by place, why a signal has no window.
        signals: how many there are.
    """

    passes: list[PaddedPass]
    owners: list[int]
    obstacles: Mapping[int, Unavailable]
    signals: int

    def results(self, outputs: Sequence[Any], result: Callable[[np.ndarray], Any]) -> list[Any]:
        """One result for each signal, in order.

        Args:
            outputs: of each pass, an array with a row for each window.
            result: makes the result of a signal from the rows of its windows, float64 `(windows, ...)`.
        """
        of_window: dict[int, Any] = {}
        for one, rows in zip(self.passes, outputs, strict=True):
            of_window.update(zip(one.places, rows, strict=True))
        rows_of: list[list[Any]] = [[] for _ in range(self.signals)]
        for window, owner in enumerate(self.owners):
            rows_of[owner].append(of_window[window])
        return [self.obstacles.get(index) or result(np.asarray(rows, np.float64)) for index, rows in enumerate(rows_of)]


def windowed_batch(
    signals: Sequence[np.ndarray],
    obstacle: Callable[[np.ndarray], Unavailable | None],
    cut: Callable[[np.ndarray], list[np.ndarray]],
    device: str,
    limits: WindowLimits,
    room: Callable[[int], int] = lambda size: size,
) -> WindowedBatch:
    """The passes of a network over the windows of signals, float32 `(samples,)`.

    Args:
        obstacle: says why a signal has no result, or gives None. cut: the windows of a signal.
        device: `cpu` or `cuda:N`. limits: of a pass.
        room: how many samples a window of a size is filled up to, with zeros, in a pass of its own.
    """
    from codec_bench.networks.transfer import padded_rows

    obstacles = {index: why for index, signal in enumerate(signals) if (why := obstacle(signal)) is not None}
    owners: list[int] = []
    windows: list[np.ndarray] = []
    for index, signal in enumerate(signals):
        if index not in obstacles:
            windows += (new_windows := cut(signal))
            owners += [index] * len(new_windows)
    rooms = [room(window.size) for window in windows]
    batches = []
    for group in passes(rooms, device, most=limits.on_gpu, most_on_cpu=limits.on_cpu, slack=limits.slack):
        waves = padded_rows([windows[index] for index in group], max(rooms[index] for index in group), device)
        batches.append(PaddedPass(group, waves, [windows[index].size for index in group]))
    return WindowedBatch(batches, owners, obstacles, len(signals))

"""The signals of a batch as the padded passes of a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.audio.padded_passes import EIGHT_SECONDS, passes
from codec_bench.features.base import Unavailable


@dataclass(frozen=True, slots=True, eq=False)
class PaddedPass:
    """Signals that the network reads in one padded batch.

    Args:
        places: their indices in the batch.
        waves: float32 `(signals, longest)` on the device.
        lengths: in samples.
        drawn: random inputs of each signal, on the device, or None.
    """

    places: list[int]
    waves: Any
    lengths: list[int]
    drawn: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class PaddedBatch:
    """A prepared batch: the passes, and by index why a signal cannot be computed."""

    passes: list[PaddedPass]
    obstacles: Mapping[int, Unavailable]

    def results(self, outputs: Sequence[Any], result: Callable[[Any, int], Any]) -> list[Any]:
        """Build one result per signal, in order.

        Args:
            outputs: of each pass, an array with a row per signal.
            result: a function of a signal's row and its length in samples.
        """
        by_index = dict(self.obstacles)
        for one, rows in zip(self.passes, outputs, strict=True):
            for index, row, length in zip(one.places, rows, one.lengths, strict=True):
                by_index[index] = result(row, length)
        return [by_index[index] for index in range(len(by_index))]


def padded_batch(
    signals: Sequence[np.ndarray], obstacle: Callable[[np.ndarray], Unavailable | None], device: str
) -> PaddedBatch:
    """Group signals of similar length into zero-padded passes on the device.

    Args:
        signals: float32 `(samples,)`.
        obstacle: returns why a signal has no result, or None.
    """
    from codec_bench.networks.speech_encoder import padded

    obstacles = {position: why for position, signal in enumerate(signals) if (why := obstacle(signal)) is not None}
    usable = [position for position in range(len(signals)) if position not in obstacles]
    batches: list[PaddedPass] = []
    lengths = [signals[position].size for position in usable]
    for group in passes(lengths, device, most_on_cpu=EIGHT_SECONDS) if usable else ():
        places = [usable[index] for index in group]
        batches.append(PaddedPass(places, *padded([signals[position] for position in places], device)))
    return PaddedBatch(batches, obstacles)

"""Ragged batches: lengths on host and device, and zeros beyond each item's end.

Shapes follow from lengths on the host, masks from those on the device. They are uploaded once per batch (`uploaded`),
and layers derive theirs in both places (`each`), so the number of uploads does not grow with the layers and nothing
waits for the device. A batch that is padded to one of a few shapes (`batch_shapes.py`) knows on the host only an upper
bound (`Bounded`). So a layer asks `full` whether to mask, not the lengths on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any


class Lengths(tuple[int, ...]):
    """Lengths on the host, with the same numbers on a device.

    Attributes
        there: int64 `(items,)` on the device.
    """

    there: Any

    def __new__(cls, lengths: Iterable[int], there: Any) -> Lengths:
        """Pair numbers with the tensor that holds them."""
        instance = super().__new__(cls, lengths)
        instance.there = there
        return instance


class Bounded(Lengths):
    """Lengths known on the device alone; on the host, each item's upper bound."""


class WholeSignal:
    """A network that reads a signal at once, without windows or padding."""

    @staticmethod
    def cut(signal: Any) -> list[Any]:
        """Return the signal as a whole."""
        return [signal]

    @staticmethod
    def room(num_samples: int) -> int:
        """Return the unpadded length."""
        return num_samples


def full(lengths: Sequence[int], time: int) -> bool:
    """Whether every item is known to have all `time` steps."""
    return not isinstance(lengths, Bounded) and min(lengths) == time


def uploaded(lengths: Sequence[int], device: Any) -> Sequence[int]:
    """Return lengths with a copy on the device; on a CPU, or if they have one, as is."""
    import torch

    if torch.device(device).type == "cpu" or isinstance(lengths, Lengths):
        return lengths
    return Lengths(lengths, _sent(lengths, device))


def _sent(lengths: Sequence[int], device: Any) -> Any:
    """Upload lengths as int64 without making the host wait."""
    import numpy as np

    from codec_bench.networks.transfer import sent

    return sent([np.asarray(lengths, np.int64)], device)[0]


def each(lengths: Sequence[int], rule: Callable[[Any], Any]) -> Sequence[int]:
    """Apply a layer's rule for lengths, such as `lambda n: -(-n // stride)`, to all."""
    here = [rule(length) for length in lengths]
    return type(lengths)(here, rule(lengths.there)) if isinstance(lengths, Lengths) else here


def on_device(lengths: Sequence[int], device: Any) -> Any:
    """Lengths as int64 `(items,)` on a device, uploaded only if needed."""
    return lengths.there if isinstance(lengths, Lengths) else _sent(lengths, device)


def inside(lengths: Sequence[int], time: int, device: Any) -> Any:
    """Return a mask `(items, time)`, True on each item's valid steps."""
    import torch

    return torch.arange(time, device=device) < on_device(lengths, device)[:, None]


def zero_beyond(x: Any, lengths: Sequence[int]) -> Any:
    """Zero `x` `(items, channels, time)` beyond each item's length, in place.

    A CPU writes only the padding. On a GPU one operation over the whole batch is faster than one per item.
    """
    if full(lengths, x.shape[-1]):
        return x
    if x.is_cpu and not isinstance(lengths, Bounded):
        for row, length in zip(x, lengths):
            row[..., length:] = 0
        return x
    return x.masked_fill_(~inside(lengths, x.shape[-1], x.device)[:, None], 0)


def ragged_lengths(lengths: Sequence[int], device: Any) -> Any:
    """Return each item's length as a tensor, or None if all are equal."""
    return None if full(lengths, max(lengths)) else on_device(lengths, device)

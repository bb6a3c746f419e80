"""Batches of items of unequal lengths: which have an end to mask, and writing zeros beyond it.

Lengths stand on the host, because shapes follow from them, and on the device, because masks follow from them. They are
uploaded once for a batch (`uploaded`); what layers make of them is computed in both places (`each`), so that the number
of uploads does not grow with the number of layers, and nothing waits for the device.

A batch that is filled up to one of a few shapes (`batch_shapes.py`) knows on the host only how long an item may be at
most (`Bounded`): shapes follow from that, and masks from the lengths on the device. So no layer decides by the lengths
on the host whether there is something to mask; it asks `full`.
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
        """Pairs numbers with the tensor that holds them."""
        instance = super().__new__(cls, lengths)
        instance.there = there
        return instance


class Bounded(Lengths):
    """Lengths that the device alone knows: on the host stands for each item how long it may be at most."""


class WholeSignal:
    """The part of a network that hears a signal at once: it is neither cut into windows nor filled up."""

    @staticmethod
    def cut(signal: Any) -> list[Any]:
        """The signal as a whole."""
        return [signal]

    @staticmethod
    def room(num_samples: int) -> int:
        """A signal is not filled up."""
        return num_samples


def full(lengths: Sequence[int], time: int) -> bool:
    """Whether every item is known to have all of `time` steps, so that nothing is to be masked."""
    return not isinstance(lengths, Bounded) and min(lengths) == time


def uploaded(lengths: Sequence[int], device: Any) -> Sequence[int]:
    """The lengths with a copy on the device, made here if they have none yet; on a CPU as they are."""
    import torch

    if torch.device(device).type == "cpu" or isinstance(lengths, Lengths):
        return lengths
    return Lengths(lengths, _sent(lengths, device))


def _sent(lengths: Sequence[int], device: Any) -> Any:
    """The lengths as a tensor on a device, without a wait of the host."""
    import numpy as np

    from codec_bench.networks.transfer import sent

    return sent([np.asarray(lengths, np.int64)], device)[0]


def each(lengths: Sequence[int], rule: Callable[[Any], Any]) -> Sequence[int]:
    """What a layer makes of every length, such as `lambda n: -(-n // stride)`: the rule takes a number or a tensor."""
    here = [rule(length) for length in lengths]
    return type(lengths)(here, rule(lengths.there)) if isinstance(lengths, Lengths) else here


def on_device(lengths: Sequence[int], device: Any) -> Any:
    """The lengths as a tensor int64 `(items,)` on a device, without an upload where they are there already."""
    return lengths.there if isinstance(lengths, Lengths) else _sent(lengths, device)


def inside(lengths: Sequence[int], time: int, device: Any) -> Any:
    """True `(items, time)` on every item's own steps."""
    import torch

    return torch.arange(time, device=device) < on_device(lengths, device)[:, None]


def zero_beyond(x: Any, lengths: Sequence[int]) -> Any:
    """Writes zeros beyond each item's length into `x` `(items, channels, time)`, which it changes and returns.

    On a CPU only the padding is written. On a GPU one operation over the whole batch is faster than one for each item.
    """
    if full(lengths, x.shape[-1]):
        return x
    if x.is_cpu and not isinstance(lengths, Bounded):
        for row, length in zip(x, lengths):
            row[..., length:] = 0
        return x
    return x.masked_fill_(~inside(lengths, x.shape[-1], x.device)[:, None], 0)


def ragged_lengths(lengths: Sequence[int], device: Any) -> Any:
    """Each item's length as a tensor, or None where all are equal and nothing is to be masked."""
    return None if full(lengths, max(lengths)) else on_device(lengths, device)

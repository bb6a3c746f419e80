"""The few batch shapes of a GPU: a ladder of lengths with items on each.

GPU libraries prepare an algorithm for every new shape, and the memory of one shape seldom fits another. So the items of
a batch are on one rung, their number times its length is about constant, and the rest is padded.

    lengths     Four per doubling, from 1.28 s on: 21 up to 41 s. Padding adds at most a fourth beyond 1.28 s.
    items       1, 2, 3, 4, 6, 8, 12, 16 and so on: two per doubling.
    padding     `in_shape` pads a batch on a GPU and passes `Bounded` lengths: shapes follow from the shape, masks from
                the lengths on the device. `in_rows` pads only the number of items, for windows of one length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from codec_bench.networks.ragged import Bounded, on_device

if TYPE_CHECKING:
    from torch import Tensor

SHORTEST_S, PER_DOUBLING = 1.28, 4
_UNIT_S = SHORTEST_S / (2 * PER_DOUBLING)


def rung_s(length_s: float) -> float:
    """Return the padded length in seconds for an item of `length_s` seconds."""
    units = max(2 * PER_DOUBLING, math.ceil(length_s / _UNIT_S - 1e-6))  # a last bit is no further rung
    return _UNIT_S * _up(units, PER_DOUBLING)


def rung_steps(steps: int, steps_per_s: float, unit: int = 1) -> int:
    """Return the padded length in steps (samples or frames), a multiple of `unit`."""
    filled = math.ceil(rung_s(steps / steps_per_s) * steps_per_s - 1e-6)
    return -(-max(steps, filled) // unit) * unit


def items_of(length_s: float, room_s: float) -> int:
    """Return how many items of this length fill a batch of `room_s`; at least one."""
    return _down(max(1, int(room_s / rung_s(length_s) + 1e-6)))


def rows_of(items: int, *, per_doubling: int = 2) -> int:
    """Return the number of items to which a batch is padded."""
    return _up(items, per_doubling)


def in_shape(
    forward: Callable[..., Any],
    moving: Sequence[Tensor],
    lengths: Sequence[int],
    still: Sequence[Tensor] = (),
    *,
    steps_per_s: float = 1.0,
    unit: int = 1,
) -> Any:
    """Run a network on a batch, on a GPU padded to one of a few shapes.

    GPU libraries prepare an algorithm for every new shape. `forward` gets the padded tensors and the lengths.

    Args:
        forward: a pass whose result does not depend on the padding. The first axis of each result is the items.
        moving: tensors `(items, ..., time)`, zero-padded beyond the longest length.
        lengths: steps of each item, on the host.
        still: tensors with items on the first axis and no axis of time.
        steps_per_s: steps of a second of sound, such as samples or frames.
        unit: the length of a shape is a multiple of it, such as the samples of a frame.

    Returns:
        The result, or a list of several. On a GPU, an axis of time may be longer than on a CPU.
    """
    if (*moving, *still)[0].device.type != "cuda":
        return forward(*moving, *still, lengths)
    rows, steps = rows_of(len(lengths)), rung_steps(max(lengths), steps_per_s, unit)
    tensors, bounded = filled(moving, lengths, still, rows, steps)
    return _first(forward(*tensors, bounded), len(lengths))


def in_rows(forward: Callable[..., Any], tensors: Sequence[Tensor], lengths: Sequence[int] = ()) -> Any:
    """Run a network on a batch; on a GPU, copies of the last item fill it up.

    The number of items becomes one of a few, for which GPU libraries are prepared. The results are without the copies.

    Args:
        forward: a function of the tensors, and of the lengths if there are any. The first axis of all is the items.
        tensors: of equal lengths, or padded already.
        lengths: of each item, on the host.
    """
    items = len(tensors[0])
    more = rows_of(items) - items if tensors[0].device.type == "cuda" else 0
    inputs = [_repeated(tensor, more) if more else tensor for tensor in tensors]
    return _first(forward(*inputs, *([[*lengths, *[lengths[-1]] * more]] if lengths else [])), items)


def _first(output: Any, items: int) -> Any:
    return [one[:items] for one in output] if isinstance(output, (list, tuple)) else output[:items]


def _repeated(tensor: Tensor, more: int) -> Tensor:
    import torch

    return torch.cat([tensor, tensor[-1:].expand(more, *tensor.shape[1:])])


def filled(
    moving: Sequence[Tensor], lengths: Sequence[int], still: Sequence[Tensor], rows: int, steps: int
) -> tuple[list[Tensor], Bounded]:
    """Pad a batch to a shape: zeros in time, and copies of the last item.

    Args:
        moving, lengths, still: as for `in_shape`.
        rows, steps: the number of items, and their padded length.

    Returns:
        The tensors, `moving` before `still`, and the lengths.
    """
    longest, more = max(lengths), rows - len(lengths)
    tensors = []
    for tensor in moving:
        time = tensor.shape[-1] * steps // longest
        padded = tensor.new_zeros(rows, *tensor.shape[1:-1], time)
        padded[: len(lengths), ..., : tensor.shape[-1]] = tensor
        if more:
            padded[len(lengths) :, ..., : tensor.shape[-1]] = tensor[-1:]
        tensors.append(padded)
    tensors += [_repeated(tensor, more) if more else tensor for tensor in still]
    counts = on_device([*lengths, *[lengths[-1]] * more], tensors[0].device)
    return tensors, Bounded([steps] * rows, counts)


def _up(count: int, per_doubling: int) -> int:
    step = 1 << max(0, (count - 1).bit_length() - per_doubling.bit_length())
    return -(-count // step) * step


def _down(count: int) -> int:
    step = 1 << max(0, count.bit_length() - 2)
    return count // step * step

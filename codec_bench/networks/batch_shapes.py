"""The few shapes that batches have on a GPU: a ladder of lengths, and for each how many items fill a batch.

Libraries of a GPU choose and prepare an algorithm for every new shape, and the memory of one shape seldom fits another.
So a batch is chosen by its shape: its items lie on one rung of the ladder, their number times the length of the rung is
about constant, and what is missing is filled up.

    lengths     Four for each doubling, from 1.28 s on: 21 up to 41 s. So an item is filled up by a fourth at most, a
                shorter one to 1.28 s.
    items       1, 2, 3, 4, 6, 8, 12, 16 and so on: two for each doubling.
    padding     `in_shape` fills a batch up on a GPU. The pass is given `Bounded` lengths: shapes follow from the shape,
                masks from the lengths on the device. `in_rows` fills up the number of items alone, for windows of one
                length.
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
    """The length to which an item of so many seconds is filled up."""
    units = max(2 * PER_DOUBLING, math.ceil(length_s / _UNIT_S - 1e-6))  # a last bit is no further rung
    return _UNIT_S * _up(units, PER_DOUBLING)


def rung_steps(steps: int, steps_per_s: float, unit: int = 1) -> int:
    """The same in steps, such as samples or frames: a multiple of a unit."""
    filled = math.ceil(rung_s(steps / steps_per_s) * steps_per_s - 1e-6)
    return -(-max(steps, filled) // unit) * unit


def items_of(length_s: float, room_s: float) -> int:
    """How many items fill a batch of so many seconds on the rung of a length; at least one."""
    return _down(max(1, int(room_s / rung_s(length_s) + 1e-6)))


def rows_of(items: int, *, per_doubling: int = 2) -> int:
    """To how many items a batch is filled up."""
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
    """The result of `forward(*moving, *still, lengths)`: on a GPU of the batch that is filled up to its shape.

    Args:
        forward: a pass over a padded batch whose result does not depend on the padding. The first axis of the result is
            the items, or that of each of several results.
        moving: tensors whose first axis is the items, and whose last axis grows with the longest length; beyond it they
            are filled up with zeros.
        lengths: steps of each item, on the host.
        still: tensors whose first axis is the items, and that have no axis of time.
        steps_per_s: steps of a second of sound, such as samples or frames.
        unit: steps of which the length of a shape is a multiple, such as the samples of a frame.

    Returns:
        The result, or a list of several. On a GPU, an axis of time may be longer than on a CPU.
    """
    if (*moving, *still)[0].device.type != "cuda":
        return forward(*moving, *still, lengths)
    rows, steps = rows_of(len(lengths)), rung_steps(max(lengths), steps_per_s, unit)
    tensors, bounded = filled(moving, lengths, still, rows, steps)
    return _first(forward(*tensors, bounded), len(lengths))


def in_rows(forward: Callable[..., Any], tensors: Sequence[Tensor], lengths: Sequence[int] = ()) -> Any:
    """The result of a pass that is filled up to a number of items on a GPU, and no further in length.

    Args:
        forward: is given the tensors, and the lengths where there are any. The first axis of everything is the items.
        tensors: of equal lengths, or padded already. lengths: of each item, on the host.
    """
    items = len(tensors[0])
    more = rows_of(items) - items if tensors[0].device.type == "cuda" else 0
    inputs = [_repeated(tensor, more) if more else tensor for tensor in tensors]
    return _first(forward(*inputs, *([[*lengths, *[lengths[-1]] * more]] if lengths else [])), items)


def _first(output: Any, items: int) -> Any:
    return [one[:items] for one in output] if isinstance(output, (list, tuple)) else output[:items]


def _repeated(tensor: Tensor, more: int) -> Tensor:
    """A batch that its last item ends some more times."""
    import torch

    return torch.cat([tensor, tensor[-1:].expand(more, *tensor.shape[1:])])


def filled(
    moving: Sequence[Tensor], lengths: Sequence[int], still: Sequence[Tensor], rows: int, steps: int
) -> tuple[list[Tensor], Bounded]:
    """A batch in a shape: zeros beyond each tensor's end, and the last item again for items that it lacks.

    Args:
        moving, lengths, still: as `in_shape` takes them. rows, steps: the shape.

    Returns:
        The tensors in their order, and the lengths.
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

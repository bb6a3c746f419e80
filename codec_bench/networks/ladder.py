"""The few shapes that batches have on a GPU: a ladder of lengths, and for each how many items fill a batch.

Libraries of a GPU choose and prepare an algorithm for every new shape, and the memory of one shape seldom fits another. So a batch
is chosen by its shape: its items lie on one rung of the ladder, their number times the length of the rung is about constant, and
what is missing is filled up.

    lengths     Four for each doubling, from 1.28 s on: 21 up to 41 s. So an item is filled up by a fourth at most, a shorter one to 1.28 s.
    items       1, 2, 3, 4, 6, 8, 12, 16 and so on: two for each doubling.
"""

from __future__ import annotations

import math

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


def _up(count: int, per_doubling: int) -> int:
    step = 1 << max(0, (count - 1).bit_length() - per_doubling.bit_length())
    return -(-count // step) * step


def _down(count: int) -> int:
    step = 1 << max(0, count.bit_length() - 2)
    return count // step * step

"""Blocks of a set: what a value of the whole set is computed from again and again, to learn how sure it is.

A value of a set, such as a Fréchet distance, is no mean of items. So the items are divided into eight blocks by a hash
of their units (speakers, where they are known), and the value's error is the delete-a-group jackknife's: each block is
left out once. References: Kott 2001, "The delete-a-group jackknife"; Tukey 1958.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from codec_bench.stats.cluster_variance import t_quantile
from codec_bench.stats.intervals import LEVEL, Interval
from codec_bench.stats.notes import Note

BLOCKS = 8
FEWEST_BLOCKS = 4
FEWEST_ITEMS = 2
METHOD = "jackknife-blocks"


@dataclass(frozen=True, slots=True)
class SetValue:
    """A value of a whole set of pairs of embeddings.

    Args:
        value: or None if the set has none; `note` then says why.
        interval: of the value of sets of this size.
        items: how many pairs the value rests on.
        extrapolated: the value that sets of any size would tend to, or None if that cannot be told.
        note: what a reader should know beside the value, or None.
    """

    value: float | None
    interval: Interval
    items: int
    extrapolated: float | None = None
    note: Note | None = None


def block_of(unit: str) -> int:
    """The block of a unit, 0 to 7. It depends on the unit's name alone."""
    return hashlib.blake2b(unit.encode("utf-8", "surrogatepass"), digest_size=8).digest()[0] % BLOCKS


def left_out(value: float, without: Sequence[float | None], level: float = LEVEL) -> Interval:
    """The interval of a value from the values without each block; those of blocks without an item are None."""
    found = np.asarray([one for one in without if one is not None])
    blocks = len(found)
    if blocks < FEWEST_BLOCKS:
        note = Note("few_blocks", blocks=blocks, needed=FEWEST_BLOCKS)
        return Interval(None, None, blocks, "", note, level)
    error = math.sqrt((blocks - 1) / blocks * float(((found - found.mean()) ** 2).sum()))
    width = t_quantile(level, blocks - 1) * error
    return Interval(value - width, value + width, blocks, METHOD, None, level)


def at_infinity(values: Callable[[float], float | None]) -> float | None:
    """What a value tends to when the set grows, if its bias shrinks with 1 over the number of items.

    The values of the parts are taken at a quarter, a half, seven eighths and all of the set, and a line through them
    over 1 / size (least squares) is followed to 0.

    Args:
        values: the mean value of parts of the set of a given share, or None if one of them has none.
    """
    shares = (0.25, 0.5, 0.875, 1.0)
    found = [values(share) for share in shares]
    if any(one is None for one in found):
        return None
    return float(np.polyfit(1.0 / np.asarray(shares), np.asarray(found, np.float64), 1)[1])

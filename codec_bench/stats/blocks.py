"""The delete-a-group jackknife of a value of a whole set, such as a Fréchet distance, over eight blocks of units.

References: Kott 2001, "The delete-a-group jackknife"; Tukey 1958.
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
        value: or None; `note` then says why. interval: of the value of sets of this size. items: how many pairs.
        extrapolated: the value of infinitely large sets, or None if that is not known. note: what to know, or None.
    """

    value: float | None
    interval: Interval
    items: int
    extrapolated: float | None = None
    note: Note | None = None


def no_value(why: Note, items: int, level: float) -> SetValue:
    """What a set of so many items without a value has."""
    return SetValue(None, Interval(None, None, 0, "", why, level), items, None, why)


def block_of(unit: str) -> int:
    """The block of a unit, 0 to 7. It depends on the unit's name alone."""
    return hashlib.blake2b(unit.encode("utf-8", "surrogatepass"), digest_size=8).digest()[0] % BLOCKS


def jackknife_interval(value: float, without: Sequence[float | None], level: float = LEVEL) -> Interval:
    """The interval of a value from the values without each block; those of blocks without an item are None."""
    values = np.asarray([one for one in without if one is not None])
    blocks = len(values)
    if blocks < FEWEST_BLOCKS:
        note = Note("few_blocks", blocks=blocks, needed=FEWEST_BLOCKS)
        return Interval(None, None, blocks, "", note, level)
    error = math.sqrt((blocks - 1) / blocks * float(((values - values.mean()) ** 2).sum()))
    width = t_quantile(level, blocks - 1) * error
    return Interval(value - width, value + width, blocks, METHOD, None, level)


def at_infinity(values: Callable[[float], float | None]) -> float | None:
    """What a value tends to when the set grows, if its bias shrinks with 1 over the number of items.

    A line (least squares) over 1 / size through a quarter, a half, seven eighths and all of the set is followed to 0.

    Args:
        values: the mean value of parts of a given share, or None if one of them has none.
    """
    shares = (0.25, 0.5, 0.875, 1.0)
    means = [values(share) for share in shares]
    if any(one is None for one in means):
        return None
    return float(np.polyfit(1.0 / np.asarray(shares), np.asarray(means, np.float64), 1)[1])

"""The delete-a-group jackknife of a set's value (Fréchet distance), 8 blocks.

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
FEWEST_ITEMS, MOST_ITEMS = 2, 2000
METHOD = "jackknife-blocks"


@dataclass(frozen=True, slots=True)
class SetValue:
    """A value of a whole set of pairs of embeddings.

    Args:
        value: or None with a `note`.
        interval: for sets of this size.
        extrapolated: the value of infinite sets, or None.
    """

    value: float | None
    interval: Interval
    items: int
    extrapolated: float | None = None
    note: Note | None = None


def no_value(why: Note, items: int) -> SetValue:
    """The result of a set without a value."""
    return SetValue(None, Interval(None, None, 0, "", why), items, None, why)


def name_hash(name: str) -> int:
    """The hash of a name, of 64 bits."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def select_items(names: Sequence[str]) -> tuple[np.ndarray, Note | None]:
    """Select at most `MOST_ITEMS` items by smallest name hash: positions, and a note."""
    chosen = np.argsort(np.array([name_hash(name) for name in names], np.uint64), kind="stable")[:MOST_ITEMS]
    return chosen, Note("chosen_items", items=len(chosen), seen=len(names)) if len(chosen) < len(names) else None


def block_of(unit: str) -> int:
    """The block of a unit, 0 to 7. It depends on the unit's name alone."""
    return (name_hash(unit) >> 56) % BLOCKS


def blocks_of(units: Sequence[str]) -> np.ndarray:
    """The block of each item, int64 `(items,)`, from their units, such as speakers."""
    return np.fromiter((block_of(unit) for unit in units), np.int64, len(units))


def jackknife(
    value: Callable[[np.ndarray], float | None], blocks: np.ndarray, *, why: Note,
    note: Note | None = None,
) -> SetValue:  # fmt: skip
    """A value of a set with its interval.

    Args:
        value: computes the value of the items in the blocks that it is passed, or None.
        blocks: the block number of each item; one block is excluded at a time.
        why: the note if there is no value.
        note: the note on a value.
    """
    present, items = np.unique(blocks), len(blocks)
    if (complete := value(present)) is None:
        return no_value(why, items)
    without = [value(np.setdiff1d(present, block)) for block in present]
    return SetValue(complete, jackknife_interval(complete, without), items, None, note)


def jackknife_interval(value: float, leave_one_out: Sequence[float | None]) -> Interval:
    """The jackknife interval (95 %) of a value.

    Args:
        leave_one_out: the values without one block each; a None (undefined) is dropped.
    """
    values = np.asarray([one for one in leave_one_out if one is not None])
    blocks = len(values)
    if blocks < FEWEST_BLOCKS:
        note = Note("few_blocks", blocks=blocks, needed=FEWEST_BLOCKS)
        return Interval(None, None, blocks, "", note)
    error = math.sqrt((blocks - 1) / blocks * float(((values - values.mean()) ** 2).sum()))
    width = t_quantile(LEVEL, blocks - 1) * error
    return Interval(value - width, value + width, blocks, METHOD, None)

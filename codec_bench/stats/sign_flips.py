"""Signs of units flipped: the test of a difference by exchanges, and the interval that the same flips give.

How it is done
    A unit adds `above` to the numerator of a ratio and `size` to its denominator; for a mean the size is the number of
    items. If the true ratio is r, what the unit adds beyond it, above - r * size, is as likely below 0 as above,
    whatever the size. So its sign may be flipped. A flip of some units reaches what was seen exactly if r lies between
    the ratio over the flipped units and the ratio over the others. The share of flips that reach it is the p of r, and
    the interval holds every r whose p is above 1 - level. Nothing is assumed of how the spread depends on the size, so
    the interval holds for units of very unequal size, where Student's t does not. Up to `EXACT_UNITS` units every flip
    is made, beyond that `DRAWS` random ones.

References: Hartigan 1969, "Using subsample values as typical values" (the interval); Fisher, "The Design of
Experiments", 1935, section 21, and Winkler et al. 2015, "Multi-level block permutation", NeuroImage 123 (the test);
Phipson and Smyth 2010, "Permutation p-values should never be zero".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

EXACT_UNITS = 12
DRAWS = 9_999
FEWEST_FOR_FLIPS = 6
"""Five units or fewer have too few flips for p to reach 0.05."""
# Of more units than this, several are flipped together. The test stays exact, and its time stays bounded.
MOST_ROWS = 1_000
_DRAWS_AT_ONCE = 1_000


def flips(units: int, seed: int) -> Iterator[np.ndarray]:
    """Which units are flipped, in blocks of 0 and 1, float64 `(flips, units)`: every way, or no flip and `DRAWS` random
    ones.
    """
    if units <= EXACT_UNITS:
        yield ((np.arange(2**units)[:, None] >> np.arange(units)) & 1).astype(np.float64)
        return
    yield np.zeros((1, units))
    rng = np.random.default_rng(seed)
    width = (units + 7) // 8
    for begin in range(0, DRAWS, _DRAWS_AT_ONCE):
        rows = min(_DRAWS_AT_ONCE, DRAWS - begin)
        octets = np.frombuffer(rng.bytes(rows * width), np.uint8).reshape(rows, width)
        yield np.unpackbits(octets, axis=1, count=units).astype(np.float64)


def least_p(units: int) -> float:
    """The smallest two-sided p that so many units can have."""
    return 2 / 2**units if units <= EXACT_UNITS else 1 / (DRAWS + 1)


def flipped_together(table: np.ndarray, seed: int) -> np.ndarray:
    """The sums of units that are flipped together, at most `MOST_ROWS` rows; the same units for equal seeds."""
    if len(table) <= MOST_ROWS:
        return table
    rows = np.random.default_rng(seed).permutation(np.arange(len(table)) % MOST_ROWS)
    return np.stack([np.bincount(rows, column, MOST_ROWS) for column in table.T], axis=1)


def flip_interval(units: np.ndarray, level: float, seed: int = 0) -> tuple[float, float] | None:
    """The interval of a ratio of sums that flips give, with a p above 1 - level everywhere within.

    Args:
        units: what each unit adds above and below, float64 `(units, 2)`; no size is negative.
        level: the share of such intervals that hold the true ratio.
        seed: of the random flips.

    Returns:
        The ends; None if so few units cannot give an interval of this level.
    """
    if len(units) < FEWEST_FOR_FLIPS:
        return None
    units = flipped_together(units, seed)
    whole = units.sum(axis=0)
    ends: list[np.ndarray] = []
    for chosen in flips(len(units), seed):
        sums = np.stack([chosen @ units, whole - chosen @ units])
        with np.errstate(divide="ignore", invalid="ignore"):
            sides = sums[..., 0] / sums[..., 1]
        # A side without any size says nothing of the ratio: such a flip reaches what was seen whatever the ratio is.
        sides = np.where((sums[..., 1] > 0).all(axis=0), sides, np.array([[-np.inf], [np.inf]]))
        ends.append(np.sort(sides, axis=0))
    below, above = np.sort(np.concatenate(ends, axis=1), axis=1)
    beyond = int((1 - level) * len(below) * (1 + 1e-12))
    low, high = float(below[beyond]), float(above[len(above) - 1 - beyond])
    return (low, high) if np.isfinite([low, high]).all() else None


def flip_p(numerators: np.ndarray, seed: int) -> float:
    """The two-sided p of a sum of independent numbers, `(units,)`, whose true sum is 0: the share of flips that reach
    it.
    """
    rows = flipped_together(np.stack([numerators, np.ones_like(numerators)], axis=1), seed)[:, 0]
    whole = rows.sum()
    # Equal sums may differ in their last digits, since they are added in another order.
    seen = abs(whole) * (1 - 1e-9)
    reached = made = 0
    for chosen in flips(len(rows), seed):
        reached += int((np.abs(whole - 2 * (chosen @ rows)) >= seen).sum())
        made += len(chosen)
    return reached / made

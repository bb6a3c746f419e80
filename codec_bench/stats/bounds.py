"""What an item's value can be at least and at most, and which rare items an interval must therefore allow for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from codec_bench.errors import UserError
from codec_bench.stats.cluster_variance import skewness

AT_BOUND = 0.001
"""Scores crowd at a bound if half of them are within this share of the range."""
NEAR_BOUND = 0.1
"""Or if half of them are equal, none is farther to that side, and they are within this share: the best that a measure
gives is often a little less than what its bounds say, such as ViSQOL's 4.73 of 5."""
SKEWED, FEWEST_FOR_SKEWNESS = 0.25, 20
"""How large the skewness over the square root of the number of items may be before bounded scores count as skewed, and
of how many items.
"""

Bounds = tuple[float | None, float | None]
"""What a value can be at least and at most; None for an end that is not known."""


class Rare(NamedTuple):
    """What a rare item may be.

    Args:
        low, high: the least and the most.
        lost_low, lost_high: what items are that are lost in great number at once, such as all of a speaker; None if
            that is not allowed for.
    """

    low: float
    high: float
    lost_low: float | None = None
    lost_high: float | None = None


def checked_bounds(rates: np.ndarray, bounds: Bounds | None) -> Bounds | None:
    """The bounds, with None for an end that is open, whether it was given as None or as infinity.

    Raises:
        UserError: they are no bounds, or an item's value, `(items,)`, is outside of them.
    """
    if bounds is None:
        return None
    ends = list(bounds) if isinstance(bounds, Iterable) else []
    if len(ends) == 2 and all(end is None or isinstance(end, Real) for end in ends):
        low, high = (open_end if end is None else float(end) for end, open_end in zip(ends, (-math.inf, math.inf)))
    else:
        low = high = math.nan
    if not low < high:
        raise UserError(f"the bounds are {bounds}; expected two numbers, the smaller first, or None for an open end")
    wrong = np.flatnonzero((rates < low) | (rates > high))
    if wrong.size:
        raise UserError(
            f"the value of item {wrong[0]} is {rates[wrong[0]]:g}; expected {low:g} to {high:g}, as the bounds say"
        )
    return None if math.isinf(low) else low, None if math.isinf(high) else high


def declared_bounds(facts: Mapping[str, Any]) -> Bounds | None:
    """What a metric's facts in a record say of the least and the most that an item can be; None if they do not say
    both.
    """
    if facts.get("bounds"):
        low, high = facts["bounds"]
        return low, high
    low, high = facts.get("range") or (None, None)
    return None if low is None or high is None else (low, high)


def supposed_bounds(table: np.ndarray) -> Bounds | None:
    """The bounds of values, `(items, 2)`, of which nothing is said: counts over counts are taken for an error rate."""
    return (0.0, None) if _counts(table) else None


def is_rate(bounds: Bounds | None) -> bool:
    """Whether these are error rates without an upper bound, as is declared.

    What a metric does not declare is not guessed.
    """
    return bounds is not None and bounds[0] == 0 and bounds[1] is None


def rare_item(
    table: np.ndarray, rates: np.ndarray, residuals: np.ndarray, bounds: Bounds | None, *, rate: bool
) -> Rare | None:
    """What an item may be that was not seen, if the interval must allow for it; else None.

    It must for error rates, for scores that crowd at a bound, and for skewed ones.

    Args:
        table: the items' parts, `(items, 2)`. rates: their values, `(items,)`.
        residuals: what each item adds beyond the value, `(items,)`. The skewness of fewer than `FEWEST_FOR_SKEWNESS`
        says nothing.
        bounds: what is declared; values beyond them widen them.
        rate: whether these are error rates without an upper bound. Then the worst item is entirely wrong, or as the
            worst seen.
    """
    if rate:
        return Rare(0.0, max(1.0, float(np.nanmax(rates))), lost_high=1.0)
    if bounds is None or bounds[0] is None or bounds[1] is None:
        return None
    low, high = min(bounds[0], float(np.nanmin(rates))), max(bounds[1], float(np.nanmax(rates)))
    middle = float(np.nanmedian(rates))
    reach = (NEAR_BOUND if crowds(rates) else AT_BOUND) * (high - low)
    if (bounds[0] == 0 and _counts(table)) or middle - low < reach:
        return Rare(low, high, lost_high=high)
    if high - middle < reach:
        return Rare(low, high, lost_low=low)
    skewed = len(residuals) >= FEWEST_FOR_SKEWNESS and abs(skewness(residuals)) > SKEWED * math.sqrt(len(residuals))
    return Rare(low, high) if skewed else None


def within_bounds(low: float, high: float, rates: np.ndarray, bounds: Bounds | None) -> tuple[float, float]:
    """An interval's ends, no farther than a mean of such items can be: the declared bounds, or an item, `(items,)`,
    that is beyond them.
    """
    least, most = bounds or (None, None)
    return (
        low if least is None else max(low, min(least, float(np.nanmin(rates)))),
        high if most is None else min(high, max(most, float(np.nanmax(rates)))),
    )


def crowds(rates: np.ndarray) -> bool:
    """Whether half of the values are at the least or the most of them, so that they may be at a bound that nobody
    declared.
    """
    low, high, middle = float(np.nanmin(rates)), float(np.nanmax(rates)), float(np.nanmedian(rates))
    return min(middle - low, high - middle) <= 1e-6 * max(abs(low), abs(high))


def _counts(table: np.ndarray) -> bool:
    """Whether the parts are counts over counts, such as errors over words: whole numbers, none below 0, not all over 1."""
    return bool((table >= 0).all() and (table == np.floor(table)).all() and (table[:, 1] != 1).any())

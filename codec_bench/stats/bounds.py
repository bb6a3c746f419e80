"""Bounds of an item's value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from codec_bench.messages.errors import UserError

Bounds = tuple[float | None, float | None]
"""Least and greatest value; None if unknown."""


def check_bounds(rates: np.ndarray, bounds: Bounds | None) -> Bounds | None:
    """The bounds, None for an open end; a `UserError` if an item is outside."""
    if bounds is None:
        return None
    ends = list(bounds) if isinstance(bounds, Iterable) else []
    if len(ends) == 2 and all(end is None or isinstance(end, Real) for end in ends):
        low, high = (open_end if end is None else float(end) for end, open_end in zip(ends, (-math.inf, math.inf)))
    else:
        low = high = math.nan
    if not low < high:
        raise UserError("bounds_form", bounds=bounds)
    wrong = np.flatnonzero((rates < low) | (rates > high))
    if wrong.size:
        raise UserError("value_beyond_bounds", item=wrong[0], value=rates[wrong[0]], low=low, high=high)
    return None if math.isinf(low) else low, None if math.isinf(high) else high


def declared_bounds(facts: Mapping[str, Any]) -> Bounds | None:
    """The (low, high) bounds in a metric's recorded facts, or None if one is missing."""
    if facts.get("bounds"):
        low, high = facts["bounds"]
        return low, high
    low, high = facts.get("range") or (None, None)
    return None if low is None or high is None else (low, high)


def infer_bounds(table: np.ndarray) -> Bounds | None:
    """Return a lower bound 0 for values `(items, 2)` that are ratios of counts."""
    are_counts = (table >= 0).all() and (table == np.floor(table)).all() and (table[:, 1] != 1).any()
    return (0.0, None) if are_counts else None


def is_rate(bounds: Bounds | None) -> bool:
    """Whether these are the bounds of an error rate: 0, and open above."""
    return bounds is not None and bounds[0] == 0 and bounds[1] is None


def within_bounds(low: float, high: float, rates: np.ndarray, bounds: Bounds | None) -> tuple[float, float]:
    """An interval's ends, cut at the bounds or at an item beyond them."""
    least, most = bounds or (None, None)
    return (
        low if least is None else max(low, min(least, float(np.nanmin(rates)))),
        high if most is None else min(high, max(most, float(np.nanmax(rates)))),
    )


def count_at_bound(rates: np.ndarray, bounds: Bounds | None) -> int:
    """How many items `(items,)` have the minimum or the maximum, the larger count."""
    ends = [end for end in bounds or () if end is not None]
    return max((int(np.count_nonzero(rates == end)) for end in ends), default=0)

"""Pareto fronts of quality and cost, with their certainty.

Lower cost is better. A point is on the front if no other is as cheap and as good, with one strictly better; equal
points are all on it. Certainty comes from draws of values around the observed ones, with the jackknife's covariance
over shared units and Student's t. Costs are fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codec_bench.apps.leaderboards.ranking import UnitEffects, drawn_values
from codec_bench.stats.intervals import FEWEST_UNITS

DRAWS = 4_000


@dataclass(frozen=True, slots=True)
class Front:
    """Which points are on the front, and in which share of draws (or None)."""

    on: tuple[bool, ...]
    shares: tuple[float, ...] | None = None


def pareto_front(
    *,
    costs: Sequence[float] | np.ndarray,
    values: Sequence[float] | np.ndarray,
    higher_is_better: bool,
    items: UnitEffects | None = None,
    seed: int = 0,
    draws: int = DRAWS,
) -> Front:
    """Compute the front of points with a cost and a value each.

    Args:
        costs: lower is better.
        items: leave-one-out changes of the values, rows in the order of the points; None if unknown.
    """
    price = np.asarray(costs, np.float64)
    good = np.asarray(values, np.float64) * (1 if higher_is_better else -1)
    on = tuple(bool(one) for one in _on_front(price, good[None])[0])
    if items is None or items.units < FEWEST_UNITS:
        return Front(on)
    sign = 1 if higher_is_better else -1
    drawn = sign * drawn_values(np.asarray(values, np.float64), [items], seed=seed, draws=draws)
    return Front(on, tuple(float(share) for share in _on_front(price, drawn).mean(axis=0)))


def _on_front(price: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Return which points are on the front in each draw, bool `(draws, points)`."""
    on = np.ones(good.shape, bool)
    for point in range(len(price)):
        cheaper, as_cheap = price < price[point], price <= price[point]
        as_good, better = good >= good[:, point : point + 1], good > good[:, point : point + 1]
        on[:, point] = ~((as_cheap & better) | (cheaper & as_good)).any(axis=1)
    return on

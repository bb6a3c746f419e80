"""Pareto fronts: which systems give a quality that none reaches at the same cost or less, and how sure that is.

Conventions
    A cost (a bitrate, a real-time factor, a look-ahead, a number of parameters) is better when it is lower.
    A point is on the front if no other point costs as little and is as good, with one of the two strictly better. Of
    points that are equal in both, all are on the front. How sure that is follows from the items: the values are drawn
    as they could have been with other items, around those that were found, with the jackknife's covariance over the
    units that the points share and Student's t. Costs are as measured.
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
    """The Pareto front of some points.

    Args:
        on: of each point, whether it is on the front.
        shares: of each point, the share of draws of other items in which it is on the front; None without items.
    """

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
    """The front of points with a cost and a value each.

    Args:
        costs: of each point; lower is better. values: of each point.
        higher_is_better: whether a higher value is better.
        items: how the values change with each unit left out, its rows in the order of the points; None if that is not
            known.
        seed: of the draws. draws: how many.
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
    """Which points are on the front in each draw, bool `(draws, points)`."""
    on = np.ones(good.shape, bool)
    for point in range(len(price)):
        cheaper, as_cheap = price < price[point], price <= price[point]
        as_good, better = good >= good[:, point : point + 1], good > good[:, point : point + 1]
        on[:, point] = ~((as_cheap & better) | (cheaper & as_good)).any(axis=1)
    return on

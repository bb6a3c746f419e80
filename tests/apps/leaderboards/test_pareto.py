"""Pareto fronts: against plain loops, and how often a point is on the front when items are drawn again."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.apps.leaderboards.codecs import pareto_front
from codec_bench.apps.leaderboards.ranking import UnitEffects


def slow(costs, values):
    points = list(zip(costs, values, strict=True))
    return tuple(
        not any(c <= cost and v >= value and (c < cost or v > value) for c, v in points) for cost, value in points
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_front_is_that_of_plain_loops(seed):
    rng = np.random.default_rng(seed)
    costs, values = rng.integers(0, 6, 12), rng.integers(0, 6, 12)  # with ties
    assert pareto_front(costs=costs, values=values, higher_is_better=True).on == slow(costs, values)
    assert pareto_front(costs=costs, values=values, higher_is_better=False).on == slow(costs, -values)


def test_the_shares_are_those_of_items_drawn_again():
    rng = np.random.default_rng(0)
    items = rng.normal([[1.0, 0.98, 0.5]], [[0.2, 0.2, 0.2]], (60, 3)) + rng.normal(0, 1, (60, 1))
    left = (items.sum(axis=0) - items) / 59 - items.mean(axis=0)
    costs = [6.0, 12.0, 24.0]
    result = pareto_front(
        costs=costs, values=items.mean(axis=0), higher_is_better=True, items=UnitEffects([0, 1, 2], left)
    )
    again = items[rng.integers(0, 60, (4000, 60))].mean(axis=1)
    expected = np.mean([slow(costs, row) for row in again], axis=0)
    assert result.shares == pytest.approx(tuple(expected), abs=0.03)
    # The cheapest point is on the front whatever its value; the dearest and worst one never is.
    assert result.shares[0] == 1.0 and result.shares[2] == 0.0 and 0.1 < result.shares[1] < 0.9


def test_without_items_no_interval_is_reported():
    assert pareto_front(costs=[1, 2], values=[1, 2], higher_is_better=True).shares is None
    small = UnitEffects([0, 1], np.zeros((2, 2)))
    assert pareto_front(costs=[1, 2], values=[1, 2], higher_is_better=True, items=small).shares is None

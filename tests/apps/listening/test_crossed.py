"""Intervals and tests over people and sounds, by the formula in plain loops and by simulation with known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from codec_bench.apps.listening.crossed import CANCELLED, crossed_interval, crossed_spread, crossed_test


def ratings(people, sounds, spread_people, spread_sounds, rest, rng, missing=0.0):
    """Values without a difference, with who gave them and of what."""
    values = (
        rng.normal(0, spread_people, (people, 1))
        + rng.normal(0, spread_sounds, (1, sounds))
        + rng.normal(0, rest, (people, sounds))
    )
    retained = np.argwhere(rng.random(values.shape) >= missing)
    return (
        [float(values[r, s]) for r, s in retained],
        [f"rater {r}" for r, _ in retained],
        [f"sound {s}" for _, s in retained],
    )


def by_loops(values, people, sounds):
    """The standard error and the degrees of freedom, term by term."""
    n, mean = len(values), sum(values) / len(values)

    def squared(names):
        return sum(sum(v - mean for v, other in zip(values, names) if other == one) ** 2 for one in set(names)) / n**2

    counts = [len(set(names)) for names in (people, sounds)]
    by_people, by_sounds = (squared(names) * count / (count - 1) for names, count in zip((people, sounds), counts))
    each = sum((v - mean) ** 2 for v in values) / n**2 * n / (n - 1)
    variance = by_people + by_sounds - each
    if variance <= max(by_people, by_sounds):
        larger, count = max((by_people, counts[0]), (by_sounds, counts[1]))
        return larger**0.5, count - 1
    terms = (
        by_people**2 / (counts[0] - 1) + by_sounds**2 / (counts[1] - 1) + each**2 / ((counts[0] - 1) * (counts[1] - 1))
    )
    return variance**0.5, variance**2 / terms


@pytest.mark.parametrize("spreads", [(2, 5, 8), (8, 8, 2), (0, 0, 8)])
def test_it_is_the_formula_also_with_missing_ratings(spreads):
    options = ratings(12, 7, *spreads, np.random.default_rng(4), missing=0.2)
    result = crossed_spread(*options)
    assert (result.error, result.freedom) == pytest.approx(by_loops(*options)) and result.units == 7
    low, high = stats.t.interval(0.95, result.freedom, result.mean, result.error)
    assert crossed_interval(*options).ends == pytest.approx([low, high])
    test = crossed_test(*options)
    assert [test.low, test.high] == pytest.approx([low, high])
    assert test.p == pytest.approx(2 * stats.t.sf(abs(result.mean) / result.error, result.freedom))


@pytest.mark.parametrize(
    ("people", "sounds", "spreads"), [(20, 6, (2, 8, 8)), (12, 10, (2, 5, 8)), (12, 8, (8, 8, 8)), (8, 8, (0, 0, 8))]
)
def test_it_holds_where_people_and_sounds_both_matter(people, sounds, spreads):
    rng = np.random.default_rng(people * sounds)
    tests = [crossed_test(*ratings(people, sounds, *spreads, rng)) for _ in range(400)]
    assert np.mean([test.low <= 0 <= test.high for test in tests]) >= 0.92
    assert np.mean([test.p < 0.05 for test in tests]) <= 0.08


def test_the_reason_is_reported_where_there_is_none():
    small = crossed_interval([1.0, 2.0, 3.0, 4.0], ["a", "a", "b", "b"], ["x", "y", "x", "y"])
    assert (
        small.ends is None
        and small.note
        == "there are 2 raters; an interval over raters and items needs at least 3, and the value holds for these alone"
    )
    board = [(-1.0) ** (r + s) for r in range(4) for s in range(4)]  # every sum by rater and by sound is 0
    where = [r for r in range(4) for _ in range(4)], [*range(4)] * 4
    for shift in (0.0, 0.3):
        test = crossed_test([shift + 0.25 * value for value in board], *where)
        assert (test.low, test.p, test.note) == (None, None, CANCELLED)
    people, sounds = ["a", "b", "c"] * 3, ["x"] * 3 + ["y"] * 3 + ["z"] * 3
    assert crossed_interval([4.0] * 9, people, sounds).note.code == "all_equal"
    alike = crossed_test([4.0] * 9, people, sounds)
    assert (alike.difference, alike.p, alike.note.code) == (4.0, 0.0, "all_equal")

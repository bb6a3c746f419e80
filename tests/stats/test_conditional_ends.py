"""Ends that allow for the luck of passing a rule: by an independent root, by their law far away, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from codec_bench.stats.conditional_ends import cut, passing_end


@pytest.mark.parametrize(("above", "freedom"), [(1.0, 19.0), (0.6, 6.3), (-1.0, 200.0)])
def test_the_end_is_the_root_of_the_share_of_passing_runs(above, freedom):
    value, error = 2.0, 0.4

    def beyond(truth):
        reached, passed = (stats.t.logsf((at - truth) / error, freedom) for at in (value, above))
        return reached - passed - math.log(0.025)

    # From above: of a law with heavy tails the share rises again far below.
    steps = np.linspace(value, value - 12 * error, 2000)
    first = next(k for k, truth in enumerate(steps) if beyond(truth) < 0)
    expected = optimize.brentq(beyond, steps[first], steps[first - 1])
    assert passing_end(value, error, above, freedom, 0.95) == pytest.approx(expected, abs=1e-4)


def test_far_above_the_cut_it_is_students_t_and_at_the_cut_there_is_no_end():
    assert passing_end(5.0, 0.1, -10.0, 8.0, 0.95) == pytest.approx(5 - 0.1 * stats.t.ppf(0.975, 8), abs=1e-5)
    assert passing_end(5.0, 0.1, 5.0 - 1e-9, 8.0, 0.95) == -math.inf


def test_the_cut_is_where_the_rule_would_have_been_passed():
    """A count that goes up by a factor of e for each 0.5 of the value, as together = 2 * error ** 2 says."""
    error = 0.3
    assert cut(4.0, error, 19.0, 10, error**2 / 0.5) == pytest.approx(4 - 0.5 * math.log(19 / 9.5))
    assert cut(4.0, error, 19.0, 10, 0.0) == -math.inf
    assert cut(4.0, error, 19.0, 10, -(error**2) / 0.5) > 4


def test_runs_that_pass_by_luck_are_held():
    """Of normal values of which one in fifteen passes, the plain end lies above the truth in a third of those, and this
    one in 0.025.
    """
    rng = np.random.default_rng(1)
    seen = rng.normal(0, 1, 30_000)
    seen = seen[seen > 1.5][:1000]
    assert np.mean(seen - 1.96 > 0) > 0.25
    assert np.mean([passing_end(value, 1.0, 1.5, 1e6, 0.95) > 0 for value in seen]) == pytest.approx(0.025, abs=0.012)

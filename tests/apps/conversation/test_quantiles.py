"""Quantiles against NumPy's, and the coverage of their intervals by simulation from a distribution whose quantiles are
known.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from codec_bench.apps.conversation.distributions import quantile


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_the_value_is_the_inverse_of_the_distribution(rng, share):
    values = rng.exponential(size=137)
    assert quantile(values, share).value == np.quantile(values, share, method="inverted_cdf")


@pytest.mark.parametrize("count, share", [(12, 0.5), (60, 0.5), (60, 0.9), (600, 0.99)])
def test_intervals_hold_the_true_quantile_at_their_level(rng, count, share):
    """1,000 draws of log-normal values: 0.94 or more, less what they scatter; missed on either side by few."""
    truth = np.exp(NormalDist().inv_cdf(share))
    results = [quantile(np.exp(rng.standard_normal(count)), share).interval for _ in range(1000)]
    below, above = (np.mean([one.high < truth for one in results]), np.mean([truth < one.low for one in results]))
    assert below + above <= 0.075 and max(below, above) <= 0.045


def test_equal_values_do_not_move_an_interval(rng):
    """Latencies in ticks of 0.2 s, of which 0.51 are at most 0.4 s: the sample's median is often 0.6 s, at most which
    are 0.91.
    """
    ticks = [0.2 * rng.choice([1, 2, 3, 4], 100, p=[0.1, 0.41, 0.4, 0.09]) for _ in range(400)]
    results = [quantile(one, 0.5).interval for one in ticks]
    assert np.mean([one.low <= 0.4 <= one.high for one in results]) >= 0.92


def test_intervals_hold_over_sessions_whose_values_are_alike(rng):
    """Of a session's four values nine tenths of the variance is the session's: 0.92 of 500 runs, less what they
    scatter.
    """
    truth, clusters = NormalDist().inv_cdf(0.9), np.repeat(np.arange(30), 4).tolist()
    draw = lambda: np.repeat(0.9**0.5 * rng.standard_normal(30), 4) + 0.1**0.5 * rng.standard_normal(120)  # noqa: E731
    results = [quantile(draw(), 0.9, clusters=clusters).interval for _ in range(500)]
    assert np.mean([one.low <= truth <= one.high for one in results]) >= 0.94


def test_values_of_one_session_are_not_independent(rng):
    """Three values each of 60 sessions that are nearly equal within a session: the interval is that of 60 values, not
    of 180.
    """
    each = np.exp(rng.standard_normal(60))
    values = np.repeat(each, 3) + 1e-6 * rng.standard_normal(180)
    clusters = np.repeat(np.arange(60), 3).tolist()
    alone, together, naive = quantile(each, 0.5), quantile(values, 0.5, clusters=clusters), quantile(values, 0.5)

    def width(one):
        return one.interval.high - one.interval.low

    assert together.interval.units == 60 and width(naive) < 0.8 * width(together)
    assert width(together) == pytest.approx(width(alone), rel=0.25)


def test_few_values_beyond_are_noted(rng):
    small = quantile(rng.standard_normal(30), 0.99)
    assert small.interval.note.code == "sparse_tail" and small.interval.low < small.value <= small.interval.high
    assert quantile([], 0.5) is None
    assert quantile([1.0, 2.0], 0.5).interval.note.code == "too_few_units"

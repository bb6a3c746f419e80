"""Quantiles against NumPy's, and the coverage of their intervals by simulation from a distribution whose quantiles are known."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from codec_bench.stats.quantiles import TOO_FEW, quantile


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_the_value_is_the_inverse_of_the_distribution(rng, share):
    values = rng.exponential(size=137)
    assert quantile(values, share).value == np.quantile(values, share, method="inverted_cdf")


@pytest.mark.parametrize("count, share", [(60, 0.5), (60, 0.9), (600, 0.99)])
def test_intervals_hold_the_true_quantile_as_often_as_they_say(rng, count, share):
    """400 draws of log-normal values: 95 % within three standard errors of a count, and never a quarter wider than it should be."""
    truth = np.exp(NormalDist().inv_cdf(share))
    found = [quantile(np.exp(rng.standard_normal(count)), share).interval for _ in range(400)]
    assert 0.90 <= np.mean([one.low <= truth <= one.high for one in found]) <= 0.99


def test_values_of_one_session_are_not_independent(rng):
    """Three values each of 60 sessions that are nearly equal within a session: the interval is that of 60 values, not of 180."""
    each = np.exp(rng.standard_normal(60))
    values = np.repeat(each, 3) + 1e-6 * rng.standard_normal(180)
    clusters = np.repeat(np.arange(60), 3).tolist()
    alone, together, naive = quantile(each, 0.5), quantile(values, 0.5, clusters=clusters), quantile(values, 0.5)

    def width(one):
        return one.interval.high - one.interval.low

    assert together.interval.units == 60 and width(naive) < 0.8 * width(together)
    assert width(together) == pytest.approx(width(alone), rel=0.25)


def test_too_few_values_beyond_have_no_interval(rng):
    few = quantile(rng.standard_normal(300), 0.99)
    assert few.interval.ends is None and few.interval.note == TOO_FEW and np.isfinite(few.value)
    assert quantile([], 0.5) is None

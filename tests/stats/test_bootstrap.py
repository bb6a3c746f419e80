"""Intervals against SciPy's bootstrap, against theory, and against laws."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import stats

from codec_bench.stats import Interval, bootstrap_interval, cluster_codes
from codec_bench.stats.bootstrap import ratios, resampled_sums


@pytest.fixture
def words(rng):
    """Errors and words of 300 utterances of unequal length."""
    lengths = rng.integers(3, 40, 300)
    return rng.binomial(lengths, rng.beta(1, 8, 300)).astype(float), lengths.astype(float)


def test_a_ratio_of_sums_agrees_with_scipy(words):
    errors, lengths = words
    oracle = stats.bootstrap(
        (errors, lengths), lambda e, n, axis: e.sum(axis) / n.sum(axis), paired=True, vectorized=True,
        n_resamples=40_000, method="percentile", rng=np.random.default_rng(0),
    )  # fmt: skip
    ours = bootstrap_interval(errors, lengths, seed=1, resamples=40_000)
    # The ends of a percentile interval of 40,000 resamples wander by about 1.5 % of its half width.
    tolerance = 0.03 * (oracle.confidence_interval.high - oracle.confidence_interval.low)
    assert ours.low == pytest.approx(oracle.confidence_interval.low, abs=tolerance)
    assert ours.high == pytest.approx(oracle.confidence_interval.high, abs=tolerance)
    drawn = ratios(resampled_sums(np.stack(words, axis=1), 40_000, 1))
    assert drawn.std(ddof=1) == pytest.approx(oracle.standard_error, rel=0.02)


def test_the_spread_of_a_mean_is_the_known_one(rng):
    x = rng.gamma(2.0, size=400)
    drawn = ratios(resampled_sums(np.stack([x, np.ones_like(x)], axis=1), 20_000, 3))
    # Conditional on the data, a resampled mean has the mean of the data and the standard deviation std / sqrt(n).
    assert drawn.std() == pytest.approx(x.std() / np.sqrt(len(x)), rel=0.02)
    assert drawn.mean() == pytest.approx(x.mean(), abs=4 * x.std() / np.sqrt(len(x) * 20_000))


def test_intervals_hold_the_truth_as_often_as_they_say(rng):
    trials, held = 400, 0
    for trial in range(trials):
        x = rng.normal(3.0, 1.0, 80)
        interval = bootstrap_interval(x, np.ones_like(x), seed=trial, resamples=500)
        held += interval.low <= 3.0 <= interval.high
    # A percentile interval of 80 items holds it in about 94 % of trials; four standard errors of the count around.
    assert abs(held / trials - 0.94) < 4 * np.sqrt(0.94 * 0.06 / trials)


def test_clusters_are_needed_where_items_resemble_each_other(rng):
    trials, clustered, naive = 200, 0, 0
    codes = np.repeat(np.arange(40), 10)
    for trial in range(trials):
        x = rng.normal(0, 1, 40)[codes] + rng.normal(0, 0.3, 400)
        one = np.ones_like(x)
        with_clusters = bootstrap_interval(x, one, codes, seed=trial, resamples=400)
        without = bootstrap_interval(x, one, seed=trial, resamples=400)
        clustered += with_clusters.low <= 0 <= with_clusters.high
        naive += without.low <= 0 <= without.high
    assert clustered / trials > 0.88
    assert naive / trials < 0.7, "resampling items is far too sure here"


def test_each_item_its_own_cluster_is_no_cluster(words):
    alone = bootstrap_interval(*words, np.arange(300), seed=5)
    assert alone == bootstrap_interval(*words, seed=5)
    assert alone.units == 300


def test_clusters_are_sums(words):
    errors, lengths = words
    codes = np.arange(300) // 6
    sums = errors.reshape(50, 6).sum(1), lengths.reshape(50, 6).sum(1)
    assert bootstrap_interval(errors, lengths, codes, seed=2) == bootstrap_interval(*sums, seed=2)
    order = np.random.default_rng(0).permutation(300)
    shuffled = bootstrap_interval(errors[order], lengths[order], codes[order], seed=2)
    assert shuffled == bootstrap_interval(*sums, seed=2), "the codes order the units, not the items"


def test_same_seed_same_interval(words):
    assert bootstrap_interval(*words, seed=7) == bootstrap_interval(*words, seed=7)
    assert bootstrap_interval(*words, seed=7) != bootstrap_interval(*words, seed=8)


def test_threads_change_nothing(rng):
    table = np.stack([rng.normal(size=30_000), np.ones(30_000)], axis=1)
    from codec_bench.kernels.bootstrap import cpu

    np.testing.assert_array_equal(resampled_sums(table, 400, 3), cpu.resampled_sums(table, 0, 400, 3))


def test_scale_and_level(words):
    errors, lengths = words
    wide, narrow = (bootstrap_interval(errors, lengths, seed=1, level=level) for level in (0.99, 0.8))
    assert wide.low < narrow.low < errors.sum() / lengths.sum() < narrow.high < wide.high
    percent = bootstrap_interval(100 * errors, lengths, seed=1, level=0.8)
    assert (percent.low, percent.high) == pytest.approx((100 * narrow.low, 100 * narrow.high))


def test_equal_items_have_no_spread():
    assert bootstrap_interval(np.full(9, 3.0), np.full(9, 2.0), seed=0) == Interval(1.5, 1.5, 0.95, 9)


@pytest.mark.parametrize(("items", "codes"), [(0, None), (1, None), (5, [3, 3, 3, 3, 3])])
def test_fewer_than_two_units_have_no_interval(items, codes):
    assert bootstrap_interval(np.ones(items), np.ones(items), codes, seed=0) is None


def test_resamples_without_a_denominator_do_not_count():
    interval = bootstrap_interval(np.array([0.0, 1.0]), np.array([0.0, 2.0]), seed=0)
    assert (interval.low, interval.high) == (0.5, 0.5)
    assert bootstrap_interval(np.array([1.0, 1.0]), np.zeros(2), seed=0) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(bad):
    with pytest.raises(ValueError, match="not finite"):
        bootstrap_interval(np.array([1.0, bad]), np.ones(2), seed=0)


def test_other_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="level is 95"):
        bootstrap_interval(np.ones(3), np.ones(3), seed=0, level=95)
    with pytest.raises(ValueError, match="2 clusters for 3 items"):
        bootstrap_interval(np.ones(3), np.ones(3), [0, 1], seed=0)


def test_codes_of_speakers():
    assert cluster_codes(["a", "b", "a", None, "b", None]).tolist() == [0, 1, 0, 2, 1, 3]
    assert cluster_codes([None, None]).tolist() == [0, 1]
    assert cluster_codes(["a", "a", "a"]) is None, "one speaker: the items are resampled"
    assert cluster_codes(["a", None]).tolist() == [0, 1]
    assert cluster_codes([]).tolist() == []


def test_a_million_items_take_seconds(rng):
    x = rng.normal(size=1_000_000)
    one = np.ones_like(x)
    bootstrap_interval(x[:10], one[:10], seed=0)
    start = time.process_time()
    interval = bootstrap_interval(x, one, seed=0, resamples=100)
    assert time.process_time() - start < 3.0, "a tenth of the default number of resamples"
    assert interval.high - interval.low == pytest.approx(2 * 1.96e-3, rel=0.3)

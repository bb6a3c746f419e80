"""Paired comparisons against SciPy, against theory, and against laws."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats

from codec_bench.stats import ScoreRow, compare_scores, paired_bootstrap, sign_test


def paired(a, b, **options):
    return paired_bootstrap(a, np.ones_like(a), b, np.ones_like(b), **{"seed": 1, **options})


def test_the_interval_of_a_mean_difference_agrees_with_scipy(rng):
    a = rng.normal(0.1, 1, 200)
    b = a + rng.normal(0.05, 0.3, 200)
    oracle = stats.bootstrap((a - b,), np.mean, n_resamples=40_000, method="percentile", rng=np.random.default_rng(0))
    ours = paired(a, b, resamples=40_000)
    tolerance = 0.03 * (oracle.confidence_interval.high - oracle.confidence_interval.low)
    assert ours.interval.low == pytest.approx(oracle.confidence_interval.low, abs=tolerance)
    assert ours.interval.high == pytest.approx(oracle.confidence_interval.high, abs=tolerance)
    assert ours.difference == pytest.approx(a.mean() - b.mean())


def test_p_agrees_with_the_t_test(rng):
    # For the mean of many items the bootstrap's p and the paired t test's p are the same number.
    for shift in (0.0, 0.02, 0.04, 0.06):
        a = rng.normal(0, 1, 500)
        b = a + shift + rng.normal(0, 0.3, 500)
        expected = stats.ttest_rel(a, b).pvalue
        assert paired(a, b, resamples=20_000).p == pytest.approx(expected, abs=0.02)


def test_p_is_level_where_nothing_differs(rng):
    found = []
    for trial in range(300):
        a = rng.normal(0, 1, 60)
        found.append(paired(a, a + rng.normal(0, 0.2, 60), seed=trial, resamples=400).p)
    # A fair p is uniform; a bootstrap of 60 items is a little too sure.
    assert stats.kstest(found, "uniform").statistic < 0.12
    assert 0.02 < np.mean(np.array(found) < 0.05) < 0.11


def test_pairing_sees_what_separate_intervals_do_not(rng):
    a = rng.normal(0, 1, 300)
    b = a + 0.05 + rng.normal(0, 0.1, 300)
    result = paired(a, b)
    assert result.p < 0.01 and result.interval.high < 0
    assert paired(a, rng.permutation(b)).p > 0.05


def test_corpus_ratios_are_compared_and_not_the_means_of_items():
    errors_a, words_a = np.array([1.0, 0.0, 3.0]), np.array([2.0, 10.0, 4.0])
    errors_b, words_b = np.array([0.0, 2.0, 3.0]), np.array([2.0, 10.0, 4.0])
    result = paired_bootstrap(errors_a, words_a, errors_b, words_b, seed=0)
    assert (result.value_a, result.value_b, result.difference) == (4 / 16, 5 / 16, -1 / 16)


def test_swapping_mirrors(rng):
    a, b = rng.normal(0, 1, 50), rng.normal(0.2, 1, 50)
    one, other = paired(a, b), paired(b, a)
    assert one.p == other.p and one.difference == -other.difference
    assert (one.interval.low, one.interval.high) == pytest.approx((-other.interval.high, -other.interval.low))


def test_equal_systems_do_not_differ(rng):
    a = rng.normal(size=30)
    result = paired(a, a)
    assert (result.difference, result.p, result.interval.low, result.interval.high) == (0.0, 1.0, 0.0, 0.0)


def test_p_never_claims_more_than_its_resamples(rng):
    a = rng.normal(0, 0.1, 100)
    assert paired(a, a - 5, resamples=999).p == 2 / 1000


def test_clusters_make_it_less_sure(rng):
    codes = np.repeat(np.arange(10), 20)
    a = rng.normal(size=200)
    b = a + rng.normal(0.1, 0.3, 10)[codes] + rng.normal(0, 0.05, 200)
    alone, clustered = paired(a, b), paired(a, b, clusters=codes)
    width = lambda result: result.interval.high - result.interval.low  # noqa: E731
    assert width(clustered) > 2 * width(alone)
    assert clustered.interval.units == 10


def test_too_little_for_an_interval():
    assert paired(np.ones(1), np.zeros(1)) == paired(np.ones(1), np.zeros(1), seed=2)
    assert paired(np.ones(1), np.zeros(1)).interval is None and paired(np.ones(1), np.zeros(1)).p is None
    empty = paired(np.ones(0), np.zeros(0))
    assert (empty.value_a, empty.difference, empty.interval) == (None, None, None)
    with pytest.raises(ValueError, match="A has 1 items and B has 2"):
        paired(np.ones(1), np.ones(2))


@pytest.mark.parametrize(("wins", "losses"), [(0, 1), (1, 1), (3, 9), (9, 3), (0, 40), (500, 520), (498_000, 502_000)])
def test_the_sign_test_is_scipys_binomial_test(wins, losses):
    a = np.concatenate([np.ones(wins), -np.ones(losses), np.zeros(5)])
    test = sign_test(a, np.zeros_like(a))
    assert (test.wins, test.losses, test.ties) == (wins, losses, 5)
    assert test.p == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, rel=1e-9)


def test_the_sign_test_knows_the_direction():
    a, b = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 3.0, 3.0, 1.0])
    assert (sign_test(a, b).wins, sign_test(a, b).losses) == (1, 2)
    assert (sign_test(a, b, higher_is_better=False).wins, sign_test(a, b, higher_is_better=False).losses) == (2, 1)
    assert sign_test(a, a).p == 1.0 and sign_test(a, a).ties == 4
    with pytest.raises(ValueError, match="same items"):
        sign_test(a, b[:2])


def rows(values, **changes):
    return [ScoreRow(f"u{i:02d}", v, v and 10 * v, v and 10.0, f"s{i % 4}") for i, v in enumerate(values)]


def test_only_items_with_both_numbers_are_compared():
    a = rows([0.5, None, 0.25, 0.75, 1.0])
    b = [*rows([0.25, 0.5, 0.25, None]), ScoreRow("only b", 0.1, 1.0, 10.0)]
    result = compare_scores(a, b, metric="wer", higher_is_better=False, seed=0)
    assert (result.metric, result.pairs, result.dropped) == ("wer", 2, 4)
    assert (result.value_a, result.value_b, result.difference) == (0.375, 0.25, 0.125)
    assert (result.wins, result.losses, result.ties) == (0, 1, 1)
    assert result.p_sign == stats.binomtest(0, 1).pvalue


def test_the_order_of_the_rows_does_not_matter(rng):
    a, b = rows(rng.uniform(0.1, 1, 40).tolist()), rows(rng.uniform(0.1, 1, 40).tolist())
    first = compare_scores(a, b, metric="m", higher_is_better=True, seed=3)
    assert first.interval.units == 4
    for _ in range(3):
        random.Random(1).shuffle(a)
        random.Random(2).shuffle(b)
        assert compare_scores(a, b, metric="m", higher_is_better=True, seed=3) == first


def test_nothing_in_common_has_no_value():
    result = compare_scores(rows([0.5]), [], metric="m", higher_is_better=True, seed=0)
    assert (result.pairs, result.dropped, result.value_a, result.interval, result.p_bootstrap) == (
        0,
        1,
        None,
        None,
        None,
    )
    assert result.p_sign == 1.0

"""Intervals against the t test, survey sampling, statsmodels-like formulas and simulated runs whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from codec_bench import interval, paired_test
from codec_bench.errors import UserError
from codec_bench.stats.intervals import (
    FEWEST_UNITS,
    LONE,
    NOTHING_BELOW,
    SHORT,
    interval_of,
    ratios,
    unit_codes,
    unit_sums,
)


def survey_ends(numerators, denominators, level=0.95):
    """The t interval of a ratio by linearised sums, as survey packages compute it (Cochran 1977, section 6.2)."""
    value = numerators.sum() / denominators.sum()
    influence = (numerators - value * denominators) / denominators.sum()
    units = len(influence)
    error = np.sqrt(units / (units - 1) * np.square(influence).sum())
    reach = stats.t.ppf((1 + level) / 2, units - 1) * error
    return value - reach, value + reach


def test_a_mean_has_the_interval_of_the_t_test(rng):
    x = rng.gamma(9.0, size=40)
    for level in (0.8, 0.95, 0.99):
        ours = interval(x, level=level)
        theirs = stats.ttest_1samp(x, 0).confidence_interval(level)
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
        assert (ours.units, ours.method, ours.level) == (40, "jackknife-t", level)


def test_clusters_of_equal_size_have_the_t_test_of_their_means(rng):
    x = rng.normal(size=(12, 7))
    ours = interval(x.ravel(), clusters=[f"speaker {k}" for k in range(12) for _ in range(7)])
    theirs = stats.ttest_1samp(x.mean(axis=1), 0).confidence_interval()
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert ours.units == 12


def test_a_ratio_is_near_the_interval_of_survey_sampling(rng):
    words = rng.integers(3, 41, 400).astype(float)
    errors = rng.binomial(words.astype(int), 0.12).astype(float)
    ours = interval(errors, denominators=words)
    low, high = survey_ends(errors, words)
    # The jackknife weighs a long item a little more; the difference vanishes with the number of items.
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.02 * (high - low))
    percent = interval(100 * errors, denominators=words)
    assert (percent.low, percent.high) == pytest.approx((100 * ours.low, 100 * ours.high))


def test_a_jackknife_by_hand_is_the_same(rng):
    errors, words = rng.normal(5, 1, 6), rng.integers(3, 41, 6).astype(float)
    left = [np.delete(errors, k).sum() / np.delete(words, k).sum() for k in range(6)]
    value = errors.sum() / words.sum()
    error = np.sqrt(5 / 6 * np.square(np.array(left) - value).sum())
    ours = interval(errors, denominators=words)
    assert ours.high - value == pytest.approx(stats.t.ppf(0.975, 5) * error, rel=1e-12)


def test_clusters_are_sums_and_their_order_does_not_matter(rng):
    errors, words = rng.poisson(2.0, 300).astype(float), rng.integers(3, 41, 300).astype(float)
    speakers = np.repeat(np.arange(50), 6)
    sums = interval(errors.reshape(50, 6).sum(1), denominators=words.reshape(50, 6).sum(1))
    whole = interval(errors, denominators=words, clusters=speakers)
    assert (whole.low, whole.high, whole.units) == pytest.approx((sums.low, sums.high, 50), rel=1e-12)
    order = rng.permutation(300)
    mixed = interval(errors[order], denominators=words[order], clusters=speakers[order])
    assert (mixed.low, mixed.high) == pytest.approx((whole.low, whole.high), rel=1e-12)


def test_items_without_words_add_their_errors(rng):
    """Items with errors and no words, and with neither: against the formula, with every unit left out by hand."""
    words = np.concatenate([rng.integers(3, 20, 12), np.zeros(9)]).astype(float)
    errors = np.concatenate([rng.poisson(1.5, 12), [4, 1, 7, 0, 0, 0, 0, 0, 0]]).astype(float)
    ours = interval(errors, denominators=words)
    value = errors.sum() / words.sum()
    left = np.array([np.delete(errors, k).sum() / np.delete(words, k).sum() for k in range(15)])
    error = np.sqrt(14 / 15 * np.square(left - value).sum())
    assert ours.units == 15, "the six items that add nothing are no evidence"
    assert ours.high - value == pytest.approx(stats.t.ppf(0.975, 14) * error, rel=1e-12)
    speakers = [f"speaker {k % 7}" for k in range(21)]
    sums = [[column[k::7].sum() for k in range(7)] for column in (errors, words)]
    clustered, alone = interval(errors, denominators=words, clusters=speakers), interval(sums[0], denominators=sums[1])
    assert (clustered.low, clustered.high, clustered.units) == pytest.approx((alone.low, alone.high, 7))


def test_a_rate_over_no_words_at_all_is_undefined_and_says_so():
    found = interval([3.0, 1.0, 0.0, 2.0], denominators=[0.0] * 4)
    assert (found.low, found.high, found.note) == (None, None, NOTHING_BELOW)
    test = paired_test([3.0, 1.0, 2.0], [0.0, 0.0, 1.0], denominators=[0.0] * 3)
    assert (test.difference, test.p, test.note) == (None, None, NOTHING_BELOW)


def test_an_item_of_no_cluster_is_a_unit_of_its_own(rng):
    codes = unit_codes(["a", None, "b", None, "a"], 5)
    assert len(set(codes.tolist())) == 4 and codes[0] == codes[4]
    assert sorted(set(codes.tolist())) == list(range(4)), "no number is left without an item"
    x = rng.normal(size=9)
    assert interval(x, clusters=[None] * 9) == interval(x)
    assert interval(x, clusters=list(range(9))) == interval(x)


def test_values_that_reach_one_are_no_share_in_a_table():
    table = np.ones((20, 2))
    assert interval_of(ratios, table, None).ends == [1.0, 1.0]
    assert interval_of(ratios, table, None, share=True).low < 0.9


@pytest.mark.parametrize("right", [0, 1, 7, 19, 20])
def test_a_share_has_wilsons_interval_and_is_never_without_width(right):
    values = [1.0] * right + [0.0] * (20 - right)
    ours = interval(values)
    assert ours.method == "wilson" and 0 <= ours.low <= right / 20 <= ours.high <= 1
    assert ours.high - ours.low > 0.1
    # Wilson's own interval rests on the normal distribution; with t and n - 1 ours is somewhat wider.
    theirs = stats.binomtest(right, 20).proportion_ci(method="wilson")
    assert ours.low <= theirs.low + 1e-12 and ours.high >= theirs.high - 1e-12
    assert ours.high - ours.low < 1.25 * (theirs.high - theirs.low)


def test_wilson_with_many_items_is_scipys():
    theirs = stats.binomtest(1800, 20_000).proportion_ci(method="wilson")
    ours = interval([1.0] * 1800 + [0.0] * 18_200)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-3)


@pytest.mark.parametrize(
    ("items", "clusters"), [(0, None), (1, None), (2, None), (20, ["one"] * 20), (20, ["a", "b"] * 10)]
)
def test_with_fewer_than_three_units_there_is_none_and_the_note_says_why(items, clusters):
    found = interval(np.arange(items, dtype=float), clusters=clusters)
    assert (found.low, found.high, found.ends, found.method) == (None, None, None, "")
    assert found.note and (items == 0 or f"needs at least {FEWEST_UNITS}" in found.note)


def test_error_rates_over_few_items_are_marked(rng):
    words = rng.integers(3, 41, 60).astype(float)
    errors = np.where(np.arange(60) % 20 == 0, words, 1.0)
    assert interval(errors, denominators=words).note == SHORT
    # A sample that happens to hold no rare item looks regular, and is as uncertain.
    assert interval(np.ones(30), denominators=words[:30]).note == SHORT
    assert interval(words - 1, denominators=words).note == SHORT, "most words wrong"
    assert interval(0 * words, denominators=words).note == SHORT, "no error at all"
    assert interval(np.tile(errors, 5), denominators=np.tile(words, 5)).note is None, "300 items"


def test_means_are_marked_only_if_one_unit_carries_the_spread(rng):
    assert interval(rng.normal(size=60)).note is None
    # Four speakers of whom one differs: the skewness of four numbers says nothing.
    assert interval(np.repeat([0.95, 0.95, 0.94, 0.7], 5), clusters=np.repeat(np.arange(4), 5)).note is None
    assert interval([0.99, 0.98] * 8 + [0.7]).note is None, "17 items"
    assert interval([1.0] * 29 + [40.0]).note == LONE
    assert interval([1.0] * 999 + [400.0]).note == LONE, "also among many items"
    # Two far items are not one.
    assert interval([1.0] * 28 + [40.0, 40.0]).note is None


def test_a_value_that_one_unit_carries_alone_has_no_interval():
    found = interval([1.0, 1.0, 2.0], denominators=[0.0, 2.0, 0.0])
    assert found.low is None and "without one of the units" in found.note
    assert "no value" in interval([1.0, 1.0, 1.0], denominators=[0, 0, 0]).note


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [1, 2, 3], "denominators": [1, 2]}, "2 denominators for 3 values"),
        ({"values": [1, 2, 3], "clusters": ["a"]}, "1 clusters for 3 values"),
        ({"values": [1, float("nan"), 3]}, r"values\[1\] is nan"),
        ({"values": [1, 2, 3], "denominators": [1, float("inf"), 1]}, r"denominators\[1\] is inf"),
        ({"values": [1, 2, 3], "denominators": [1, -2, 1]}, "denominator 1 is -2"),
        ({"values": ["x", "y"]}, "not a number"),
        ({"values": [[1, 2], [3, 4]]}, r"shape \(2, 2\)"),
        ({"values": [1, 2, 3], "level": 1.0}, "level is 1.0"),
        ({"values": [1, 2, 3], "level": 95}, "level is 95"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(UserError, match=message):
        interval(**arguments)


def test_a_million_items_have_the_interval_of_survey_sampling(rng):
    table = np.stack([rng.normal(size=1_000_000), np.ones(1_000_000)], axis=1)
    codes = rng.permutation(1_000_000) % 10_000
    ours, sums = interval_of(ratios, table, codes), unit_sums(table, codes)
    low, high = survey_ends(sums[:, 0], sums[:, 1])
    assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-6)

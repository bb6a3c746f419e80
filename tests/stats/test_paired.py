"""Paired comparisons against SciPy's permutation test, against theory, and against laws."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from refusals import refuses
from scipy import stats

from codec_bench import paired_test
from codec_bench.stats import ItemParts, compare_items, holm
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.paired import paired_parts, undecidable


def test_means_have_the_paired_t_test(rng):
    a = rng.normal(size=40)
    b = a + rng.gamma(2, 0.1, 40)
    ours, theirs = paired_test(a, b), stats.ttest_rel(a, b)
    ends = theirs.confidence_interval()
    assert (ours.low, ours.high, ours.p) == pytest.approx((ends.low, ends.high, theirs.pvalue), rel=1e-9)
    assert ours.method == "t"


@pytest.mark.parametrize("trial", range(5))
def test_ratios_are_linearised(rng, trial):
    """Of one item each, the error of the difference of two word error rates as survey packages compute it."""
    words = rng.integers(5, 40, 300).astype(float)
    a, b = rng.poisson(0.1 * words).astype(float), rng.poisson(0.12 * words).astype(float)
    ours = paired_test(a, b, denominators=words)
    residuals = (a - b - ours.difference * words) / words.sum()
    error = np.sqrt(300 / 299 * np.square(residuals).sum())
    width = 2 * stats.t.ppf(0.975, 299) * error
    assert ours.high - ours.low == pytest.approx(width, rel=0.02)
    assert (ours.p <= 0.05) == (abs(ours.difference) >= (ours.high - ours.low) / 2)


@pytest.mark.parametrize(("only_a", "only_b", "p"), [(1, 7, 0.0391), (7, 1, 0.0391), (3, 3, 1.0), (0, 6, 0.0156)])
def test_shares_have_mcnemars_mid_p(only_a, only_b, p):
    """The exact conditional p less the point probability (Fagerland, Lydersen and Laake 2013)."""
    a = [1.0] * only_a + [0.0] * only_b + [1.0] * 20 + [0.0] * 8
    b = [0.0] * only_a + [1.0] * only_b + [1.0] * 20 + [0.0] * 8
    result = paired_test(a, b)
    assert result.method == "mcnemar" and result.p == pytest.approx(p, abs=5e-5)
    exact = stats.binomtest(min(only_a, only_b), only_a + only_b).pvalue
    if only_a != only_b:
        point = stats.binom.pmf(min(only_a, only_b), only_a + only_b, 0.5)
        assert result.p == pytest.approx(exact - point)


def test_shares_have_newcombes_interval():
    """Newcombe 1998, table II: 36, 12, 2 and 0 pairs have the difference 0.2 with 0.0569 to 0.3404 by method 10."""
    a = [1.0] * 36 + [1.0] * 12 + [0.0] * 2
    b = [1.0] * 36 + [0.0] * 12 + [1.0] * 2
    result = paired_test(a, b)
    assert (result.difference, result.low, result.high) == pytest.approx((0.2, 0.0569, 0.3404), abs=5e-5)


def test_a_corpus_has_sacrebleus_paired_bootstrap(rng):
    fold = FOLDS["bleu"]
    total = rng.integers(8, 20, (80, 1)) - np.arange(4)
    a, b = (
        np.concatenate([total[:, :1], total[:, :1], rng.binomial(total, share), total], axis=1).astype(float)
        for share in (0.6, 0.57)
    )
    ours = paired_parts(fold, a, b, None, seed=0)
    drawn = []
    for _ in range(2_000):
        places = rng.integers(80, size=80)
        drawn.append(float(fold(a[places].sum(0)[None])[0] - fold(b[places].sum(0)[None])[0]))
    drawn = np.array(drawn)
    p = (1 + (np.abs(drawn - drawn.mean()) >= abs(ours.difference)).sum()) / 2_001
    assert ours.method == "bootstrap" and ours.p == pytest.approx(p, abs=0.05)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.1 * (high - low))


@pytest.mark.parametrize(("items", "right"), [(30, 0.8), (100, 0.8), (200, 0.9)])
def test_the_detectable_difference_of_shares_is_detected_in_four_of_five(rng, items, right):
    """Studies whose true difference is what a pilot says that it would find."""

    def study(down):
        a = rng.random(items) < right
        b = np.where(rng.random(items) < 0.8, a, rng.random(items) < right) & ~(a & (rng.random(items) < down / right))
        return paired_test(a.astype(float), b.astype(float))

    expected = np.median([result for _ in range(200) if (result := study(0.0).detectable) is not None])
    power = np.mean([study(expected).p <= 0.05 for _ in range(600)])
    assert 0.76 <= power <= 0.95


@pytest.mark.parametrize("units", [2, 3, 5])
def test_few_units_are_noted_and_two_are_refused(units):
    result = paired_test([1.0, 2.0, 4.0, 3.0, 5.0][:units], [0.5, 1.7, 3.1, 2.9, 4.0][:units])
    assert (result.p is None) == (units < 3) and result.note.code == ("too_few_units" if units < 3 else "few_units")


def test_pairing_sees_what_separate_intervals_do_not(rng):
    a = rng.normal(0, 1, 300)
    b = a + 0.05 + rng.normal(0, 0.1, 300)
    result = paired_test(a, b)
    assert result.p < 0.01 and result.high < 0
    assert paired_test(a, rng.permutation(b)).p > 0.05


def test_corpus_ratios_are_compared_and_not_the_means_of_items():
    result = paired_test([1.0, 0.0, 3.0], [0.0, 2.0, 3.0], denominators=[2.0, 10.0, 4.0])
    assert result.difference == -1 / 16


def test_swapping_mirrors(rng):
    a, b = rng.normal(0, 1, 50), rng.normal(0.2, 1, 50)
    one, other = paired_test(a, b), paired_test(b, a)
    assert one.p == other.p and one.difference == -other.difference
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_equal_systems_do_not_differ(rng):
    a = rng.normal(size=30)
    result = paired_test(a, a)
    assert (result.difference, result.p, result.low, result.high) == (0.0, 1.0, 0.0, 0.0)
    assert result.detectable is None and result.note.code == "equal_systems"
    shifted = paired_test(a, a - 2)
    assert (shifted.difference, shifted.low, shifted.high) == pytest.approx((2.0, 2.0, 2.0))
    assert shifted.detectable is None and shifted.note.code == "constant_difference"


def test_clusters_make_it_less_sure(rng):
    codes = np.repeat(np.arange(10), 20)
    a = rng.normal(size=200)
    b = a + rng.normal(0.1, 0.3, 10)[codes] + rng.normal(0, 0.05, 200)
    alone, clustered = paired_test(a, b), paired_test(a, b, clusters=codes)
    assert clustered.high - clustered.low > 2 * (alone.high - alone.low)
    assert clustered.units == 10 and clustered.detectable > 2 * alone.detectable


def test_the_interval_excludes_0_exactly_where_p_is_small(rng):
    """Speakers of very unequal size, and every level of difference: the two never disagree."""
    text = 0
    for _ in range(150):
        sizes = rng.geometric(0.1, 9)
        codes = np.repeat(np.arange(9), sizes)
        a, b = rng.normal(size=(2, len(codes))) + rng.normal(0, 1, (2, 9))[:, codes]
        result = paired_test(a + rng.uniform(0, 2), b, clusters=codes.tolist())
        assert (result.low > 0 or result.high < 0) == (result.p <= 0.05)
        text += result.p <= 0.05
    assert 20 < text < 130


def test_the_detectable_difference_is_detected_in_four_of_five(rng):
    pilots = [paired_test(rng.normal(0, 1, 40), rng.normal(0, 1, 40)).detectable for _ in range(100)]
    expected, actual = np.mean(pilots), 0
    for _ in range(400):
        a, b = rng.normal(0, 1, 40), rng.normal(0, 1, 40)
        result = paired_test(a + expected, b)
        actual += result.low > 0
    assert abs(actual / 400 - 0.8) < 4 * np.sqrt(0.8 * 0.2 / 400)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1, 2, 3]), {"code": "unpaired_items", "one": 2, "other": 3}),
        (([1, 2, float("nan")], [1, 2, 3]), {"code": "value_not_finite", "name": "a", "item": 2}),
        (([1, 2, 3], [1, 2, float("inf")]), {"code": "value_not_finite", "name": "b", "item": 2}),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with refuses(**message):
        paired_test(*arguments)
    with refuses("cluster_count", clusters=2, items=3):
        paired_test([1, 2, 3], [1, 2, 3], clusters=["a", "b"])


def test_holms_adjustment_by_hand():
    # The published example of four tests: 0.005 x 4, 0.01 x 3, 0.03 x 2, and 0.04, which may not fall below the one
    # before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, None, 0.9]) == [1.0, None, 1.0]
    assert holm([]) == []


def rows(values):
    return [ItemParts(f"u{i:02d}", v, None if v is None else (10 * v, 10.0), f"s{i % 4}") for i, v in enumerate(values)]


@pytest.mark.parametrize("items", [3, 4, 5, 6])
def test_exact_tests_of_few_items_find_nothing_whatever_the_data(items):
    """All outcomes of a share are tried: none has a p below 0.05 exactly where it is reported as impossible."""
    outcomes = [np.array(one, float) for one in product((0, 1), repeat=items)]
    tests = [paired_test(np.ones(items), one) for one in outcomes]
    least = min(test.p for test in tests)
    (shares,) = (test for test in tests if test.p == least)
    assert undecidable([shares]) == [least >= 0.05] == [items < 5]
    means = paired_test([1.0, 2.0, 3.5, 4.0, 5.5, 6.0][:items], [0.0, 0.5, 1.0, 2.5, 2.0, 3.0][:items])
    assert undecidable([means]) == [False], "a t test of so few items can find something"
    # With seven in one family, an exact test of six items cannot either, unless some of the others can.
    assert undecidable([shares] * 7) == [True] * 7
    assert undecidable([means] * 7 + [shares]) == [False] * 7 + [least >= 0.05]


def test_an_adjusted_p_is_a_probability():
    assert holm([0.9, 0.8, None]) == [1.0, 1.0, None]
    assert holm([0.04, 0.6, 0.5]) == pytest.approx([0.12, 1.0, 1.0])


@pytest.mark.parametrize(("better", "wins", "losses"), [(True, 3, 2), (False, 2, 3), (None, 3, 2)])
def test_every_pair_is_better_worse_or_the_same(better, wins, losses):
    def role(values):
        return [ItemParts(str(n), value, (value, 1.0), None) for n, value in enumerate(values)]

    result = compare_items(
        role([3.0, 2.0, 1.0, 0.0, 0.0, 7.0]), role([1.0, 1.0, 0.0, 1.0, 2.0, 7.0]), metric="m", higher_is_better=better,
        seed=0
    )  # fmt: skip
    assert (result.wins, result.losses, result.ties, result.pairs) == (wins, losses, 1, 6)


def test_only_items_with_both_numbers_are_compared():
    a = rows([0.5, None, 0.25, 0.75, 1.0])
    b = [*rows([0.25, 0.5, 0.25, None]), ItemParts("only b", 0.1, (1.0, 10.0))]
    result = compare_items(a, b, metric="wer", higher_is_better=False, seed=0)
    assert (result.metric, result.pairs, result.dropped) == ("wer", 2, 4)
    assert (result.value_a, result.value_b, result.test.difference) == (0.375, 0.25, 0.125)
    assert (result.wins, result.losses, result.ties) == (0, 1, 1)


def test_the_order_of_the_rows_does_not_matter(rng):
    a, b = rows(rng.uniform(0.1, 1, 40).tolist()), rows(rng.uniform(0.1, 1, 40).tolist())
    first = compare_items(a, b, metric="m", higher_is_better=True, seed=3)
    assert first.test.units == 4
    for _ in range(3):
        random.Random(1).shuffle(a)
        random.Random(2).shuffle(b)
        assert compare_items(a, b, metric="m", higher_is_better=True, seed=3) == first


def test_nothing_in_common_has_no_value():
    result = compare_items(rows([0.5]), [], metric="m", higher_is_better=True, seed=0)
    assert (result.pairs, result.dropped, result.value_a, result.test.difference, result.test.p) == (
        0,
        1,
        None,
        None,
        None,
    )
    assert result.test.note.code == "no_value"

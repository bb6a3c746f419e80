"""Paired comparisons against SciPy's permutation test, against theory, and against laws."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats

from codec_bench import paired_test
from codec_bench.errors import UserError
from codec_bench.stats import ItemParts, compare_items, holm
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.intervals import SHORT, ratios
from codec_bench.stats.paired import ALIKE, EQUAL, UNSEEN, not_shown, paired_parts
from codec_bench.stats.sign_flips import DRAWS
from codec_bench.stats.unseen_items import unseen_end, unseen_p


def test_a_mean_difference_is_near_the_interval_of_the_t_test(rng):
    a = rng.normal(0.1, 1, 30)
    b = a + rng.normal(0.05, 0.3, 30)
    theirs = stats.ttest_rel(a, b).confidence_interval()
    ours = paired_test(a, b)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.05 * (theirs.high - theirs.low))
    assert ours.difference == pytest.approx(a.mean() - b.mean(), rel=1e-12)


@pytest.mark.parametrize("units", [6, 9, 12])
def test_p_of_few_units_is_scipys_exact_permutation_test(rng, units):
    a, b = rng.normal(size=units), rng.normal(0.5, 1, units)
    theirs = stats.permutation_test(
        (a, b), lambda x, y, axis: (x - y).mean(axis), permutation_type="samples", vectorized=True, n_resamples=np.inf
    )
    assert paired_test(a, b).p == pytest.approx(theirs.pvalue, rel=1e-12)


def test_p_of_many_units_is_scipys_sampled_one(rng):
    a, b = rng.normal(size=60), rng.normal(0.25, 1, 60)
    theirs = stats.permutation_test(
        (a, b), lambda x, y, axis: (x - y).mean(axis), permutation_type="samples", vectorized=True, n_resamples=20_000,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    # 9,999 random exchanges know a p of 0.05 to about 4 %; four times that.
    assert paired_test(a, b).p == pytest.approx(theirs.pvalue, rel=0.2)
    # More units than are exchanged one by one: several are exchanged together, and the t test is the oracle.
    a = rng.normal(size=20_000)
    b = a + rng.normal(0.004, 0.3, 20_000)
    assert paired_test(a, b).p == pytest.approx(stats.ttest_rel(a, b).pvalue, abs=0.02)


def test_a_ratio_is_exchanged_whole_by_hand(rng):
    """Errors and words of a unit move together. Here the two systems even have other denominators."""
    a = np.stack([rng.poisson(3, 7), rng.integers(5, 20, 7)], axis=1).astype(float)
    b = np.stack([rng.poisson(5, 7), rng.integers(5, 20, 7)], axis=1).astype(float)
    seen = abs(float(ratios(a.sum(0)) - ratios(b.sum(0))))
    reached = 0
    for which in range(2**7):
        swap = np.array([which >> k & 1 for k in range(7)], bool)[:, None]
        one, other = np.where(swap, b, a), np.where(swap, a, b)
        reached += abs(float(ratios(one.sum(0)) - ratios(other.sum(0)))) >= seen - 1e-12
    assert paired_parts(ratios, a, b, None, seed=0).p == reached / 2**7


def test_a_fold_is_exchanged_too(rng):
    words = rng.integers(5, 20, 10).astype(float)
    counts = np.stack(
        [words, words, *(rng.integers(1, 5, 10) for _ in range(4)), *(words - k for k in range(4))], axis=1
    )
    result = paired_parts(FOLDS["bleu"], counts, counts, None, seed=0)
    assert (result.difference, result.p) == (0.0, 1.0)
    worse = counts.copy()
    worse[:, 2:6] = 0
    result = paired_parts(FOLDS["bleu"], counts, worse, None, seed=0)
    assert result.difference > 0 and result.p == 2 / 2**10


def test_p_is_never_smaller_than_the_units_can_show(rng):
    for units in (6, 8, 12):
        assert paired_test(np.ones(units), np.zeros(units)).p == 2 / 2**units
    assert paired_test(rng.normal(5, 0.1, 100), np.zeros(100)).p == 1 / (1 + DRAWS)


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
    assert (result.difference, result.p, result.low, result.high) == (0.0, 1.0, None, None)
    assert result.detectable is None and result.note == EQUAL
    shifted = paired_test(a, a - 2)
    assert (shifted.difference, shifted.low, shifted.high) == (pytest.approx(2.0), None, None)
    assert shifted.detectable is None and shifted.note == ALIKE


def test_clusters_make_it_less_sure(rng):
    codes = np.repeat(np.arange(10), 20)
    a = rng.normal(size=200)
    b = a + rng.normal(0.1, 0.3, 10)[codes] + rng.normal(0, 0.05, 200)
    alone, clustered = paired_test(a, b), paired_test(a, b, clusters=codes)
    assert clustered.high - clustered.low > 2 * (alone.high - alone.low)
    assert clustered.units == 10 and clustered.detectable > 2 * alone.detectable


@pytest.mark.parametrize("units", [0, 1, 2, 3, 5, 6])
def test_what_few_units_can_say(units):
    result = paired_test(np.arange(units) + 1.0, np.arange(units) ** 1.5)
    assert (result.low is None) == (units < 3) and (result.p is None) == (units < 6)
    if units < 6:
        assert result.note and ("no value" in result.note or "needs at least" in result.note)
    speakers = [f"s{k}" for k in range(units) for _ in range(10)]
    clustered = paired_test(np.arange(10.0 * units), np.sqrt(np.arange(10.0 * units)), clusters=speakers)
    assert (clustered.low is None, clustered.p is None, clustered.units) == (units < 3, units < 6, units)


def test_the_interval_excludes_0_exactly_where_p_is_small(rng):
    """Speakers of very unequal size, and every level of difference: the two never disagree."""
    said = 0
    for _ in range(150):
        sizes = rng.geometric(0.1, 9)
        codes = np.repeat(np.arange(9), sizes)
        a, b = rng.normal(size=(2, len(codes))) + rng.normal(0, 1, (2, 9))[:, codes]
        result = paired_test(a + rng.uniform(0, 2), b, clusters=codes.tolist())
        assert (result.low > 0 or result.high < 0) == (result.p <= 0.05) and result.note is None
        said += result.p <= 0.05
    assert 20 < said < 130


def test_a_difference_of_error_rates_allows_for_what_was_not_seen(rng):
    words = rng.integers(3, 41, 200).astype(float)
    a, b = (np.minimum(rng.poisson(0.05 * words), words).astype(float) for _ in range(2))
    found = paired_test(a, b, denominators=words)
    assert (found.low, found.high) == (None, None) and SHORT in found.note and found.p is not None
    bounded = paired_test(a, b, denominators=words, bounds=(0, 1))
    apart = paired_test(a + 0.5, b + 0.5, denominators=words + 0.5)  # no counts, so nothing is allowed for
    assert bounded.low < apart.low and bounded.high > apart.high


def test_the_interval_and_p_of_error_rates_agree_also_where_one_system_alone_loses(rng):
    """Of ten speakers some lose a tenth of their items by one system; p allows for what was not seen exactly as the
    interval does.
    """
    said = told = 0
    codes, words = np.repeat(np.arange(10), 20), rng.integers(3, 41, 200).astype(float)
    for _ in range(100):
        losing = (rng.random(10) < 0.5)[codes] & (rng.random(200) < 0.1)
        usual = rng.uniform(0, 0.1)
        a = np.where(losing, words, rng.binomial(words.astype(int), 0.02 + usual))
        b = rng.binomial(words.astype(int), 0.02)
        result = paired_test(a, b, denominators=words, clusters=codes.tolist(), bounds=(0, 1))
        exchanged = paired_test(a, b, denominators=words, clusters=codes.tolist(), bounds=(None, None))
        assert (result.low > 0 or result.high < 0) == (result.p <= 0.05) and result.p >= exchanged.p
        assert (UNSEEN in (result.note or "")) == (exchanged.p <= 0.05 < result.p)
        said, told = said + (result.p <= 0.05), told + (UNSEEN in (result.note or ""))
    assert said > 10 and told > 10


def test_a_difference_says_when_so_few_speakers_do_not_show_whether_one_is_lost(rng):
    """Of 20 speakers one in eight may be lost, and not one in seven.

    It is said where no item is lost, and not of 60 speakers or of single items.
    """
    for speakers, every in ((20, 8), (4, 2), (58, 20)):
        assert (1 - 1 / every) ** speakers > 0.05 > (1 - 1 / (every - 1)) ** speakers
        assert f"one speaker in {every} as a whole" in not_shown(speakers)

    def note(speakers, lost, clusters=True):
        words = np.full(50 * speakers, 20.0)
        a, b = (rng.binomial(20, 0.02, len(words)).astype(float) for _ in range(2))
        a[:lost] = 20
        codes = np.repeat(np.arange(speakers), 50).tolist() if clusters else None
        return paired_test(a, b, denominators=words, clusters=codes, bounds=(0, 1)).note

    assert note(20, 0) == not_shown(20)
    assert note(60, 0) is None and note(20, 1) is None and note(20, 0, clusters=False) is None


def test_a_short_item_that_one_system_alone_loses_shows_that_more_of_a_speaker_may_be_lost(rng):
    codes, words = np.repeat(np.arange(50), 20), np.full(1000, 20.0)
    words[7] = 4.0
    a, b = (rng.binomial(words.astype(int), 0.02).astype(float) for _ in range(2))
    reach = {}
    for errors in (0, 3, 4):  # of four words; b has them all right
        a[7], b[7] = errors, 0
        found = paired_test(a, b, denominators=words, clusters=codes.tolist(), bounds=(0, 1))
        reach[errors] = found.high - found.difference, found.difference - found.low
    assert reach[3][0] == pytest.approx(reach[0][0], rel=0.1) and reach[4][0] > 1.5 * reach[3][0]
    assert reach[4][1] == pytest.approx(reach[0][1], rel=0.1), "the other system has not lost any"


def test_the_p_of_one_unseen_item_is_that_of_its_interval(rng):
    """The level at which the end of the interval is 0."""
    units = np.stack([rng.normal(0.8, 1, 12), np.ones(12)], axis=1)
    p = unseen_p(units, (-2.0, 1.0), upper=False)
    assert unseen_end(units, (-2.0, 1.0), 1 - p, upper=False) == pytest.approx(0, abs=1e-4)
    assert unseen_p(units * [-1, 1], (2.0, 1.0), upper=True) == pytest.approx(p)


def test_the_detectable_difference_is_found_in_four_of_five(rng):
    pilots = [paired_test(rng.normal(0, 1, 40), rng.normal(0, 1, 40)).detectable for _ in range(100)]
    wanted, found = np.mean(pilots), 0
    for _ in range(400):
        a, b = rng.normal(0, 1, 40), rng.normal(0, 1, 40)
        result = paired_test(a + wanted, b)
        found += result.low > 0
    assert abs(found / 400 - 0.8) < 4 * np.sqrt(0.8 * 0.2 / 400)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1, 2, 3]), "a has 2 values and b has 3"),
        (([1, 2, float("nan")], [1, 2, 3]), r"a\[2\] is nan"),
        (([1, 2, 3], [1, 2, float("inf")]), r"b\[2\] is inf"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(UserError, match=message):
        paired_test(*arguments)
    with pytest.raises(UserError, match="2 clusters for 3"):
        paired_test([1, 2, 3], [1, 2, 3], clusters=["a", "b"])


def test_holms_adjustment_by_hand():
    # The published example of four tests: 0.005 x 4, 0.01 x 3, 0.03 x 2, and 0.04, which may not fall below the one
    # before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, None, 0.9]) == [1.0, None, 1.0]
    assert holm([]) == []


def rows(values):
    return [ItemParts(f"u{i:02d}", v, None if v is None else (10 * v, 10.0), f"s{i % 4}") for i, v in enumerate(values)]


def test_an_adjusted_p_is_a_probability():
    assert holm([0.9, 0.8, None]) == [1.0, 1.0, None]
    assert holm([0.04, 0.6, 0.5]) == pytest.approx([0.12, 1.0, 1.0])


def test_the_detectable_difference_is_that_of_the_t_test(rng):
    """At a power of 80 %, the interval's half width and the 0.8 quantile of Student's t, in standard errors."""
    a, b = rng.normal(size=9), rng.normal(size=9)
    error = stats.sem(a - b)
    expected = error * (stats.t.ppf(0.975, 8) + stats.t.ppf(0.8, 8))
    assert paired_test(a, b).detectable == pytest.approx(expected, rel=1e-9)


def test_a_value_that_rests_on_one_unit_has_no_interval():
    """Of A, one unit has words: without it there is no error rate."""
    a = np.array([[1, 5], [1, 0], [0, 0], [2, 0], [0, 0], [1, 0], [0, 0]], float)
    b = np.array([[1, 5], [1, 4], [0, 3], [2, 6], [0, 5], [1, 7], [2, 9]], float)
    found = paired_parts(ratios, a, b, None, seed=0)
    assert found.difference == pytest.approx(5 / 5 - 7 / 39)
    assert (found.low, found.high, found.p, found.detectable, found.units) == (None, None, None, None, 7)
    assert "without one of the units there is no value" in found.note


@pytest.mark.parametrize(("better", "wins", "losses"), [(True, 3, 2), (False, 2, 3), (None, 3, 2)])
def test_every_pair_is_better_worse_or_the_same(better, wins, losses):
    def side(values):
        return [ItemParts(str(n), value, (value, 1.0), None) for n, value in enumerate(values)]

    found = compare_items(
        side([3.0, 2.0, 1.0, 0.0, 0.0, 7.0]), side([1.0, 1.0, 0.0, 1.0, 2.0, 7.0]), metric="m", higher_is_better=better, seed=0
    )  # fmt: skip
    assert (found.wins, found.losses, found.ties, found.pairs) == (wins, losses, 1, 6)


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
    assert "no value" in result.test.note and SHORT not in result.test.note


def test_words_heard_in_silence_tell_two_systems_apart(rng):
    """Two recognisers that differ only where the reference has no words."""
    words = np.concatenate([rng.integers(4, 15, 10), np.zeros(20)]).astype(float)
    same = rng.poisson(1.0, 10).astype(float)
    heard = np.concatenate([[3, 1, 5, 2, 4, 2, 6, 1], np.zeros(12)])
    a, b = np.concatenate([same, heard]), np.concatenate([same, np.zeros(20)])
    ours = paired_test(a, b, denominators=words)
    assert ours.difference == pytest.approx(heard.sum() / words.sum(), rel=1e-12)
    assert ours.units == 18, "the twelve silences in which neither heard a word say nothing"
    bounded = paired_test(a, b, denominators=words, bounds=(0, None))
    assert (bounded.low, bounded.high, bounded.p) == (None, None, ours.p)
    assert ours.p < 0.02, "eight items differ, all in one direction: 2/2^8 by exchanges"
    rows = [
        [ItemParts(f"s{n:02d}", x / d if d else x, (x, d)) for n, (x, d) in enumerate(zip(side, words))]
        for side in (a, b)
    ]
    compared = compare_items(*rows, metric="wer", higher_is_better=False, seed=0)
    assert (compared.wins, compared.losses, compared.ties) == (0, 8, 22)
    assert compared.test.difference == ours.difference


def test_a_difference_that_rare_items_hide_is_below_what_could_be_found(rng):
    better = 1 - rng.uniform(0, 2e-3, 25)
    worse = better - np.r_[rng.uniform(0.02, 0.06, 23), 0.16, 0.17]
    test = paired_test(worse, better, clusters=np.arange(25) % 12, bounds=(-1, 1))
    assert test.note == UNSEEN and test.p > 0.05 and test.low < 0 < test.high
    assert test.detectable > abs(test.difference)
    assert paired_test(worse, better, clusters=np.arange(25) % 12).detectable < abs(test.difference)

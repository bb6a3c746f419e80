"""Intervals against the t test, survey sampling, statsmodels-like formulas and simulated runs whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from codec_bench import interval, paired_test
from codec_bench.errors import UserError
from codec_bench.metrics.bitrate import Bitrate
from codec_bench.stats.bounds import declared_bounds
from codec_bench.stats.cluster_variance import EQUAL, ONE_UNIT, degrees_of_freedom, left_out_error
from codec_bench.stats.intervals import (
    CROWDED,
    FEWEST_UNITS,
    LONE,
    NOTHING_BELOW,
    SHORT,
    interval_of,
    ratios,
    unit_codes,
    unit_sums,
)
from codec_bench.stats.paired import paired_parts
from codec_bench.stats.sign_flips import flip_interval
from codec_bench.stats.unseen_items import unseen_end


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
        assert (ours.units, ours.method, ours.level) == (40, "t", level)


def test_clusters_of_equal_size_have_the_t_test_of_their_means(rng):
    x = rng.normal(size=(12, 7))
    x[6:] = -x[:6]  # twelve units that are not skewed
    ours = interval(x.ravel(), clusters=[f"speaker {k}" for k in range(12) for _ in range(7)])
    theirs = stats.ttest_1samp(x.mean(axis=1), 0).confidence_interval()
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert ours.units == 12


@pytest.mark.parametrize(("items", "wider"), [(3, 1.5), (5, 1.28), (8, 1.13), (20, 1.01)])
def test_few_skewed_values_are_held_and_normal_ones_are_not_much_wider_than_t(rng, items, wider):
    """Student's t holds the truth in 0.88 to 0.92 of exponential means; a share of 1,500 runs scatters by 0.007."""
    skewed, usual = rng.exponential(size=(1_500, items)), rng.normal(size=(400, items))
    held = np.array([found.low <= 1 <= found.high for found in map(interval, skewed)])
    theirs = stats.ttest_1samp(skewed, 1, axis=1).pvalue >= 0.05
    assert held.mean() > 0.92 - 2 * 0.007 and held[theirs].all() and held.sum() > theirs.sum()
    ends = stats.ttest_1samp(usual, 0, axis=1).confidence_interval()
    widths = np.array([found.high - found.low for found in map(interval, usual)]) / (ends.high - ends.low)
    assert widths.min() > 1 - 1e-12 and widths.mean() < wider


def test_values_that_show_no_skewness_have_students_t_and_skewed_ones_reach_farther_to_their_side():
    even = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    theirs = stats.ttest_1samp(even, 0).confidence_interval()
    found = interval(even)
    assert found.method == "t" and found.ends == pytest.approx([theirs.low, theirs.high])
    one_far = np.array([1.0, 2, 1, 2, 1, 2, 1, 2, 1, 9])
    theirs = stats.ttest_1samp(one_far, 0).confidence_interval()
    found = interval(one_far)
    assert found.method == "skewed-t" and found.low == pytest.approx(theirs.low) and found.high > theirs.high
    mirrored = interval(-one_far)
    assert [-mirrored.high, -mirrored.low] == pytest.approx(found.ends)


def test_a_ratio_is_near_the_interval_of_survey_sampling(rng):
    words = rng.integers(3, 41, 400).astype(float)
    errors = rng.normal(0.12 * words, 1)
    ours = interval(errors, denominators=words)
    low, high = survey_ends(errors, words)
    # CR2 weighs a long item a little more; the difference vanishes with the number of items.
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.02 * (high - low))
    percent = interval(100 * errors, denominators=words)
    assert (percent.low, percent.high) == pytest.approx((100 * ours.low, 100 * ours.high))


def cr2_by_matrices(values, codes):
    """The mean's standard error CR2 and its degrees of freedom, as Pustejovsky and Tipton 2018 write them for any
    regression: of the values on a constant, with the residuals of each cluster multiplied by the root of (I - H)'s
    inverse."""
    items, design = len(values), np.ones((len(values), 1))
    hat = design @ np.linalg.inv(design.T @ design) @ design.T
    apart = np.eye(items) - hat
    residuals, columns, error = apart @ values, [], 0.0
    for code in sorted(set(codes)):
        rows = np.flatnonzero(np.asarray(codes) == code)
        roots, vectors = np.linalg.eigh(apart[np.ix_(rows, rows)])
        adjust = vectors @ np.diag(roots**-0.5) @ vectors.T
        weights = np.full(len(rows), 1 / items) @ adjust
        error += float(weights @ residuals[rows]) ** 2
        columns.append(apart[:, rows] @ weights)
    form = np.stack(columns, axis=1)
    products = form.T @ form
    return np.sqrt(error), np.trace(products) ** 2 / np.square(products).sum()


@pytest.mark.parametrize("sizes", [[4, 4, 4, 4], [3, 9, 5, 7, 6], [12, 1, 2, 3, 2, 2, 1]])
def test_the_error_and_its_degrees_of_freedom_are_those_of_cr2(rng, sizes):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    values = rng.normal(size=len(sizes))[codes] + rng.normal(size=len(codes))
    error, freedom = cr2_by_matrices(values, codes)
    assert degrees_of_freedom(np.asarray(sizes, float)) == pytest.approx(freedom, rel=1e-9)
    table = unit_sums(np.stack([values, np.ones(len(values))], axis=1), codes)
    left_out = ratios(table.sum(axis=0) - table)
    assert left_out_error(left_out, values.mean(), table[:, 1]) == pytest.approx(error, rel=1e-9)
    ours = interval(values, clusters=codes.tolist())
    if ours.method == "sign-flips":
        assert freedom < 0.75 * (len(sizes) - 1)
    else:
        assert ours.high - ours.low >= 2 * stats.t.ppf(0.975, freedom) * error, "few units may be skewed"


@pytest.mark.parametrize("sizes", [[4, 4, 4, 4], [3, 9, 5, 7, 6], [12, 1, 2, 3, 2, 2, 1], [7, 19, 1, 4, 4, 11, 2, 9]])
def test_the_error_and_its_degrees_of_freedom_are_those_that_clubsandwich_states_for_a_mean(rng, sizes):
    """The package's own tests (tests/testthat/test_intercept_formulas.R) state CR2 of a mean over clusters and its
    degrees in closed form.
    """
    codes, sizes = np.repeat(np.arange(len(sizes)), sizes), np.asarray(sizes, float)
    values = rng.normal(size=len(sizes))[codes] + rng.normal(size=len(codes))
    items, means = sizes.sum(), np.bincount(codes, values) / sizes
    squared = (sizes**2 * (means - values.mean()) ** 2 / (1 - sizes / items)).sum() / items**2
    rest = items - sizes
    freedom = items**2 / (
        items**2 * (sizes**2 / rest**2).sum() - 2 * items * (sizes**3 / rest**2).sum() + (sizes**2 / rest).sum() ** 2
    )
    table = unit_sums(np.stack([values, np.ones(len(values))], axis=1), codes)
    error = left_out_error(ratios(table.sum(axis=0) - table), values.mean(), table[:, 1])
    assert (error**2, degrees_of_freedom(sizes)) == pytest.approx((squared, freedom), rel=1e-9)


def test_the_error_is_that_of_statsmodels():
    """Numbers of statsmodels 0.15.0:

    HC2 of OLS and of WLS on a constant, and its clustered error of equal clusters with the correction G / (G - 1).
    """
    values = np.array([3.1, 3.4, 2.9, 3.6, 3.3, 3.0, 3.5, 3.2, 2.7, 3.9, 3.05, 3.45])
    errors, words = np.array([1.0, 0, 3, 2, 0, 5, 1, 4]), np.array([10.0, 12, 25, 8, 30, 17, 9, 22])
    mean = np.stack([values, np.ones(12)], axis=1)
    for units, theirs in (
        (mean, 0.09630156),
        (unit_sums(mean, np.repeat(np.arange(4), 3)), 0.07978559),
        (np.stack([errors, words], axis=1), 0.042872),
    ):
        whole = units.sum(axis=0)
        ours = left_out_error(ratios(whole - units), float(ratios(whole)), units[:, 1])
        assert ours == pytest.approx(theirs, abs=5e-9)


def test_sign_flips_by_hand(rng):
    """Of six units of very unequal size: every ratio within the interval, and none outside, has a p above 0.05."""
    sizes = np.array([40.0, 25, 3, 2, 1, 1])
    sums = rng.normal(0.3, 1, 6) * sizes
    ours = interval(sums, denominators=sizes)

    def p(ratio):
        apart = sums - ratio * sizes
        ways = [abs(sum(x if way >> k & 1 else -x for k, x in enumerate(apart))) for way in range(64)]
        return np.mean(np.array(ways) >= abs(apart.sum()) - 1e-12)

    assert ours.method == "sign-flips"
    grid = np.linspace(ours.low, ours.high, 51)
    assert min(p(ratio) for ratio in grid[1:-1]) > 0.05
    assert p(ours.low - 1e-6) <= 0.05 and p(ours.high + 1e-6) <= 0.05


def test_what_rests_on_one_unit_has_no_interval():
    assert interval([1.0] * 50 + [2.5, 3.5], clusters=["a"] * 50 + ["b", "c"]).note == ONE_UNIT
    assert interval([1.0] * 50 + [0.0, 0.0], clusters=["a"] * 50 + ["b", "c"]).note == ONE_UNIT, "a share too"
    others = interval([1.0] * 50 + [2.5, 3.5, 1.5, 2.0, 0.5], clusters=["a"] * 50 + list("bcdef"))
    assert others.method == "sign-flips", "with six units signs can be flipped, whatever the sizes"


def test_clusters_are_sums_and_their_order_does_not_matter(rng):
    errors, words = rng.gamma(2.0, size=300), rng.integers(3, 41, 300).astype(float)
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
    errors = np.concatenate([rng.gamma(1.5, size=12), [4, 1, 7, 0, 0, 0, 0, 0, 0]])
    ours = interval(errors, denominators=words)
    value = errors.sum() / words.sum()
    shares = words[:15] / words.sum()
    left = np.array([np.delete(errors, k).sum() / np.delete(words, k).sum() for k in range(15)])
    error = np.sqrt(((1 - shares) * np.square(left - value)).sum())
    assert ours.units == 15, "the six items that add nothing are no evidence"
    assert left_out_error(left, value, words[:15]) == pytest.approx(error, rel=1e-12)
    assert ours.ends == list(flip_interval(np.stack([errors, words], axis=1)[:15], 0.95))
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
    assert interval_of(ratios, table, None).note == EQUAL
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


@pytest.mark.parametrize("items", [5, 20, 50, 200])
def test_shares_near_0_and_1_are_held_whatever_the_true_share_is(items):
    """Exactly, by the binomial law:

    Wilson's own interval of 50 items holds a true share of 0.4 % in 0.84 of the samples.
    """
    found = [interval([1.0] * right + [0.0] * (items - right)) for right in range(items + 1)]
    low, high = (np.array([getattr(one, end) for one in found]) for end in ("low", "high"))
    near_0 = np.geomspace(0.001 / items, 0.5, 2_000)
    for shares in (near_0, 1 - near_0):
        chances = stats.binom.pmf(np.arange(items + 1), items, shares[:, None])
        held = (chances * ((low <= shares[:, None]) & (shares[:, None] <= high))).sum(axis=1)
        assert held.min() > 0.93
    assert (high - low)[1] < (high - low)[items // 2], "an end near 0 is no reason for a wide interval"


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


def test_error_rates_over_few_items_have_an_interval_only_within_bounds(rng):
    words = rng.integers(3, 41, 60).astype(float)
    errors = np.where(np.arange(60) % 20 == 0, words, 1.0)
    for above in (errors, words - 1, np.ones(60)):
        found = interval(above, denominators=words)
        assert (found.low, found.high, found.note) == (None, None, SHORT)
    many = interval(np.tile(errors, 50), denominators=np.tile(words, 50))
    assert many.note is None and many.method == "one-unseen", "3,000 items"
    bounded = interval(errors, denominators=words, bounds=(0, 1))
    value = errors.sum() / words.sum()
    assert bounded.low < value < bounded.high and bounded.high - value > value - bounded.low
    assert interval(0 * words, denominators=words, bounds=(0, 1)).note == EQUAL, "no error at all"


@pytest.mark.parametrize("right", [1, 7, 19])
def test_one_unseen_item_is_the_interval_of_clopper_and_pearson(right):
    """Of items that are right or wrong and are told to be bounded scores, not a share."""
    table = np.stack([np.arange(20) < right, np.ones(20)], axis=1).astype(float)
    theirs = stats.binomtest(right, 20).proportion_ci(method="exact")
    ends = [unseen_end(table, (float(upper), 1.0), 0.95, upper=upper) for upper in (False, True)]
    assert ends == pytest.approx([theirs.low, theirs.high], abs=1e-3)


def test_one_unseen_item_is_the_quantile_of_drawn_weights(rng):
    """The weighted means of the items and one more at the bound, drawn 100,000 times."""
    values = np.append(rng.gamma(0.3, 1, 60), 8.0)
    weights = rng.exponential(size=(100_000, 61))
    drawn = (weights @ values) / weights.sum(axis=1)
    table = np.stack([values[:-1], np.ones(60)], axis=1)
    assert unseen_end(table, (8.0, 1.0), 0.95, upper=True) == pytest.approx(np.quantile(drawn, 0.975), rel=0.01)


@pytest.mark.parametrize(("losing", "of_their_items"), [(0.1, 0.1), (0.04, 1.0)])
def test_losses_of_few_speakers_are_allowed_for(rng, losing, of_their_items):
    """Of twenty speakers with fifty items one in ten loses a tenth of them, or one in twenty-five loses all: most runs
    of these hold none.
    """
    words = np.full(1_000, 20.0)
    speakers = np.repeat(np.arange(20), 50)
    held = 0
    for _ in range(200):
        lost = rng.random(1_000) < of_their_items * (rng.random(20) < losing)[speakers]
        errors = np.where(lost, words, rng.binomial(20, 0.02, 1_000))
        found = interval(errors, denominators=words, clusters=speakers.tolist(), bounds=(0, 1))
        held += found.low <= 0.02 + 0.98 * losing * of_their_items <= found.high
    assert held >= 0.92 * 200
    alone = interval(errors, denominators=words, bounds=(0, 1))
    assert found.method == alone.method == "one-unseen" and found.high > alone.high, "of items each a unit, one is lost"


def test_what_is_lost_unseen_is_at_most_one_item_in_twenty_or_one_speaker(rng):
    words, speakers = np.full(2_000, 20.0), np.repeat(np.arange(20), 100)
    errors = rng.binomial(20, 0.02, 2_000).astype(float)
    few = interval(errors, denominators=words, clusters=speakers.tolist(), bounds=(0, 1))
    value = errors.sum() / words.sum()
    assert few.high == pytest.approx(value + 0.05 * (1 - value))
    many = interval(errors, denominators=words, clusters=np.repeat(np.arange(200), 10).tolist(), bounds=(0, 1))
    # Of 200 speakers none is lost, so that Clopper and Pearson's upper end of 0 of 200 is the most that there may be.
    most = stats.binomtest(0, 200).proportion_ci(method="exact").high
    assert many.high == pytest.approx(value + most * (1 - value), rel=0.05)


def test_scores_at_a_ceiling_allow_for_one_item_below_it():
    assert interval([4.64] * 30, bounds=(1.0, 4.65)).note == EQUAL
    found = interval([4.64] * 28 + [4.2, 3.1], bounds=(1.0, 4.65))
    assert found.method == "one-unseen" and found.low < 4.3 and found.high <= 4.65
    regular = np.linspace(2.0, 3.0, 30)
    assert interval(regular, bounds=(1.0, 5.0)) == interval(regular)
    # Half of eight are the best that PESQ gives; bounds that are a little wider, as of ViSQOL, say the same.
    for most in (4.643889, 5.0):
        few = interval([4.643888] * 6 + [4.2, 3.1], bounds=(1.0, most))
        assert few.method == "one-unseen" and few.low < 3.2 and few.high <= most
    assert interval([4.0] * 6 + [3.0, 3.0], bounds=(1.0, 5.0)).method != "one-unseen", (
        "ratings that do not reach the top"
    )


def test_no_end_is_beyond_what_a_mean_can_be():
    values = [3.0, 4.2, 4.6, 4.5]
    assert interval(values).high > 4.65, "by Student's t"
    bounded = interval(values, bounds=(1.0, 4.65))
    assert (bounded.low, bounded.high) == (interval(values).low, 4.65)


def test_a_value_beyond_its_bounds_is_named():
    with pytest.raises(UserError, match=r"item 1 is 5.2; expected 1 to 5"):
        interval([3.0, 5.2, 4.0], bounds=(1, 5))
    with pytest.raises(UserError, match="the smaller first"):
        paired_test([3.0, 4.2, 4.0], [1.0, 2.0, 3.0], bounds=(5, 1))


def test_means_are_marked_only_if_one_unit_carries_the_spread(rng):
    assert interval(rng.normal(size=60)).note is None
    # Four speakers of whom one differs: the skewness of four numbers says nothing.
    assert interval(np.repeat([0.95, 0.95, 0.94, 0.7], 5), clusters=np.repeat(np.arange(4), 5)).note is None
    assert interval([0.99, 0.98] * 8 + [0.7]).note is None, "17 items"
    usual = rng.normal(1, 0.1, 999)
    assert interval([*usual[:29], 40.0]).note == LONE
    assert interval([*usual, 400.0]).note == LONE, "also among many items"
    # Two far items are not one.
    assert interval([*usual[:28], 40.0, 40.0]).note is None


def test_values_that_crowd_at_an_end_that_nobody_declared_have_no_interval(rng):
    values = np.where(rng.random(50) < 0.2, rng.uniform(1.5, 4.5, 50), 4.644)
    found = interval(values)
    assert found.ends is None and found.note == CROWDED
    assert (
        interval(values, bounds=(1.0, 4.65)).method == "one-unseen"
        and interval(values, bounds=(None, None)).method == "t"
    )
    assert interval(-values).note == CROWDED and interval(rng.normal(size=50)).note is None


def test_counts_of_which_a_metric_declares_nothing_are_not_taken_for_errors(rng):
    """Whole numbers over whole numbers: a record that says nothing of a metric has the interval of any ratio."""
    table = np.stack([rng.integers(20, 60, 40), rng.integers(3, 9, 40)], axis=1).astype(float)
    low, high = survey_ends(table[:, 0], table[:, 1])
    facts = {"aggregate": "ratio", "higher_is_better": False}
    found = interval_of(ratios, table, None, bounds=declared_bounds(facts))
    assert found.method == "t" and found.ends == pytest.approx([low, high], rel=0.02)
    test = paired_parts(
        ratios, table, table + rng.integers(0, 2, (40, 1)) * [1, 0], None, seed=0, bounds=declared_bounds(facts)
    )
    assert test.low is not None and SHORT not in (test.note or "")
    assert interval_of(ratios, table, None, bounds=declared_bounds({**facts, "bounds": [0.0, None]})).note == SHORT
    assert interval(table[:, 0], denominators=table[:, 1]).note == SHORT, (
        "the public function supposes errors, and says so"
    )


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


def test_counts_that_are_declared_to_be_no_errors_are_a_ratio_like_others():
    """Bits over clips of whole seconds: counts over counts, and no error rate."""
    table = np.stack([[36000.0, 36500, 35900, 36200, 36100, 36400], np.full(6, 3.0)], axis=1)
    bounds = declared_bounds({"range": [0.0, None], "bounds": list(Bitrate.bounds)})
    found = interval_of(ratios, table, None, bounds=bounds)
    theirs = stats.ttest_1samp(table[:, 0] / 3, 0).confidence_interval()
    assert found.method == "skewed-t" and found.note is None
    assert found.low < theirs.low and theirs.high < found.high < theirs.high + 0.5 * (theirs.high - theirs.low)
    assert declared_bounds({"range": [0.0, None]}) is None and declared_bounds({"range": [1.0, 5.0]}) == (1.0, 5.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": ["1", "2", "3"]}, "not a number"),
        ({"values": [1 + 1j, 2, 3]}, "not a number"),
        ({"values": [1e308, 1e308, 1.5e308]}, "at most 1e\\+100"),
        ({"clusters": "abc"}, "the clusters are a str"),
        ({"clusters": {"a": 1, "b": 2, "c": 3}}, "the clusters are a dict"),
        ({"clusters": [["a"], ["b"], ["c"]]}, "cluster of item 0 is a list"),
        ({"bounds": (0,)}, "bounds are \\(0,\\)"),
        ({"bounds": 5}, "bounds are 5"),
        ({"bounds": ("0", "5")}, "expected two numbers"),
        ({"level": "0.95"}, "level is '0.95'"),
        ({"level": None}, "level is None"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": None}, "seed is None"),
    ],
)
def test_what_is_of_another_kind_is_named_in_one_sentence(arguments, message):
    with pytest.raises(UserError, match=message):
        interval(**{"values": [1, 2, 4], **arguments})
    if not {"values", "level"} & arguments.keys():
        with pytest.raises(UserError, match=message):
            paired_test([1, 2, 4], [2, 2, 3], **arguments)


def test_labels_of_a_tensor_or_a_column_are_compared_by_what_they_say():
    torch = pytest.importorskip("torch")
    values = [1.0, 2.0, 3.0, 5.0, 8.0]
    expected = interval(values, clusters=[0, 0, 1, 1, 2])
    assert interval(torch.tensor(values), clusters=torch.tensor([0, 0, 1, 1, 2])) == expected
    assert interval(np.array(values), clusters=np.array([0, 0, 1, 1, 2])) == expected
    missing = float("nan")  # pandas has one and the same object in each row without a label
    assert interval(values, clusters=["a", missing, missing, "b", "c"]) == interval(
        values, clusters=["a", None, None, "b", "c"]
    )
    with pytest.raises(UserError, match="requires grad"):
        interval(torch.tensor(values, requires_grad=True))


def test_an_end_at_infinity_is_an_open_end():
    values = [1.0, 2.5, 3.0, 4.5, 2.0, 1.5]
    assert interval(values, bounds=(0, float("inf"))) == interval(values, bounds=(0, None))
    assert interval(values, bounds=(-float("inf"), float("inf"))) == interval(values, bounds=(None, None))

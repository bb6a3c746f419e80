"""Intervals against the t test, survey sampling, statsmodels-like formulas and simulated runs whose truth is known."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from refusals import Containing, refuses
from scipy import stats

from codec_bench import interval, paired_test
from codec_bench.stats.bootstrap import corpus_interval
from codec_bench.stats.cluster_variance import (
    degrees_of_freedom,
    grubbs_share,
    has_dominant_unit,
    jackknife_error,
    t_quantile,
)
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.intervals import (
    FEWEST_UNITS,
    clopper_pearson,
    interval_of,
    ratios,
    unit_codes,
    unit_sums,
    wilson,
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
        assert (ours.units, ours.method, ours.level) == (40, "t", level)


def test_clusters_of_equal_size_have_the_t_test_of_their_means(rng):
    x = rng.normal(size=(12, 7))
    x[6:] = -x[:6]  # twelve units that are not skewed
    ours = interval(x.ravel(), clusters=[f"speaker {k}" for k in range(12) for _ in range(7)])
    theirs = stats.ttest_1samp(x.mean(axis=1), 0).confidence_interval()
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert ours.units == 12


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
    excluded = ratios(table.sum(axis=0) - table)
    assert jackknife_error(excluded, values.mean(), table[:, 1]) == pytest.approx(error, rel=1e-9)
    ours = interval(values, clusters=codes.tolist())
    assert ours.high - ours.low == pytest.approx(2 * stats.t.ppf(0.975, freedom) * error, rel=1e-9)


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
    error = jackknife_error(ratios(table.sum(axis=0) - table), values.mean(), table[:, 1])
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
        complete = units.sum(axis=0)
        ours = jackknife_error(ratios(complete - units), float(ratios(complete)), units[:, 1])
        assert ours == pytest.approx(theirs, abs=5e-9)


def test_clusters_are_sums_and_their_order_does_not_matter(rng):
    errors, words = rng.gamma(2.0, size=300), rng.integers(3, 41, 300).astype(float)
    speakers = np.repeat(np.arange(50), 6)
    sums = interval(errors.reshape(50, 6).sum(1), denominators=words.reshape(50, 6).sum(1))
    complete = interval(errors, denominators=words, clusters=speakers)
    assert (complete.low, complete.high, complete.units) == pytest.approx((sums.low, sums.high, 50), rel=1e-12)
    order = rng.permutation(300)
    mixed = interval(errors[order], denominators=words[order], clusters=speakers[order])
    assert (mixed.low, mixed.high) == pytest.approx((complete.low, complete.high), rel=1e-12)


def test_items_without_words_add_their_errors(rng):
    """Items with errors and no words, and with neither: against the formula, with every unit excluded by hand."""
    words = np.concatenate([rng.integers(3, 20, 12), np.zeros(9)]).astype(float)
    errors = np.concatenate([rng.gamma(1.5, size=12), [4, 1, 7, 0, 0, 0, 0, 0, 0]])
    ours = interval(errors, denominators=words)
    value = errors.sum() / words.sum()
    shares = words[:15] / words.sum()
    left = np.array([np.delete(errors, k).sum() / np.delete(words, k).sum() for k in range(15)])
    error = np.sqrt(((1 - shares) * np.square(left - value)).sum())
    assert ours.units == 15, "the six items that add nothing are no evidence"
    assert jackknife_error(left, value, words[:15]) == pytest.approx(error, rel=1e-12)
    reach = stats.t.ppf(0.975, degrees_of_freedom(words[:15])) * error
    assert ours.ends == pytest.approx([max(0.0, value - reach), value + reach])
    speakers = [f"speaker {k % 7}" for k in range(21)]
    sums = [[column[k::7].sum() for k in range(7)] for column in (errors, words)]
    clustered, alone = interval(errors, denominators=words, clusters=speakers), interval(sums[0], denominators=sums[1])
    assert (clustered.low, clustered.high, clustered.units) == pytest.approx((alone.low, alone.high, 7))


def test_a_rate_over_no_words_at_all_is_undefined_and_says_so():
    result = interval([3.0, 1.0, 0.0, 2.0], denominators=[0.0] * 4)
    assert (result.low, result.high, result.note.code) == (None, None, "zero_denominator")
    test = paired_test([3.0, 1.0, 2.0], [0.0, 0.0, 1.0], denominators=[0.0] * 3)
    assert (test.difference, test.p, test.note.code) == (None, None, "zero_denominator")


def test_an_item_of_no_cluster_is_a_unit_of_its_own(rng):
    codes = unit_codes(["a", None, "b", None, "a"], 5)
    assert len(set(codes.tolist())) == 4 and codes[0] == codes[4]
    assert sorted(set(codes.tolist())) == list(range(4)), "no number is left without an item"
    x = rng.normal(size=9)
    assert interval(x, clusters=[None] * 9) == interval(x)
    assert interval(x, clusters=list(range(9))) == interval(x)


def test_values_that_reach_one_are_no_share_in_a_table():
    table = np.ones((20, 2))
    assert interval_of(ratios, table, None).note.code == "all_equal"
    assert interval_of(ratios, table, None, share=True).low < 0.9


def test_no_end_is_beyond_what_a_mean_can_be():
    values = [3.0, 4.2, 4.6, 4.5]
    assert interval(values).high > 4.65, "by Student's t"
    bounded = interval(values, bounds=(1.0, 4.65))
    assert (bounded.low, bounded.high) == (interval(values).low, 4.65)


def test_a_value_beyond_its_bounds_is_named():
    with refuses("value_beyond_bounds", item=1, value=5.2, low=1.0, high=5.0):
        interval([3.0, 5.2, 4.0], bounds=(1, 5))
    with refuses("bounds_form"):
        paired_test([3.0, 4.2, 4.0], [1.0, 2.0, 3.0], bounds=(5, 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"values": [1, 2, 3], "denominators": [1, 2]},
            {"code": "denominator_count", "denominators": 2, "items": 3, "name": "values"},
        ),
        ({"values": [1, 2, 3], "clusters": ["a"]}, {"code": "cluster_count", "clusters": 1, "items": 3}),
        ({"values": [1, float("nan"), 3]}, {"code": "value_not_finite", "name": "values", "item": 1}),
        (
            {"values": [1, 2, 3], "denominators": [1, float("inf"), 1]},
            {"code": "value_not_finite", "name": "denominators", "item": 1},
        ),
        ({"values": [1, 2, 3], "denominators": [1, -2, 1]}, {"code": "denominator_negative", "item": 1, "value": -2.0}),
        ({"values": ["x", "y"]}, {"code": "not_numbers"}),
        ({"values": [[1, 2], [3, 4]]}, {"code": "values_shape", "shape": [2, 2]}),
        ({"values": [1, 2, 3], "level": 1.0}, {"code": "level_value", "level": 1.0}),
        ({"values": [1, 2, 3], "level": 95}, {"code": "level_value", "level": 95}),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with refuses(**message):
        interval(**arguments)


def test_a_million_items_have_the_interval_of_survey_sampling(rng):
    table = np.stack([rng.normal(size=1_000_000), np.ones(1_000_000)], axis=1)
    codes = rng.permutation(1_000_000) % 10_000
    ours, sums = interval_of(ratios, table, codes), unit_sums(table, codes)
    low, high = survey_ends(sums[:, 0], sums[:, 1])
    assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": ["1", "2", "3"]}, {"code": "not_numbers", "name": "values"}),
        ({"values": [1 + 1j, 2, 3]}, {"code": "not_numbers", "cause": Containing("complex128")}),
        ({"values": [1e308, 1e308, 1.5e308]}, {"code": "value_too_large", "item": 0, "most": 1e100}),
        ({"clusters": "abc"}, {"code": "clusters_type", "type": "str"}),
        ({"clusters": {"a": 1, "b": 2, "c": 3}}, {"code": "clusters_type", "type": "dict"}),
        ({"clusters": [["a"], ["b"], ["c"]]}, {"code": "cluster_type", "item": 0, "type": "list"}),
        ({"bounds": (0,)}, {"code": "bounds_form", "bounds": [0]}),
        ({"bounds": 5}, {"code": "bounds_form", "bounds": 5}),
        ({"bounds": ("0", "5")}, {"code": "bounds_form", "bounds": ["0", "5"]}),
        ({"level": "0.95"}, {"code": "level_value", "level": "0.95"}),
        ({"level": None}, {"code": "level_value", "level": None}),
        ({"seed": -1}, {"code": "seed_value", "seed": -1}),
        ({"seed": 1.5}, {"code": "seed_value", "seed": 1.5}),
        ({"seed": None}, {"code": "seed_value", "seed": None}),
    ],
)
def test_what_is_of_another_kind_is_named_in_one_sentence(arguments, message):
    with refuses(**message):
        interval(**{"values": [1, 2, 4], **arguments})
    if not {"values", "level"} & arguments.keys():
        with refuses(**message):
            paired_test([1, 2, 4], [2, 2, 3], **arguments)


def test_labels_of_a_tensor_or_a_column_are_compared_by_what_they_state():
    torch = pytest.importorskip("torch")
    values = [1.0, 2.0, 3.0, 5.0, 8.0]
    expected = interval(values, clusters=[0, 0, 1, 1, 2])
    assert interval(torch.tensor(values), clusters=torch.tensor([0, 0, 1, 1, 2])) == expected
    assert interval(np.array(values), clusters=np.array([0, 0, 1, 1, 2])) == expected
    missing = float("nan")  # pandas has one and the same object in each row without a label
    assert interval(values, clusters=["a", missing, missing, "b", "c"]) == interval(
        values, clusters=["a", None, None, "b", "c"]
    )
    with refuses("not_numbers", cause=Containing("requires grad")):
        interval(torch.tensor(values, requires_grad=True))


def test_an_end_at_infinity_is_an_open_end():
    values = [1.0, 2.5, 3.0, 4.5, 2.0, 1.5]
    assert interval(values, bounds=(0, float("inf"))) == interval(values, bounds=(0, None))
    assert interval(values, bounds=(-float("inf"), float("inf"))) == interval(values, bounds=(None, None))


@pytest.mark.parametrize("items", [50, 400])
def test_a_share_has_the_interval_of_wilson_or_of_clopper_and_pearson(items):
    """scipy's, at every number of right answers."""
    for right in range(items + 1):
        ours = interval([1.0] * right + [0.0] * (items - right))
        name = "wilson" if min(right, items - right) >= 10 else "clopper-pearson"
        theirs = stats.binomtest(right, items).proportion_ci(method="wilson" if name == "wilson" else "exact")
        assert ours.method == name and ours.ends == pytest.approx([theirs.low, theirs.high], abs=1e-9)


def test_a_share_over_speakers_has_as_many_items_as_cr2_says(rng):
    """Korn and Graubard's effective number of items, from CR2 by matrices."""
    codes = np.repeat(np.arange(12), 15)
    right = (rng.random(180) < np.repeat(rng.beta(6, 3, 12), 15)).astype(float)
    error, freedom = cr2_by_matrices(right, codes)
    share = right.mean()
    items = min(180, share * (1 - share) / error**2 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, freedom)) ** 2)
    assert items < 120
    assert interval(right, clusters=codes.tolist()).ends == pytest.approx(list(wilson(share, items, 0.95)))
    complete = interval(np.ones(180), clusters=codes.tolist())
    assert complete.ends == pytest.approx(list(clopper_pearson(1.0, 12, 0.95))) and complete.note.code == "all_equal"


def test_the_bootstrap_is_scipys_bca(rng):
    errors, words = rng.poisson(1.5, 120).astype(float), rng.integers(3, 30, 120).astype(float)
    ours = interval(errors, denominators=words, method="bootstrap", seed=3)
    theirs = stats.bootstrap(
        (errors, words), lambda e, w, axis=-1: e.sum(axis) / w.sum(axis), paired=True, vectorized=True,
        n_resamples=10_000, method="BCa", rng=np.random.default_rng(4),
    ).confidence_interval  # fmt: skip
    width = theirs.high - theirs.low
    assert ours.method == "bca" and ours.ends == pytest.approx([theirs.low, theirs.high], abs=0.04 * width)


def test_bisani_and_ney_and_the_linearised_t_agree_on_ordinary_error_rates(rng):
    """Kaldi's compute-wer-bootci: mean and deviation of the error rate over draws of utterances, at 1.96 deviations."""
    words = rng.integers(3, 41, 1088).astype(float)
    errors = rng.binomial(words.astype(int), 0.06).astype(float)
    ours = interval(errors, denominators=words)
    places = rng.integers(1088, size=(4_000, 1088))
    drawn = errors[places].sum(1) / words[places].sum(1)
    width = 2 * 1.96 * drawn.std()
    assert ours.method == "t" and ours.note is None
    assert ours.ends == pytest.approx([drawn.mean() - width / 2, drawn.mean() + width / 2], abs=0.05 * width)


def test_a_value_of_a_corpus_has_percentiles_of_draws(rng):
    fold = FOLDS["bleu"]
    total = rng.integers(8, 20, (60, 1)) - np.arange(4)
    counts = np.concatenate([total[:, :1], total[:, :1], rng.binomial(total, 0.6), total], axis=1).astype(float)
    ours = interval_of(fold, counts, None)
    draws = [fold(counts[rng.integers(60, size=60)].sum(0)[None])[0] for _ in range(2_000)]
    theirs = np.quantile(draws, [0.025, 0.975])
    assert ours.method == "bootstrap"
    assert ours.ends == pytest.approx(list(theirs), abs=0.08 * (theirs[1] - theirs[0]))
    assert corpus_interval(fold, counts, 0.95, 1) == corpus_interval(fold, counts, 0.95, 1)


@pytest.mark.parametrize(
    ("values", "options", "code"),
    [
        ([3.1, 3.4], {}, "too_few_units"),
        ([3.1, 3.4, 2.9], {}, "few_units"),
        ([3.0] * 9, {}, "all_equal"),
        ([1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.0, 30.0], {}, "dominant_unit"),
        ([1.0] * 20 + [0.97, 0.98, 0.96, 0.97, 0.98], {"bounds": (0, 1)}, "ceiling"),
        ([1.0, 2, 0, 3, 4, 0, 2, 26, 20, 22, 21, 24], {"denominators": [20.0] * 12}, "heavy_tail"),
        ([0.2, 0.4, 0.3, 0.5, 0.1, 0.4, 0.3], {}, None),
    ],
)
def test_notes_are_codes(values, options, code):
    result = interval(values, **options)
    assert (result.note and result.note.code) == code
    assert (result.low is None) == (code == "too_few_units")


@pytest.mark.parametrize(("count", "critical"), [(6, 1.973), (8, 2.274), (10, 2.482), (12, 2.636), (20, 3.001)])
def test_the_critical_values_of_grubbs_are_the_published_ones(count, critical):
    """Two-sided, at 1 % (Grubbs and Beck 1972)."""
    assert np.sqrt(grubbs_share(count, 0.01) * (count - 1)) == pytest.approx(critical, abs=0.0006)


UNEQUAL = [2, 3, 4, 5, 8, 10, 12, 15, 20, 25, 30, 40]


def speakers(rng, sizes, shift):
    """Values of speakers with an ICC of 0.3, the last of whom is apart, and who says each."""
    of_speaker = np.sqrt(0.3) * rng.normal(size=len(sizes))
    of_speaker[-1] += shift
    codes = np.repeat(np.arange(len(sizes)), sizes)
    return of_speaker[codes] + np.sqrt(0.7) * rng.normal(size=len(codes)), codes


@pytest.mark.parametrize("sizes", [[1] * 8, [10] * 10, [4] * 12, UNEQUAL])
def test_no_ordinary_speaker_dominates(rng, sizes):
    count = 0
    for _ in range(2000):
        x, codes = speakers(rng, sizes, 0.0)
        count += has_dominant_unit(np.bincount(codes, x - x.mean()), np.asarray(sizes, float))
    assert count <= 0.02 * 2000


@pytest.mark.parametrize("count", [6, 8, 12, 20, 30])
@pytest.mark.parametrize(("law", "most"), [("normal", 0.004), ("gamma", 0.04)])
def test_no_ordinary_item_dominates(rng, count, law, most):
    """Skewed values too: of a gamma distribution of shape 4, one in 25 samples at the most."""
    drawn = rng.normal(size=(2000, count)) if law == "normal" else rng.gamma(4, size=(2000, count))
    assert np.mean([has_dominant_unit(x - x.mean(), np.ones(count)) for x in drawn]) <= most


@pytest.mark.parametrize(
    ("sizes", "shift"), [([1] * 8, 15.0), ([10] * 10, 8.0), (UNEQUAL, 8.0), ([10] * 8 + [200], 0.0)]
)
def test_a_speaker_with_most_of_the_variance_dominates(rng, sizes, shift):
    counts = np.zeros(2)
    for _ in range(50):
        x, codes = speakers(rng, sizes, shift)
        notes = interval(x, clusters=codes).note, paired_test(x, np.zeros(len(x)), clusters=codes).note
        counts += [note is not None and note.code == "dominant_unit" for note in notes]
    assert (counts >= 0.95 * 50).all()


def test_values_near_a_bound_have_a_short_interval():
    """Six values of STOI, and of four stereo clips: nothing but Student's t, cut at the bound."""
    values = [0.9666, 0.9958, 0.9984, 0.9994, 0.9996, 0.9996]
    theirs = stats.ttest_1samp(values, 0).confidence_interval()
    assert interval(values, bounds=(-1, 1)).ends == pytest.approx([theirs.low, min(1.0, theirs.high)])


def test_two_answers_have_an_interval_and_one_has_none():
    assert interval([1.0, 0.0]).ends == pytest.approx(list(clopper_pearson(0.5, 2, 0.95)))
    assert interval([1.0]).note.code == "too_few_units" and FEWEST_UNITS == 3


def test_a_method_that_there_is_not_is_named():
    with refuses("interval_method", method="jackknife"):
        interval([1.0, 2.0, 3.0, 4.0], method="jackknife")


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("freedom", [0.7, 1, 1.05, 1.9, 2, 3.3, 7.7, 19, 99.99, 100, 199, 1087, 1e5, 1e9, math.inf])
def test_quantiles_of_students_t_are_scipys(level, freedom):
    from scipy.special import stdtrit

    assert t_quantile(level, freedom) == pytest.approx(float(stdtrit(freedom, (1 + level) / 2)), rel=1e-13)


def test_no_degrees_of_freedom_have_no_quantile():
    assert math.isnan(t_quantile(0.95, 0.0)) and math.isnan(t_quantile(0.95, math.nan))
    assert t_quantile(0.0, 10.0) == 0.0


def test_the_interval_of_a_mean_needs_no_scipy():
    program = (
        "import sys; from codec_bench.stats.cluster_variance import t_quantile as t; t(0.95, 9); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True).stdout
    assert "codec_bench.stats" in loaded.split() and "scipy" not in loaded.split()

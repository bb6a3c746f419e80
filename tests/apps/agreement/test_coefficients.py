"""Agreement of two raters against SciPy, against formulas of the literature written out in full, and against laws."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from refusals import refuses
from scipy import stats

from codec_bench.apps.agreement.coefficients import (
    ALIKE,
    CERTAIN,
    FLAT,
    KAPPAS,
    NOTHING,
    OF_RATINGS,
    agreement_of,
    confusion,
    middle_ranks,
)
from codec_bench.stats.intervals import unit_codes


def both(reference, rater, codes=None, **more):
    return agreement_of(reference=np.asarray(reference), rater=np.asarray(rater), codes=codes, **more).coefficients


@pytest.fixture(params=["few values, many ties", "no ties", "one rater in halves"])
def pair(request, rng):
    true = rng.normal(2.5, 1.2, 83)
    x, y = true + rng.normal(0, 0.6, 83), true + rng.normal(0.3, 0.8, 83)
    if request.param == "no ties":
        return x, y
    x = np.clip(np.round(x), 0, 5)
    return x, np.clip(np.round(y), 0, 5) if request.param.startswith("few") else np.round(2 * y) / 2


def test_the_correlations_are_scipys(pair):
    result = both(*pair)
    assert result["spearman"].value == pytest.approx(stats.spearmanr(*pair).statistic, abs=1e-12)
    assert result["kendall"].value == pytest.approx(stats.kendalltau(*pair).statistic, abs=1e-12)
    assert result["pearson"].value == pytest.approx(stats.pearsonr(*pair).statistic, abs=1e-12)


def cohen(x, y, weight):
    """Weighted kappa and its large-sample error, item by item and value by value, as Fleiss, Cohen and Everitt (1969)
    write them for weights of agreement; here the weights are of disagreement, which changes kappa into its complement
    only."""
    values = sorted({*x.tolist(), *y.tolist()})
    n, index = len(x), {value: at for at, value in enumerate(values)}
    p = np.zeros((len(values), len(values)))
    for a, b in zip(x.tolist(), y.tolist()):
        p[index[a], index[b]] += 1 / n
    most = max(weight(a, b) for a in values for b in values)
    w = np.array([[1 - weight(a, b) / most for b in values] for a in values])
    rows, columns = p.sum(1), p.sum(0)
    seen, chance = (w * p).sum(), (w * np.outer(rows, columns)).sum()
    of_row, of_column = w @ columns, rows @ w
    total = 0.0
    for i, j in np.ndindex(*p.shape):
        total += p[i, j] * (w[i, j] * (1 - chance) - (of_row[i] + of_column[j]) * (1 - seen)) ** 2
    variance = (total - (seen * chance - 2 * chance + seen) ** 2) / (n * (1 - chance) ** 4)
    return (seen - chance) / (1 - chance), math.sqrt(variance)


WEIGHTS = {
    "kappa_quadratic": lambda a, b: (a - b) ** 2,
    "kappa_linear": lambda a, b: abs(a - b),
    "kappa": lambda a, b: float(a != b),
}


@pytest.mark.parametrize("name", KAPPAS)
def test_kappa_and_its_error_are_those_of_fleiss_cohen_and_everitt(pair, name):
    x, y = pair
    result, (value, error) = both(x, y)[name], cohen(x, y, WEIGHTS[name])
    assert result.value == pytest.approx(value, abs=1e-12)
    if value > 0.01:  # without ties, no two ratings are equal and unweighted kappa has no spread
        n = len(x)
        reach = stats.t.ppf(0.975, n - 1) * error * math.sqrt(n / (n - 1))
        assert (result.low, result.high) == pytest.approx((value - reach, min(1, value + reach)), abs=1e-9)


def test_kappa_of_a_published_table():
    """Table 1 of Fleiss, Cohen and Everitt (1969) has 200 items in 3 categories; the shares add up to kappa 0.429."""
    shares = np.array([[0.53, 0.05, 0.02], [0.11, 0.14, 0.05], [0.01, 0.06, 0.03]])
    counts = (200 * shares).round().astype(int)
    x = np.repeat([0, 0, 0, 1, 1, 1, 2, 2, 2], counts.ravel())
    y = np.repeat([0, 1, 2, 0, 1, 2, 0, 1, 2], counts.ravel())
    assert both(x, y)["kappa"].value == pytest.approx(0.429, abs=5e-4)


def excluded(x, y, codes, value):
    """The jackknife's error of a statistic, without each unit in turn."""
    values = [value(x[codes != unit], y[codes != unit]) for unit in np.unique(codes)]
    units = len(values)
    return math.sqrt((units - 1) / units * sum((v - np.mean(values)) ** 2 for v in values))


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("name", ["spearman", "kendall", "pearson", "kappa_quadratic"])
def test_the_error_of_a_coefficient_is_that_of_leaving_units_out(rng, name, clustered):
    """The infinitesimal jackknife and the jackknife differ by terms of one over the number of units."""
    units = 120
    codes = np.repeat(np.arange(units), 3) if clustered else np.arange(units)
    speaker = rng.normal(0, 1, units)[codes]
    x = np.clip(np.round(2.5 + speaker + rng.normal(0, 0.8, len(codes))), 0, 5)
    y = np.clip(np.round(2.5 + speaker + rng.normal(0, 0.8, len(codes))), 0, 5)
    scipys = {
        "spearman": lambda a, b: stats.spearmanr(a, b).statistic,
        "kendall": lambda a, b: stats.kendalltau(a, b).statistic,
        "pearson": lambda a, b: stats.pearsonr(a, b).statistic,
        "kappa_quadratic": lambda a, b: cohen(a, b, WEIGHTS[name])[0],
    }  # fmt: skip
    error = excluded(x, y, codes, scipys[name])
    result = both(x, y, codes)[name]
    t = stats.t.ppf(0.975, units - 1)
    if name == "kappa_quadratic":
        ours = (result.high - result.low) / 2 / t
    else:
        ours = (math.atanh(result.high) - math.atanh(result.low)) / 2 / t * (1 - result.value**2)
    assert ours == pytest.approx(error, rel=0.06)


def test_shares_and_the_difference(pair):
    x, y = pair
    result = both(x, y)
    assert result["exact"].value == pytest.approx(sum(a == b for a, b in zip(x, y)) / len(x), abs=1e-12)
    assert result["within_one"].value == pytest.approx(sum(abs(a - b) <= 1 for a, b in zip(x, y)) / len(x), abs=1e-12)
    theirs = stats.ttest_rel(y, x).confidence_interval()
    assert (result["difference"].low, result["difference"].high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_ratings_that_are_1_apart_as_decimals_are_within_one():
    assert both([3.3] * 3, [2.3] * 3)["within_one"].value == 1.0


@pytest.mark.parametrize("levels", [3, 40])
def test_concordant_pairs_are_counted_as_pair_by_pair(rng, levels):
    """Kendall's tau-b written out over all pairs of 60 items."""
    x, y = rng.integers(0, levels, 60), rng.integers(0, levels, 60)
    both_ways = of_x = of_y = 0
    for i, j in combinations(range(60), 2):
        a, b = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
        both_ways, of_x, of_y = both_ways + a * b, of_x + abs(a), of_y + abs(b)
    assert both(x, y)["kendall"].value == pytest.approx(both_ways / math.sqrt(of_x * of_y), abs=1e-12)


def test_neither_the_order_nor_the_names_of_units_change_anything(rng, pair):
    x, y = pair
    units = rng.integers(0, 30, len(x))
    order = rng.permutation(len(x))
    result = agreement_of(reference=x, rater=y, codes=units)
    again = agreement_of(reference=x[order], rater=y[order], codes=unit_codes([f"u{n}" for n in units[order]], len(x)))
    for name in OF_RATINGS:
        a, b = result.coefficients[name], again.coefficients[name]
        assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), abs=1e-9)


def test_a_rater_who_gives_every_item_the_same_has_no_correlation():
    result = both([3.0] * 20, [1.0, 2.0] * 10)
    assert all(result[name].value is None and result[name].note == FLAT for name in ("spearman", "kendall", "pearson"))
    assert result["kappa"].value == pytest.approx(0.0, abs=1e-12), "what chance gives"
    certain = both([3.0] * 20, [3.0] * 20)
    assert all(certain[name].note == CERTAIN for name in KAPPAS) and certain["exact"].value == 1.0


def test_intervals_hold_the_true_value_at_their_level(rng):
    """250 studies of 60 items, rated from 0 to 5 by two raters who both hear the same item
    with an error of their own.
    """

    def study(items):
        true = rng.normal(2.5, 1.3, items)
        return (np.clip(np.round(true + rng.normal(0, 1, items)), 0, 5) for _ in range(2))

    names = ("spearman", "kappa_quadratic")
    true, held = both(*study(200_000), names=names), dict.fromkeys(names, 0)
    for _ in range(250):
        result = both(*study(60), names=names)
        for name in names:
            held[name] += result[name].low <= true[name].value <= result[name].high
    assert all(0.88 <= count / 250 <= 0.99 for count in held.values()), held


def test_perfect_agreement_has_no_interval_of_a_correlation():
    result = both([1.0, 2, 3, 4, 5] * 6, [1.0, 2, 3, 4, 5] * 6)
    for name in ("spearman", "kendall", "pearson", *KAPPAS):
        assert (result[name].value, result[name].low, result[name].note) == (pytest.approx(1.0), None, ALIKE)
    assert result["exact"].low < 1, "Wilson's interval of a share does not claim certainty"


def test_few_units_have_values_and_no_intervals(rng):
    x = rng.integers(0, 6, 90).astype(float)
    result = both(x, np.clip(x + rng.integers(-1, 2, 90), 0, 5), codes=np.arange(90) % 29)
    for name in ("spearman", "kendall", "pearson", *KAPPAS):
        assert (
            result[name].value is not None
            and result[name].low is None
            and result[name].note.as_dict()
            == {"code": "too_few_units", "units": 29, "needed": 30, "purpose": "coefficient_interval"}
        )


def test_nothing_and_nonsense():
    assert all(c.note == NOTHING and c.value is None for c in both([], []).values())
    with refuses("ratings_shapes"):
        both([1.0, 2.0], [1.0])
    with refuses("rating_not_finite"):
        both([1.0, math.nan], [1.0, 2.0])


def test_confusion_and_ranks(pair):
    x, y = pair
    rows, columns, counts = confusion(x, y)
    assert counts.sum() == len(x)
    for i, j in ((0, 0), (-1, -1), (0, -1)):
        assert counts[i, j] == sum((x == rows[i]) & (y == columns[j]))
    assert middle_ranks(x) * len(x) + 0.5 == pytest.approx(stats.rankdata(x))

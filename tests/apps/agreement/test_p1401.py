"""P.1401: against plain loops over votes, NumPy's and SciPy's statistics, SciPy's optimiser and simulations with a
known truth, and what is refused and said.
"""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
from metric_runs import write_run
from refusals import Containing, refuses
from scipy import stats
from scipy.optimize import minimize

from codec_bench import agreement, metric_agreement
from codec_bench.apps.agreement.p1401 import OTHER_SCALE, Values, Votes, _rising_cubic, mapping_of, p1401
from codec_bench.apps.agreement.words import against_rows, fit_rows, plots, standard_csv, standard_notes
from codec_bench.messages import Diagnostic

SYSTEMS, CLIPS, RATERS = 12, 6, 9


def material(seed=0, noise=0.25):
    """Votes of people on what twelve systems made of six clips, and three metrics: of MOS, of another scale, and
    turned.
    """
    rng = np.random.default_rng(seed)
    quality = np.repeat(np.linspace(1.4, 4.6, SYSTEMS), CLIPS) + rng.normal(0, 0.2, SYSTEMS * CLIPS)
    votes = np.clip(np.round(quality[:, None] + rng.normal(0, 0.7, (len(quality), RATERS))), 1, 5)
    metrics = [
        Values("mos", np.clip(quality * 0.8 + 0.7 + rng.normal(0, noise, len(quality)), 1, 5), True, (1, 5)),
        Values("stoi", 1 / (1 + np.exp(-2 * (quality - 2.5))) + rng.normal(0, 0.03, len(quality)), True, (-1, 1)),
        Values("distance", 6 - quality + rng.normal(0, 2 * noise, len(quality)), False, (0, None)),
    ]
    files = [f"s{n // CLIPS}/{n % CLIPS}" for n in range(len(quality))]
    table = Votes(np.repeat(np.arange(len(quality)), RATERS), votes.ravel())
    return metrics, table, files, [name.split("/")[0] for name in files], votes


@pytest.fixture(scope="module")
def result():
    return p1401(*material()[:4])


def by_hand(groups, predicted, d):
    """rmse, rmse* and outlier ratio by plain loops over the votes of each group."""
    squares = beyond = outliers = 0.0
    for votes, value in zip(groups, predicted):
        m = len(votes)
        mean = sum(votes) / m
        sd = math.sqrt(sum((vote - mean) ** 2 for vote in votes) / (m - 1))
        ci = stats.t.ppf(0.975, m - 1) * sd / math.sqrt(m)
        error = abs(mean - value)
        squares += error**2
        beyond += max(0.0, error - ci) ** 2
        outliers += error > ci
    n = len(groups)
    return math.sqrt(squares / (n - d)), math.sqrt(beyond / (n - d)), outliers / n


@pytest.mark.parametrize("level", ["conditions", "files"])
@pytest.mark.parametrize(("mapping", "d"), [("none", 1), ("first", 2), ("third", 4)])
def test_errors_are_those_of_plain_loops_over_the_votes(result, level, mapping, d):
    metrics, _, _, _, votes = material()
    groups = votes.tolist() if level == "files" else votes.reshape(SYSTEMS, -1).tolist()
    for number, metric in enumerate(metrics):
        fit = next(one for one in result.fits if (one.metric, one.level) == (metric.name, level))
        mine = fit.of(mapping)
        if mapping == "none" and metric.name != "mos":
            assert mine.note == OTHER_SCALE and mine.rmse.value is None
            continue
        x = metric.values if level == "files" else metric.values.reshape(SYSTEMS, CLIPS).mean(axis=1)
        x = -x if number == 2 else x
        predicted = [sum(c * value**power for power, c in enumerate(mine.coefficients)) for value in x.tolist()]
        rmse, rmse_star, outliers = by_hand(groups, predicted, d)
        assert mine.rmse.value == pytest.approx(rmse, abs=1e-9)
        assert mine.rmse_star == pytest.approx(rmse_star, abs=1e-9)
        assert mine.outlier_ratio.value == pytest.approx(outliers, abs=1e-12)
        means = [sum(group) / len(group) for group in groups]
        assert mine.pearson.value == pytest.approx(stats.pearsonr(predicted, means).statistic, abs=1e-9)
        assert fit.spearman.value == pytest.approx(stats.spearmanr(x, means).statistic, abs=1e-9)
        degrees = len(groups) - d
        low, high = (rmse * math.sqrt(degrees / stats.chi2.ppf(q, degrees)) for q in (0.975, 0.025))
        assert (mine.rmse.low, mine.rmse.high) == pytest.approx((low, high), abs=1e-9)


def test_the_figures_are_those_of_nisqas_evaluation_code():
    """What calc_rmse, calc_rmse_star, fit_first_order and pearsonr of gabrielmittag/NISQA (fe84f0f2) give for these
    votes; d is ours (1, 2).
    """
    rng = np.random.default_rng(7)
    quality = rng.uniform(1.3, 4.7, 40)
    votes = np.clip(np.round(quality[:, None] + rng.normal(0, 0.8, (40, 8))), 1, 5)
    text = np.clip(0.7 * quality + 1 + rng.normal(0, 0.3, 40), 1, 5)
    names = [str(n) for n in range(40)]
    (_, fit) = p1401(
        [Values("m", text, True, (1, 5))], Votes(np.repeat(np.arange(40), 8), votes.ravel()), names, names
    ).fits
    figures = [getattr(fit.of(mapping), name) for mapping in ("none", "first") for name in ("rmse", "rmse_star")]
    values = [one if isinstance(one, float) else one.value for one in figures]
    assert values == pytest.approx(
        [0.4716417921756981, 0.1617576690504883, 0.43777251990943306, 0.15920589134845237], abs=1e-9
    )
    assert fit.of("first").coefficients == pytest.approx((-0.42207941734738647, 1.082517093168065), abs=1e-9)
    assert fit.of("first").pearson.value == pytest.approx(0.8951596636959689, abs=1e-9)


def test_mappings_are_the_least_squares_of_numpy_where_these_rise(result):
    metrics, _, _, _, votes = material()
    mos, x = votes.mean(axis=1), metrics[0].values
    fit = next(one for one in result.fits if (one.metric, one.level) == ("mos", "files"))
    for mapping, order in (("first", 1), ("third", 3)):
        free = np.polynomial.Polynomial.fit(x, mos, order).convert()
        mine = np.array(fit.of(mapping).coefficients)
        fitted = np.vander(x, order + 1, increasing=True) @ mine
        slopes = np.polynomial.polynomial.polyval(np.linspace(x.min(), x.max(), 99), mine[1:] * np.arange(1, order + 1))
        assert slopes.min() > -1e-9
        if (
            np.polynomial.polynomial.polyval(np.linspace(x.min(), x.max(), 99), free.coef[1:] * np.arange(1, order + 1))
            >= 0
        ).all():
            assert fitted == pytest.approx(free(x), abs=1e-9)


def squares_of(t, y, parameters):
    """The squared errors of a cubic whose slope is (a + b t)^2 + c^2 (1 - t^2), as every slope that is nowhere below 0
    can be written.
    """
    start, a, b, c = parameters
    slope = np.array([a * a + c * c, 2 * a * b, b * b - c * c])
    cubic = np.concatenate([[start], slope / [1, 2, 3]])
    return float(((y - np.polynomial.polynomial.polyval(t, cubic)) ** 2).sum())


@pytest.mark.parametrize(
    "truth",
    [
        lambda t: t**2,
        lambda t: -t,
        lambda t: t**3 - 0.8 * t,
        lambda t: np.tanh(5 * t),
        lambda t: 0 * t,
        lambda t: -(t**2),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_cubic_that_would_fall_is_the_best_that_does_not(truth, seed):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(-1, 1, 24))
    t[[0, -1]] = -1, 1
    y = truth(t) + rng.normal(0, 0.2, 24)
    mine = _rising_cubic(t, y)
    slopes = np.polynomial.polynomial.polyval(np.linspace(-1, 1, 2001), mine[1:] * [1, 2, 3])
    assert slopes.min() > -1e-7
    result = float(((y - np.polynomial.polynomial.polyval(t, mine)) ** 2).sum())
    others = [
        minimize(lambda p: squares_of(t, y, p), rng.normal(0, 1, 4), method="BFGS", options={"gtol": 1e-10}).fun
        for _ in range(6)
    ]
    assert result <= min(others) * (1 + 1e-9)
    assert result == pytest.approx(min(others), rel=1e-5)


def test_a_line_that_would_fall_is_level():
    assert mapping_of(np.arange(5.0), -np.arange(5.0), "first") == pytest.approx([-2.0, 0.0], abs=1e-12)


def test_two_metrics_are_compared_by_the_tests_of_the_standard(result):
    metrics, _, _, _, votes = material()
    one = next(
        c for c in result.compared if (c.first, c.second, c.level, c.mapping) == ("mos", "distance", "files", "first")
    )
    n, fits = one.n, {f.metric: f.of("first") for f in result.fits if f.level == "files"}
    a, b = fits["mos"], fits["distance"]
    assert (n, one.pairs) == (SYSTEMS * CLIPS, 3)
    for ratio, p, x, y in (
        (one.f_rmse, one.p_rmse, a.rmse.value, b.rmse.value),
        (one.f_rmse_star, one.p_rmse_star, a.rmse_star, b.rmse_star),
    ):
        assert ratio == pytest.approx(max(x, y) ** 2 / min(x, y) ** 2, abs=1e-9)
        assert p == pytest.approx(min(1, 3 * stats.f.sf(ratio, n - 2, n - 2)), abs=1e-9)
    z = (math.atanh(a.pearson.value) - math.atanh(b.pearson.value)) / math.sqrt(1 / (n - 3) + 1 / (n - 3))
    assert one.z_pearson == pytest.approx(z, abs=1e-9)
    assert one.p_pearson == pytest.approx(min(1, 3 * 2 * stats.norm.sf(abs(z))), abs=1e-9)
    mos, x, y = votes.mean(axis=1), metrics[0].values, -metrics[2].values
    r, s, between = (stats.pearsonr(*pair).statistic for pair in ((x, mos), (y, mos), (x, y)))
    determinant = np.linalg.det([[1, r, s], [r, 1, between], [s, between, 1]])
    below = 2 * (n - 1) / (n - 3) * determinant + (r + s) ** 2 / 4 * (1 - between) ** 3
    p = 2 * stats.t.sf(abs(r - s) * math.sqrt((n - 1) * (1 + between) / below), n - 3)
    assert one.p_dependent == pytest.approx(min(1, 3 * p), abs=1e-9)


@pytest.mark.parametrize(("apart", "least", "most"), [(1.0, 0.0, 0.09), (3.0, 0.7, 1.0)])
def test_the_tests_find_a_metric_that_errs_more_and_hold_their_size(monkeypatch, apart, least, most):
    for name, value in (("LEVELS", ("files",)), ("DEGREES", {"first": 2})):  # the row that is read alone
        monkeypatch.setattr(f"codec_bench.apps.agreement.p1401.{name}", value)
    by_name = {"f": 0, "williams": 0}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        quality = np.linspace(1.5, 4.5, 40)
        votes = Votes(np.repeat(np.arange(40), 30), (quality[:, None] + rng.normal(0, 0.6, (40, 30))).ravel())
        one, other = (
            Values(name, quality + rng.normal(0, sd, 40), True, (None, None))
            for name, sd in (("one", 0.25), ("other", 0.25 * apart))
        )  # fmt: skip
        names = [str(n) for n in range(40)]
        (row,) = p1401([one, other], votes, names, names).compared
        by_name["f"] += row.p_rmse < 0.025  # the greater over the smaller, so both sides count
        by_name["williams"] += row.p_dependent < 0.05
    assert all(least <= count / 60 <= most for count in by_name.values()), by_name


def test_with_many_votes_the_errors_are_those_of_the_truth():
    rng = np.random.default_rng(5)
    quality = np.linspace(1.5, 4.5, 400)
    votes = Votes(np.repeat(np.arange(400), 500), (quality[:, None] + rng.normal(0, 0.7, (400, 500))).ravel())
    names = [str(n) for n in range(400)]
    scale = (1, 5)  # beyond which a few of these votes, which are no whole numbers, lie
    (fit, _) = p1401([Values("m", quality + rng.normal(0, 0.3, 400), True, (1, 5))], votes, names, names, scale).fits
    mine = fit.of("none")
    assert mine.rmse.value == pytest.approx(0.3, abs=0.03) and mine.rmse.low < 0.3 < mine.rmse.high
    assert mine.outlier_ratio.value > 0.75
    exact = p1401([Values("m", quality, True, (1, 5))], votes, names, names, scale).fits[0].of("none")
    assert exact.outlier_ratio.value == pytest.approx(0.05, abs=0.03) and exact.rmse_star < 0.02


def test_too_few_conditions_are_reported_and_not_computed():
    votes = Votes(np.repeat(np.arange(6), 4), np.tile([2.0, 3, 4, 4], 6))
    small = p1401([Values("m", np.arange(6.0))], votes, list("abcdef"), list("xxyyzz"))
    over = {fit.level: fit for fit in small.fits}
    assert over["conditions"].n == 3 and all(one.note for one in over["conditions"].mapped)
    assert over["conditions"].of("first").note == Diagnostic("few_voted", count=3, of="conditions", needed=4)
    assert (
        over["conditions"].of("third").note.as_dict()
        == {"code": "few_voted", "count": 3, "of": "conditions", "needed": 5}
        and over["conditions"].spearman.value is None
    )
    assert "3 conditions" in " ".join(standard_notes(small)) and not small.compared


def test_single_votes_and_missing_values_are_omitted_and_counted():
    metrics, votes, files, conditions, _ = material()
    values = metrics[0].values.copy()
    values[:4] = np.nan
    once = votes.file != 5
    once[np.flatnonzero(~once)[0]] = True
    fits = p1401(
        [metrics[0]._replace(values=values)], Votes(votes.file[once], votes.vote[once]), files, conditions
    ).fits
    assert [(fit.level, fit.n, fit.excluded) for fit in fits] == [("conditions", 12, 0), ("files", 67, 5)]
    without = (
        np.isin(votes.file, np.arange(4), invert=True)
        & (conditions_of := np.array(conditions)[votes.file] == "s0")
        & once
    )
    assert conditions_of.any() and fits[0].points.mos[0] == pytest.approx(votes.vote[without].mean())


# ---- as the commands give it ----


@pytest.fixture
def run(tmp_path):
    """A run of two metrics of eight systems and a file of votes on them."""
    rng = np.random.default_rng(3)
    systems = tuple("abcdefgh")
    quality = np.linspace(1.6, 4.4, 8)[:, None] + rng.normal(0, 0.2, (8, 4))
    columns = {
        "mos": quality + rng.normal(0, 0.2, quality.shape),
        "distance": 5 - quality + rng.normal(0, 0.6, quality.shape),
    }
    folder = write_run(tmp_path / "run", columns, systems=systems, of_speaker=1)
    rows = ["id,system,rater,score"]
    for rater in range(7):
        options = np.clip(np.round(quality + rng.normal(0, 0.6, quality.shape)), 1, 5)
        rows += [f"s{n:03d},{name},r{rater},{options[k, n]:g}" for k, name in enumerate(systems) for n in range(4)]
    (tmp_path / "votes.csv").write_text("\n".join(rows))
    return folder, tmp_path / "votes.csv"


def test_both_commands_give_the_same_figures(run):
    folder, votes = run
    one = metric_agreement(runs=folder, human=votes).standard
    other = agreement(runs=folder, human=votes, metrics="mos,distance", scale=(1, 5)).standard
    key = lambda fit: (fit.metric, fit.level)  # noqa: E731
    for a, b in zip(sorted(one.fits, key=key), sorted(other.fits, key=key)):
        assert key(a) == key(b) and a.n == b.n == (8 if a.level == "conditions" else 32)
        assert a.of("third").rmse_star == pytest.approx(b.of("third").rmse_star, abs=1e-9)
    assert one.fits[1].turned != one.fits[0].turned
    assert agreement(runs=folder, human=votes, metrics="mos").standard.compared == ()


def test_table_page_and_export_hold_the_figures(command, run):
    folder, votes = run
    code, out, err = command("agreement", folder, "--with", votes, "--metric", "mos,distance", "--scale", "1-5")
    assert code == 0, err
    for text in (
        "against the votes, by ITU-T P.1401",
        "RMSE*",
        "outlier ratio",
        "cubic",
        "less is better, so the sign is turned",
    ):
        assert text in out, text
    page = (folder / "agreement.html").read_text()
    assert page.count("<figure>") == 4 and page.count("<polyline") == 4 and "a: mos" in page
    rows = list(csv.DictReader((folder / "agreement-p1401.csv").open()))
    fits = [row for row in rows if not row["second"]]
    assert len(fits) == 2 * 2 * 3 and [row for row in rows if row["second"]]
    code, out, _ = command("metrics", "--agree", folder, "--with", votes, "--format", "json")
    messages = json.loads(out)["p1401"]
    first = next(one for one in messages["fits"] if (one["metric"], one["level"]) == ("mos", "conditions"))
    line = next(row for row in fits if (row["metric"], row["level"], row["mapping"]) == ("mos", "conditions", "third"))
    assert (
        float(line["rmse_star"]) == pytest.approx(first["mapped"][2]["rmse_star"], abs=1e-9)
        and len(first["points"]) == 8
    )
    code, out, _ = command("metrics", "--agree", folder, "--with", votes)
    assert code == 0 and "against the votes, by ITU-T P.1401" in out
    code, out, _ = command("metrics", "--agree", folder)
    assert "P.1401" not in out


def test_ratings_that_match_nothing_are_one_sentence(run, tmp_path):
    folder, _ = run
    (tmp_path / "other.csv").write_text("id,system,rater,score\ns000,nobody,r1,3\ns000,nobody,r2,3\nx,a,r1,3\n")
    for give in (
        lambda: metric_agreement(runs=folder, human=tmp_path / "other.csv"),
        lambda: agreement(runs=folder, human=tmp_path / "other.csv", metrics="mos"),
    ):
        with refuses("no_usable_rating", reasons=Containing("1 unknown id")) as caught:
            give()
        assert "2 unknown system (such as" in caught.value.message.parameters["reasons"]


def test_a_metric_of_another_scale_has_errors_after_a_mapping_alone(result):
    (note,) = (note for note in standard_notes(result) if OTHER_SCALE in note and "conditions" in note)
    assert "stoi" in note and "distance" in note
    heads, rows = fit_rows(result)
    assert all(len(row) == len(heads) for row in rows) and not [r for r in rows if r[0] == "stoi" and r[4] == "none"]
    heads, rows = against_rows(result)
    assert len(rows) == 6 and all(len(row) == len(heads) for row in rows)
    assert {plot["mapping"] for plot in plots(result)} == {"cubic"}
    table = list(csv.DictReader(io.StringIO(standard_csv(result))))
    assert len(table) == 18 + len(result.compared)


@pytest.mark.parametrize(
    "votes,ends,has_error",
    [([1, 5], (1, 4.64), True), ([0, 5], (1, 4.64), True), ([0, 9], (1, 4.64), False), ([0, 100], (1, 4.64), False),
        ([2, 5], (0, 5), False)],
)  # fmt: skip
def test_an_error_without_a_mapping_needs_the_scale_of_the_votes(votes, ends, has_error):
    text = np.repeat(np.linspace(*votes, 8), 4)
    held = Votes(np.repeat(np.arange(32), 2), np.repeat(text, 2))
    names = [str(n) for n in range(32)]
    for fit in p1401([Values("m", np.linspace(*ends, 32), True, ends)], held, names, names).fits:
        assert (fit.of("none").note is None) is has_error and fit.of("first").note is None


@pytest.mark.parametrize("error", [0.0, 2.0])
def test_the_interval_of_an_outlier_ratio_of_0_or_1_is_wilsons(error):
    n, votes = 20, np.array([2.9, 3.0, 3.1])
    centres = np.linspace(-1, 1, n)
    names = [str(k) for k in range(n)]
    options = Votes(np.repeat(np.arange(n), 3), (centres[:, None] + votes).ravel())
    (fit, _) = p1401([Values("m", 3 + centres + error, True, (1, 6))], options, names, names, (1, 6)).fits
    ratio, z2 = fit.of("none").outlier_ratio, stats.norm.ppf(0.975) ** 2
    low, high = (0, z2 / (n + z2)) if error == 0 else (n / (n + z2), 1)
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((float(error > 0), low, high), abs=1e-12)

"""The agreement of metrics over records of the test: against SciPy and pandas, and notes on excluded items."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from metric_runs import SYSTEMS, write_run
from refusals import refuses

from codec_bench import metric_agreement
from codec_bench.apps.agreement.metric_correlations import COEFFICIENTS

SAMPLES = 120


@pytest.fixture(scope="module")
def columns():
    """Two metrics that say the same of a truth, a distance that turns it, one that knows nothing of it, and gaps."""
    rng = np.random.default_rng(4)
    truth = rng.normal(np.arange(4)[:, None], 1.0, (4, SAMPLES))
    built = {
        "noise": rng.standard_normal(truth.shape),
        "mos": truth + 0.1 * rng.standard_normal(truth.shape),
        "distance": np.exp(-truth - 1.2 * rng.standard_normal(truth.shape)),
        "mos_too": truth + 0.1 * rng.standard_normal(truth.shape),
    }
    built["mos"][0, :7] = np.nan
    built["noise"][1, 5:9] = np.nan
    for column in built.values():
        column[2, 11] = np.inf
    return built


@pytest.fixture(scope="module")
def run(columns, tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "run", columns)


def test_values_are_those_of_pandas_with_distances_turned(run, columns):
    outcome = metric_agreement(runs=run)
    frame = pd.DataFrame({name: column.ravel() for name, column in columns.items()}).replace(np.inf, np.nan)
    frame["distance"] *= -1
    for pair in outcome.pairs:
        both = frame[[pair.first, pair.second]].dropna()
        assert (pair.items.n, pair.excluded) == (len(both), frame.shape[0] - len(both))
        assert pair.items.units == 40, "samples of one speaker, and what four systems made of one, are one unit"
        for name in COEFFICIENTS:
            expected = both.corr(method=name).iloc[0, 1]
            mine = pair.items.coefficients[name]
            assert mine.value == pytest.approx(expected, abs=1e-12)
            assert mine.low < expected < mine.high
    means = frame.assign(system=np.repeat(SYSTEMS, SAMPLES)).groupby("system").mean()
    pair = outcome.pair("mos", "distance")
    assert pair.systems == 4 and pair.of_systems["pearson"].value == pytest.approx(
        means[["mos", "distance"]].corr().iloc[0, 1]
    )
    assert pair.of_systems["spearman"].value == pytest.approx(1.0)
    assert pair.of_systems["pearson"].low is None and pair.of_systems["pearson"].note.as_dict() == {
        "code": "few_rows_for_interval",
        "rows": 4,
        "of": "systems",
        "needed": 10,
    }
    assert (
        pair.of_systems["pearson"].note.code == "few_rows_for_interval"
        and pair.of_systems["pearson"].note.parameters["of"] == "systems"
    )


def test_a_known_correlation_lies_in_its_interval(tmp_path):
    rng, held = np.random.default_rng(1), 0
    for number in range(20):
        x, y = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 60).T
        folder = write_run(tmp_path / str(number), {"mos": x[None], "mos_too": y[None]}, systems=("a",), of_speaker=1)
        (pair,) = metric_agreement(runs=folder).pairs
        pearson = pair.items.coefficients["pearson"]
        held += pearson.low < 0.7 < pearson.high
        assert pair.systems == 1 and pair.of_systems["pearson"].value is None
    assert held >= 17


def test_metrics_that_state_the_same_stand_together(run):
    outcome = metric_agreement(runs=run, least=0.9)
    assert {frozenset(cluster) for cluster in outcome.clusters} == {
        frozenset({"mos", "mos_too"}), frozenset({"distance"}), frozenset({"noise"}),
    }  # fmt: skip
    assert [name for cluster in outcome.clusters for name in cluster] == [column.name for column in outcome.columns]
    assert [pair.is_same for pair in outcome.pairs].count(True) == 1 and outcome.pair("mos_too", "mos").is_same
    loose = metric_agreement(runs=run, least=0.5)
    assert {"mos", "mos_too", "distance"} in [set(cluster) for cluster in loose.clusters]
    options = {column.name: (column.better, column.n, column.without) for column in outcome.columns}
    assert options["mos"] == ("higher", 480 - 8, 8) and options["distance"] == ("lower", 479, 1)


def test_metrics_may_be_in_different_runs_of_the_same_data(columns, run, tmp_path):
    split = [write_run(tmp_path / name, {name: columns[name]}) for name in ("mos", "distance")]
    (apart,), complete = metric_agreement(runs=split).pairs, metric_agreement(runs=run).pair("mos", "distance")
    assert (apart.items.n, apart.excluded, apart.items.units) == (
        complete.items.n,
        complete.excluded,
        complete.items.units,
    )
    for mine, theirs in (
        (apart.items.coefficients, complete.items.coefficients),
        (apart.of_systems, complete.of_systems),
    ):
        assert mine["spearman"].value == pytest.approx(theirs["spearman"].value)
    other = write_run(tmp_path / "other", {"mos": columns["mos"]}, {"mos": "mos/2"})
    with refuses("metric_of_two_protocols", metric="mos", protocol="mos/2"):
        metric_agreement(runs=[run, other])


def write_ratings(path, columns, head="id,rater,system,score,kind,status"):
    rng = np.random.default_rng(9)
    lines = [
        f"s{n:03d},{rater},{system},{40 + 7 * columns['mos_too'][row, n] + rng.normal(0, 3):.0f},mushra,used"
        for row, system in enumerate(SYSTEMS)
        for n in range(0, 60)
        for rater in ("ann", "bob")
        if np.isfinite(columns["mos_too"][row, n])
    ]
    path.write_text("\n".join([head, *lines, "s001,ann,reference,99,mushra,used", "s001,eve,a,3,mushra,screened", ""]))
    return path


def test_listeners_are_one_more_column(run, columns, tmp_path):
    path = write_ratings(tmp_path / "ratings.csv", columns)
    outcome = metric_agreement(runs=run, human=path, metrics="mos,distance,noise")
    rated = pd.read_csv(path)
    rated = rated[(rated.status == "used") & rated.system.isin(SYSTEMS)].groupby(["system", "id"]).score.mean()
    mos = pd.Series(
        columns["mos"].ravel(), pd.MultiIndex.from_product([SYSTEMS, [f"s{n:03d}" for n in range(SAMPLES)]],
            names=["system", "id"])
    ).replace(np.inf, np.nan)  # fmt: skip
    both = pd.concat([rated, mos], axis=1, join="inner").dropna()
    pair = outcome.pair("mos", "listeners")
    assert pair.items.n == len(both) and pair.items.coefficients["spearman"].value == pytest.approx(
        both.corr("spearman").iloc[0, 1]
    )
    assert pair.systems == 4 and pair.of_systems["spearman"].value == pytest.approx(1.0)
    assert pair.excluded == rated.size - len(both), "items that nobody rated are not counted"
    assert {(one["what"], one["count"]) for one in outcome.problems} == {
        ("unknown system", 1),
        ("does not count by its status", 1),
    }


def test_what_is_wrong_is_reported(run, columns, tmp_path):
    with refuses("too_few_columns", known="mos"):
        metric_agreement(runs=run, metrics="mos")
    with refuses("unknown_name", hint="did you mean mos"):
        metric_agreement(runs=run, metrics="moss,noise")
    with refuses("correlation_limit"):
        metric_agreement(runs=run, least=90)
    path = tmp_path / "ratings.csv"
    path.write_text("id,rater,system,other,score\ns001,ann,a,b,A\n")
    with refuses("ratings_of_no_sound"):
        metric_agreement(runs=run, human=path)
    path.write_text("id,rater,score\ns001,ann,4\n")
    with refuses("no_usable_rating", reasons="1 unknown system (such as line 2: s001 of no system)"):
        metric_agreement(runs=run, human=path)


def test_the_command_prints_a_table_json_and_csv(command, run, columns, tmp_path):
    code, out, err = command("metrics", "--agree", run)
    assert (code, err) == (0, "")
    for text in (
        "Spearman over items",
        "say the same (from 0.9): ",
        "an interval needs at least 10",
        "Pearson over systems",
    ):
        assert text in out, text
    code, out, _ = command("metrics", "--agree", run, "--format", "json", "--least", "0.5")
    document = json.loads(out)
    assert code == 0 and document["least"] == 0.5 and len(document["pairs"]) == 6
    code, out, err = command(
        "metrics", run, "--agree", "--format", "csv", "--with", write_ratings(tmp_path / "r.csv", columns)
    )
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and len(rows) == 10 and "1 unknown system" in err
    complete = {(row["first"], row["second"]): row for row in rows}
    expected = metric_agreement(runs=run).pair("mos", "mos_too").items.coefficients["spearman"]
    (row,) = (row for names, row in complete.items() if set(names) == {"mos", "mos_too"})
    assert float(row["spearman_items"]) == expected.value and float(row["spearman_items_low"]) == expected.low
    assert row["same"] == "1" and row["spearman_systems_low"] == ""


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["run"], "codec-bench metrics --agree RUN"),
        (["--agree", "nowhere"], "is not a run folder and holds none"),
        (["--agree", "run", "--format", "xml"], "no format called 'xml'"),
        (["--agree", "run", "--with", "no.csv"], "'no.csv' cannot be read"),
    ],
)
def test_what_is_typed_wrong_is_one_sentence(command, run, typed, message):
    code, out, err = command("metrics", *(run if word == "run" else word for word in typed))
    assert (code, out) == (2, "") and message in err and "Traceback" not in err

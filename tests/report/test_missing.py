"""Systems that lack values for different samples: the note next to their own values, the same in every table."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from codec_bench.report.numbers import missing_notes
from codec_bench.report.page import write_page
from codec_bench.report.paper import export_summary, summary_latex, summary_markdown
from codec_bench.report.table import summary_notes
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Standing
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

ITEMS = 400


@pytest.fixture
def hard(tmp_path, rng):
    """A run of systems of equal quality, of which one fails on hard samples, and one on so many that it is not
    compared; the truth.
    """
    ease = rng.uniform(0, 1, ITEMS)
    scores = {name: np.clip(ease + rng.normal(0, 0.02, ITEMS), 0, 1) for name in ("steady", "fragile", "broken")}
    fails = {"steady": ease < 0, "fragile": (ease < 0.1) & (rng.random(ITEMS) < 0.8), "broken": ease < 0.3}
    facts = {
        "protocol": "m/1",
        "kind": "pair",
        "unit": "",
        "higher_is_better": True,
        "aggregate": "mean",
        "range": [0.0, 1.0],
    }
    writer = RunWriter(tmp_path / "run", {})
    writer.begin({name: {} for name in scores}, {"m": facts}, [Sample(f"s{n:03}", None) for n in range(ITEMS)])
    for name, values in scores.items():
        for n, value in enumerate(values):
            dropped = fails[name][n]
            score = (
                Score.failed("it gave up", "m/1").counting_wrong(Score.ok(0.0, "m/1"))
                if dropped
                else Score.ok(float(value), "m/1")
            )
            writer.write(
                [
                    (
                        n,
                        ItemRecord(
                            name,
                            f"s{n:03}",
                            "failed" if dropped else "ok",
                            "it gave up" if dropped else None,
                            {"m": score},
                        ),
                    )
                ]
            )
    writer.set_meta(state="finished")
    writer.close()
    return (
        Run(tmp_path / "run"),
        {name: float(values.mean()) for name, values in scores.items()},
        ~fails["fragile"],
        scores,
    )


def test_the_truth_lies_between_the_own_value_and_that_with_failures_as_the_worst(hard):
    run, truth, retained, scores = hard
    steady, fragile, broken = (of.metrics["m"] for of in summarise(run).systems.values())
    # Its own interval does not hold what it would have over all samples: what fails is not missing by chance.
    assert broken.ci95[0] > truth["broken"] and not broken.standing.compared
    for name, entry in (("fragile", fragile), ("broken", broken)):
        assert entry.counting_failures.of_all < truth[name] < entry.value and entry.counting_failures.n == ITEMS
    assert steady.counting_failures.value == steady.value
    # Over the samples that both have, the two are as far apart as they are over all.
    assert steady.common.n == retained.sum() and fragile.common is None
    assert steady.common.value == pytest.approx(scores["steady"][retained].mean())
    assert abs(steady.common.value - fragile.value) < 0.01 < abs(steady.value - fragile.value)


def test_terminal_paper_page_and_export_report_the_same(hard, tmp_path):
    run, _, retained, _ = hard
    summary = summarise(run)
    steady, fragile, broken = (of.metrics["m"] for of in summary.systems.values())
    details = (
        f"m: systems lack values for different samples; over the {retained.sum()} that all have: steady "
        f"{steady.common.value:.3f}, "
        f"fragile {fragile.value:.3f}; with failures as the worst value: steady {steady.value:.3f}, "
        f"fragile {fragile.counting_failures.value:.3f}, broken {broken.counting_failures.value:.3f}"
    )
    assert details in summary_notes(summary)
    assert details in summary_markdown(summary) and details in summary_latex(summary)
    write_page([run], tmp_path / "page.html")
    assert details in (tmp_path / "page.html").read_text("utf-8")
    out = io.StringIO()
    export_summary(run, "csv", out)
    rows = {row["system"]: row for row in csv.DictReader(io.StringIO(out.getvalue()))}
    assert float(rows["steady"]["common"]) == steady.common.value and rows["steady"]["common_n"] == str(retained.sum())
    assert (
        float(rows["fragile"]["counting_failures"]) == fragile.counting_failures.value
        and rows["fragile"]["common"] == ""
    )


def test_nothing_is_reported_where_all_systems_have_the_same_samples(hard, tmp_path):
    writer = RunWriter(tmp_path / "whole", {})
    facts = {"protocol": "m/1", "kind": "pair", "unit": "", "higher_is_better": True, "aggregate": "mean"}
    writer.begin({"a": {}, "b": {}}, {"m": facts}, [Sample(f"s{n}", None) for n in range(5)])
    for name in ("a", "b"):
        writer.write([(n, ItemRecord(name, f"s{n}", "ok", None, {"m": Score.ok(0.1 * n, "m/1")})) for n in range(5)])
    writer.close()
    assert not any("different samples" in note for note in summary_notes(summarise(Run(tmp_path / "whole")), None))


def test_where_nobody_is_compared_the_samples_that_all_have_are_not_spoken_of(hard):
    entries = [
        (name, "m", replace(of.metrics["m"], standing=Standing(best=False, compared=False)))
        for name, of in summarise(hard[0]).systems.items()
    ]
    (details,) = missing_notes(entries)
    assert details.startswith("m: systems lack values for different samples; with failures as the worst value: steady")

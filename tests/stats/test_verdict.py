"""Who is the best in a metric, and who is not compared: on runs as they are recorded, and against tests of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from compared_runs import FINDING, SUSPECT, recorded
from scipy.stats import ttest_rel

from codec_bench.audio.level_checks import NO_SPEECH, SILENT_ESTIMATE
from codec_bench.benchmark.judge.spoken_answers import NO_SPOKEN_ANSWER
from codec_bench.report import numbers
from codec_bench.report.paper import COLUMNS, summary_html, summary_latex, summary_markdown, summary_rows
from codec_bench.report.table import summary_notes
from codec_bench.stats.breakdown import MetricParts
from codec_bench.stats.intervals import ratios
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Standing, Summary
from codec_bench.stats.verdict import verdict

ITEMS = 19


def column(summary: Summary, metric: str = "m"):
    return {name: system.metrics[metric] for name, system in summary.systems.items() if metric in system.metrics}


def best(summary: Summary) -> set[str]:
    return {name for name, entry in column(summary).items() if numbers.is_best(entry)}


def alike(summary: Summary) -> set[str]:
    return {name for name, entry in column(summary).items() if numbers.is_alike(entry)}


def bold(summary: Summary) -> list[int]:
    """How many values are bold in each format for papers."""
    built = summary_markdown(summary), summary_latex(summary), summary_html(summary)
    return [text.count(mark) for text, mark in zip(built, (" **", r"\textbf{", "<b>"))]


@pytest.mark.parametrize("higher", [True, False])
def test_a_paired_test_says_what_is_not_distinguishable_from_the_best(tmp_path, higher):
    rng = np.random.default_rng(3)
    first = rng.normal(3.25, 0.5, 40)
    second = first + rng.normal(0.0, 0.02, 40) + 0.001
    third = first - 0.05 + rng.normal(0.0, 0.02, 40)
    assert ttest_rel(first, second).pvalue > 0.2 and ttest_rel(first, third).pvalue < 1e-6
    sign = 1 if higher else -1
    run = recorded(
        tmp_path / "run", {"one": sign * first, "other": sign * second, "worse": sign * third}, higher=higher
    )
    summary = summarise(run)
    ends = {name: entry.ci95 for name, entry in column(summary).items()}
    assert ends["one"][0] < ends["worse"][1] and ends["worse"][0] < ends["one"][1], "their intervals overlap widely"
    top = max(("one", "other"), key=lambda name: sign * column(summary)[name].value)
    assert best(summary) == {top} and alike(summary) == {"one", "other"} - {top}
    assert bold(summary) == [1, 1, 1]
    assert [text.count("≈") for text in (summary_markdown(summary), summary_html(summary))] == [
        2,
        2,
    ]  # and in the notes


def test_speakers_and_not_items_distinguish_systems(tmp_path):
    """Seven speakers of six items each: over items the difference would stand out, over speakers it does not."""
    rng = np.random.default_rng(0)
    speakers = [f"p{n // 6}" for n in range(42)]
    first = rng.normal(3.0, 0.1, 42)
    second = first + np.repeat([0.7, -0.1, 0.02, 0.04, -0.2, 0.3, -0.1], 6) + rng.normal(0, 0.01, 42)
    assert ttest_rel(first, second).pvalue < 0.05
    over_speakers = summarise(recorded(tmp_path / "by", {"a": first, "b": second}, speakers=speakers))
    assert best(over_speakers) == {"b"} and alike(over_speakers) == {"a"}
    over_items = summarise(recorded(tmp_path / "items", {"a": first, "b": second}))
    assert best(over_items) == {"b"} and not alike(over_items)


def test_with_few_units_nothing_is_reported_of_the_others(tmp_path):
    """The best value is the best value; what five units say of the rest is a note."""
    values = {str(k): np.array([3.0, 3.1, 2.9, 3.2, 3.0]) + 0.01 * k for k in range(3)}
    summary = summarise(recorded(tmp_path / "run", values))
    assert best(summary) == {"2"} and not alike(summary)
    assert column(summary)["0"].standing.why.code == "too_few_to_compare"


@pytest.mark.parametrize("units, systems", [(6, 3), (8, 5), (7, 14)])
def test_few_units_distinguish_systems_that_lie_far_apart(tmp_path, units, systems):
    rng = np.random.default_rng(units)
    shared = rng.normal(3.0, 0.5, units)
    values = {str(k): shared + 0.3 * k + rng.normal(0, 0.02, units) for k in range(systems)}
    summary = summarise(recorded(tmp_path / "run", values))
    assert best(summary) == {str(systems - 1)} and not alike(summary)


def test_a_second_system_that_equals_the_best_is_seldom_distinguished():
    rng = np.random.default_rng(5)
    numbers, units = list(range(50)), [""] * 50

    def is_distinguished():
        rivals = {
            str(k): MetricParts(numbers, np.stack([rng.normal(3, 1, 50), np.ones(50)], 1), units, {}, ratios, {}, False)
            for k in range(2)
        }
        return not verdict(rivals, (), True).tied

    assert np.mean([is_distinguished() for _ in range(400)]) <= 0.075


def test_a_suspect_system_is_marked_everywhere_and_never_the_best(tmp_path):
    good = np.linspace(0.5, 0.9, ITEMS)
    run = recorded(
        tmp_path / "run",
        {"side": good + 0.2, "plain": good, "worse": good - 0.1 - 0.001 * np.arange(ITEMS)},
        checks=SUSPECT,
    )
    summary = summarise(run)
    assert best(summary) == {"plain"}
    role = column(summary)["side"].standing
    assert (role.best, role.compared) == (False, False)
    for text in (summary_markdown(summary), summary_latex(summary), summary_html(summary)):
        assert "side (suspect)" in text
        assert "side: side information is suspect: its codes carry 3.22 kbit/s" in text, (
            "the finding is below the table"
        )
        assert "side is not compared: its checks found something" in text
    assert bold(summary) == [1, 1, 1]
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in summary_rows(summary)]
    assert [(row["system"], row["best"], row["suspect"] is not None) for row in rows] == [
        ("side", None, True), ("plain", "true", False), ("worse", "false", False),
    ]  # fmt: skip
    assert "side is not compared: its checks found something" in summary_notes(summary)
    written = Summary.from_dict(summary.as_dict())
    assert best(written) == {"plain"} and list(written.systems["side"].doubts) == [FINDING]


@pytest.mark.parametrize(
    "flag", [SILENT_ESTIMATE, *NO_SPEECH.values(), *NO_SPOKEN_ANSWER.values()], ids=lambda one: one.code
)
def test_a_system_whose_sound_is_no_speech_is_never_the_best(tmp_path, flag):
    """Two of nineteen values are more than a tenth; one is not, and another flag says nothing of speech."""
    good = np.linspace(0.5, 0.9, ITEMS)
    values = {"half": good + 0.2, "plain": good, "worse": good - 0.1 - 0.001 * np.arange(ITEMS)}
    summary = summarise(recorded(tmp_path / "run", values, flags={"half": (2, flag)}))
    assert best(summary) == {"plain"} and bold(summary) == [1, 1, 1]
    why = "2 of its 19 values are of sound that is not the speech that it should be"
    assert column(summary)["half"].standing == Standing(False, False, why)
    assert f"half is not compared: {why}" in summary_notes(summary)
    for text in (summary_markdown(summary), summary_latex(summary), summary_html(summary)):
        assert f"half is not compared: {why}" in text
    assert best(summarise(recorded(tmp_path / "few", values, flags={"half": (1, flag)}))) == {"half"}
    assert best(summarise(recorded(tmp_path / "other", values, flags={"half": (19, "another")}))) == {"half"}
    alone = summarise(recorded(tmp_path / "alone", {"half": good}, flags={"half": (19, flag)}))
    assert not column(alone)["half"].standing.compared, "also where a board sets it beside other runs"


def test_a_system_that_failed_does_not_shrink_the_samples_of_the_others(tmp_path):
    """17 of 19 items failed: over the two that are left, the worse of the others would be the best."""
    first = np.full(ITEMS, 0.80) + 0.001 * np.arange(ITEMS)
    second = first - 0.1 + 0.002 * np.cos(np.arange(ITEMS))
    second[:2] = 0.99
    broken = [0.95, 0.96, *[None] * (ITEMS - 2)]
    assert second[:2].mean() > first[:2].mean() and first.mean() > second.mean()
    summary = summarise(recorded(tmp_path / "run", {"first": first, "second": second, "broken": broken}))
    entries = column(summary)
    assert entries["first"].common is None, "its values are over all of its samples"
    assert entries["broken"].common.value is None and not entries["broken"].standing.compared
    assert "second" not in best(summary) or best(summary) == {"first", "second"}
    assert "broken is not compared: it has values for too few samples" in summary_notes(summary)
    for wanting in ([None, *first[1:]], first):  # one lost sample of nineteen is excluded for all
        entries = column(
            summarise(recorded(tmp_path / f"{len(list(tmp_path.iterdir()))}", {"a": wanting, "b": second}))
        )
        assert entries["a"].standing.compared
    assert entries["b"].common is None


def test_a_suspect_does_not_shrink_the_samples_of_the_others(tmp_path):
    good = np.linspace(0.5, 0.9, ITEMS)
    role = [*good[:15], *[None] * 4]
    summary = summarise(recorded(tmp_path / "run", {"side": role, "a": good, "b": good - 0.1}, checks=SUSPECT))
    assert column(summary)["a"].common is None and best(summary) == {"a"}


def test_a_best_that_its_own_column_contradicts_is_not_marked(tmp_path):
    """Of twenty items `a` lacks the two worst.

    Over the common ones it is worse than `b`, over its own it looks better.
    """
    rng = np.random.default_rng(1)
    base = np.r_[rng.normal(0.8, 0.01, 18), 0.0, 0.0]
    a = [*(base[:18] - 0.02 + rng.normal(0, 0.001, 18)), None, None]
    summary = summarise(recorded(tmp_path / "run", {"a": a, "b": base}))
    entries = column(summary)
    assert entries["a"].value > entries["b"].value and entries["a"].value < entries["b"].common.value
    assert best(summary) == set()
    assert any(note.startswith("no best is marked: over the samples of each system") for note in summary_notes(summary))


def test_what_is_best_where_little_can_be_compared(tmp_path):

    def options(values, **more):
        return summarise(recorded(tmp_path / f"{len(list(tmp_path.iterdir()))}", values, **more))

    two = options({"a": [0.1, 0.2], "b": [0.3, 0.4]})
    assert best(two) == {"b"} and column(two)["a"].standing.why.code == "too_few_to_compare"
    one_speaker = options({"a": np.linspace(0, 1, 9), "b": np.linspace(0, 1, 9) + 0.5}, speakers=["ann"] * 9)
    assert best(one_speaker) == {"b"} and not alike(one_speaker)
    apart = options({"a": [*[0.5] * 10, *[None] * 10], "b": [*[None] * 10, *[0.6] * 10]})
    assert best(apart) == set() and "none of their samples in common" in " ".join(summary_notes(apart, None))
    alone = options({"a": np.linspace(0, 1, 9), "unprocessed": np.linspace(0, 1, 9) + 0.5})
    assert best(alone) == set() and not column(alone)["a"].standing
    neither = options({"a": np.linspace(0, 1, 9), "b": np.linspace(0, 1, 9) + 0.5}, higher=None)
    assert best(neither) == set()

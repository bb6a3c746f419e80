"""Tables in the terminal: they fit its width, are complete, and show hostile texts of the data as plain text."""

from __future__ import annotations

import copy
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from codec_bench.report import numbers
from codec_bench.report.table import (
    comparison_notes,
    comparison_table,
    failures_table,
    summary_notes,
    summary_table,
    wide_table,
)
from codec_bench.stats.notes import Note
from codec_bench.stats.paired import ItemParts, compare_items
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import MetricSummary, Summary


@pytest.fixture(scope="module")
def summary(demo_run):
    return summarise(demo_run).as_dict()


def render(table, width=100) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(table)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 100, 120, 400])
def test_every_number_is_there_whole_in_any_width(summary, width):
    text = render(summary_table(Summary.from_dict(summary), width=width), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    lines = text.splitlines()
    for name, system in summary["systems"].items():
        # A system's rows, of whichever block; each value stands there with half its interval.
        rows = "\n".join(line for line in lines if line.split()[:1] == [name])
        for metric, entry in system["metrics"].items():
            if entry["value"] is None:
                continue
            column = [MetricSummary.from_dict(s["metrics"][metric]) for s in summary["systems"].values()]
            factor, _ = numbers.shown_unit(entry["unit"])
            places = numbers.decimals(column, factor)
            shown = (
                f"{numbers.number(factor * entry['value'], places)} "
                f"{numbers.spread(MetricSummary.from_dict(entry), places, factor)}"
            )
            assert shown in rows, (name, metric)


def test_missing_values_are_counted_where_they_are_missing(summary):
    text = render(summary_table(Summary.from_dict(summary), width=400), 400)
    # Two items of mp3-24k failed: reported once at the system, not again in each of its columns.
    assert text.count("2 failed") == 1
    lines = text.splitlines()
    row = next(n for n, line in enumerate(lines) if line.split()[:1] == ["mp3-24k"])
    assert re.findall(r"\d+ of \d+|\d failed", lines[row + 1]) == ["2 failed", "27 of 30"]
    row = next(n for n, line in enumerate(lines) if line.split()[:1] == ["g722"])
    assert re.findall(r"\d+ of \d+", lines[row + 1]) == ["29 of 30", "28 of 30"]
    assert "undefined" in lines[next(n for n, line in enumerate(lines) if line.split()[:1] == ["unprocessed"]) + 1]


def test_the_best_is_bold_and_the_unprocessed_audio_and_bitrates_do_not_compete(summary):
    console = Console(width=400, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(summary_table(Summary.from_dict(summary), width=400))
    body = console.file.getvalue().rpartition("─")[2]
    bold = [text.strip() for text in re.findall(r"\x1b\[1m([^\x1b]+)\x1b", body) if text.strip()]
    expected = []
    for metric in summary["systems"]["opus-6k"]["metrics"]:
        column = {name: system["metrics"][metric] for name, system in summary["systems"].items()}
        factor, places = 1.0, numbers.decimals(map(MetricSummary.from_dict, column.values()))
        marked = [e for e in column.values() if e.get("standing", {}).get("best")]
        if marked:
            assert metric != "bitrate" and not column["unprocessed"].get("standing")
            sign = 1 if column["g722"]["higher_is_better"] else -1
            others = [
                sign * e["value"] for e in column.values() if e.get("standing", {}).get("compared") and e not in marked
            ]
            assert min(sign * e["value"] for e in marked) >= max(others, default=-np.inf), metric
        expected += [numbers.number(factor * e["value"], places) for e in marked]
    assert len(expected) > 3 and sorted(bold) == sorted(expected)


def test_few_systems_and_many_metrics_are_turned(summary):
    small = {**summary, "systems": {k: summary["systems"][k] for k in ("opus-6k", "g722")}}
    text = render(summary_table(Summary.from_dict(small), width=80), 80)
    heads = next(line for line in text.splitlines() if "g722" in line)
    assert "opus-6k" in heads
    assert [line.split()[0] for line in text.splitlines() if " ↑" in line or " ↓" in line][:2] == [
        "bitrate",
        "wer[pocketsphinx]",
    ]


def test_the_width_of_the_terminal_is_queried_where_none_is_passed(summary, monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    monkeypatch.setattr("rich._console", None)
    assert max(map(len, render(summary_table(Summary.from_dict(summary)), 72).splitlines())) <= 72


def test_failures_are_reported_with_their_reasons(summary):
    text = render(failures_table(Summary.from_dict(summary).failures.reasons, len(summary["systems"]), width=160), 160)
    for row in summary["failures"]["reasons"]:
        assert row["reason"].split()[0][:8] in text
    assert "whole item" in text
    assert re.search(r"pesq_wb\s+failed\s+9\s", text)


@pytest.mark.parametrize("width", [40, 50, 60])
def test_a_narrow_terminal_breaks_no_word_of_a_failure(width):
    """The reason of a failure had no column at all at 40 columns, and one of seven characters at 60."""
    reason = "the estimate is a scaled copy of the reference; SI-SDR is unbounded"
    row = {"system": "unprocessed", "metric": "si_sdr", "status": "undefined", "reason": reason, "count": 8}
    dropped = {"system": "opus-12k", "metric": None, "status": "failed", "reason": "'a.wav' is empty", "count": 2}
    summary = Summary.from_dict(
        {"systems": {}, "failures": {"reasons": [r | {"example": "awb_02"} for r in (row, dropped)]}}
    )
    text = render(failures_table(summary.failures.reasons, 2, width=width), width)
    assert max(map(len, text.splitlines())) <= width
    words = text.split()
    assert all(words.count(word) for word in f"{reason} unprocessed awb_02 8 undefined si_sdr".split())
    assert all(words.count(word) for word in "whole item failed 2 'a.wav' is empty opus-12k".split())


@pytest.mark.parametrize("width", [40, 60, 100])
def test_a_long_name_is_broken_before_a_number_is_cut(summary, width):
    long = "L" * 95
    actual = Summary.from_dict({**summary, "systems": {long: summary["systems"]["g722"]}})
    text = render(summary_table(actual, width=width), width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("L") % 95 == 0 and text.count("L") > 0
    wide = render(summary_table(actual, width=400), 400)
    for shown in re.findall(r"[−\d.]+ (?:\[[−\d., ]+\]|±[\d.]+)", wide):
        assert shown in text


def test_a_comparison_is_whole_in_forty_columns():
    """`better : worse : same` was cut by two columns, and so were its counts."""
    items = [[ItemParts(f"s{n}", v, (v, 1.0)) for n, v in enumerate(values)] for values in ([0.5] * 8, [0.2] * 8)]
    result = compare_items(*items, metric="wer[pocketsphinx]", higher_is_better=False, seed=0)
    text = render(comparison_table([result], width=40), 40)
    assert "better : worse : same" in text and "0 : 8 : 0" in text


def test_hostile_text_reaches_no_terminal_and_no_markup(summary):
    hostile = "\x1b]0;owned\x07[red]x[/red]\x1b[2J\u202e"
    row = {"system": hostile, "metric": hostile, "status": "failed", "reason": hostile, "count": 1, "example": hostile}
    system = {"metrics": {hostile: {**summary["systems"]["g722"]["metrics"]["stoi"]}}}
    mine = {"systems": {hostile: system}, "failures": {"items": 0, "scores": 1, "reasons": [row]}}
    for table in (
        failures_table(Summary.from_dict(mine).failures.reasons, len(mine["systems"])),
        summary_table(Summary.from_dict(mine), width=120),
    ):
        text = render(table, 200)
        assert not set("\x1b\x07\u202e") & set(text)
        assert "[red]x[/red]" in text


def test_a_run_without_any_score_has_a_table():
    render(
        summary_table(
            Summary.from_dict({"systems": {"codec": {"metrics": {}}}, "failures": {"reasons": []}}), width=80
        ),
        80,
    )
    render(summary_table(Summary.from_dict({"systems": {}, "failures": {"reasons": []}}), width=80), 80)


def test_a_comparison_shows_the_difference_and_who_won(rng):
    a, more = rng.random(50), rng.uniform(0.09, 0.11, 50)
    rows = [[ItemParts(f"s{n:02d}", v, (v, 1.0)) for n, v in enumerate(values)] for values in (a, a + more)]
    clear = compare_items(rows[0], rows[1][:40], metric="stoi", higher_is_better=True, seed=1)
    text = render(comparison_table([clear], width=140), 140)
    line = next(line for line in text.splitlines() if "stoi" in line)
    assert "−0.1" in line
    assert "0 : 40 : 0" in line
    assert "<0.001" in line
    assert "10 excluded" in text
    assert comparison_notes([clear]) == []
    none = compare_items([], [], metric="stoi", higher_is_better=True, seed=1)
    line = next(line for line in render(comparison_table([none], width=140), 140).splitlines() if "stoi" in line)
    assert line.split() == ["stoi", *["–"] * 7, "0", "0"]
    assert comparison_notes([none]) == [f"– {Note('no_value')}"]
    assert comparison_notes([clear, none]) == [f"– {Note('no_value')} (stoi)"]
    assert np.isclose(clear.test.difference, -more[:40].mean())


def test_a_comparison_names_units_and_the_adjusted_p():
    items = [
        [ItemParts(f"s{n}", v, (v, 1.0)) for n, v in enumerate(values)] for values in ([6000.0] * 8, [12000.0] * 8)
    ]
    result = compare_items(*items, metric="bitrate", unit="bit/s", higher_is_better=False, seed=0)
    text = render(comparison_table([replace(result, p_holm=0.25)], adjusted=True, width=160), 160)
    assert "bitrate kbps" in text and "−6.00" in text and "0.250" in text and "p (Holm)" in text
    assert "p (Holm)" not in render(comparison_table([result], width=160), 160)


def paired(a, b, metric="stoi"):
    sides = [[ItemParts(f"s{n}", v, (v, 1.0)) for n, v in enumerate(values)] for values in (a, b)]
    return compare_items(*sides, metric=metric, higher_is_better=True, seed=0)


def test_equal_systems_have_a_difference_of_zero(rng):
    values = rng.random(8)
    equal, other = paired(values, values), paired(values, rng.random(8), "pesq_wb")
    line = next(line for line in render(comparison_table([equal], width=140), 140).splitlines() if "stoi" in line)
    assert "1.000*" in line, "the p of equal systems is 1"
    assert comparison_notes([equal, other]) == [f"* {Note('equal_systems')} (stoi)"]


def test_an_asterisk_and_its_note_come_together():
    small = paired([0.1, 0.2, 0.3, 0.4], [0.2, 0.1, 0.4, 0.3])
    assert "*" in render(comparison_table([small], width=140), 140)
    assert comparison_notes([small]) == [f"* {Note('few_units', units=4)}"]
    calm = paired([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], [0.2, 0.1, 0.4, 0.3, 0.6, 0.5, 0.7])
    assert "*" not in render(comparison_table([calm], width=140), 140) and not comparison_notes([calm])


@pytest.mark.parametrize("width", [80, 100, 150, 220])
def test_a_wide_table_is_spread_over_blocks_and_breaks_no_word(width):
    heads = ["", "average", *(f"librispeech-dev-{n}\nwer ↓ %" for n in "abcdefgh")]
    rows = [("codec-of-somebody", 1.5, *range(8)), ("other", None, *range(8))]
    text = render(wide_table(heads, rows, width), width)
    assert max(map(len, text.splitlines())) <= width and "…" not in text
    assert [word for word in text.split() if word.startswith("librispeech")] == [
        f"librispeech-dev-{n}" for n in "abcdefgh"
    ]
    blocks = text.count("codec-of-somebody")
    assert blocks == len([line for line in text.splitlines() if line.startswith(" ─")])
    assert (blocks == 1) == (width >= 217)


def test_a_table_names_the_methods_of_its_intervals(summary):
    held = copy.deepcopy(summary)
    held["systems"]["g722"]["metrics"]["stoi"] |= {"method": "wilson", "ci95": [0.9, 1.0]}
    legend = summary_notes(Summary.from_dict(held))[0]
    assert "wilson" in legend and "clopper" not in legend
    assert numbers.methods_of([("a", "b", MetricSummary(ci95=None, method="t"))]) == []


def test_the_notes_of_a_table_explain_its_asterisks(summary):
    marked = copy.deepcopy(summary)
    marked["systems"]["g722"]["metrics"]["stoi"]["note"] = "few"
    marked["systems"]["g722"]["metrics"]["stoi"].pop("note_code", None)
    assert "*" in render(summary_table(Summary.from_dict(marked), width=400), 400)
    assert "* (stoi of g722): few" in numbers.interval_notes(Summary.from_dict(marked).entries)
    assert len(summary_notes(Summary.from_dict(marked))) <= numbers.MOST_NOTES

"""How the ranks of a board change: of the published boards by their rules, of own rows by their items."""

from __future__ import annotations

import json
from contextlib import closing

import numpy as np
import pytest
from refusals import refuses

from codec_bench.apps.leaderboards.api import board_names, leaderboard
from codec_bench.apps.leaderboards.formats import best_rows
from codec_bench.apps.leaderboards.rank_uncertainty import trust as trust_of
from codec_bench.benchmark.judge.spoken_answers import NO_SPOKEN_ANSWER
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

UNDERSTANDING = "ultraeval-understanding"
ITEMS = 40


def record(folder, column, system, right, *, detail=None, protocol="p", state="finished", checks=None, flag=None):
    """A run of one column's benchmark in which each item has the value 0 or 1, or errors among
    ten words; None failed.
    """
    facts = {
        column.metric: {
            "protocol": protocol,
            "unit": "",
            "higher_is_better": True,
            "aggregate": "bleu" if detail else "mean",
            "bounds": None if detail else [0, 1],
        }
    }
    samples = [Sample(f"q{n}", None, speaker=f"s{n % 20}") for n in range(len(right))]
    with closing(RunWriter(folder / column.benchmark / system, {"asked": column.benchmark})) as writer:
        writer.begin({system: {}}, facts, samples)
        scores = [
            Score(None, "failed", "no answer", protocol, detail={"wrong": [0.0, 1.0]})
            if value is None
            else Score(
                float(value),
                "ok",
                None,
                protocol,
                numerator=float(value),
                denominator=1.0,
                detail=(detail or {}) | ({"flag": flag} if flag else {}),
            )
            for value in right
        ]
        writer.write(
            [(n, ItemRecord(system, s.id, "ok", None, {column.metric: scores[n]})) for n, s in enumerate(samples)]
        )
        rule = {"toolkit": "t", "counts": "as-wrong"}
        writer.set_meta(
            benchmark={"name": column.benchmark, "failures": rule}, config={}, state=state, checks=checks or {}
        )


def runs(folder, systems):
    """Runs of all columns of the board of understanding; `systems` gives the share of right items by name."""
    rng = np.random.default_rng(0)
    for column in leaderboard(UNDERSTANDING).columns:
        hard = rng.random(ITEMS)
        for system, share in systems.items():
            right = (hard + 0.02 * rng.random(ITEMS)) < share
            value = 1.0 - right if column.counts == "error" else right.astype(float)
            counts = {"counts": [10, 10, *([8 + 2 * bool(one) for one in [share]] * 4), 10, 10, 10, 10]}
            record(folder, column, system, value, detail=counts if column.metric.startswith("bleu") else None)


def test_systems_that_are_alike_are_tied_and_another_is_not(tmp_path):
    runs(tmp_path, {"good": 0.95, "alike": 0.94, "bad": 0.3})
    board = leaderboard(UNDERSTANDING, [tmp_path], robustness=True)
    index = {row.name: n for n, row in enumerate(board.rows)}
    trust = board.trust
    rank = {name: trust.robustness[n].rank for name, n in index.items()}
    assert rank["bad"] > rank["good"] and sorted(rank.values()) == list(range(1, 16))
    for name in ("good", "alike", "bad"):
        low, high = trust.rank_intervals[index[name]]
        assert low <= rank[name] <= high
    assert "alike" in trust.tied[index["good"]] and "bad" not in trust.tied[index["good"]]
    assert trust.rank_intervals[index["Kimi-Audio-7B-Instruct"]] is None
    assert "no items of this row" in trust.notes[index["Kimi-Audio-7B-Instruct"]]
    assert trust_of(board) == trust  # the same seed
    good, bad = index["good"], index["bad"]
    assert sum(trust.shares[good].values()) == pytest.approx(1) and trust.above[good][bad] > 0.99
    assert trust.above[good][index["alike"]] + trust.above[index["alike"]][good] == pytest.approx(1)
    # Between two published rows nothing is drawn, and of a published row's rank nothing is known.
    kimi, qwen = index["Kimi-Audio-7B-Instruct"], index["Qwen3-Omni-30B-A3B-Instruct"]
    assert trust.shares[kimi] == {} and qwen not in trust.above[kimi] and good in trust.above[kimi]


def test_the_items_of_a_row_are_located_under_any_name(tmp_path, command):
    """A row whose answers a judge read is called by the judge too."""
    (tmp_path / "one.yaml").write_text(
        DOUBTFUL.replace("published: doubtful.csv\n", "").partition("  - {name: errors")[0]
    )
    (column,) = leaderboard(str(tmp_path / "one.yaml")).columns
    hard = np.random.default_rng(0).random(ITEMS)
    for name, share in (("a", 0.9), ("b", 0.6), ("c", 0.3)):
        record(tmp_path / "runs", column, name, (hard < share).astype(float), protocol="rating/rubric/judge-1")
    board = leaderboard(str(tmp_path / "one.yaml"), [tmp_path / "runs"], robustness=True)
    assert [row.name for row in board.rows] == [
        f"{name} (read by judge-1; this judge was not tested)" for name in "abc"
    ]
    assert None not in board.trust.rank_intervals
    code, out, _ = command("leaderboard", tmp_path / "one.yaml", tmp_path / "runs", "--items", "--json")
    assert code == 0 and [(one["systems"], one["items"]) for one in json.loads(out)["items"]] == [(3, ITEMS)]


def test_a_row_whose_average_is_not_complete_has_no_rank(tmp_path):
    column = leaderboard(UNDERSTANDING).columns[-1]
    record(tmp_path, column, "mine", np.ones(5))
    board = leaderboard(UNDERSTANDING, [tmp_path], robustness=True)
    (index,) = [n for n, row in enumerate(board.rows) if row.name == "mine"]
    assert board.trust.robustness[index].rank is None and board.trust.notes[index] == "the row has no rank"
    assert [one.rank for one in board.trust.robustness if one.rank] == list(range(1, 13))


def test_every_board_with_an_average_over_benchmarks_has_ranks():
    for name in board_names():
        if name in ("audiobench", "air-bench-foundation-per-sample", "mmau-pro"):
            with refuses("board_without_average|board_counts_samples", board=name):
                leaderboard(name, robustness=True)
            continue
        board = leaderboard(name, robustness=True)
        if name == "codec-applications":  # nobody has published such rows
            assert not board.rows
            continue
        ranked = [
            (row.average, one.rank) for row, one in zip(board.rows, board.trust.robustness, strict=True) if one.rank
        ]
        assert len(ranked) >= 5, name
        # The order of the ranks is that of the averages, which are rounded to two decimals.
        assert [rank for _, rank in ranked] == sorted(rank for _, rank in ranked), name
        for one in board.trust.robustness:
            for span in (one.leave_one_benchmark_out, one.leave_one_group_out, one.other_normalisations):
                assert span is None or 1 <= span[0] <= span[1] <= len(board.rows)


def test_on_the_command_line(command):
    code, printed, _ = command("leaderboard", UNDERSTANDING, "--robustness", "--json")
    row = json.loads(printed)["rows"][0]
    assert code == 0 and row["name"] == "Qwen3-Omni-30B-A3B-Instruct" and row["rank"] == 1
    keys = ("leave_one_benchmark_out", "leave_one_group_out", "other_normalisations")
    assert {key: row["robustness"][key] for key in keys} == {key: [1, 1] for key in keys}
    code, printed, _ = command("leaderboard", UNDERSTANDING, "--robustness")
    assert code == 0 and "without one benchmark" in printed and "other items" not in printed
    assert row["rank_shares"] == {} and row["above"] == []
    code, _, text = command("leaderboard", "audiobench", "--robustness")
    assert code == 2 and "has no average" in text


def test_the_table_in_latex_has_ranks_and_significance_groups(tmp_path, command):
    runs(tmp_path / "runs", {"good": 0.95, "alike": 0.94, "bad": 0.3})
    out = tmp_path / "board.tex"
    code, _, err = command("leaderboard", UNDERSTANDING, tmp_path / "runs", "--latex", out)
    assert code == 0 and f"written: {out}" in err
    text = out.read_text("utf-8")
    row = lambda name: next(line for line in text.splitlines() if f"& {name}$" in line).split(" & ")  # noqa: E731
    assert row("good")[2] == row("alike")[2] == "a" and row("bad")[2] == "b"
    assert row("good")[0].startswith("1 (1--") and text.count(r"\\") == 16 and text.count("{") == text.count("}")
    published = next(line for line in text.splitlines() if "Kimi-Audio" in line).split(" & ")
    assert published[2] == "" and published[0].isdigit() and "share a letter" in text
    code, _, _ = command("leaderboard", "audiobench", "--latex", out)
    text = out.read_text("utf-8")
    assert code == 0 and "rank" not in text.partition("midrule")[0] and r"\textbf{" in text
    code, _, err = command("leaderboard", UNDERSTANDING, "--latex", tmp_path / "no" / "x.tex")
    assert code == 2 and "cannot be written" in err


def test_items_that_distinguish_systems(tmp_path, command):
    column = leaderboard(UNDERSTANDING).columns[-1]
    rng = np.random.default_rng(0)
    ability = {f"m{n}": 0.15 + 0.14 * n for n in range(6)}
    hard = rng.random(ITEMS)
    for name, share in ability.items():
        right = (hard < share).astype(float)
        right[0] = 1.0
        right[1] = share < 0.5  # a wrong key
        record(tmp_path, column, name, right)
    code, out, _ = command("leaderboard", UNDERSTANDING, tmp_path, "--items", "--json")
    (document,) = json.loads(out)["items"]
    assert code == 0 and (document["column"], document["systems"], document["items"]) == (column.name, 6, ITEMS)
    assert (
        document["discrimination"]["q0"] is None and document["discrimination"]["q1"] < -0.5 and document["mean"] > 0.5
    )
    code, out, err = command("leaderboard", UNDERSTANDING, tmp_path, "--items")
    assert code == 0 and "q1" in out and "noisy" in err
    code, _, err = command("leaderboard", UNDERSTANDING, tmp_path / column.benchmark / "m0", "--items")
    assert code == 0 and "own systems with a value: 1; at least 3 are needed" in err


DOUBTFUL = """version: 1
summary: "two models, of which one is published; a constant column; groups with one member"
published: doubtful.csv
views: {one: [flat]}
columns:
  - {name: flat, benchmark: meld-emo, metric: "accuracy[official/ultraeval-audio/prefix-match]", counts: score,
    family: alone}
  - {name: errors, benchmark: librispeech-test-clean, metric: "wer[answer]@official/ultraeval-audio/wer", counts: error,
    family: other}
"""


def test_what_a_board_cannot_show_is_named_and_never_a_number(tmp_path, command):
    """Two models, a constant column, groups of one, two protocols, a run that is not finished, two numbers of one
    system.
    """
    (tmp_path / "doubtful.yaml").write_text(DOUBTFUL)
    (tmp_path / "doubtful.csv").write_text("model,flat,errors\npublished,50.00,3.00\n")
    flat, errors = leaderboard(str(tmp_path / "doubtful.yaml")).columns
    half = np.asarray([1.0, 0.0] * 10)
    record(tmp_path / "runs", flat, "mine", half)
    record(tmp_path / "runs", errors, "mine", np.zeros(20))
    ask = ("leaderboard", tmp_path / "doubtful.yaml", tmp_path / "runs", "--robustness", "--correlations", "--groups")
    code, printed, texts = command(*ask)
    assert code == 0 and "2 rows have a cell in both columns; a correlation needs 3" in texts
    assert "the rows are all equal in column flat, which counts nothing when columns are scaled" in texts
    code, plain, _ = command(*ask, "--json")
    assert code == 0 and json.loads(plain)["correlations"]["pairs"][0]["kendall"]["value"] is None
    assert json.loads(plain)["dispensable"] == [] and json.loads(plain)["mixed"] == []
    record(tmp_path / "runs" / "again", flat, "mine", np.ones(20), state="running")
    record(tmp_path / "runs", flat, "other", half, protocol="q")
    record(tmp_path / "runs", errors, "other", half)
    code, more, doubts = command(*ask)
    assert code == 0 and "flat was measured by 2 protocols, whose values cannot be compared" in doubts
    assert "flat is 100.00 in an earlier run" in doubts and "(not finished)" in more
    for text in (printed, plain, more):
        assert "nan" not in text.lower()


def test_a_damaged_run_is_refused_whatever_it_is_of(tmp_path):
    record(tmp_path, leaderboard(UNDERSTANDING).columns[-1], "mine", np.ones(ITEMS))
    (file,) = tmp_path.rglob("run.sqlite")
    held = bytearray(file.read_bytes())
    held[len(held) // 2] ^= 0xFF
    file.write_bytes(held)
    with refuses("record_damaged"):
        leaderboard("audiobench", [tmp_path])


def test_the_best_of_a_column_has_its_best_value(tmp_path):
    runs(tmp_path / "runs", {"good": 0.95, "alike": 0.94, "bad": 0.3})
    board = leaderboard(UNDERSTANDING, [tmp_path / "runs"])
    printed = {row.name: row for row in board.rows}
    for column in board.columns:
        rows = [row for row in board.rows if column.name in row.cells and row.compared]
        top = max((column.points(row.cells[column.name]) for row in rows), default=None)
        names = {board.rows[n].name for n in best_rows(board, column)[0]}
        assert names <= {row.name for row in rows if column.points(row.cells[column.name]) == top}
        for name in names & {"good", "alike"}:
            assert printed[name].compared
    assert any(best_rows(board, column)[0] for column in board.columns)


def test_a_row_that_is_not_compared_is_never_the_best_and_shares_no_mark(tmp_path):
    """A row that lacks answers although its cell is the best, and a codec whose checks found something."""
    named = DOUBTFUL.replace("published: doubtful.csv\n", "").partition("  - {name: errors")[0]
    (tmp_path / "one.yaml").write_text(named.replace("views: {one: [flat]}\n", ""))
    (column,) = leaderboard(str(tmp_path / "one.yaml")).columns
    answers = {name: [float(n // 20 < share) for n in range(400)] for name, share in (("b", 12), ("c", 9))}
    answers["lacks"] = [None if n // 20 >= 17 else float(n >= 10) for n in range(400)]
    for name, right in answers.items():
        record(tmp_path / "lacking", column, name, right)
    board = leaderboard(str(tmp_path / "one.yaml"), [tmp_path / "lacking"])
    assert [(row.name, str(row.cells["flat"])) for row in board.rows] == [
        ("lacks", "82.50"),
        ("b", "60.00"),
        ("c", "45.00"),
    ]
    assert best_rows(board, column) == (set(), set())
    answers["lacks"] = [float(n // 20 < 17) for n in range(400)]
    for name, right in answers.items():
        by_name = {
            name: {"ok": [], "findings": [{"check": "x", "state": "suspect", "found": "y"}] if name == "lacks" else []}
        }
        record(tmp_path / "suspect", column, name, right, checks=by_name)
        flag = NO_SPOKEN_ANSWER["silent"] if name == "lacks" else None
        record(tmp_path / "silent", column, name, right, flag=flag)
    for folder in ("suspect", "silent"):
        board = leaderboard(str(tmp_path / "one.yaml"), [tmp_path / folder])
        best, alike = best_rows(board, column)
        assert {board.rows[n].name for n in best} == {"b"} and not alike, "c is right in fewer of 20 clusters"

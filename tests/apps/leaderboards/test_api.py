"""Published averages are reproduced to the last digit, and our runs are ranked correctly among them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files

import pytest
from refusals import refuses

from codec_bench.apps.leaderboards.api import board_names, leaderboard
from codec_bench.apps.leaderboards.board import Column, average
from codec_bench.apps.leaderboards.json_values import plain_board
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

BOARDS = ("ultraeval-codec", "ultraeval-generation", "ultraeval-understanding")


def published():
    for board in BOARDS:
        with (files("codec_bench") / "configs" / "leaderboard" / f"{board}.csv").open(encoding="utf-8") as table:
            for line in csv.DictReader(table):
                yield pytest.param(board, line, id=f"{board}-{next(iter(line.values()))}")


def test_the_boards():
    others = [
        "air-bench-chat",
        "air-bench-foundation",
        "air-bench-foundation-per-sample",
        "audiobench",
        "codec-applications",
        "mmau-pro",
        "open-asr",
    ]
    assert board_names() == [*others, *BOARDS]
    assert len(list(published())) == 27


@pytest.mark.parametrize(("board", "line"), list(published()))
def test_every_published_average_comes_out_to_the_last_digit(board, line):
    (row,) = [row for row in leaderboard(board).rows if row.name == next(iter(line.values()))]
    assert str(row.average) == line["average"]
    assert row.complete and row.published
    assert {name: str(value) for name, value in row.cells.items()} == {
        name: value for name, value in list(line.items())[1:-1] if value
    }


def recorded(folder, benchmark, system, values, limit=None, protocol=None, state="finished"):
    writer = RunWriter(folder, {"asked": {}})
    facts = {name: {"protocol": protocol or name, "unit": "", "higher_is_better": True} for name in values}
    writer.begin({system: {}}, facts, [Sample("a", None)])
    scores = {name: Score.ok(value, name) for name, value in values.items()}
    writer.write([(0, ItemRecord(system, "a", "ok", None, scores))])
    writer.set_meta(benchmark={"name": benchmark}, config={"seed": 0, "limit": limit}, state=state)
    writer.close()


def test_our_runs_stand_between_the_published_rows(tmp_path):
    columns = leaderboard("ultraeval-understanding").columns
    for column in columns:
        value = {"score": 60.0 if column.metric.startswith("bleu") else 0.6, "error": 0.0125}[column.counts]
        recorded(tmp_path / column.benchmark / "mine", column.benchmark, "mine", {column.metric: value})
    board = leaderboard("ultraeval-understanding", [tmp_path])
    assert board.rows[0].name == "mine"
    assert str(board.rows[0].cells["aishell-1"]) == "1.25"
    # Ten error rates of 1.25 and three scores of 60.
    assert board.rows[0].average == Decimal("89.81") and board.rows[0].complete and not board.rows[0].published
    source = board.rows[0].sources["aishell-1"]
    assert (source.system, source.metric) == ("mine", source.protocol) and source.folder.endswith("/aishell-1/mine")
    assert len(board.rows[0].sources) == 13 and not any(row.sources for row in board.rows if row.published)


def test_a_board_with_missing_cells_says_so_and_stands_last(tmp_path):
    recorded(tmp_path / "x", "meld-emo", "mine", {leaderboard(BOARDS[2]).columns[-1].metric: 0.999})
    row = leaderboard("ultraeval-understanding", [tmp_path]).rows[-1]
    assert (row.name, row.complete, str(row.average)) == ("mine", False, "99.90")


def test_columns_of_a_group_count_as_one():
    columns = [Column("a", "x", "m", "score", "a")] + [Column(n, "x", "m", "mos", "g") for n in "bc"]
    cells = {"a": Decimal("50.00"), "b": Decimal("4.00"), "c": Decimal("3.00")}
    assert average(cells, columns) == (Decimal("60.00"), True)


def test_a_folder_without_runs_is_refused(tmp_path):
    (tmp_path / "notes.json").write_text(json.dumps({}))
    for path, hint in (
        (".", "name the folder"),
        ("none", "there is no such file or folder"),
        ("mk.py", "a Python file"),
    ):
        (tmp_path / "mk.py").write_text("x = 1")
        with refuses("holds_no_run", hint=hint):
            leaderboard("ultraeval-codec", [tmp_path / path])


def test_a_path_that_is_no_board_is_named_as_what_it_is(tmp_path, command):
    (tmp_path / "mk.py").write_text("class Mine: ...")
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "benchmark.yaml").write_text("version: 1\n")
    column = leaderboard("ultraeval-codec").columns[0]
    recorded(tmp_path / "runs" / "a", column.benchmark, "mine", {column.metric: 0.5})
    for name, hint in (
        ("mk.py", "it is a Python file; expected "),
        ("bench", f"it is a benchmark; expected a YAML file with columns, such as {{benchmark: {tmp_path}/bench"),
        ("runs", f"it holds runs; name a leaderboard first, such as codec-bench leaderboard air-bench-chat {tmp_path}"),
        ("nothing", "there is no such file or folder; expected "),
    ):
        with refuses("not_a_leaderboard", path=name, hint=hint):
            leaderboard(f"{tmp_path}/{name}")
    code, _, err = command("leaderboard", tmp_path / "mk.py")
    text = " ".join(err.split())
    assert (
        code == 2 and "it is a Python file; expected air-bench-chat" in text and "or a YAML file with columns" in text
    )


def test_an_unknown_board_suggests():
    with refuses("unknown_name", hint="did you mean ultraeval-codec"):
        leaderboard("ultraeval-codecs")


@pytest.mark.parametrize("board", BOARDS)
def test_our_runs_have_what_a_board_shows(board):
    from codec_bench.benchmark import load_benchmark

    rows = leaderboard(board).rows
    for column in leaderboard(board).columns:
        if any(column.name in row.cells for row in rows):
            assert column.metric in load_benchmark(column.benchmark).metrics


def test_runs_of_a_part_are_marked_and_runs_without_a_cell_named(tmp_path):
    metric = leaderboard(BOARDS[2]).columns[-1].metric
    recorded(tmp_path / "part", "meld-emo", "mine", {metric: 0.5}, limit=2)
    recorded(tmp_path / "other", "catdog", "mine", {"accuracy[label]": 0.5})
    board = leaderboard(BOARDS[2], [tmp_path])
    assert [row.limited for row in board.rows if not row.published] == [True]
    assert board.ignored == (str(tmp_path / "other"),)


@pytest.mark.parametrize("item", ["limited", "short", "unfinished"])
def test_a_part_is_not_complete_in_json(item):
    board = leaderboard(BOARDS[2])
    row = next(row for row in board.rows if row.complete)
    (complete,) = plain_board(replace(board, rows=(row,)))["rows"]
    (some,) = plain_board(replace(board, rows=(replace(row, **{item: True}),)))["rows"]
    assert complete["complete"] is True and some["complete"] is False and some[item]


def test_a_rating_by_another_judge_shares_no_column_with_published_ratings(tmp_path):
    (board, column) = next(
        (board, column) for board in BOARDS for column in leaderboard(board).columns if column.counts == "rating"
    )
    recorded(tmp_path / "rated", column.benchmark, "mine", {column.metric: 7.5})
    (row,) = [row for row in leaderboard(board, [tmp_path]).rows if not row.published]
    assert (
        row.cells == {}
        and row.average is None
        and row.judged == {column.name: "75.00 by an unknown judge; this judge was not tested"}
    )
    recorded(
        tmp_path / "named", column.benchmark, "other", {column.metric: 7.5}, protocol="rating/mine-0a1b2c3d/org/m-1"
    )
    (row,) = [row for row in leaderboard(board, [tmp_path]).rows if row.name == "other"]
    assert row.cells == {} and row.judged == {
        column.name: "75.00 by org/m-1 (mine-0a1b2c3d) in place of gpt-4o-mini; this judge was not tested"
    }


MINE = """version: 1
summary: mine
columns:
  - {name: a, benchmark: meld-emo, metric: "accuracy[official/ultraeval-audio/prefix-match]", counts: score}
  - {name: b, benchmark: covost2-en-zh, metric: "bleu[zh]", counts: score}
views: {both: [a]}
"""


def test_a_board_of_ones_own(tmp_path):
    (tmp_path / "mine.yaml").write_text(MINE)
    recorded(tmp_path / "runs", "meld-emo", "x", {"accuracy[official/ultraeval-audio/prefix-match]": 0.5})
    board = leaderboard(str(tmp_path / "mine.yaml"), [tmp_path / "runs"])
    (row,) = board.rows
    assert str(row.cells["a"]) == "50.00" and not row.complete and str(board.views[0].value(row)) == "50.00"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("meld-emo", "meld-emu"), {"code": "board_benchmark_unknown", "column": "a", "benchmark": "meld-emu"}),
        (
            ("bleu[zh]", "bleu[xx]"),
            {"code": "board_metric_unknown", "column": "b", "metric": "bleu[xx]", "benchmark": "covost2-en-zh"},
        ),
        (
            ("[a]", "[c]"),
            {
                "code": "does_not_fit",
                "mistakes": {
                    "code": "wrong_field",
                    "message": {"code": "view_of_no_column", "view": "both", "columns": "c"},
                },
            },
        ),
        (
            ("name: b", "name: a"),
            {
                "code": "does_not_fit",
                "mistakes": {"code": "wrong_field", "message": {"code": "columns_alike", "columns": "a"}},
            },
        ),
        (
            ("counts: score}\n  - ", "counts: points}\n  - "),
            {"code": "does_not_fit", "mistakes": {"code": "wrong_field", "name": "columns.0.counts"}},
        ),
        (
            ("[a]", "[a, b]"),
            {
                "code": "does_not_fit",
                "mistakes": {"code": "wrong_field", "message": {"code": "view_of_units", "view": "both"}},
            },
        ),
        (
            ("views: {both: [a]}", "means: [zz]"),
            {
                "code": "does_not_fit",
                "mistakes": {"code": "wrong_field", "message": {"code": "mean_of_no_group", "group": "zz"}},
            },
        ),
        (("views: {both: [a]}", "published: none.csv"), {"code": "no_published_rows"}),
    ],
)
def test_a_board_of_ones_own_that_does_not_fit_is_named(tmp_path, change, message):
    assert change[0] in MINE
    (tmp_path / "mine.yaml").write_text(MINE.replace(*change, 1))
    with refuses(**message):
        leaderboard(str(tmp_path / "mine.yaml"))


def test_means_over_some_columns_are_those_of_plain_sums():
    board = leaderboard("ultraeval-understanding")
    views = {view.name: view for view in board.views}
    assert list(views) == ["mean WER", "mean CER", "AST", "EMO"]
    assert sorted(name for view in board.views for name in view.columns) == sorted(c.name for c in board.columns)
    for row in board.rows:
        for view in board.views:
            plain = sum(row.cells[name] for name in view.columns) / len(view.columns)
            assert abs(view.value(row) - plain) <= Decimal("0.005")
    # A row without one of the cells has no mean of this kind.
    codec = leaderboard("ultraeval-generation")
    short = next(row for row in leaderboard("ultraeval-codec").rows)
    assert codec.views[0].value(short) is None


def test_a_run_that_is_not_finished_and_two_numbers_of_one_system_are_named(tmp_path):
    metric = leaderboard(BOARDS[2]).columns[-1].metric
    for name, value, state in (("1", 0.5, "finished"), ("2", 0.7, "running")):
        recorded(tmp_path / name, "meld-emo", "mine", {metric: value}, state=state)
    (row,) = [row for row in leaderboard(BOARDS[2], [tmp_path]).rows if not row.published]
    assert str(row.cells["meld-emotion"]) == "70.00" and row.unfinished
    assert row.earlier_values == {"meld-emotion": "50.00"}

"""A column of a board holds one benchmark: what has its name and is another one stands beside it, marked, and in no rank."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.apps.leaderboards.api import leaderboard
from codec_bench.apps.leaderboards.command import leaderboard as show_leaderboard
from codec_bench.apps.leaderboards.rank_uncertainty import points_of

MODEL = """
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response


class Echo(Model):
    def __init__(self, name="echo"):
        self.info = ModelInfo(name)

    @property
    def identity(self):
        return {"echo": 1}

    async def ask(self, request):
        return Response(text=request.messages[-1].content[-1].rpartition("|")[2].strip())
"""
RIGHT = [{"id": f"a{n}", "q": f"say | {n}", "right": str(n)} for n in range(8)]
DEFINITION = {
    "version": 1, "title": "Mine", "summary": "Questions of the test.", "category": "QA", "kind": "qa", "language": "en",
    "name": "mine", "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "postprocess": [],
    "metrics": ["accuracy[exact]"], "primary": "accuracy[exact]",
}  # fmt: skip


@pytest.fixture
def define(tmp_path):
    def write(folder, rows=RIGHT, size=8, **changes):
        place = tmp_path / folder
        place.mkdir(parents=True)
        columns = {"question": "q", "reference": "right"}
        data = {"path": "rows.jsonl", "id": "id", "columns": columns, "size": size}
        (place / "benchmark.yaml").write_text(yaml.safe_dump({**DEFINITION, "data": data, **changes}))
        (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return place

    return write


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model.py").write_text(MODEL)

    def ask(benchmark, out, name="echo", **more):
        model = f"{tmp_path / 'model.py'}:Echo"
        settings = {"page": False, "cache": False, "workers": 1, "options": {model: {"name": name}}, **more}
        done = run_benchmark(benchmark=str(benchmark), model=model, out=tmp_path / "runs" / out, **settings)
        for one in done.runs.values():
            one.close()

    return ask


@pytest.fixture
def board(tmp_path):
    def write(benchmark):
        column = {"name": "C", "benchmark": str(benchmark), "metric": "accuracy[exact]", "counts": "score"}
        (tmp_path / "board.yaml").write_text(yaml.safe_dump({"version": 1, "summary": "Mine.", "columns": [column]}))
        return str(tmp_path / "board.yaml")

    return write


def told(board, tmp_path):
    rows = leaderboard(board, [tmp_path / "runs"]).rows
    return {row.name: (str(row.cells["C"]), row.compared) for row in rows}


@pytest.mark.parametrize("named", ["mine", "./mine", "{folder}/mine"])
def test_a_board_over_a_benchmark_of_ones_own_by_name_and_by_path(tmp_path, define, run, board, named):
    run(define("mine"), "a")
    assert told(board(named.format(folder=tmp_path)), tmp_path) == {"echo": ("100.00", True)}


def test_the_cells_of_own_rows_show_their_intervals(tmp_path, define, run, board, capsys):
    rows = [{**row, "right": str(n % 2 or row["right"])} for n, row in enumerate(RIGHT * 4)]
    run(define("mine", [{**row, "id": f"b{n}"} for n, row in enumerate(rows)], size=32), "a")
    (row,) = leaderboard(board("mine"), [tmp_path / "runs"]).rows
    low, high = row.intervals["C"]
    assert low < row.cells["C"] < high
    show_leaderboard(board("mine"), [tmp_path / "runs"])
    assert f"{row.cells['C']} [{low}, {high}]" in " ".join(capsys.readouterr().out.split())


def test_what_has_the_name_and_is_another_stands_beside_the_column_marked(tmp_path, define, run, board, capsys):
    run(define("mine"), "a")
    run(define("swapped", [{**row, "right": str(7 - int(row["right"]))} for row in RIGHT]), "b")
    run(define("prompt", prompt={"messages": [{"content": ["Please: {{ question }}"]}]}), "c")
    run(define("reading", postprocess=["label"], fields={"labels": [str(n) for n in range(4)]}), "d")
    run(tmp_path / "mine", "e", limit=3)
    shown = board("mine")
    rows = told(shown, tmp_path)
    assert rows.pop("echo") == ("100.00", True)
    assert rows.pop("echo (other data)") == ("0.00", False) and rows.pop("echo (other prompt)") == ("100.00", False)
    assert rows.pop("echo (3 of 8 questions)") == ("100.00", False)
    assert set(rows) == {"echo (other data, other reading)"}
    found = leaderboard(shown, [tmp_path / "runs"])
    assert found.rows[0].name == "echo" and points_of(found).complete.tolist() == [True, *[False] * 4]
    # Given alone it is marked too.
    (alone,) = leaderboard(shown, [tmp_path / "runs" / "b"]).rows
    assert alone.apart == ("other data",) and not alone.compared
    show_leaderboard(shown, [tmp_path / "runs"])
    assert "echo (3 of 8 questions): C is over 3 of 8 questions" in capsys.readouterr().err


def test_data_that_hold_fewer_questions_than_the_definition_says_are_marked(tmp_path, define, run, board):
    run(define("mine", size=896), "a")
    (row,) = leaderboard(board("mine"), [tmp_path / "runs"]).rows
    assert (row.name, row.short, row.limited, row.parts) == (
        "echo (8 of 896 questions)", True, False, {"C": "8 of 896 questions"}
    )  # fmt: skip
    assert not row.compared
    summary = json.loads((Path(row.folders[0]) / "summary.json").read_text("utf-8"))
    assert summary["rows"] == {"n": 8, "size": 896, "limit": None, "why": "data"}
    assert "8 of 896 questions: the data hold no more" in leaderboard_markdown(Path(row.folders[0]))


def leaderboard_markdown(folder):
    from codec_bench.report.opened import open_run
    from codec_bench.report.paper import summary_markdown
    from codec_bench.stats.summary import summarise

    return summary_markdown(summarise(open_run(folder)))


def test_a_site_has_a_leaderboard_for_each_of_two_benchmarks_of_one_name(tmp_path, define, run):
    from codec_bench.apps.site.records import describe_run
    from codec_bench.report.opened import open_run
    from codec_bench.store.folders import run_folders

    run(define("mine"), "a")
    run(define("prompt", prompt={"messages": [{"content": ["Please: {{ question }}"]}]}), "b")
    run(tmp_path / "mine", "c", name="other")
    a, b, c = (describe_run(open_run(run_folders(tmp_path / "runs" / name)[0]))["board"]["key"] for name in "abc")
    assert a == c != b


def test_runs_that_asked_other_questions_under_the_same_ids_are_not_compared_and_other_prompts_are_told(
    tmp_path, define, run
):
    from codec_bench.api.compare import compare
    from codec_bench.errors import UserError
    from codec_bench.store.folders import run_folders

    run(define("mine"), "a")
    run(define("swapped", [{**row, "right": str(7 - int(row["right"]))} for row in RIGHT]), "b")
    run(tmp_path / "mine", "c", limit=3)
    whole, swapped, limited = (run_folders(tmp_path / "runs" / name)[0] for name in "abc")
    with pytest.raises(UserError, match="the runs asked different questions: 'a0' and 7 more"):
        compare(runs=[whole, swapped])
    (pair,) = compare(runs=[whole, limited])
    assert pair.unlike == ()
    (tmp_path / "mine" / "benchmark.yaml").write_text(
        (tmp_path / "mine" / "benchmark.yaml").read_text().replace("{{ question }}", "Please: {{ question }}")
    )
    run(tmp_path / "mine", "d")
    (pair,) = compare(runs=[whole, run_folders(tmp_path / "runs" / "d")[0]])
    assert pair.unlike == ("other prompt",) and pair.as_dict()["unlike"] == ["other prompt"]

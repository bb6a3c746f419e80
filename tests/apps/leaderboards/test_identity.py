"""A column of a board holds one benchmark: what has its name and is another one stands beside it, marked, and in no
rank.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import miniature
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from refusals import refuses

from codec_bench.api.compare import compare
from codec_bench.api.report import report
from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.apps.leaderboards.api import leaderboard
from codec_bench.apps.leaderboards.command import leaderboard as show_leaderboard
from codec_bench.apps.leaderboards.rank_uncertainty import points_of
from codec_bench.apps.site.records import describe_run
from codec_bench.report.open_run import open_run
from codec_bench.report.page.columns import side_by_side
from codec_bench.store.folders import run_folders

MODEL = """
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response


class Echo(Model):
    def __init__(self, name="echo", dtype="float32", says=None):
        self.info = ModelInfo(name)
        self.says = says

    @property
    def identity(self):
        return {"echo": 1}

    async def ask(self, request):
        return Response(text=self.says or request.messages[-1].content[-1].rpartition("|")[2].strip())
"""
RIGHT = [{"id": f"a{n}", "q": f"say | {n}", "right": str(n)} for n in range(8)]
DEFINITION = {
    "version": 1, "title": "Mine", "summary": "Questions of the test.", "category": "QA", "kind": "qa",
    "language": "en",
    "name": "mine", "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "postprocess": [],
    "metrics": ["accuracy[exact]"], "primary": "accuracy[exact]",
}  # fmt: skip


def write_definition(tmp_path, folder, rows=RIGHT, size=8, **changes):
    path = tmp_path / folder
    path.mkdir(parents=True)
    columns = {"question": "q", "reference": "right"}
    data = {"path": "rows.jsonl", "id": "id", "columns": columns, "size": size}
    (path / "benchmark.yaml").write_text(yaml.safe_dump({**DEFINITION, "data": data, **changes}))
    (path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def define(tmp_path):
    return partial(write_definition, tmp_path)


@pytest.fixture
def run(tmp_path, monkeypatch):
    return runs_in(tmp_path, monkeypatch)


def runs_in(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model.py").write_text(MODEL)

    def ask(benchmark, out, name="echo", inputs=None, **more):
        model = f"{tmp_path / 'model.py'}:Echo"
        options = {"name": name, **(inputs or {})}
        settings = {"page": False, "cache": False, "workers": 1, "options": {model: options}, **more}
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


@pytest.fixture(scope="module")
def tricks(tmp_path_factory):
    """The runs of a benchmark of one's own, and of what has its name and is another; by
    folder. No test writes to them.
    """
    tmp_path = tmp_path_factory.mktemp("tricks")
    define = partial(write_definition, tmp_path)
    with pytest.MonkeyPatch.context() as monkeypatch:
        run = runs_in(tmp_path, monkeypatch)
        run(define("mine"), "whole")
        run(define("swapped", [{**row, "right": str(7 - int(row["right"]))} for row in RIGHT]), "swapped")
        run(define("prompt", prompt={"messages": [{"content": ["Please: {{ question }}"]}]}), "prompt")
        run(define("reading", postprocess=["label"], fields={"labels": [str(n) for n in range(8)]}), "reading")
        run(tmp_path / "mine", "part", limit=3)
        run(tmp_path / "mine", "half", inputs={"dtype": "bfloat16"})
    return {name: run_folders(tmp_path / "runs" / name)[0] for name in ("whole", *TRICKS)} | {
        "all": tmp_path / "runs",
        "definition": tmp_path / "mine",
    }


TRICKS = {
    "swapped": "other data", "prompt": "other prompt", "reading": "other data, other reading",
    "part": "3 of 8 questions", "half": "half precision",
}  # fmt: skip


def messages(board, runs):
    rows = leaderboard(board, [runs]).rows
    return {row.name: (str(row.cells["C"]), row.compared) for row in rows}


@pytest.mark.parametrize("named", ["mine", "./mine", "{folder}/mine"])
def test_a_board_over_a_benchmark_of_ones_own_by_name_and_by_path(tmp_path, define, run, board, named):
    run(define("mine"), "a")
    assert messages(board(named.format(folder=tmp_path)), tmp_path / "runs") == {"echo": ("100.00", True)}


def test_the_cells_of_own_rows_show_their_intervals(tmp_path, define, run, board, capsys):
    rows = [{**row, "right": str(n % 2 or row["right"])} for n, row in enumerate(RIGHT * 4)]
    run(define("mine", [{**row, "id": f"b{n}"} for n, row in enumerate(rows)], size=32), "a")
    (row,) = leaderboard(board("mine"), [tmp_path / "runs"]).rows
    low, high = row.intervals["C"]
    assert low < row.cells["C"] < high
    show_leaderboard(board("mine"), [tmp_path / "runs"])
    assert f"{row.cells['C']} [{low}, {high}]" in " ".join(capsys.readouterr().out.split())


def test_another_system_of_the_same_name_stands_marked_next_to_the_column(tricks, board, capsys):
    shown = board(tricks["definition"])
    rows = messages(shown, tricks["all"])
    assert rows.pop("echo") == ("100.00", True) and rows["echo (other data)"] == ("0.00", False)
    assert {name: compared for name, (_, compared) in rows.items()} == {
        f"echo ({mark})": False for mark in TRICKS.values()
    }
    result = leaderboard(shown, [tricks["all"]])
    assert result.rows[0].name == "echo" and points_of(result).complete.tolist() == [True, *[False] * len(TRICKS)]
    # Given alone each is marked too.
    for trick, mark in TRICKS.items():
        (alone,) = leaderboard(shown, [tricks[trick]]).rows
        assert (alone.name, alone.compared) == (f"echo ({mark})", False)
    show_leaderboard(shown, [tricks["all"]])
    assert "echo (3 of 8 questions): C is over 3 of 8 questions" in capsys.readouterr().err


def test_a_limit_over_an_unknown_number_of_questions_is_reported_in_one_sentence(tmp_path, define, run, board, capsys):
    run(define("mine", size=None), "part", limit=3)
    show_leaderboard(board("mine"), [tmp_path / "runs"])
    assert "echo (limited to 3 questions): C is limited to 3 questions" in capsys.readouterr().err


@pytest.mark.parametrize("trick", TRICKS)
def test_runs_of_one_name_that_are_another_have_columns_of_their_own_on_a_page_of_several(tmp_path, tricks, trick):
    built = report([tricks["whole"], tricks[trick], tricks["whole"]], out=tmp_path / "page.html")
    tables = side_by_side(built.runs, built.summaries)
    assert tables.sets == ["mine", f"mine ({TRICKS[trick]})", "mine"]
    held = [[column.data for column, entry in zip(tables.columns, row) if entry] for row in tables.entries]
    assert held == [[name] for name in tables.sets]
    assert f"mine ({TRICKS[trick]})" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize("trick", TRICKS)
def test_a_site_has_a_leaderboard_of_its_own_for_what_has_the_name_and_is_another(tricks, trick):
    complete, other = (describe_run(open_run(tricks[name]))["board"] for name in ("whole", trick))
    assert complete["key"] != other["key"]


def test_runs_of_one_benchmark_in_two_folders_share_a_column_on_a_page(tmp_path, define, run):
    run(define("mine"), "a")
    run(define("copied"), "b", name="other")
    built = report(tmp_path / "runs", out=tmp_path / "page.html")
    assert side_by_side(built.runs, built.summaries).sets == ["", ""]


def test_a_folder_named_like_a_benchmark_of_a_shipped_board_stands_marked_next_to_its_column(tmp_path, define, run):
    rows = [{**row, "right": "neutral", "q": "say | neutral"} for row in RIGHT]
    folder = define(
        "meld-emo",
        rows,
        name="meld-emo",
        metrics=["accuracy[official/ultraeval-audio/prefix-match]"],
        primary="accuracy[official/ultraeval-audio/prefix-match]",
    )
    run(folder, "own")
    (row,) = [row for row in leaderboard("ultraeval-understanding", [tmp_path / "runs"]).rows if not row.published]
    assert row.deviations == ("other data", "other prompt", "other reading") and not row.compared
    assert row.name == "echo (other data, other prompt, other reading, 8 of 2,610 questions)"


@pytest.fixture
def swapped(tmp_path):
    """Makes a mirror of another one whose labels, the cells of this column, stand in another order."""

    def make(mirror, column):
        (file,) = mirror.rglob("*.parquet")
        rows = pq.read_table(file).to_pandas()
        rows[column] = list(rows[column])[::-1]
        copy = tmp_path / "swapped" / file.relative_to(mirror)
        copy.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pandas(rows, schema=pq.read_schema(file), preserve_index=False), copy)
        return tmp_path / "swapped"

    return make


def test_copies_of_data_at_no_known_commit_are_marked_and_ranked_by_no_vote_between_two(tmp_path, run, swapped):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    mirror = miniature.build("audio-mnist", tmp_path / "mirror")
    column = {"name": "C", "benchmark": "audio-mnist", "metric": "accuracy[label]", "counts": "score"}
    board = tmp_path / "board.yaml"
    board.write_text(yaml.safe_dump({"version": 1, "summary": "Mine.", "columns": [column]}))
    names = lambda: {row.name: row.compared for row in leaderboard(str(board), [tmp_path / "runs"]).rows}  # noqa: E731
    run("audio-mnist", "copy", data=str(mirror), inputs={"says": "7"})
    assert names() == {"echo (own copy of the data)": True}
    run("audio-mnist", "swapped", data=str(swapped(mirror, "Digit")), inputs={"says": "7"})
    assert names() == {"echo (copies of the data that disagree)": False}
    run("audio-mnist", "third", name="third", data=str(mirror), inputs={"says": "7"})
    assert names() == {
        "echo (own copy of the data)": True,
        "echo (other data)": False,
        "third (own copy of the data)": True,
    }
    boards = [
        describe_run(open_run(run_folders(tmp_path / "runs" / name)[0]))["board"]["key"] for name in ("copy", "swapped")
    ]
    assert boards[0] != boards[1]


def test_what_the_repository_requests_decides_against_more_copies(tmp_path, run, swapped):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    mirror = miniature.build("meld-emo", tmp_path / "mirror")
    other = swapped(mirror, "Emotion")
    (card,) = mirror.rglob("README.md")
    commit = card.parent / ".cache" / "huggingface" / "download" / "README.md.metadata"
    commit.parent.mkdir(parents=True)
    commit.write_text(f"{'0' * 40}\n", "utf-8")  # as a download leaves it
    run("meld-emo", "true", name="true", data=str(mirror), inputs={"says": "neutral"})
    for name in ("one", "two"):
        run("meld-emo", name, name=name, data=str(other), inputs={"says": "neutral"})
    rows = [row for row in leaderboard("ultraeval-understanding", [tmp_path / "runs"]).rows if not row.published]
    assert {row.name: row.deviations for row in rows} == {
        "true (6 of 2,610 questions)": (),
        **{f"{name} (other data, 6 of 2,610 questions)": ("other data",) for name in ("one", "two")},
    }


def test_swapped_labels_in_a_part_of_a_benchmark_of_a_shipped_board_are_other_data(tmp_path, run, swapped):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    mirror = miniature.build("meld-emo", tmp_path / "mirror")
    for name in ("echo", "other"):
        run("meld-emo", name, name=name, data=str(mirror), inputs={"says": "neutral"})
    run("meld-emo", "few", name="few", data=str(mirror), inputs={"says": "neutral"}, limit=3)
    run("meld-emo", "swapped", data=str(swapped(mirror, "Emotion")), inputs={"says": "neutral"})
    rows = [row for row in leaderboard("ultraeval-understanding", [tmp_path / "runs"]).rows if not row.published]
    marked = {row.name.partition(" (")[0] for row in rows if row.deviations == ("other data",)}
    assert marked == {"echo"} and len(rows) == 4 and not any(row.compared for row in rows)
    assert "echo (other data, 6 of 2,610 questions, own copy of the data)" not in {row.name for row in rows}
    assert "echo (other data, 6 of 2,610 questions)" in {row.name for row in rows}


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


def test_a_column_that_a_setting_has_changed_is_marked_on_board_table_and_export(tmp_path, define, run, board):
    mine = define("mine", [{**row, "wrong": "7"} for row in RIGHT])
    run(mine, "a", options={str(mine): {"data.columns.reference": "wrong"}})
    (row,) = leaderboard(board("mine"), [tmp_path / "runs"]).rows
    assert row.deviations == ("other data",) and not row.compared
    text = "reference from 'wrong' in place of 'right'"
    summary = json.loads((Path(row.folders[0]) / "summary.json").read_text("utf-8"))
    assert summary["other_data"] == [text]
    assert f"other data than the definition's: {text}" in leaderboard_markdown(Path(row.folders[0])).replace("\\", "")


def leaderboard_markdown(folder):
    from codec_bench.report.open_run import open_run
    from codec_bench.report.paper import summary_markdown
    from codec_bench.stats.summary import summarise

    return summary_markdown(summarise(open_run(folder)))


def test_runs_with_other_questions_under_the_same_ids_are_not_compared_and_other_variants_are_reported(tricks):
    with refuses("questions_differ", question="a0", questions=8):
        compare(runs=[tricks["whole"], tricks["swapped"]])
    for trick, mismatches in {"part": [], "prompt": ["other prompt"], "half": ["other precision"]}.items():
        (pair,) = compare(runs=[tricks["whole"], tricks[trick]])
        assert pair.as_dict()["unlike"] == mismatches, trick
        assert pair.comparisons[0].dropped == (5 if trick == "part" else 0)


def test_a_run_at_half_precision_stands_marked_next_to_the_column_of_a_shipped_board(tmp_path, run):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    miniature.build("meld-emo", tmp_path / "mirror")
    run("meld-emo", "whole", data=str(tmp_path / "mirror"), inputs={"says": "neutral"})
    run("meld-emo", "half", data=str(tmp_path / "mirror"), inputs={"says": "neutral", "dtype": "float16"})
    board = leaderboard("ultraeval-understanding", [tmp_path / "runs"])
    actual = {row.deviations: row for row in board.rows if not row.published}
    assert set(actual) == {(), ("half precision",)}
    half = actual["half precision",]
    assert half.name.startswith("echo (half precision") and not half.compared
    ranked = points_of(board)
    assert not ranked.complete[[row.name for row in board.rows].index(half.name)]


JUDGE = """
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response


class Kind(Model):
    def __init__(self, name="kind"):
        self.info = ModelInfo(name)

    @property
    def identity(self):
        return {"kind": 1}

    async def ask(self, request):
        return Response(text="10 10")
"""


def test_ratings_by_a_judge_of_ones_own_enter_no_column_of_a_shipped_board(tmp_path, run):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    miniature.build("air-bench-chat", tmp_path / "mirror")
    (tmp_path / "judge.py").write_text(JUDGE)
    run("air-bench-chat", "rated", data=str(tmp_path / "mirror"), judge=f"{tmp_path / 'judge.py'}:Kind")
    board = leaderboard("air-bench-chat", [tmp_path / "runs"])
    (row,) = [row for row in board.rows if not row.published]
    assert row.cells == {} and row.average is None and set(row.judged) >= {"speech", "sound", "music"}
    assert all(value.startswith("10.00 by judge.py:Kind-") for value in row.judged.values())
    assert not row.compared and not points_of(board).complete[board.rows.index(row)]

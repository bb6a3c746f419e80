"""Own runs on a leaderboard: which runs give which cells, by which rule for failures, and what a judge's ratings
become.
"""

from __future__ import annotations

import json

import pytest

from codec_bench.apps.leaderboards.api import leaderboard
from codec_bench.apps.leaderboards.command import leaderboard as show_leaderboard
from codec_bench.apps.leaderboards.formats import best_rows
from codec_bench.apps.leaderboards.json_values import plain_board
from codec_bench.apps.site.published import published_board
from codec_bench.apps.site.records import describe_run
from codec_bench.messages import Diagnostic
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.types import Score


def recorded(folder, benchmark, metric, values, *, kind="answer", protocol="p", system="mine", has_worst=True, **about):
    """A run over questions with these values of one metric; None is an answer that could not be read.

    A value may stand with the value of the subset that its question is in, as (subset, value). With `wordings`, every
    question was put in so many, one after the other.
    """
    writer = AnswerWriter(folder, {"asked": {}, "scored": {}})
    facts = {metric: {"protocol": protocol, "unit": "", "higher_is_better": True, "kind": kind, "aggregate": "mean"}}
    writer.begin({system: {}}, facts, ())
    by, wordings = about.pop("by", None), about.pop("wordings", 0)
    states = about.pop("states", [None] * len(values))
    pairs = [value if by else (None, value) for value in values]
    writer.write_answers(
        [
            (
                QuestionRecord(
                    n,
                    f"q{n}",
                    subsets={by: of} if by else {"wording": f"{n % wordings + 1:02d}"} if wordings else {},
                    draw_of=f"q{n // wordings}" if wordings else None,
                    draw=n % wordings if wordings else None,
                ),
                AnswerRecord("ok", None, "x", served={"model": "m", "revision": states[n]} if states[n] else {}),
            )
            for n, (of, _) in enumerate(pairs)
        ]
    )
    worst = Score.ok(0.0, protocol) if has_worst else None
    scores = [
        Score(None, "unparsed", "no option", protocol).counting_wrong(worst) if v is None else Score.ok(v, protocol)
        for _, v in pairs
    ]
    items = [(n, ItemRecord(system, f"q{n}", "ok", None, {metric: score})) for n, score in enumerate(scores)]
    writer.write_marked(items, {})
    writer.set_meta(benchmark={"name": benchmark, **about}, config={"seed": 0, "limit": None}, state="finished")
    writer.close()


def custom(name, folder):
    return {row.name: row for row in leaderboard(name, [folder]).rows if not row.published}


def test_rows_of_the_tasks_of_a_copy_and_of_the_official_way(tmp_path):
    recorded(tmp_path / "a", "air-bench-sound-aqa", "accuracy[choice]", [1, 1, 0, 1])
    recorded(tmp_path / "b", "air-bench-audio-grounding", "accuracy[choice]", [1, 0])
    recorded(
        tmp_path / "c",
        "air-bench-sound-aqa-official",
        "rating[air-bench-align-official]",
        [0, 0, 0, 1],
        kind="rating",
        protocol="rating/air-bench-align-official-0a1b2c3d/judge",
    )
    copied = [("Sound_AQA", 1), ("Sound_AQA", 0), ("Music_AQA", 0), ("Music_AQA", 0)]
    recorded(tmp_path / "d", "air-bench-foundation-lmms-lab", "accuracy[choice]", copied, by="task")
    rows = custom("air-bench-foundation", tmp_path)
    options = {name: {task: str(value) for task, value in row.cells.items()} for name, row in rows.items()}
    assert options == {
        "mine": {"Sound_AQA": "75.00", "Audio_Grounding": "50.00"},
        "mine (official, read by judge; this judge was not tested, other judge)": {"Sound_AQA": "25.00"},
        "mine (lmms-lab/AIR_Bench)": {"Sound_AQA": "50.00", "Music_AQA": "0.00"},
    }
    assert str(rows["mine"].means["sound"]) == "62.50" and not rows["mine"].complete
    # With every question counting as one: 4 of 6.
    assert str(custom("air-bench-foundation-per-sample", tmp_path)["mine"].means["sound"]) == "66.67"


def test_a_row_that_rests_on_several_states_of_its_model_names_them(tmp_path, capsys):
    recorded(tmp_path / "a", "air-bench-sound-aqa", "accuracy[choice]", [1, 0], states=["fp_1", "fp_1"])
    assert custom("air-bench-foundation", tmp_path)["mine"].states == ("m fp_1",)
    assert not leaderboard("air-bench-foundation", [tmp_path]).mixed
    recorded(tmp_path / "b", "air-bench-audio-grounding", "accuracy[choice]", [1, 0], states=["fp_1", "fp_2"])
    show_leaderboard("air-bench-foundation", [tmp_path])
    messages = capsys.readouterr()
    assert "mine rests on 2 states of its model, as its service named them: m fp_1; m fp_2" in messages.err
    assert "(2 states of the model)" in " ".join(messages.out.split())
    # A site takes no cell of one state into a row of the other.
    systems = [describe_run(Run(tmp_path / name))["systems"]["mine"]["identity"] for name in "ab"]
    assert systems[0] != systems[1]


def test_columns_without_a_value_are_named_and_the_mean_over_fewer_is_marked(tmp_path, capsys):
    tasks = [column for column in leaderboard("air-bench-foundation").columns if column.name != "Sound_AQA"]
    for n, column in enumerate(tasks):
        recorded(tmp_path / str(n), column.benchmark, column.metric, [1, 1, 1, 0])
    board = leaderboard("air-bench-foundation", [tmp_path], robustness=True)
    (at,) = [n for n, row in enumerate(board.rows) if not row.published]
    row = board.rows[at]
    # 75.00 would be the best average of all, over a category that lacks one of its four tasks.
    assert str(row.average) == "75.00" and row.missing == ("Sound_AQA",) and not row.complete
    assert all(one.complete for one in board.rows[:at]) and board.trust.robustness[at].rank is None
    assert {group for group in board.means if board.is_part(row, group)} == {"sound"}
    show_leaderboard("air-bench-foundation", [tmp_path])
    messages = capsys.readouterr()
    assert "mine: no value for 1 of 19 columns: Sound_AQA (of sound)" in messages.err
    assert "75.00 (part)" in " ".join(messages.out.split())

    missing = custom("air-bench-foundation", tmp_path / "0")["mine"]
    text = board.lacking(missing)
    assert "all 4 of sound; all 6 of music" in text and text.startswith(
        "no value for 18 of 19 columns: Spoken_Language"
    )


def test_a_cell_follows_the_rule_of_the_toolkit_and_the_others_stand_next_to_it(tmp_path):
    for counts, expected in (("left-out", "100.00"), ("as-wrong", "50.00")):
        folder = tmp_path / counts
        failures = {"toolkit": "theirs", "counts": counts}
        recorded(folder / "run", "air-bench-sound-aqa", "accuracy[choice]", [1, None], failures=failures)
        (row,) = custom("air-bench-foundation", folder).values()
        assert str(row.cells["Sound_AQA"]) == expected
        options = {rule: str(value) for rule, value in row.policies["Sound_AQA"].items()}
        assert options == {"left_out": "100.00", "as_wrong": "50.00", "official": expected}
    recorded(tmp_path / "silent" / "run", "air-bench-sound-aqa", "accuracy[choice]", [1, None])
    (row,) = custom("air-bench-foundation", tmp_path / "silent").values()
    shown = {rule: str(value) for rule, value in row.policies["Sound_AQA"].items()}
    assert shown == {"as_wrong": "50.00", "left_out": "100.00"}, "also without a rule of the toolkit"
    recorded(tmp_path / "whole" / "run", "air-bench-sound-aqa", "accuracy[choice]", [1, 0], failures=failures)
    assert custom("air-bench-foundation", tmp_path / "whole")["mine"].policies == {}


@pytest.mark.parametrize("has_worst", [True, False])
def test_failures_of_a_column_and_of_a_subset_are_counted_wherever_the_board_is(tmp_path, capsys, has_worst):
    """A metric such as UTMOS has no worst value, and the value of a subset leaves failures out too."""
    values = [("a", 1.0)] * 7 + [("a", None)] + [("b", 1.0)] * 5 + [("b", None)] * 3
    metric, benchmark = "accuracy[label]", "audio-mnist"
    recorded(tmp_path / "run", benchmark, metric, values, by="part", has_worst=has_worst)
    column = {"benchmark": benchmark, "metric": metric, "counts": "score"}
    columns = [{**column, "name": "all"}, {**column, "name": "of b", "subset": "part=b"}]
    (tmp_path / "board.yaml").write_text(json.dumps({"version": 1, "summary": "s", "columns": columns}))
    board = leaderboard(str(tmp_path / "board.yaml"), [tmp_path / "run"])
    (row,) = board.rows
    code = "failures_in_column" if has_worst else "failures_without_worst"
    notes = [Diagnostic(code, column=name, failed=n, items=of) for name, n, of in (("all", 4, 16), ("of b", 3, 8))]
    assert list(row.failures) == notes and {str(value) for value in row.cells.values()} == {"100.00"}
    lower = {"all": {"as_wrong": 75.0, "left_out": 100.0}, "of b": {"as_wrong": 62.5, "left_out": 100.0}}
    (plain,) = plain_board(board)["rows"]
    assert plain["policies"] == (lower if has_worst else {})
    assert plain["failures"] == list(map(str, notes))
    assert plain["failures_code"] == [note.as_dict() for note in notes]
    assert published_board(board, {})["rows"][0]["failures"] == notes
    show_leaderboard(str(tmp_path / "board.yaml"), [tmp_path / "run"], latex=tmp_path / "board.tex")
    text, latex = " ".join(capsys.readouterr().err.split()), (tmp_path / "board.tex").read_text()
    for note in notes:
        assert f"mine: {note}" in text and str(note) in latex


def test_one_metric_by_several_protocols_is_named_in_columns_and_rows_and_not_compared(tmp_path, capsys):
    """A custom metric that changed between two runs, over 30 questions and between the two benchmarks of one system."""
    metric, protocols = "accuracy[label]", ("mine/1", "mine/2")
    column = {"benchmark": "audio-mnist", "metric": metric, "counts": "score", "name": "digits"}
    other = {**column, "benchmark": "vocalsound", "name": "sounds"}
    (tmp_path / "board.yaml").write_text(json.dumps({"version": 1, "summary": "s", "columns": [column, other]}))
    for n, protocol in enumerate(protocols):
        recorded(tmp_path / protocol, "audio-mnist", metric, [n] * 30, protocol=protocol, system=f"system-{n}")
    recorded(tmp_path / "sounds", "vocalsound", metric, [1] * 30, protocol="mine/2", system="system-0")
    board = leaderboard(str(tmp_path / "board.yaml"), [tmp_path])
    assert board.mixed == [
        Diagnostic(
            "column_of_several_protocols", column="digits", protocols=["mine/1", "mine/2"],
            systems=[["system-0"], ["system-1"]],
        ),
        Diagnostic(
            "row_of_several_protocols", row="system-0", metric=metric, protocols=["mine/1", "mine/2"],
            columns=[["digits"], ["sounds"]],
        ),
    ]  # fmt: skip
    assert best_rows(board, board.columns[0]) == (set(), set())
    show_leaderboard(str(tmp_path / "board.yaml"), [tmp_path])
    assert all(str(note) in " ".join(capsys.readouterr().err.split()) for note in board.mixed[:1])
    recorded(tmp_path / "mine/1" / "again", "audio-mnist", metric, [1] * 30, protocol="mine/1", system="system-1")
    board = leaderboard(str(tmp_path / "board.yaml"), [tmp_path / "mine/1"])
    assert board.mixed == [] and best_rows(board, board.columns[0])[0]


def test_a_run_without_failures_has_no_note_on_them(tmp_path):
    recorded(tmp_path / "run", "air-bench-sound-aqa", "accuracy[choice]", [1, 0], has_worst=False)
    assert custom("air-bench-foundation", tmp_path)["mine"].failures == ()


def test_a_cell_that_rests_on_several_wordings_says_how_far_they_lie_apart(tmp_path, capsys):
    recorded(tmp_path / "run", "air-bench-sound-aqa", "accuracy[choice]", [1, 0, 1, None, 1, 0, 0, 1], wordings=2)
    (row,) = custom("air-bench-foundation", tmp_path).values()
    options = {name: str(value) for name, value in row.wording_spreads["Sound_AQA"].items()}
    assert options == {"n": "2", "mean": "50.00", "worst": "25.00", "best": "75.00", "sd": "35.36"}
    show_leaderboard("air-bench-foundation", [tmp_path])
    text = capsys.readouterr().err
    assert (
        "Sound_AQA over 2 wordings, failures as wrong: mean 50.00, standard deviation 35.36, worst 25.00, best 75.00"
        in text
    )


def test_ratings_of_one_judge_have_means_of_their_own(tmp_path):
    values = [("speech", 6), ("sound", 4), ("music", 5), ("speech_and_sound", 2), ("speech_and_music", 4)]
    recorded(
        tmp_path / "chat", "air-bench-chat", "rating[air-bench-chat]", values, by="group", kind="rating",
        protocol="rating/air-bench-chat-0a1b2c3d/judge",
    )  # fmt: skip
    row = custom("air-bench-chat", tmp_path)["mine"]
    by = "by judge (air-bench-chat-0a1b2c3d); this judge was not tested"
    assert row.cells == {} and row.average is None and row.means == {}
    assert row.judged == {
        "speech": f"6.00 {by}", "sound": f"4.00 {by}", "music": f"5.00 {by}", "speech_and_sound": f"2.00 {by}",
        "speech_and_music": f"4.00 {by}", "mixed": f"3.00 {by}", "average": f"4.50 {by}",
    }  # fmt: skip


def test_runs_over_other_questions_are_not_one_row_and_the_later_of_equally_many_decides_the_column(tmp_path):
    recorded(tmp_path / "a", "audio-mnist", "accuracy[label]", [1, 1, 1, 0])
    recorded(tmp_path / "b", "audio-mnist", "accuracy[label]", [1, 0])
    column = {"name": "C", "benchmark": "audio-mnist", "metric": "accuracy[label]", "counts": "score"}
    board = tmp_path / "board.yaml"
    board.write_text(json.dumps({"version": 1, "summary": "s", "columns": [column]}))
    rows = {row.name: (str(row.cells["C"]), row.compared) for row in leaderboard(str(board), [tmp_path]).rows}
    assert rows == {"mine": ("50.00", True), "mine (other data)": ("75.00", False)}


def test_a_judge_in_place_of_the_one_that_the_rubric_names_is_reported_on_a_custom_board_too(tmp_path):
    for n, judge in enumerate(("judge-x", "gpt-4o-mini")):
        folder, protocol = tmp_path / "runs" / str(n), f"rating/wildspeech-0a1b2c3d/{judge}"
        recorded(folder, "wildspeech-bench", "rating[wildspeech]", [3, 3], kind="rating", protocol=protocol)
    column = {"name": "C", "benchmark": "wildspeech-bench", "metric": "rating[wildspeech]"}
    for counts in ("rating", "score"):  # the judge rated, or it read what a rule marked
        board = tmp_path / f"{counts}.yaml"
        board.write_text(json.dumps({"version": 1, "summary": "Mine.", "columns": [{**column, "counts": counts}]}))
        result = leaderboard(str(board), [tmp_path / "runs"])
        options = {row.name: row.judged.get("C", "") for row in result.rows}
        (other,) = (name for name in options if "judge-x" in name + options[name])
        (named,) = options.keys() - {other}
        assert "in place of gpt-4o-mini; this judge was not tested" in other + options[other]
        assert "in place of" not in named + options[named] and "gpt-4o-mini" in named + options[named]
        compared = {row.name: row.compared for row in result.rows}
        assert compared == {other: counts == "rating", named: True}
        assert all((counts == "score") == bool(row.cells) for row in result.rows)


def test_ratings_of_one_system_by_two_judges_have_rows_of_their_own(tmp_path):
    for n, (judge, value) in enumerate((("judge-x", 3), ("judge-y", 5))):
        recorded(
            tmp_path / str(n), "air-bench-chat", "rating[air-bench-chat]", [("speech", value), ("sound", 4)],
            by="group", kind="rating",
            protocol=f"rating/air-bench-chat-0a1b2c3d/{judge}",
        )  # fmt: skip
    rows = custom("air-bench-chat", tmp_path)
    assert {name: row.judged["speech"] for name, row in rows.items()} == {
        f"mine (rated by {judge})": f"{value} by {judge} (air-bench-chat-0a1b2c3d); this judge was not tested"
        for judge, value in (("judge-x", "3.00"), ("judge-y", "5.00"))
    }
    assert not any(row.earlier_values or row.cells or row.complete for row in rows.values())

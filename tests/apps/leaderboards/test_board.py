"""The published tables of AIR-Bench and AudioBench, and their arithmetic against a few lines of its own."""

from __future__ import annotations

import csv
from decimal import Decimal
from importlib.resources import files
from statistics import fmean

import pytest

from codec_bench.apps.leaderboards.api import leaderboard
from codec_bench.apps.leaderboards.board import Column, Variant
from codec_bench.benchmark import load_benchmark, suite

SPEECH, SOUND, MUSIC = slice(1, 10), slice(10, 14), slice(14, 20)
PER_SAMPLE = {
    "Qwen-Audio-Chat": (58.0, 62.8, 49.9, 56.6), "Qwen-Audio Turbo": (64.9, 61.7, 53.6, 60.5),
    "PandaGPT": (40.4, 46.6, 39.2, 41.5), "NExT-GPT": (35.0, 28.0, 27.7, 31.0),
}  # fmt: skip
"""By category and over all, with every question counting as one: computed from the paper's tables outside of this
project.
"""


def table(name):
    with (files("codec_bench") / "configs" / "leaderboard" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def rows(name):
    return {row.name: row for row in leaderboard(name).rows}


def test_the_29_cells_of_air_bench_follow_from_its_tasks():
    result, checked = rows("air-bench-foundation"), 0
    for line in table("air-bench-foundation")[1:]:
        row, printed = result[line[0]], line[20:]
        if not line[1]:
            continue
        categories = [fmean(map(float, line[of])) if all(line[of]) else None for of in (SPEECH, SOUND, MUSIC)]
        expected = [*categories, fmean(categories) if None not in categories else None]
        ours = [*(row.means.get(group) for group in ("speech", "sound", "music")), row.average]
        for value, mine, options in zip(expected, ours, printed):
            if options:
                assert abs(value - float(options)) <= 0.0501 and abs(float(mine) - value) <= 0.00501
                checked += 1
    assert checked == 29
    assert {name for name, row in result.items() if not row.complete} == {"Whisper+GPT-4"}


def test_a_row_without_tasks_is_as_printed_and_says_so():
    macaw = rows("air-bench-foundation")["Macaw-LLM"]
    assert macaw.cells == {} and "as printed" in macaw.note and macaw.complete
    assert [str(macaw.shown_mean(group)) for group in ("speech", "sound", "music")] == ["32.2", "30.1", "29.7"]
    assert (str(macaw.shown_average), macaw.average) == ("30.7", Decimal("30.67"))


def test_every_question_counts_as_one_in_the_other_board():
    result = rows("air-bench-foundation-per-sample")
    assert "Macaw-LLM" not in result
    sizes = {
        column.name: load_benchmark(column.benchmark).size for column in leaderboard("air-bench-foundation").columns
    }
    assert sum(sizes.values()) == 24_683
    for name, expected in PER_SAMPLE.items():
        row = result[name]
        ours = [*(float(row.means[group]) for group in ("speech", "sound", "music")), float(row.average)]
        assert ours == pytest.approx(expected, abs=0.0501)
        actual = sum(float(row.cells[task]) * size for task, size in sizes.items()) / 24_683
        assert ours[3] == pytest.approx(actual, abs=0.00501)


def test_the_averages_of_air_bench_s_chat_part_follow_but_for_the_two_that_a_note_tells():
    noted = set()
    for line in table("air-bench-chat")[1:]:
        row = rows("air-bench-chat")[line[0]]
        if "" in line[1:]:
            assert not row.complete
            continue
        mean = fmean(map(float, line[1:5]))
        assert abs(float(row.average) - mean) <= 0.00501 and str(row.shown_average) == line[5]
        if abs(mean - float(line[5])) > 0.01:
            noted.add(row.name)
            assert f"{mean:.2f}" in row.note and line[5] in row.note
    assert noted == {"Macaw-LLM", "NExT-GPT"} == {row.name for row in leaderboard("air-bench-chat").rows if row.note}


def test_the_28_values_of_audiobench_and_their_groups():
    board = leaderboard("audiobench")
    head, *lines = table("audiobench")
    assert [column.name for column in board.columns] == head[1:] and len(head) == 29 and len(lines) == 5
    unit = {column.name: "WER" if column.counts == "error" else column.metric for column in board.columns}
    groups: dict[str, list[int]] = {}
    for at, column in enumerate(board.columns, 1):
        groups.setdefault(column.group, []).append(at)
        # What was typed into the definition of the data set is the same number.
        known = {(p.model, p.metric): p.value for p in load_benchmark(column.benchmark).published}
        for line in lines:
            assert column.shown(known[line[0], column.metric]) == Decimal(line[at])
    for members in groups.values():
        kinds = {unit[head[at]] for at in members}
        assert kinds == {"WER"} or "WER" not in kinds, "error rates and scores are never in one mean"
        assert "meteor" not in kinds or kinds == {"meteor"}
    for line in lines:
        row = rows("audiobench")[line[0]]
        assert row.average is None and row.complete
        for group, members in groups.items():
            assert float(row.means[group]) == pytest.approx(fmean(float(line[at]) for at in members), abs=0.00501)


def test_the_suites_of_air_bench_are_the_columns_of_its_board():
    columns = leaderboard("air-bench-foundation").columns
    assert suite("air-bench-foundation") == tuple(column.benchmark for column in columns)
    assert suite("air-bench-foundation-official") == tuple(f"{column.benchmark}-official" for column in columns)
    assert set(suite("air-bench")) == {*suite("air-bench-foundation"), "air-bench-chat"}
    for column in columns:
        one = load_benchmark(column.benchmark)
        assert one.data.where == {"task": column.name} and column.metric in one.metrics
        assert column.chance == (
            50 if column.name in ("Speaker_Gender_Recognition", "Synthesized_Voice_Detection") else 25
        )


def test_a_variant_takes_the_value_of_a_column_from_elsewhere():
    column = Column("Sound_AQA", "air-bench-sound-aqa", "accuracy[choice]", "score", "sound")
    assert Variant("").of(column) == ("air-bench-sound-aqa", "accuracy[choice]", None)
    assert Variant("official", "m", "-official").of(column) == ("air-bench-sound-aqa-official", "m", None)
    assert Variant("copy", benchmark="all", by="task").of(column) == ("all", "accuracy[choice]", "task=Sound_AQA")


@pytest.mark.parametrize("name", ["air-bench-foundation", "air-bench-chat", "audiobench"])
def test_own_runs_can_have_what_a_board_shows(name):
    board = leaderboard(name)
    for column in board.columns:
        one = load_benchmark(column.benchmark)
        assert column.metric in one.metrics
        assert column.subset is None or column.subset.partition("=")[0] in one.subsets


def test_the_means_of_the_open_asr_leaderboard_follow_from_its_sets_except_two():
    result = leaderboard("open-asr").rows
    lines = {line[0]: line[1:] for line in table("open-asr")[1:]}
    assert len(lines) == len(result) == 87
    apart = set()
    for row in result:
        *cells, printed = lines[row.name]
        mean = fmean(map(float, cells))
        assert abs(float(row.average) - (100 - mean)) <= 0.00501 and str(row.shown_mean("WER")) == printed
        if abs(mean - float(printed)) > 0.00501:
            apart.add(row.name)
    assert apart == {row.name for row in result if row.note} and len(apart) == 2
    assert result[0].name == "CohereLabs/cohere-transcribe-03-2026 (RTFx 524.88)"
    assert set(suite("open-asr-march")) == {column.benchmark for column in leaderboard("open-asr").columns}

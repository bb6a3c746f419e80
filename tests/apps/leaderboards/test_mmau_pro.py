"""MMAU-Pro's total over its three parts, as the authors' program adds them up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_bench.apps.leaderboards.api import leaderboard
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

FILE = "mmau_pro_total"
CASES = json.loads((Path(__file__).parents[2] / "golden" / "text" / f"{FILE}.json").read_text("utf-8"))["cases"]


def recorded(folder, column, judge, values):
    writer = RunWriter(folder, {"asked": {}})
    facts = {"protocol": f"rating/r-1/{judge}" if judge else "i", "unit": "", "higher_is_better": True}
    samples = [Sample(str(n), None) for n in range(len(values))]
    writer.begin({"mine": {}}, {column.metric: {**facts, **({"judge": judge} if judge else {})}}, samples)
    scores = [{column.metric: Score.ok(float(value), facts["protocol"])} for value in values]
    writer.write([(n, ItemRecord("mine", str(n), "ok", None, score)) for n, score in enumerate(scores)])
    writer.set_meta(benchmark={"name": column.benchmark}, config={"seed": 0}, state="finished")
    writer.close()


JUDGES = {"options": "nv-embed-v2", "open": "qwen2.5-7b-instruct", "instructions": None}


@pytest.mark.parametrize("case", CASES[::10], ids=range(0, len(CASES), 10))
def test_runs_of_the_three_parts_have_the_authors_total(case, tmp_path):
    for column in leaderboard("mmau-pro").columns:
        recorded(tmp_path / column.name, column, JUDGES[column.name], case["input"][column.name])
    (row,) = leaderboard("mmau-pro", [tmp_path]).rows
    assert row.complete and set(row.cells) == set(JUDGES)
    assert row.name.startswith("mine (read by nv-embed-v2") and " and qwen2.5-7b-instruct" in row.name
    # Cells are rounded to 0.01 before they are averaged.
    assert float(row.average) == pytest.approx(100 * case["expected"], abs=0.0101)


def test_a_hundred_totals_are_the_authors():
    from codec_bench.apps.leaderboards.board import average

    columns = leaderboard("mmau-pro").columns
    for case in CASES:
        values = {name: list(map(float, held)) for name, held in case["input"].items()}
        cells = {c.name: c.shown(sum(values[c.name]) / len(values[c.name])) for c in columns}
        total, complete = average(cells, columns, None, {name: len(held) for name, held in values.items()})
        assert complete and float(total) == pytest.approx(100 * case["expected"], abs=0.0101)
    assert len(CASES) == 100


def test_a_row_without_a_part_is_marked(tmp_path):
    options, *_ = leaderboard("mmau-pro").columns
    recorded(tmp_path / "options", options, "nv-embed-v2", "110")
    (row,) = leaderboard("mmau-pro", [tmp_path]).rows
    assert not row.complete and row.missing == ("open", "instructions")


def test_two_judges_of_one_part_are_in_no_row_together(tmp_path):
    options, open_, instructions = leaderboard("mmau-pro").columns
    recorded(tmp_path / "options", options, "nv-embed-v2", "110")
    recorded(tmp_path / "one", open_, "qwen2.5-7b-instruct", (5, 3))
    recorded(tmp_path / "two", open_, "gpt-4o", (1, 2))
    recorded(tmp_path / "instructions", instructions, None, "10")
    rows = leaderboard("mmau-pro", [tmp_path]).rows
    assert len(rows) == 4 and not any(row.complete for row in rows)

"""How many questions of its benchmark a run holds, and why not all: in the summary, in words, and in what other
tools read.
"""

from __future__ import annotations

from contextlib import closing

import pytest

from codec_bench.report.export_facts import describe_parts
from codec_bench.report.numbers import rows_notes
from codec_bench.report.paper import summary_markdown
from codec_bench.report.table import summary_notes
from codec_bench.stats.row_counts import count_rows
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Summary
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord, Reading, digest_of
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.types import Score


def run_of(folder, n, *, draws=1, size=896, state="finished", about=None, **config):
    with closing(AnswerWriter(folder, {"asked": {}, "scored": {}})) as writer:
        facts = {"unit": "", "higher_is_better": True, "protocol": "p", "aggregate": "mean"}
        writer.begin({"model": {}}, {"m": facts}, ())
        for number in range(n * draws):
            of = f"q{number // draws}"
            drawn = {"draw_of": of, "draw": number % draws} if draws > 1 else {}
            id = f"{of}@{number % draws}" if draws > 1 else of
            writer.write_answers([(QuestionRecord(number, id, **drawn), AnswerRecord("ok", text="x"))])
            scored = ItemRecord("model", id, "ok", None, {"m": Score.ok(1.0, "p")})
            writer.write_marked([(number, scored)], {number: Reading()})
        config = {"limit": None, "data": "d", **config}
        writer.set_meta(benchmark={"name": "b", "size": size, **(about or {})}, config=config, state=state)
    return Run(folder)


@pytest.mark.parametrize(
    ("about", "why", "message"),
    [
        ({}, "data", "4 of 896 questions: the data hold no more"),
        ({"limit": 4}, "limit", "4 of 896 questions: a limit of 4 was set"),
        ({"limit": 10}, "data", "4 of 896 questions: the data hold no more"),
        ({"limit": 10, "size": 4}, None, None),
        ({"size": 4}, None, None),
        ({"size": 3}, "data", "4 questions in place of 3: the definition says a smaller number"),
        ({"shard": "1/2"}, "shard", "4 of 896 questions: the run is of one shard"),
        ({"state": "answering"}, "unfinished", "4 of 896 questions: the run is not finished"),
        ({"draws": 3}, "data", "4 of 896 questions: the data hold no more"),
    ],
)
def test_a_part_of_the_questions_is_reported_with_the_reason(tmp_path, about, why, message):
    run = run_of(tmp_path, 4, **about)
    summary = summarise(run)
    assert summary.as_dict()["rows"] == {
        "n": 4, "size": about.get("size", 896), "limit": about.get("limit"), "why": why
    }  # fmt: skip
    lines = [message] if message else []
    assert rows_notes(summary.rows) == lines and summary_notes(summary)[1 : 1 + len(lines)] == lines
    assert (message or "no such words") in summary_markdown(summary).replace("\\", "") or not message
    assert (
        (message.partition(":")[0] in describe_parts(run)) is (why == "data")
        if message
        else describe_parts(run) in ([], ["limited to 10 items"])
    )


@pytest.mark.parametrize(
    ("of", "draws", "other"),
    [
        ({"other_columns": ["reference from 'b' in place of 'a'"]}, 1, ["reference from 'b' in place of 'a'"]),
        ({"rows_digest": "0" * 40}, 1, ["other questions than those that the definition pins"]),
        ({"rows_digest": digest_of([({}, ())] * 4)}, 1, []),
        ({"rows_digest": "0" * 40}, 2, []),
    ],
)
def test_other_columns_and_other_questions_than_the_definitions_are_reported(tmp_path, of, draws, other):
    run = run_of(tmp_path, 4, size=4, draws=draws, about=of)
    summary = summarise(run)
    assert (summary.other_data or []) == other and Summary.from_dict(summary.as_dict()) == summary
    lines = [f"other data than the definition's: {', '.join(other)}"] if other else []
    assert (
        summary_notes(summary)[1 : 1 + len(lines)] == lines
        and [one for one in other if one in describe_parts(run)] == other
    )
    assert all(one in summary_markdown(summary).replace("\\", "") for one in lines)


def test_of_a_benchmark_of_unknown_size_nothing_is_reported(tmp_path):
    run = run_of(tmp_path, 4, size=None)
    assert not count_rows(run) and "rows" not in summarise(run).as_dict() and rows_notes(count_rows(run)) == []

"""Sessions are joined and counted as by the Open ASR leaderboard's program, and so is its speed (tests/golden/text)."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.benchmark.metrics.session_wer import GAPS
from codec_bench.stats.answers import answers_of
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord
from codec_bench.store.record import Run

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"
METRIC = load_answer_metric("session_wer@official/open-asr/2026-06-22")


def cases(name):
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["cases"]


def item(session, number, text, message, language="en"):
    return Answer(f"{session}-{number}", message, (text,), {"session": session, "part": number}, language)


@pytest.mark.parametrize("case", cases("open_asr_sessions"))
def test_parts_are_joined_and_counted_as_by_the_program(case):
    answers = [item(*row[:4]) for row in case["input"]]
    scores = METRIC.compute(answers)
    sums: dict[str, list[float]] = {}
    for answer, score in zip(answers, scores):
        above, below = sums.setdefault(answer.fields["session"], [0.0, 0.0])
        sums[answer.fields["session"]] = [above + score.numerator, below + score.denominator]
    assert sums == {session: pytest.approx(counts, abs=1e-9) for session, counts in case["sessions"].items()}
    errors, words = (sum(one[at] for one in sums.values()) for at in (0, 1))
    assert errors / words == pytest.approx(case["wer"], abs=1e-12)


@pytest.mark.parametrize("case", cases("open_asr_sessions")[:3])
def test_the_speed_is_that_of_the_program(case, tmp_path):
    rows = [AnswerRecord("ok", text="x", sound_s=row[4], latency_s=row[5]) for row in case["input"]]
    rows += [AnswerRecord("ok", text="x", sound_s=9.0, cached=True), AnswerRecord("failed", "down", latency_s=9.0)]
    with closing(AnswerWriter(tmp_path, {"asked": {}, "scored": {}})) as writer:
        writer.write_answers([(QuestionRecord(n, f"q{n}"), row) for n, row in enumerate(rows)])
    assert round(answers_of(Run(tmp_path)).as_dict()["rtfx"], 4) == case["rtfx"]


def test_a_part_that_is_missing_is_reported_and_several_transcripts_stay_apart():
    complete = [item("call", n, "red green blue", word) for n, word in enumerate(("red", "green", "blue"))]
    assert [score.value for score in METRIC.compute(complete)] == [0.0, 0.0, 0.0]
    assert not any("flag" in score.detail for score in METRIC.compute(complete))
    first, *rest = METRIC.compute(complete[1:])
    assert first.detail["flag"] == GAPS and sum(score.numerator for score in (first, *rest)) == pytest.approx(1)
    # Each part is answered twice: the second time nothing is right.
    wrong = [item("call", n, "red green blue", "zebra") for n in range(3)]
    twice = METRIC.compute([answer for pair in zip(complete, wrong) for answer in pair])
    assert [score.value for score in twice] == [0.0, 1.0] * 3


def test_what_cannot_be_joined_has_no_value():
    dropped, messages = METRIC.compute([item("call", None, "red", "red"), item("other", 0, "red", "red")])
    assert (
        dropped.status == "undefined"
        and dropped.reason.as_dict() == {"code": "part_not_number", "id": "call-None", "part": None}
        and messages.value == 0.0
    )
    (bare,) = METRIC.compute([Answer("x", "red", (), {"session": "call", "part": 0}, "en")])
    assert bare.status == "undefined" and METRIC.worst(bare).status == "undefined"

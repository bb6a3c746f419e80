"""MMSU's rules give, row by row, what its own programs gave, and MMAR's what its program gave (tests/golden/text)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"


def cases(name):
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["cases"]


@pytest.mark.parametrize("file", cases("mmsu_official"))
@pytest.mark.parametrize(("rule", "column"), [("mmsu", "expected"), ("mmsu-2025-06", "expected_2025_06")])
def test_a_file_of_answers_is_marked_as_by_the_program(file, rule, column):
    answers = [
        Answer(str(at), row["response"], (row["answer_gt"],), {k: v for k, v in row.items() if k.startswith("choice_")})
        for at, row in enumerate(file["input"])
    ]
    scores = load_answer_metric(f"accuracy[official/{rule}]").compute(answers)
    assert {score.status for score in scores} <= {"ok", "unparsed", "undefined"}
    for score, expected in zip(scores, file[column]):
        if expected == "error":
            assert score.status == "undefined" and score.reason.code == "program_fails_at_first"
            return
        assert [int(score.status == "ok"), int(score.value or 0)] == expected


def test_an_empty_answer_is_wrong_today_and_was_the_answer_before_it_in_june_2025():
    choices = {"choice_a": "up", "choice_b": "down"}
    answers = [Answer("1", "B", ("down",), choices), Answer("2", "", ("down",), choices)]
    assert [s.value for s in load_answer_metric("accuracy[official/mmsu]").compute(answers)] == [1.0, 0.0]
    assert [s.value for s in load_answer_metric("accuracy[official/mmsu-2025-06]").compute(answers)] == [1.0, 1.0]


@pytest.mark.parametrize("case", cases("mmar_string_match"))
def test_the_rule_for_options_decides_as_mmars_program(case):
    options = case["input"]
    answer = Answer("1", options["prediction"], (options["answer"],), {"choices": options["choices"]})
    (score,) = load_answer_metric("accuracy[mmau]").compute([answer])
    assert (score.status, score.value) == ("ok", float(case["expected"]))

"""Repetition: the official rule on URO-Bench's own results, and our own on cases with a known rate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer

GOLDEN = (Path(__file__).resolve().parents[2] / "golden" / "text" / "uro_repeat").with_suffix(".json")


def values(name, pairs, language="en"):
    answers = [Answer(str(at), text, (expected,), {}, language) for at, (text, expected) in enumerate(pairs)]
    return [score.value for score in load_answer_metric(name).compute(answers)]


def test_an_answer_scores_as_in_uro_benchs_program():
    cases = json.loads(GOLDEN.read_text("utf-8"))["cases"]
    pairs = [(case["input"]["answer"], case["input"]["reference"]) for case in cases]
    result = values("repeated[official/uro-bench]", pairs)
    assert result == pytest.approx([case["expected"] for case in cases]) and len(cases) >= 100


def test_what_was_repeated_counts_and_half_of_it_wrong_is_the_limit():
    text = [
        "red green blue black",
        "red green",
        "red",
        "red green blue black white grey pink",
        "",
        "Red, green, blue, black!",
    ]
    assert values("repeated", [(one, "red green blue black") for one in text]) == [1, 0.5, 0, 0, 0, 1]
    assert values("repeated", [("今天天气", "今天天气好啊"), ("今天", "今天天气好啊")], "zh") == [
        pytest.approx(4 / 6),
        0,
    ]


def test_the_published_rule_divides_by_the_answer_and_is_for_english():
    pairs = [("red green", "red green blue"), ("red green blue", "red green")]
    assert values("repeated[official/uro-bench]", pairs) == [0.5, pytest.approx(2 / 3)]
    (score,) = load_answer_metric("repeated[official/uro-bench]").compute([Answer("a", "你好", ("你好",), {}, "zh")])
    assert score.status == "refused" and "'zh'" in score.reason


@pytest.mark.parametrize("name", ["repeated", "repeated[official/uro-bench]"])
def test_a_question_without_an_expected_text_is_undefined(name):
    metric = load_answer_metric(name)
    (score,) = metric.compute([Answer("a", "red", (), {}, "en")])
    assert metric.name == name and (score.status, score.reason.code) == ("undefined", "no_expected")

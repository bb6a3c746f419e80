"""AudioBench's and AIR-Bench's matchers and rules give, case by case, what their sources gave (tests/golden/text)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from published_folds import aggregate

from codec_bench.benchmark.metrics import Answer, load_answer_metric
from codec_bench.benchmark.metrics.air_bench_foundation import foundation
from codec_bench.benchmark.metrics.audiobench import spoken_mqa, string_match

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"


def golden(name):
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


def every_case(name):
    return [pytest.param(c["input"], c["expected"], id=f"{name}-{i}") for i, c in enumerate(golden(name)["cases"])]


def scored(metric, text, references, fields=None):
    return load_answer_metric(metric).compute([Answer("x", text, tuple(references), fields or {})])[0]


@pytest.mark.parametrize(("options", "expected"), every_case("audiobench_string_match"))
def test_string_match(options, expected):
    assert string_match(options["prediction"], options["reference"], options["choices"]) == expected["score"]
    score = scored("accuracy[official/audiobench/string-match]", options["prediction"], [options["reference"]], options)
    assert (score.value, 100 * score.value) == (expected["score"], expected["judge_score"])


def test_the_corpus_of_string_match():
    rows = [
        {"score": string_match(c["input"]["prediction"], c["input"]["reference"], c["input"]["choices"])}
        for c in golden("audiobench_string_match")["cases"]
    ]
    result = aggregate("official/audiobench/string-match", rows).values
    assert result["judge_score"] == pytest.approx(golden("audiobench_string_match")["corpus"]["judge_score"], rel=1e-9)


@pytest.mark.parametrize(("options", "expected"), every_case("audiobench_spoken_mqa"))
@pytest.mark.parametrize("kind", ["arithmetic", "reasoning"])
def test_spoken_mqa(options, expected, kind):
    result = spoken_mqa(options["prediction"], options["answer"], kind)
    requested = expected[kind]
    assert (result.acc, result.extracted, list(result.reference)) == (
        requested["acc"],
        requested["extracted"],
        requested["reference"],
    )
    name = "spoken-mqa" if kind == "reasoning" else "spoken-mqa-arithmetic"
    assert (
        scored(f"accuracy[official/audiobench/{name}]", options["prediction"], options["answer"]).value
        == requested["acc"]
    )


def test_more_of_spoken_mqa():
    # As the file's notes and the source say: a cut exponent, repeated triggers, three references.
    assert float(spoken_mqa("1" + "0" * 120, ["x"], "arithmetic").extracted) == 1e12
    assert spoken_mqa("The answer is 1.\n\nThe answer is 2.", ["1"], "arithmetic").extracted == "1"
    assert spoken_mqa("1", ["1", "2", "3"], "reasoning").acc is None
    assert scored("accuracy[official/audiobench/spoken-mqa]", "1", ["1", "2", "3"]).status == "undefined"


@pytest.mark.parametrize(("options", "expected"), every_case("air_bench_foundation"))
def test_foundation(options, expected):
    choices = {name[-1].upper(): text for name, text in options["choices"].items()}
    result = foundation(options["response"], options["answer_gt"], choices)
    score = scored(
        "accuracy[official/air-bench/foundation]", options["response"], [options["answer_gt"]], options["choices"]
    )
    assert result.letter == expected["letter"]
    if "raises" in expected:
        assert result.reason and score.status == "undefined"
        return
    assert (result.counted, result.correct, result.reason) == (expected["counted"], expected["correct"], None)
    assert (score.value == expected["correct"]) if result.counted else score.status == "unparsed"


def test_the_corpus_of_foundation():
    rows, failed = [], 0
    for case in golden("air_bench_foundation")["cases"]:
        options = case["input"]
        choices = {name[-1].upper(): text for name, text in options["choices"].items()}
        result = foundation(options["response"], options["answer_gt"], choices)
        if result.reason is None:
            four = sum(text is not None for text in choices.values()) == 4 or len(choices) == 4
            rows.append({"task_name": "four" if four else "two", "correct": result.correct})
            failed += not result.counted
    expected = golden("air_bench_foundation")["corpus"]
    values = aggregate("official/air-bench/foundation", rows).values
    assert failed == expected["failed"]
    for task, requested in expected["tasks"].items():
        assert values[task] == pytest.approx(requested, rel=1e-9)


@pytest.mark.parametrize(("options", "expected"), every_case("audiobench_ifeval_rules"))
def test_the_rules_of_ifeval_audio(options, expected):
    fields = {"rule": options["rule"], "rule_target": options["target"]}
    score = scored("ifeval[official/audiobench]", options["answer"], [], fields)
    # Where the source raises, the file's notes say: not followed.
    assert score.value == float(expected.get("followed", False))

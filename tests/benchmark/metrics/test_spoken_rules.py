"""SpeechMMLU's, VocalBench's and RUL-MuchoMusic's rules decide as their own programs do (tests/golden/text)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"


def cases(name):
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["cases"]


def test_the_letter_after_option_is_read_as_by_speechmmlus_program():
    rule, seen = load_answer_metric("accuracy[official/mimo-audio/speech-mmlu]"), cases("speech_mmlu_official")
    for case in seen:
        answers = [Answer(letter, case["input"]["text"], (letter,)) for letter in "ABCD"]
        results = [at for at, score in enumerate(rule.compute(answers)) if score.value == 1]
        assert results == ([case["expected"]] if case["expected"] >= 0 else []), case
    assert len(seen) >= 100


def test_knowledge_is_matched_as_by_vocalbenchs_program():
    pytest.importorskip("whisper_normalizer")
    rule, seen = load_answer_metric("accuracy[official/vocalbench/knowledge]"), cases("vocalbench_knowledge")
    answers = [Answer(str(at), case["input"]["transcript"], (case["input"]["answer"],)) for at, case in enumerate(seen)]
    wrong = [(case, score) for case, score in zip(seen, rule.compute(answers)) if score.value != case["expected"]]
    assert wrong == [] and len(seen) >= 100


def test_an_option_is_read_as_by_rul_muchomusics_program():
    rule, seen = load_answer_metric("accuracy[official/rul-muchomusic]"), cases("rul_muchomusic_official")
    answers = [
        Answer(str(at), case["input"]["text"], (case["input"]["answer"],), {"choices": case["input"]["choices"]})
        for at, case in enumerate(seen)
    ]
    results = [{"letter": score.detail["letter"], "correct": score.value == 1.0} for score in rule.compute(answers)]
    assert results == [case["expected"] for case in seen] and len(seen) >= 100

"""Words and speaking style: URO-Bench's and VocalBench's own results case by case, and the project's own rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.features.emotion2vec import EMOTIONS
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName
from codec_bench.types import Score

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"
SLOWLY = "Repeat the following question in sad emotion at half my speaking speed. Where did the red fox run?"


def cases(name):
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["cases"]


def transcribe(probabilities):
    messages = dict(zip(EMOTIONS, probabilities))
    return {"emotion_heard": Score.ok(max(probabilities), "e/1", detail={"probabilities": messages})}


def sure_of(emotion, share=0.6):
    return transcribe([share if name == emotion else (1 - share) / 8 for name in EMOTIONS])


def value(name, answer):
    (score,) = load_answer_metric(name).compute([answer])
    return score.value if score.status == "ok" else score


def test_an_emotion_and_its_words_count_as_in_uro_benchs_program():
    seen = cases("uro_said_with_emotion")
    answers = [
        Answer(str(at), one["answer"], (one["reference"],), {"emotion": one["emotion"]}, "en",
            sound_scores=transcribe(one["probabilities"]))
        for at, one in enumerate(case["input"] for case in seen)
    ]  # fmt: skip
    result = load_answer_metric("said_with_emotion[official/uro-bench]").compute(answers)
    assert [score.value for score in result] == pytest.approx([case["expected"] for case in seen]) and len(seen) >= 100


def test_an_instruction_about_the_voice_counts_as_in_vocalbenchs_program():
    pytest.importorskip("whisper_normalizer")
    seen = cases("vocalbench_said_as_told")
    answers = [
        Answer(
            str(at), "what was said instead", (), {"question": one["question"], "kind": one["kind"]}, "en", one["text"],
            transcribe(one["probabilities"]), one["question_s"], one["answer_s"],
        )
        for at, one in enumerate(case["input"] for case in seen)
    ]  # fmt: skip
    result = load_answer_metric("said_as_told[official/vocalbench]").compute(answers)
    wrong = [(case, score) for case, score in zip(seen, result) if score.value != case["expected"]]
    assert wrong == [] and len(seen) >= 100 and 0.1 < sum(case["expected"] for case in seen) / len(seen) < 0.9


def test_how_fitting_an_emotion_is_counts_as_in_vocalbenchs_program():
    seen = cases("vocalbench_said_fittingly")
    answers = [
        Answer(str(at), "", (), {"weights": one["weights"]}, "en", sound_scores=transcribe(one["probabilities"]))
        for at, one in enumerate(case["input"] for case in seen)
    ]
    results = [score.value for score in load_answer_metric("said_fittingly").compute(answers)]
    assert results == pytest.approx([case["expected"] for case in seen], abs=1e-9) and len(seen) >= 100


def test_our_own_rule_of_an_emotion_divides_by_the_reference_and_knows_mandarin():
    options = {"emotion": "Happy"}
    assert value(
        "said_with_emotion",
        Answer("a", "red green", ("red green blue blue",), options, "en", sound_scores=sure_of("happy")),
    ) == pytest.approx(0.3)
    assert value(
        "said_with_emotion", Answer("a", "今天", ("今天天气",), options, "zh", sound_scores=sure_of("happy"))
    ) == pytest.approx(0.3)
    assert value("said_with_emotion", Answer("a", "", ("red",), options, "en", sound_scores=sure_of("happy"))) == 0.0
    many = Answer("a", "one two three", ("red",), options, "en", sound_scores=sure_of("happy"))
    assert value("said_with_emotion", many) == 0.0  # an error rate of 3 counts as 1
    official = value(
        "said_with_emotion[official/uro-bench]",
        Answer("a", "今天", ("今天",), options, "zh", sound_scores=sure_of("happy")),
    )
    assert official.status == "refused"
    unknown = value(
        "said_with_emotion", Answer("a", "red", ("red",), {"emotion": "bored"}, "en", sound_scores=sure_of("happy"))
    )
    assert unknown.status == "undefined" and unknown.reason.startswith("'bored' is none of angry,")


@pytest.mark.parametrize(
    ("text", "emotion", "answer_s", "followed"),
    [
        ("Where did the red fox run?", "sad", 8.0, 1.0),
        ("Where did the red dog run?", "sad", 8.0, 1.0),  # one of six words is wrong
        ("Where did a red dog run?", "sad", 8.0, 0.0),
        ("Where did the red fox run?", "angry", 8.0, 0.0),
        ("Where did the red fox run?", "sad", 4.0, 0.0),  # as fast as the question
        ("Where did the red fox run?", "sad", 11.0, 0.0),
    ],
)
def test_words_emotion_and_speed_must_all_match(text, emotion, answer_s, followed):
    options = {"question": SLOWLY, "kind": "With speed & emotion"}
    length = 4.0 * len(SLOWLY.split()) / 6  # the six words take four seconds of the question
    answer = Answer("a", text, (), options, "en", "", sure_of(emotion, 0.45), length, answer_s)
    assert value("said_as_told", answer) == followed
    plain = Answer("a", text, (), {**options, "kind": "Plain repeat"}, "en")
    assert value("said_as_told", plain) == float("the red" in text)
    assert value("said_as_told[official/vocalbench]", plain).status == "refused"


def test_what_was_not_transcribed_fails_and_counts_as_wrong():
    options = {"question": SLOWLY, "kind": "With emotion", "emotion": "sad", "weights": [1, 2, 3, 4, 5]}
    for name, lowest in (("said_with_emotion", 0.0), ("said_as_told", 0.0), ("said_fittingly", 1.0)):
        metric = load_answer_metric(name)
        (score,) = metric.compute([Answer("a", "red", ("red",), options, "en")])
        assert (score.status, score.reason) == ("failed", Diagnostic("no_sound_for_emotion"))
        assert metric.worst(Answer("a", "")).value == lowest
        with pytest.raises(UnknownName):
            load_answer_metric(f"{name}[official/other]")
    speed = Answer(
        "a", "Where did the red fox run?", (), {**options, "kind": "With speed"}, "en", sound_scores=sure_of("sad")
    )
    assert value("said_as_told", speed).reason == Diagnostic("length_unknown")

"""Error rates of answers that are transcripts: the rules' own numbers, and corpora as published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from refusals import refuses

from codec_bench.benchmark.metrics import Answer, load_answer_metric
from codec_bench.benchmark.scoring.scoring import score_answers
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.store.answers import AnswerRecord, Exchange, QuestionRecord, Reading
from codec_bench.text.rules import HALLUCINATED

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"
RULE = "official/ultraeval-audio/wer"


def ratio(scores):
    """The corpus value: the sum of the numerators over that of the denominators; None if the
    denominators add up to 0.
    """
    scored = [score for score in scores if score.status == "ok"]
    below = sum(score.denominator for score in scored)
    return sum(score.numerator for score in scored) / below if below else None


def test_by_hand():
    metric = load_answer_metric("wer[answer]@by-language")
    scores = metric.compute(
        [
            Answer("1", "the cat sat", ("the cat sat on it",), {}, "en"),
            Answer("2", "今天天气", ("今天天气好",), {}, "zh"),
            Answer("3", "", ("one",), {}, "en"),
            Answer("4", "anything", (), {}, "en"),
            Answer("5", "words", ("!",), {}, "en"),
            Answer("6", "big cats", ("the big cats", "big cats and dogs", "big, cats."), {}, "en"),
        ]
    )
    assert [score.value for score in scores] == pytest.approx([2 / 5, 1 / 5, 1.0, None, 1.0, 0.0])
    assert scores[3].status == "undefined"
    assert ratio(scores) == pytest.approx(5 / 13)
    assert metric.compute([Answer("x", "a", ("b",))])[0].protocol == "wer/answer/by-language"


@pytest.mark.parametrize("name", ["wer[answer]@by-language", "cer[answer]", "hallucinated[answer]"])
def test_the_transcript_is_recorded_as_the_model_wrote_it(name):
    written = Answer("1", "Uh, Twenty-one CATS!", ("" if name.startswith("hallucinated") else "21 cats",), {}, "en")
    (score,) = load_answer_metric(name).compute([written])
    assert score.detail["transcript"] == written.text and score.detail["hypothesis"] == "21 cats"


SILENCE = [
    Answer("1", "the cat", ("the cat sat",), {}, "en"),
    Answer("2", "two words", ("",), {}, "en"),
    Answer("3", "", ("[noise]",), {}, "en"),
    Answer("4", "", ("uh", "one"), {}, "en"),
]


def test_words_in_answer_to_silence_are_errors_among_no_words():
    metric = load_answer_metric("wer[answer]")
    scores = metric.compute(SILENCE)
    assert [(s.numerator, s.denominator) for s in scores] == [(1, 3), (2, 0), (0, 0), (0, 0)]
    assert ratio(scores) == 1
    assert [s.detail.get("flag") for s in scores] == [None, HALLUCINATED, None, None]
    assert [metric.worst(answer).status for answer in SILENCE] == ["ok", "undefined", "undefined", "undefined"]
    undefined = load_answer_metric("wer[answer]@whisper-en").compute(SILENCE[:3])
    assert [s.status for s in undefined] == ["ok", "undefined", "undefined"]


def test_the_share_of_answers_to_silence():
    metric = load_answer_metric("hallucinated[answer]")
    scores = metric.compute(SILENCE)
    assert [s.value for s in scores] == [None, 1, 0, 0]
    assert scores[0].status == "refused"
    assert [metric.worst(answer).value for answer in SILENCE] == [None, 1, 1, 1]


def test_an_empty_expected_answer_reaches_only_what_compares_with_it():
    read = Reading(None, "two words", None)
    silent = Exchange(QuestionRecord(0, "a", expected=("",)), AnswerRecord("ok", text="two words"), read, None, None)
    by_name = {
        name: score_answers(load_answer_metric(name), [silent], {0: read})[0]
        for name in ("wer[answer]", "wer[answer]@whisper-en", f"wer[answer]@{RULE}", "accuracy[exact]", "bleu[13a]")
    }
    assert {name: score.status for name, score in by_name.items()} == {
        "wer[answer]": "ok", **dict.fromkeys(list(by_name)[1:], "undefined"),
    }  # fmt: skip
    assert by_name["wer[answer]"].numerator == 2
    # A failed answer to silence counts nowhere as wrong: no number of words is the worst.
    failed = Exchange(QuestionRecord(0, "a", expected=("",)), AnswerRecord("failed", "no"), None, None, None)
    score = score_answers(load_answer_metric("wer[answer]"), [failed], {0: Reading(None, None, "no")})[0]
    assert (score.status, "wrong" in score.detail) == ("failed", False)


def test_characters():
    pair = Answer("x", "abd", ("abc",), {}, "en")
    assert load_answer_metric("cer[answer]").compute([pair])[0].value == pytest.approx(1 / 3)
    assert load_answer_metric("wer[answer]").compute([pair])[0].value == 1


def test_empty_references_count_as_published():
    """If the reference is empty, the words of an answer add to the errors of the corpus and to nothing else."""
    cases = json.loads((GOLDEN / "ultraeval_agg_wer.json").read_text("utf-8"))["cases"]
    checked = 0
    for case in cases:
        if case["input"]["aggregator"] != "wer" or "error" in case["expected"]:
            continue
        rows = case["input"]["rows"]
        metric = load_answer_metric(f"wer[answer]@{RULE}")
        scores = metric.compute(
            [Answer(str(i), str(r["pred"]), (str(r["ref"]),), {}, "en") for i, r in enumerate(rows)]
        )
        assert 100 * ratio(scores) == pytest.approx(case["expected"]["wer(%)"], rel=1e-9)
        checked += any(not str(row["ref"]) for row in rows)
    assert checked


def test_why_there_is_no_value():
    unknown = load_answer_metric("wer[answer]@official/seed-tts-eval").compute([Answer("x", "a", ("b",), {}, "fr")])[0]
    assert (unknown.status, "fr" in unknown.reason) == ("refused", True)
    # Whisper's rule for numbers fails on some texts. The words of their references are counted all the same.
    broken = load_answer_metric("wer[answer]").compute([Answer("x", "1" * 5000, ("one",), {}, "en")])[0]
    assert (
        broken.status,
        broken.reason.as_dict()
        == {"code": "not_normalised", "cause": {"code": "error", "type": "AssertionError", "message": ""}},
    ) == ("failed", True)


def test_names():
    assert load_answer_metric(f"cer[answer]@{RULE}").name == f"cer[answer]@{RULE}"
    with pytest.raises(UserError):
        load_answer_metric("wer[whisper-large-v3]")
    with refuses("metric_without_side"):
        load_answer_metric("wer")
    with pytest.raises(UnknownName):
        load_answer_metric("wer[answer]@nothing")

"""The project's own rules of accuracy: what is right, what is wrong, and what is neither."""

from __future__ import annotations

import pytest
from refusals import refuses

from codec_bench.benchmark.metrics import Answer, load_answer_metric
from codec_bench.benchmark.metrics.accuracy import NO_LABEL, RULES, TWO_CORRECT_OPTIONS

CHOICES = {"choices": ["(A) Acoustic guitar", "(B) Bass-drum", "(C) C major", "(D) None"]}


def score(rule, text, *references, **fields):
    return load_answer_metric(f"accuracy[{rule}]").compute([Answer("x", text, references, fields)])[0]


@pytest.mark.parametrize(
    ("rule", "text", "references", "value"),
    [
        ("exact", " Happy. ", ["happy"], 1), ("exact", "ｈａｐｐｙ", ["Happy"], 1),
        ("exact", "very happy", ["happy"], 0), ("exact", "b", ["a", "B"], 1),
        ("exact", "", [""], 0), ("exact", "C++", ["C"], 0), ("exact", "开心。", ["开心"], 1),
        ("prefix", "Male.", ["male"], 1), ("prefix", "malefactor", ["male"], 0),
        ("prefix", "the male", ["male"], 0), ("prefix", "throat-clearing sound", ["Throat clearing"], 1),
        ("prefix", "中文测试", ["中文"], 1), ("prefix", "x", [""], 0),
        ("contains", "The speaker is female", ["male"], 0), ("contains", "a male voice", ["Male"], 1),
        ("contains", "我在北京", ["北京"], 1), ("contains", "", ["x"], 0),
        ("contains", "U.S.A.", ["u.s."], 1), ("contains", "x", [""], 0),
        ("answer-match", "It is São Paulo, I think", ["Sao Paulo"], 1),
        ("answer-match", "the new-york times", ["new york"], 1), ("answer-match", "Parisian", ["Paris"], 0),
        ("answer-match", "beatles", ["The Beatles"], 1), ("answer-match", "答案是北京市", ["北京"], 1),
        ("answer-match", "nothing", [""], 0), ("answer-match", "don’t know", ["don't know"], 1),
        ("answer-match", "ﬁre", ["fire"], 1), ("answer-match", "the the", ["The The"], 1),
        ("answer-match", "142", ["42"], 0),
        ("number", "1,000.0", ["1000"], 1), ("number", "0.5", ["1/2"], 1), ("number", "12", ["15", "12"], 1),
        ("number", "twelve", ["12"], 0), ("number", "0.30000000000000001", ["0.3"], 0),
        ("number", "2.50", ["2.5"], 1), ("number", "nan", ["nan"], 0),
        ("label", "throat-clearing", ["Throat clearing"], 1), ("label", "a cough", ["cough"], 0),
        ("label", "", [""], 0),
    ],
)  # fmt: skip
def test_own_rules(rule, text, references, value):
    assert score(rule, text, *references).value == value


@pytest.mark.parametrize(
    ("text", "reference", "value"),
    [
        ("A", "(A) Acoustic guitar", 1), ("a", "A", 1), ("(B) Bass-drum", "B", 1), ("bass-drum", "B", 1),
        ("acoustic guitar", "Acoustic guitar", 1), ("C", "A", 0),
        ("C", "C major", 1), ("", "A", 0), ("piano", "A", 0),
    ],
)  # fmt: skip
def test_choices(text, reference, value):
    assert score("choice", text, reference, **CHOICES).value == value


def test_a_reference_that_is_no_choice_is_bad_data():
    bad = score("choice", "A", "Violin", **CHOICES)
    assert (bad.value, bad.status) == (None, "undefined") and "Violin" in bad.reason


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("It is an acoustic guitar", 1),
        ("(A) Acoustic guitar", 1),
        ("acoustic bass guitar", 0),
        ("A", 0),
        ("", 0),
        ("guitar", 0),
    ],
)
def test_mmau(text, value):
    assert score("mmau", text, "(A) Acoustic guitar", **CHOICES).value == value
    assert score("mmau", text, "Acoustic guitar", choices=["Acoustic guitar", "Bass-drum"]).value == value


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_worst_and_needs_a_reference(rule):
    metric = load_answer_metric(f"accuracy[{rule}]")
    assert metric.worst(Answer("x", "", ("",), CHOICES)).value == 0
    missing = metric.compute([Answer("sample 7", "a")])[0]
    assert missing.status == "undefined" and missing.reason.as_dict() == {"code": "no_expected", "id": "sample 7"}
    (known,) = metric.compute([Answer("x", "\ud800 hostile \x00" * 10, ("A",), CHOICES)])
    assert known.status in ("ok", "undefined", "unparsed") and known.protocol == f"accuracy/{rule}-1"


def test_an_unknown_rule_suggests():
    with refuses("unknown_name", name="exakt"):
        load_answer_metric("accuracy[exakt]")


@pytest.mark.parametrize("rule", ["choice", "official/air-bench/foundation", "official/ultraeval-audio/prefix-match"])
def test_the_chance_level_stands_with_every_score_of_a_question_with_options(rule):
    four, two = {"choices": ["piano", "drums", "flute", "violin"]}, {"choice_a": "male", "choice_b": "female"}
    assert (
        score(rule, "A", "piano", **four).detail["chance"] == score(rule, "D", "piano", **four).detail["chance"] == 0.25
    )
    assert score(rule, "A", "male", **two).detail["chance"] == 0.5
    assert "chance" not in score("exact", "A", "A").detail


@pytest.mark.parametrize(
    "choices", [["piano", "drums", "Piano.", "flute"], ["(A) piano", "(B) drums", "(C) Piano.", "(D) flute"]]
)
def test_choices_that_hold_the_answer_twice_are_flagged_and_scored(choices):
    result = score("choice", "A", "piano", choices=choices)
    assert (result.value, result.detail["flag"], result.detail["chance"]) == (1.0, TWO_CORRECT_OPTIONS, 0.5)
    assert score("choice", "B", "piano", choices=choices).value == 0
    other = score("choice", "B", "drums", choices=choices)
    assert other.value == 1 and "flag" not in other.detail and other.detail["chance"] == 0.25


@pytest.mark.parametrize("labels", [["woman", "man"], {"a": "woman", "b": "man"}, "woman, man"])
def test_an_expected_answer_that_is_none_of_the_labels_is_flagged_and_scored(labels):
    result = score("label", "woman", "W", labels=labels)
    assert (result.value, result.detail["flag"]) == (0.0, NO_LABEL)
    assert "flag" not in score("label", "man", "Woman", labels=labels).detail
    assert "flag" not in score("label", "woman", "W").detail, "nobody says which labels there are"


def test_the_published_rule_of_air_bench_takes_the_first_of_two_equal_choices_and_is_flagged_too():
    fields = {"choice_a": "drums", "choice_b": "piano", "choice_c": "piano"}
    first, second = (score("official/air-bench/foundation", letter, "piano", **fields) for letter in "BC")
    assert (first.value, second.value) == (1.0, 0.0) and first.detail["flag"] == second.detail[
        "flag"
    ] == TWO_CORRECT_OPTIONS


def test_the_chance_level_of_labels_is_shown():
    four = {"labels": ["happy", "sad", "angry", "neutral"]}
    assert score("label", "sad", "happy", **four).detail["chance"] == 0.25
    assert score("label", "no", "no", labels="yes,no").detail["chance"] == 0.5
    assert "chance" not in score("label", "bored", "bored", **four).detail


@pytest.mark.parametrize("choices", [3, 2.5, True, {}, [], "", "no letters", {"x": 1}, [None], [[]]])
def test_choices_in_a_form_that_nobody_knows_break_nothing(choices):
    result = score("choice", "A", "A", choices=choices)
    assert result.status in ("ok", "undefined") and result.detail.get("chance") in (None, 1.0)

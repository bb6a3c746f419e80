"""What changes with the order of the options, by hand and for models whose preference is known."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.benchmark.scoring.options import Choice, choice_of, choices_summary
from codec_bench.store.answers import AnswerRecord, Exchange, QuestionRecord, Reading
from codec_bench.store.draws import ORDER

ROTATIONS = ("ABC", "BCA", "CAB")


def rotated(choose, questions=12):
    """What a model chooses in all rotations of three options, of which the second one of the data is right."""
    return [Choice(f"q{q}", order, choose(q, order), order.index("B")) for q in range(questions) for order in ROTATIONS]


def test_a_model_that_knows_stays_with_its_choice():
    result = choices_summary(rotated(lambda q, order: order.index("B")), rotated=True)
    assert result["consistent"]["value"] == 1 and result["consistent"]["n"] == 12 and result["unnamed"]["n"] == 0
    for index in result["places"].values():
        assert index["named"]["value"] == pytest.approx(index["expected"]) == pytest.approx(1 / 3)
        assert index["right"]["value"] == 1 and index["right"]["n"] == 12


def test_a_model_that_likes_the_first_place_is_seen():
    result = choices_summary(rotated(lambda q, order: 0), rotated=True)
    assert result["consistent"]["value"] == 0
    assert [index["named"]["value"] for index in result["places"].values()] == [1, 0, 0]
    assert [index["right"]["value"] for index in result["places"].values()] == [1, 0, 0]


def test_a_model_that_guesses_is_consistent_as_often_as_chance_says():
    rng = np.random.default_rng(2)
    result = choices_summary(rotated(lambda q, order: int(rng.integers(3)), 600), rotated=True)
    low, high = result["consistent"]["ci95"]
    assert low < 1 / 9 < high and result["consistent"]["value"] == pytest.approx(1 / 9, abs=0.04)


def test_answers_that_name_none_and_failures_are_counted_apart():
    held = rotated(lambda q, order: None if q == 0 and order == "ABC" else order.index("B"), 3)
    held[4] = Choice("q1", "BCA", None, 0, failed=True)
    result = choices_summary(held, rotated=True)
    assert result["unnamed"] == {"n": 1, "share": 1 / 8}
    assert (result["consistent"]["value"], result["consistent"]["n"], result["consistent"]["failed"]) == (0.5, 2, 1)
    assert choices_summary(held, rotated=False)["consistent"] is None
    assert choices_summary([], rotated=True)["places"] == {}


def test_questions_of_several_sizes_have_the_places_that_they_have():
    held = [Choice("two", "AB", 1, 1), Choice("two", "BA", 1, 0), *rotated(lambda q, order: 2, 1)]
    result = choices_summary(held, rotated=True)
    assert result["places"]["B"]["expected"] == pytest.approx((2 / 2 + 3 / 3) / 5)
    assert result["places"]["C"]["named"]["value"] == 1 and result["places"]["C"]["expected"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("B", 1),
        ("(C) a cow", 2),
        ("a dog", 0),
        ("I think that the answer is C.", 2),
        ("a cat or a cow", None),
        ("", None),
    ],
)
def test_the_option_that_an_answer_names(text, at):
    fields = {"choices": ["a dog", "a cat", "a cow"], ORDER: "BAC"}
    requests = QuestionRecord(0, "q (draw 2)", fields, ("a cow",), draw_of="q", draw=1)
    choice = choice_of(Exchange(requests, AnswerRecord("ok", text=text), Reading(None, text), None, None))
    assert choice == Choice("q", "BAC", at, 2)


def test_no_order_no_choice_and_no_answer_no_place():
    requests = QuestionRecord(0, "q", {"choices": ["a", "b"]}, ("a",))
    assert choice_of(Exchange(requests, AnswerRecord("ok", text="A"), None, None, None)) is None
    moved = QuestionRecord(0, "q", {"choices": ["a", "b"], ORDER: "AB"}, ("a",))
    assert choice_of(Exchange(moved, AnswerRecord("failed", "no"), None, None, None)).failed

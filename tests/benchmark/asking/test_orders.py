"""Orders of options: every form of data moves as a whole, and the answer key follows it."""

from __future__ import annotations

import json

import pytest
from refusals import refuses

from codec_bench.benchmark.asking.variants import POSITION, ROTATION, arrange_options, check_orders, reorder_options
from codec_bench.benchmark.definition.base import Question
from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.benchmark.reading.choices import choices_of, named_choices
from codec_bench.store.draws import ORDER

TEXTS = ["a cat", "a dog", "a cow", "a door"]
FORMS = {
    "list": {"choices": TEXTS},
    "labelled": {"choices": [f"({letter}) {text}" for letter, text in zip("ABCD", TEXTS)]},
    "dots": {"choices": [f"{letter}. {text}" for letter, text in zip("ABCD", TEXTS)]},
    "mapping": {"choices": dict(zip("ABCD", TEXTS))},
    "small": {"choices": dict(zip("abcd", TEXTS))},
    "text": {"choices": "(A) a cat (B) a dog  (C) a cow\n(D) a door"},
    "json": {"choices": json.dumps(TEXTS)},
    "fields": {f"choice_{letter}": text for letter, text in zip("abcd", TEXTS)},
}
KEYS = ["B", "(B)", "(B) a dog", "a dog", "b"]


def question(fields, key="B"):
    return Question("q", {"question": "What is heard?", **fields}, (key,))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_keeps_its_form(form):
    one = reorder_options(question(FORMS[form]), "CADB")
    assert choices_of(one.fields) == dict(zip("ABCD", ["a cow", "a cat", "a door", "a dog"]))
    assert one.fields[ORDER] == "CADB" and one.fields["question"] == "What is heard?"
    back = reorder_options(one, "BDAC")
    assert {name: value for name, value in back.fields.items() if name != ORDER} == question(FORMS[form]).fields


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("key", KEYS)
def test_the_key_follows_and_an_answer_is_right_in_one_place_alone(form, key):
    metric = load_answer_metric("accuracy[choice]")
    rotations = arrange_options(question(FORMS[form], key), "all-rotations", 0)
    assert [one.subsets for one in rotations] == [{POSITION: p, ROTATION: str(r)} for r, p in enumerate("BADC")]
    for one in rotations:
        (right,) = {letter for text in one.references for letter in named_choices(text, choices_of(one.fields))}
        assert choices_of(one.fields)[right] == "a dog" and one.subsets[POSITION] == right
        texts = [Answer("q", letter, one.references, one.fields, "en", letter) for letter in "ABCD"]
        assert [score.value for score in metric.compute(texts)] == [float(letter == right) for letter in "ABCD"]
        (messages,) = metric.compute([Answer("q", "a dog", one.references, one.fields, "en", "a dog")])
        assert messages.value == 1, "who answers with the text is right in every order"


def test_shuffling_depends_on_seed_and_id_alone():
    questions = [Question(f"q{n}", {"choices": TEXTS}, ("a dog",)) for n in range(200)]
    orders = [arrange_options(one, "shuffled", 3)[0].fields[ORDER] for one in questions]
    assert orders == [arrange_options(one, "shuffled", 3)[0].fields[ORDER] for one in reversed(questions)][::-1]
    assert orders != [arrange_options(one, "shuffled", 4)[0].fields[ORDER] for one in questions]
    assert all(20 < [order[0] for order in orders].count(letter) < 80 for letter in "ABCD")


@pytest.mark.parametrize(
    "texts",
    [
        ["a cat", "a dog", "all of the above"],
        ["a cat", "a dog", "both A and B"],
        ["a cat", "a dog", "(A) or (B)"],
        ["猫", "狗", "以上都是"],
        ["猫", "狗", "A和B"],
        ["one"],
        [],
        [f"label {n}" for n in range(40)],
    ],
)
def test_options_that_name_places_or_are_none_stay(texts):
    one = question({"choices": texts}, "a cat")
    assert arrange_options(one, "all-rotations", 0) == [one] == arrange_options(one, "shuffled", 0)


def test_a_key_that_is_no_option_stays_as_it_is():
    one = reorder_options(question({"choices": TEXTS}, "a bird"), "BCDA")
    assert one.references == ("a bird",) and POSITION not in one.subsets
    same = reorder_options(question({"choices": ["a dog", "A dog.", "a cow"]}, "a dog"), "BCA")
    assert same.references == ("a dog",) and POSITION not in same.subsets, "two options are equal"


def test_as_written_changes_nothing_and_other_words_are_refused():
    one = question(FORMS["list"])
    assert arrange_options(one, "given", 0) == [one]
    with refuses("option_order", known="given, shuffled, all-rotations"):
        check_orders("random")

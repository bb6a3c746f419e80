"""Words, phrases and choices as they are matched."""

from __future__ import annotations

import pytest

from codec_bench.benchmark.reading.choices import choices_of, label_of, remove_label
from codec_bench.benchmark.reading.grammar import decide_options
from codec_bench.benchmark.reading.mentions import mentions_of
from codec_bench.benchmark.reading.words import contains, plain, words


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("The CAT's mat.", ["the", "cat", "s", "mat"]), ("我用iPhone打", ["我", "用", "iphone", "打"]), ("ｆｕｌｌ", ["full"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]), ("สวัสดี", ["สวัสดี"]),
        ("mandolin_synthetic", ["mandolin", "synthetic"]), ("COVID-19", ["covid", "19"]), ("", []),
        ("カタカナ", ["カ", "タ", "カ", "ナ"]), ("…!", []),
    ],
)  # fmt: skip
def test_words(text, items):
    assert words(text) == items


def test_accents_go_on_demand_only():
    assert words("Café ÅNGSTRÖM") == ["café", "ångström"]
    assert words("Café ÅNGSTRÖM", fold_accents=True) == ["cafe", "angstrom"]
    assert words("が", fold_accents=True) == ["が"]  # this mark is part of the letter


def test_a_row_of_words():
    assert contains(["a", "b", "c"], ["b", "c"]) and not contains(["a", "b", "c"], ["a", "c"])
    assert not contains(["ab"], ["a"]) and not contains([], ["a"]) and not contains(["a"], [])


@pytest.mark.parametrize(
    ("text", "actual"),
    [
        ("rock and roll, not jazz", {"rock and roll"}), ("It isn't rock.", set()),
        ("not really jazz but rock", {"rock"}), ("no doubt it is jazz", {"jazz"}),
        ("I don't know. Rock.", {"rock"}), ("no", {"no"}), ("不是摇滚", set()), ("是摇滚吧", {"摇滚"}),
    ],
)  # fmt: skip
def test_phrases(text, actual):
    labels = {label: label for label in ("rock", "rock and roll", "jazz", "no", "摇滚")}
    assert (
        decide_options(text, mentions_of(text, labels), options=5) - ({"no"} if actual != {"no"} else set()) == actual
    )


def test_one_form_of_writing():
    assert plain(" “Ｈｅｌｌｏ,  World!” ") == "hello, world"


@pytest.mark.parametrize(
    ("choice", "label", "rest"),
    [
        ("(A) Man", "A", "Man"),
        ("B. Woman", "B", "Woman"),
        ("C：孩子", "C", "孩子"),
        ("A dog", None, "A dog"),
        ("(A)", None, "(A)"),
    ],
)
def test_labels_of_choices(choice, label, rest):
    assert (label_of(choice), remove_label(choice)) == (label, rest)


def test_choices_without_a_common_form():
    assert choices_of({}) == {}
    assert choices_of({"choices": ["(B) x", "(A) y"]}) == {"A": "(B) x", "B": "(A) y"}  # not in order: text
    assert choices_of({"choices": ["4/4", "3/4"]}) == {"A": "4/4", "B": "3/4"}

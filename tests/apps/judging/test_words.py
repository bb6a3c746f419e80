"""Each judge of which it is known what it is, behind an endpoint without a connection, is named for what it is."""

from __future__ import annotations

import random

import pytest

from codec_bench.apps.judging.words import findings
from codec_bench.store.judge_tests import HEARING

DEAF = ("silence", "pitch", "noise", "loudness", "word", "cut-speech", "reversed-speech")
"""The kinds that a judge which hears half does not hear."""
SEED = 0
SMALL = {"parts": "sounds"}
MARKS = {"parts": "texts", "rubrics": "absolute-1-5"}


def tossed(*kind):
    """The same toss for the same question, so that a coin does not change its mind."""
    return random.Random(repr(kind)).random() < 0.5


def perfect(judge):
    pass


def coin(judge):
    # Another toss for each request, whatever the requests in between.
    judge.decide = lambda put: tossed(SEED, put.text, put.unit, put.requests)
    judge.mark = lambda put, text: random.Random(repr((SEED, put.text, text, put.requests))).random()


def always_yes(judge):
    judge.decide = lambda put: tossed(put.text, put.unit) if put.chosen else True
    judge.mark = lambda put, text: 1.0


def always_middle(judge):
    judge.mark = lambda put, text: 0.5


def prefers_the_first(judge):
    judge.decide = lambda put: True if put.chosen else put.right
    judge.mark = lambda put, text: float(put.position == 0)


def prefers_the_longer(judge):
    judge.decide = lambda put: put.first_longer if put.chosen else put.right
    judge.mark = lambda put, text: min(1.0, len(text) / 500)


def forgets_in_every_fifth_repeat(judge):
    again = []

    def transcribe(put):
        if put.requests > 1:
            again.append(put)
        return put.right if put.requests == 1 or len(again) % 5 else not put.right

    judge.decide = transcribe


def listen_to_half(judge):
    judge.decide = lambda put: tossed(put.text, put.unit) if put.unit[:-2] in DEAF else put.right


@pytest.fixture
def model(check, judge):
    """What a check of the judge finds: the only part's figures, and its words."""

    def run(become, settings):
        become(judge)
        ((name, item),) = check(**settings).test.parts.items()
        assert (name == HEARING) == (settings["parts"] == "sounds")
        return item, findings(item)

    return run


def named(words, *begins):
    """Whether the words are these sentences, by how each begins."""
    return len(words) == len(begins) and all(word.startswith(begin) for word, begin in zip(words, begins))


def test_a_perfect_judge_is_right_and_has_no_finding(small, model):
    item, words = model(perfect, SMALL)
    assert item.j.value == 1.0 and item.changed.value == 0.0 and named(words, "is right")


def test_a_coin_is_named(small, model):
    item, words = model(coin, SMALL)
    assert named(words, "is no better than a coin", "changes")
    assert item.changed.low < 0.5 < item.changed.high and abs(item.j.value) < 0.25


def test_a_judge_that_always_says_yes_is_named(small, model):
    item, words = model(always_yes, SMALL)
    assert named(words, "is no better than a coin", "says yes nearly always") and item.biases["yes"].value == 1.0


def test_a_judge_that_takes_the_first_is_named(small, model):
    item, words = model(prefers_the_first, SMALL)
    assert named(words, "is better than a coin, and often wrong", "takes the first nearly always")
    # It is right in both wordings of the claims, and in one order of two.
    assert item.j.value == pytest.approx(2 / 3) and item.biases["yes"].value == 0.0


def test_a_judge_that_takes_the_longer_is_named(small, model):
    item, words = model(prefers_the_longer, SMALL)
    assert named(words, "is better than a coin, and often wrong", "takes the longer nearly always")
    assert item.biases["the longer"].value == 1.0 and item.biases["the first"].value == 0.0


def test_a_judge_that_forgets_is_named(small, model):
    item, words = model(forgets_in_every_fifth_repeat, SMALL)
    assert named(words, "is mostly right", "changes 20 % of its verdicts on repetition")
    assert item.changed.value == pytest.approx(19 / 96)  # 96 questions are repeated, and every fifth is dropped
    assert item.j.value == pytest.approx(1 - 19 / 96)  # half of the replies, two of J for each


def test_a_judge_that_listens_to_half_is_named(small, model):
    item, words = model(listen_to_half, SMALL)
    assert "can tell count of beeps, order, and cannot tell silence, pitch" in words and 0.2 < item.j.value < 0.8


@pytest.mark.parametrize("rubric", ["absolute-1-5", "pair-answers"])
def test_a_judge_of_texts_that_takes_the_longer_is_named(model, rubric):
    item, words = model(prefers_the_longer, {"parts": "texts", "rubrics": rubric})
    # An empty answer is the shorter one, so that kind it does tell.
    assert named(words, "is no better than a coin", "takes the longer", "can tell an empty answer, and cannot tell")
    assert item.kinds["an empty answer"].value == 1.0 and item.kinds["a paraphrase beside a wrong answer"].value < 0


@pytest.mark.parametrize("rubric", ["air-bench-chat", "pair-answers"])
def test_a_judge_of_texts_that_takes_the_first_is_named(model, rubric):
    item, words = model(prefers_the_first, {"parts": "texts", "rubrics": rubric})
    assert named(words, "is no better than a coin", "takes the first nearly always")
    assert item.biases["the first"].value == 1.0 and item.biases["the longer"].value == 0.0


@pytest.mark.parametrize("rubric", ["pair-answers", "absolute-1-5", "air-bench-chat"])
def test_a_perfect_judge_of_texts_has_no_finding(model, rubric):
    item, words = model(perfect, {"parts": "texts", "rubrics": rubric})
    assert named(words, "is right") and item.j.value == 1.0
    # Of air-bench-chat its lowest mark is 2 of 1 to 10; every figure is the difference from a perfect judge.
    assert all(abs(bias.value) < 0.12 for bias in item.biases.values())


@pytest.mark.parametrize("rubric", ["absolute-1-5", "pair-answers"])
def test_a_judge_that_always_gives_the_middle_is_named(model, rubric):
    item, words = model(always_middle, {"parts": "texts", "rubrics": rubric})
    assert named(words, "is no better than a coin", "gives the middle") and item.biases["the middle"].value == 1.0


@pytest.mark.parametrize(("level", "says"), [(1.0, "gives high marks"), (0.0, "gives low marks")])
def test_a_judge_that_always_gives_one_end_is_named(model, level, says):
    def always(judge):
        judge.mark = lambda put, text: level

    _, words = model(always, MARKS)
    assert words[0].startswith("is no better than a coin") and words[1].startswith(says)


@pytest.mark.long
@pytest.mark.parametrize(
    ("become", "words"),
    [
        (perfect, ["is right"]), (coin, ["is no better than a coin", "changes"]),
        (always_yes, ["is no better than a coin", "says yes nearly always"]),
        (prefers_the_first, ["is better than a coin, and often wrong", "takes the first nearly always"]),
        (prefers_the_longer, ["is better than a coin, and often wrong", "takes the longer nearly always"]),
        (forgets_in_every_fifth_repeat, ["is mostly right", "changes"]),
        (listen_to_half, ["is better than a coin, and often wrong", "can tell"]),
    ],
)  # fmt: skip
def test_the_judges_are_named_over_all_sounds(model, become, words):
    item, result = model(become, SMALL)
    print(
        become.__name__,
        item.j.words,
        item.changed.words,
        {name: one.words for name, one in item.biases.items()},
        result,
    )
    assert named(result, *words)


@pytest.mark.long
@pytest.mark.parametrize("become", [perfect, coin, always_yes])
def test_judges_of_texts_are_named(model, become):
    item, result = model(become, MARKS)
    print(
        become.__name__,
        item.j.words,
        item.changed.words,
        {name: one.words for name, one in item.biases.items()},
        result,
    )
    first = "is right" if become is perfect else "is no better than a coin"
    assert result[0].startswith(first) and (become is not always_yes or "gives high marks" in result[1])

"""Degenerate answers and valid ones: cases by hand, on both sides of each border."""

from __future__ import annotations

from time import process_time

import pytest

from codec_bench.text.degenerate_answers import WAYS, find_degeneracies

REQUESTED = "Listen to the audio and type out everything that is said."
TEXT = "the quick brown fox jumps over the lazy dog"
NAMED = [
    ("", {}, ["empty"]),
    (" ... !?\n", {}, ["empty"]),
    ("thank you " * 30, {}, ["endless"]),
    ("I hear a man who says " + "go to the door, " * 6, {}, ["endless"]),
    ("谢谢观看" * 20, {"language": "zh"}, ["endless"]),
    ("a" * 60, {}, ["endless"]),
    (TEXT, {"at_limit": True}, ["endless"]),
    ("listen to the audio, and type out everything that is said", {}, ["copy"]),
    ("Sure. Type out everything that is said:", {}, ["copy"]),
    ("transcribe the speech", {"prompt": "Transcribe the speech."}, ["copy"]),
    ("请写出这段录音中的话", {"prompt": "请写出这段录音中所说的话。", "language": "zh"}, ["copy"]),
    ("ðə kwɪk braʊn fɒks dʒʌmps əʊvə ðə leɪzi dɒɡ", {}, ["phonemes"]),
    ("/həˈloʊ/", {}, ["phonemes"]),
    ("DH AH0 K W IH1 K B R AW1 N F AA1 K S", {}, ["phonemes"]),
    ("dh ah k w ih k b r aw n", {}, ["phonemes"]),
    ("那只敏捷的棕色狐狸跳过了那只懒狗", {}, ["language"]),
    ("быстрая коричневая лиса прыгает через ленивую собаку", {}, ["language"]),
    ("na zhi min jie de zong se hu li", {"language": "zh", "known": ["那只敏捷的棕色狐狸"]}, ["language"]),
    ("der Fuchs springt über den Hund und die Katze ist nicht im Haus", {"language": "en"}, ["language"]),
    (
        "the fox and the dog were not in the house that was there",
        {"language": "de", "known": ["der Fuchs"]},
        ["language"],
    ),
    ("那只狐狸" * 20, {}, ["endless", "language"]),
]
ANSWERS = [
    (TEXT, {}),
    ("A", {"known": ["B"], "prompt": "Choose one. A. A cat B. A dog"}),
    ("the sound of a cat that is purring",
        {"known": ["the sound of a cat that is purring", "dog"],
            "prompt": "Which? the sound of a cat that is purring; dog"}),
    ("no no no no", {"known": ["no no no"]}),
    ("one two " * 20, {"known": ["one two " * 20]}),
    ("", {"known": [""]}),
    ("B D F G K M P T", {}),
    ("uh er ah uh ah er", {}),
    ("He is on TV at no. 2", {}),
    ("ɛkɔ la nye ɖe amewo ŋu", {"known": ["ɛkɔ la nye ɖe wo ŋu"], "language": "ee"}),
    ("The word is 谢谢, and it means thank you", {}),
    ("这段话是English", {"language": "zh"}),
    ("今日は天気がいい", {"language": "ja"}),
    ("happy", {"language": "zh", "known": ["happy"]}),
    ("Der Rhein, die Spree", {"language": "en"}),
    ("42 17 3", {"language": "zh"}),
    ("привет", {"language": None}),
    ("I will type it out: " + TEXT + " and then the dog runs away from the fox into the deep forest where it is safe",
        {"prompt": "type out"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "ways"), NAMED)
def test_what_is_no_answer_is_named(text, options, ways):
    assert list(find_degeneracies(text, **{"prompt": REQUESTED, "known": [TEXT], "language": "en", **options})) == ways


@pytest.mark.parametrize(("text", "options"), ANSWERS)
def test_what_is_an_answer_is_not_named(text, options):
    options = {"prompt": REQUESTED, "language": "en", **options}
    if options["language"] is not None:
        options.setdefault("known", [TEXT] if options["language"] == "en" else [])
    assert find_degeneracies(text, **options) == ()


def test_the_ways_are_named_in_one_order():
    assert WAYS == ("empty", "endless", "copy", "phonemes", "language")


@pytest.mark.parametrize("text", ["a" * 400_000, "ab " * 200_000, "的" * 300_000, "(" * 300_000, "DH AH0 " * 60_000])
def test_a_long_answer_takes_no_long_time(text):
    began = process_time()
    find_degeneracies(text, prompt="a b " * 50_000, known=["x " * 50_000], language="en")
    assert process_time() - began < 2

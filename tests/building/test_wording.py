"""What is said of a written text, and what cannot be said."""

from __future__ import annotations

import pytest

from codec_bench.building.wording import Unspeakable, check_options, spoken_text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It has 12 legs.", "It has twelve legs."),
        ("1,500 or 2.5?", "one thousand, five hundred or two point five ?"),
        ("About 40% of it", "About forty percent of it"),
        ("  two\n lines ", "two lines"),
    ],
)
def test_english_numbers_are_read_out(text, said):
    pytest.importorskip("num2words")
    assert spoken_text(text, "en") == said


def test_chinese_numbers_are_read_out():
    pytest.importorskip("wetext")
    assert spoken_text("一共有12个。", "zh") == "一共有十二个。"


UNSPEAKABLE = {
    "nothing to say": {"": "en", "?!...": "en"},
    "a sign": {"What is x^2 + y?": "en", r"Solve \frac a b": "en", "I am happy \U0001f600": "en"},
    "another script": {"The word 水 means": "en", "Что это": "en", "это 水": "zh"},
    "a number": {"Er hat 3 Beine": "de", "x² is": "en"},
}


@pytest.mark.parametrize("reason", UNSPEAKABLE)
def test_what_cannot_be_said_says_why(reason):
    for text, language in UNSPEAKABLE[reason].items():
        with pytest.raises(Unspeakable, match=reason):
            spoken_text(text, language)


def test_options_that_sound_alike_are_refused():
    check_options(["eight", "nine"], str.lower)
    with pytest.raises(Unspeakable, match="sound alike"):
        check_options(["Eight", "nine", "eight"], str.lower)

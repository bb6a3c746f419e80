"""How a written text is read aloud, and texts that cannot be read."""

from __future__ import annotations

import pytest
from refusals import refuses

from codec_bench.apps.building.wording import Unspeakable, check_options, spoken_text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("It has 12 legs.", "It has twelve legs."),
        ("1,500 or 2.5?", "one thousand, five hundred or two point five?"),
        ("About 40% of it", "About forty percent of it"),
        ("  two\n lines ", "two lines"),
    ],
)
def test_english_numbers_are_read_out(text, message):
    pytest.importorskip("num2words")
    assert spoken_text(text, "en") == message


def test_chinese_numbers_are_read_out():
    pytest.importorskip("wetext")
    assert spoken_text("一共有12个。", "zh") == "一共有十二个。"


UNSPEAKABLE = {
    "nothing_to_say": {"": "en", "?!...": "en"},
    "formula_unreadable": {"What is f(x) at two?": "en"},
    "sign_unreadable": {
        "What is x^2 + y?": "en",
        "The key 1\ufe0f\u20e3": "en",
        "[thunder] Paul.": "en",
        "R&D": "en",
        "Wie viele %?": "de",
        r"Solve \frac a b": "en",
        "I am happy \U0001f600": "en",
    },
    "letter_of_other_script": {"The word 水 means": "en", "Что это": "en", "это 水": "zh"},
    "number_unreadable": {"Er hat 3 Beine": "de", "x² is": "en"},
}


@pytest.mark.parametrize("code", UNSPEAKABLE)
def test_what_cannot_be_spoken_states_why(code):
    for text, language in UNSPEAKABLE[code].items():
        with pytest.raises(Unspeakable) as caught:
            spoken_text(text, language)
        assert caught.value.reason.code == code


def test_english_times_money_and_the_like_are_read_as_people_speak_them():
    pytest.importorskip("num2words")
    for text, texts in {
        "At 7:30 or 6:05?": "At seven thirty or six oh five?",
        "At 7:00, or at 6:00 p.m. or 8:30 a. m.": "At seven o'clock, or at six p.m. or eight thirty a.m.",
        "Bus No. 57": "Bus number fifty-seven",
        "It costs $5.50 or $1.": "It costs five dollars and fifty cents or one dollar.",
        "It lost $3 million and £2.01.": "It lost three million dollars and two pounds and one penny.",
        "The 21st floor": "The twenty-first floor",
        "Call 555-0132.": "Call five five five zero one three two.",
        "rock & roll": "rock and roll",
    }.items():
        assert spoken_text(text, "en") == texts


ALIKE = [("Eight", "eight"), ("A", "8"), ("A", "eight"), ("B", "D"), ("M", "N"), ("I", "Y"), ("F", "S"), ("H.", "8")]
APART = [("A", "B"), ("5", "9"), ("A", "E"), ("3", "B"), ("a cat", "a bat"), ("O", "zero"), ("B", "M"), ("six", "X")]


def plain(text):
    return text.lower()


@pytest.mark.parametrize("pair", ALIKE, ids="-".join)
def test_options_that_sound_alike_are_refused(pair):
    pytest.importorskip("num2words")
    text = [spoken_text(f"{choice}", "en") for choice in ("something else", *pair)]
    with refuses("options_sound_alike", error=Unspeakable):
        check_options(text, "en", plain)


@pytest.mark.parametrize("pair", APART, ids="-".join)
def test_options_that_can_be_distinguished_are_stored(pair):
    pytest.importorskip("num2words")
    check_options([spoken_text(choice, "en") for choice in pair], "en", plain)


def test_names_of_letters_are_compared_where_they_are_those_of_english():
    with refuses("options_sound_alike", error=Unspeakable):
        check_options(["B", "D"], "zh", plain)
    check_options(["B", "D"], "de", plain)
    check_options(["A", "八"], "zh", plain)

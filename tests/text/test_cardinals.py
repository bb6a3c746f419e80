"""Digits are written as the libraries write numbers, which the table of their parts was made from."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec_bench.text.cardinals import LARGEST, SEPARATORS, cardinals, load
from codec_bench.text.chinese_numbers import cardinal as chinese
from codec_bench.text.normalise import get_normaliser
from codec_bench.text.rules import get_rule

# Every number up to 1,299, and every 37th after them: each hundred and each rest.
SOME = (*range(1300), *range(1300, LARGEST + 1, 37), LARGEST)
SMALL = (*range(131), *range(131, LARGEST + 1, 97), 1000, 2000, LARGEST)
# Telephone numbers, which wetext reads digit by digit, and numbers with a two in each place.
CHINESE = (*range(130), 200, 202, 222, 1100, 1200, 2000, 2002, 2200, 2222, 9009, 9090, LARGEST)


def library(language, number):
    if language == "hi":
        return pytest.importorskip("indic_numtowords").num2words(number, lang="hi")
    return pytest.importorskip("num2words").num2words(number, lang=language)


@pytest.mark.parametrize("language", SEPARATORS)
def test_numbers_are_the_librarys(language):
    assert [load(language).words(number) for number in SOME] == [library(language, number) for number in SOME]


@pytest.mark.parametrize("language", SEPARATORS)
def test_no_two_numbers_have_the_same_words(language):
    assert len({load(language).words(number) for number in range(LARGEST + 1)}) == LARGEST + 1


@pytest.mark.parametrize("language", ["en", *SEPARATORS])
def test_digits_and_the_librarys_words_are_equal_in_both_directions(language):
    digits, words = [str(number) for number in SMALL], [library(language, number) for number in SMALL]
    for reference, estimate in ((digits, words), (words, digits)):
        compared = get_rule("by-language").compare(
            reference=reference, estimate=estimate, language=[language] * len(SMALL)
        )
        assert [pair.value for pair in compared] == [0.0] * len(SMALL)


def test_chinese_digits_and_words_are_equal():
    pytest.importorskip("wetext")
    pytest.importorskip("opencc")
    words = [chinese(str(number)) for number in CHINESE]
    for written in (words, [word.replace("两", "二") for word in words]):
        compared = get_rule("by-language").compare(
            reference=[f"{number}" for number in CHINESE], estimate=written, language=["zh"] * len(CHINESE)
        )
        assert [pair.value for pair in compared] == [0.0] * len(CHINESE)


@pytest.mark.parametrize("language", ["ja", "ko"])
@settings(max_examples=60, deadline=None)
@given(number=st.integers(LARGEST, 10**16 - 1) | st.sampled_from([10**power for power in range(4, 16)]))
def test_large_numbers_in_units_of_ten_thousand(language, number):
    assert load(language).words(number) == library(language, number).replace(" ", "")


@pytest.mark.parametrize("language", [language for language in SEPARATORS if load(language).point])
@settings(max_examples=20, deadline=None)
@given(complete=st.integers(0, LARGEST), decimals=st.text("0123456789", min_size=1, max_size=2))
def test_decimals_are_the_librarys(language, complete, decimals):
    decimals = decimals.rstrip("0") or "5"  # a library does not read zeros at the end
    text = get_normaliser(f"folded-{language}")
    written = f"{complete}{SEPARATORS[language][1]}{decimals}"
    words = library(language, float(f"{complete}.{decimals}"))
    if (
        language == "pt"
    ):  # the library leaves out the "e" of "seis mil e trezentos" before a comma, and says it without one
        words = library(language, complete) + library(language, float(f"0.{decimals}")).removeprefix(
            library(language, 0)
        )
    assert text(written) == text(words)


@pytest.mark.parametrize(
    ("language", "text", "message"),
    [
        ("de", "1.234 und 12.5.", "eintausendzweihundertvierunddreißig und zwölf fünf"),
        ("de", "10.000 und 1.234.567", "10000 und 1234567"),
        ("de", "007, 3D, MP3, a1b und 5km", "007 3d mp3 a1b und 5km"),
        ("fr", "1 234 ou 12 34", "mille deux cent trente quatre ou douze trente quatre"),
        ("ru", "3,5 и 3", "3 5 и три"),
        ("hi", "1,00,000 और 1,234", "100000 और एक हजार दो सौ चौंतीस"),
        ("ja", "10時30分、MP3と3D", "十時三十分mp3と3d"),
        ("ko", "12,345원", "만이천삼백사십오원"),
        ("th", "๒๐บาท", "ยี่สิบบาท"),
        ("vi", "10:30", "mười ba mươi"),
        ("es", "(5) y -5", "y cinco"),
    ],
)
def test_what_is_a_number(language, text, message):
    assert get_rule("by-language").trace(text, language)[-1][1] == message


@given(st.text("0123456789.,- ab", max_size=30), st.sampled_from(sorted(SEPARATORS)))
def test_what_was_written_out_stays(text, language):
    once = cardinals(language)(text)
    assert cardinals(language)(once) == once


@given(st.text("ab.,- é", max_size=30), st.sampled_from(sorted(SEPARATORS)))
def test_a_text_without_digits_stays(text, language):
    assert cardinals(language)(text) == text


@pytest.mark.parametrize("language", SEPARATORS)
@pytest.mark.parametrize("segment", ["1", "1,", "11,", "111,", "1.", "1 "])
def test_long_runs_of_digits_take_linear_time(language, segment):
    # Quadratic time would be tens of seconds here.
    assert cardinals(language)(segment * 10_000)

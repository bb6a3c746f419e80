"""In each language, spellings of the same speech are equal and different speech is not: 40 pairs each, written for
this.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from codec_bench.text import spelling_variants
from codec_bench.text.cardinals import SEPARATORS, load
from codec_bench.text.normalise import get_normaliser, get_step
from codec_bench.text.rules import get_rule

# Not imported here: every process of tests collects this file, and would hold the 36 MB for good.
pytestmark = pytest.mark.skipif(find_spec("wetext") is None, reason="wetext is not installed")
pytest.importorskip("opencc")

PAIRS = Path(__file__).resolve().parents[1] / "golden" / "by_language.tsv"
ROWS = [line.split("\t") for line in PAIRS.read_text("utf-8").split("\n")[1:-1]]
LANGUAGES = ("en", "zh", *SEPARATORS)


def compare(rows, rule="by-language"):
    return get_rule(rule).compare(
        reference=[row[2] for row in rows], estimate=[row[3] for row in rows], language=[row[0] for row in rows]
    )


def test_each_language_has_its_pairs():
    assert Counter(row[0] for row in ROWS) == dict.fromkeys(LANGUAGES, 40)
    assert all(15 <= number <= 25 for number in Counter((row[0], row[1]) for row in ROWS).values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_spellings_of_the_same_speech_are_equal(language):
    rows = [row for row in ROWS if row[:2] == [language, "yes"]]
    for pairs in (rows, [(a, b, other, one) for a, b, one, other in rows]):
        assert [(row[2], pair.value) for row, pair in zip(pairs, compare(pairs))] == [(row[2], 0.0) for row in pairs]


@pytest.mark.parametrize("language", LANGUAGES)
def test_different_speech_is_an_error(language):
    rows = [row for row in ROWS if row[:2] == [language, "no"]]
    assert [row[2:] for row, pair in zip(rows, compare(rows)) if pair.counts.errors == 0] == []


# Other words that a careless table would reach.
@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ko", "정한 시간"), ("ko", "세 번"), ("de", "hunderte"), ("de", "tausendfach"), ("it", "altre"), ("pt", "dezembro"),
        ("ar", "و احد"),
        ("ru", "одна тысячная"), ("vi", "linh hồn"), ("zh", "一一零二室"), ("zh", "第二"), ("ja", "一千"), ("hi", "निम्न"),
        ("en", "i think we can"),
        ("en", "clock"),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_variant_stays(language, text):
    expected = text.replace(" ", "") if language == "ko" else text
    assert get_normaliser(f"folded-{language}")(text) == expected


def test_german_hundreds_are_the_librarys_numbers():
    """Every other form leads to a number, and no form to two."""
    spell = load("de").words
    numbers = {spell(number) for number in range(10_000)}
    forms = spelling_variants._numerals_de()
    assert set(forms.values()) <= numbers
    assert all(forms.get(words, words) == words for words in numbers)
    assert forms["neunzehnhundertneunundneunzig"] == spell(1999)
    assert forms["tausendhundert"] == forms["elfhundert"] == spell(1100)


def test_devanagari_is_one_spelling_and_stays_so():
    step = get_step("devanagari")
    for pair, letter in spelling_variants._VOWELS_HI.items():
        assert step(f"क{pair}ख") == f"क{letter}ख"
        # The letter meant is a vowel that stands by itself, and no normal form of Unicode knows the pair.
        assert unicodedata.name(letter).startswith("DEVANAGARI LETTER")
        assert all(unicodedata.normalize(form, pair) != letter for form in ("NFC", "NFKC"))
        assert step(step(pair)) == step(pair)


@pytest.mark.parametrize(("time", "message"),
    [("3:30", "three thirty"), ("3:05", "three oh five"), ("12:00 pm", "twelve pm"),
                                            ("11:00", "eleven o'clock"), ("23:59",
                                                "twenty three fifty nine")])  # fmt: skip
def test_times_of_the_clock_are_spelled_as_spoken(time, message):
    assert get_normaliser("folded-en")(f"at {time}") == get_normaliser("folded-en")(f"at {message}")


@pytest.mark.parametrize(("one", "other"), [("F, B, I", "F.B.I."), ("b c", "b, c."), ("a b c", "ABC"), ("T. V.", "tv"),
                                            ("the U S A and x y", "the U.S.A. and X, Y")])  # fmt: skip
def test_letters_are_one_word_whatever_stands_between_them(one, other):
    assert get_normaliser("folded-en")(one) == get_normaliser("folded-en")(other)


def test_stutters_and_articles_are_no_acronyms():
    for text in ("i i i think", "a a cat", "what a b movie"):
        assert " " in get_normaliser("folded-en")(text)
    assert get_normaliser("folded-en")("I I I think").split() == ["i", "i", "i", "think"]

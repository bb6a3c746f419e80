"""`whisper-en` is Whisper's rule as in transformers, without the changes of other packages."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from refusals import refuses

from codec_bench.text.normalise import COMPOSED, get_normaliser
from codec_bench.text.whisper import whisper_en

WORDS = (
    "one two three ten twenty thirty hundred thousand million billion point and a half double triple oh o minus plus "
    "dollars cents percent per cent euros pounds nineteen eighty ninety first second third fifties 3 20 1984 21st 5s "
    "$20,000 £3 €2.50 ¢7 10.5 3.14 1,000 it's won't he's she's been ain't let's gonna wanna kinda sorta dunno cause "
    "Mr. Mrs. Dr. St. colour centre mobilisation aeroplane uh um hmm [noise] (laugh) <unk> naïve café Straße œuvre "
    "etc. Philip the dog ran, quickly! ? - ' ’ b747 10km % ½ ² １２ 你好 ё \u00a0 \u200b"
).split(" ")

# From the tests of openai/whisper.
PUBLISHED = {
    "two point five million": "2500000",
    "200 thousand dollars": "$200000",
    "two double o eight": "2008",
    "forty three thousand two hundred and sixty": "43260",
    "nineteen fifties": "1950s",
    "july third twenty twenty": "july 3rd 2020",
    "seventy six per cent": "76%",
    "one triple oh one": "10001",
    "minus 500": "-500",
    "two dollars and seventy cents": "$2.70",
    "$0.36": "¢36",
    "forty eight and a half dollars": "$48.5",
    "Let's": "let us",
    "she's been like": "she has been like",
    "RC232": "rc 232",
    "Mr. Park visited Assoc. Prof. Kim Jr.": "mister park visited associate professor kim junior",
    "mobilisation": "mobilization",
}


@pytest.fixture(scope="module")
def transformers_english():
    from transformers.models.whisper.english_normalizer import EnglishTextNormalizer

    spellings = files("whisper_normalizer").joinpath("normalizers/english.json").read_text("utf-8")
    return EnglishTextNormalizer(json.loads(spellings))


@pytest.mark.parametrize("text", PUBLISHED)
def test_whispers_own_examples(text):
    assert get_normaliser("whisper-en")(text) == PUBLISHED[text]


def test_equals_transformers_on_the_sentences(spoken, transformers_english):
    texts = [row["text"] for row, _ in spoken if row.get("text")]
    assert len(texts) > 30
    for text in texts:
        for variant in (text, text.lower(), text.upper(), text.title()):
            assert get_normaliser("whisper-en")(variant) == transformers_english(variant)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=14))
@example("it was the cause of it , and i kinda dunno".split())
def test_equals_transformers_on_random_sentences(transformers_english, words):
    text = " ".join(words)
    assert get_normaliser("whisper-en")(text) == transformers_english(text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_basic_equals_transformers(text):
    from transformers.models.whisper.english_normalizer import BasicTextNormalizer

    assert get_normaliser("basic")(text) == BasicTextNormalizer()(text)


@given(st.text(max_size=40))
def test_none_changes_nothing(text):
    assert get_normaliser("none")(text) == text


@pytest.mark.parametrize("name", ["basic", "none", "whisper-en", *COMPOSED])
def test_texts_are_remembered_up_to_a_bound_and_one_name_is_one_object(name):
    if name.endswith("zh"):
        pytest.importorskip("wetext")
        pytest.importorskip("opencc")
    normaliser = get_normaliser(name)
    assert get_normaliser(name) is normaliser
    if name != "none":
        normaliser("seen before")
        before = normaliser.cache_info()
        normaliser("seen before")
        assert normaliser.cache_info().hits == before.hits + 1
        assert before.maxsize is not None


def test_an_unknown_name_suggests_the_nearest():
    with refuses("unknown_name", hint="whisper-en"):
        get_normaliser("wisper-en")


def test_a_package_with_other_rules_is_refused(monkeypatch):
    from whisper_normalizer import english

    class Other(english.EnglishTextNormalizer):
        def __init__(self):
            super().__init__()
            self.replacers[r"\bok\b"] = "okay"

    monkeypatch.setattr(english, "EnglishTextNormalizer", Other)
    get_normaliser.cache_clear()
    whisper_en.cache_clear()
    try:
        with refuses("whisper_normalizer_version"):
            get_normaliser("whisper-en")
    finally:
        get_normaliser.cache_clear()
        whisper_en.cache_clear()

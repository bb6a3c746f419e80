"""Named text normalisers, which decide what counts as the same words.

A name always denotes the same rule, because it is part of protocol ids. A changed rule gets a new name. Each process
caches results, because each reference meets the answer of every system of a run.

Normalisers
    `whisper-en`: English by Whisper's authors. Lower case; brackets and fillers (`hmm`, `uh`) removed; contractions,
        titles, numbers, currencies and British spellings unified; symbols and diacritics removed. A. Radford et al.,
        "Robust Speech Recognition via Large-Scale Weak Supervision", ICML 2023, appendix C. Equals transformers'
        `EnglishTextNormalizer` and `whisper.normalizers.EnglishTextNormalizer`.
    `basic`: the same paper's rule for other languages. Lower case; brackets removed; symbols and marks become spaces.
    `none`: the text as it is.
    `words`: the project's own rule for languages with spaces between words. Lower case, NFKC, decimal digits of every
        script as ASCII; bracketed text removed; symbols and punctuation become spaces. Marks stay: they are vowels in
        Hindi, Tamil or Thai and tones in Vietnamese. `words-ar` and `words-he` also remove the optional vowel signs of
        Arabic and Hebrew script; `words-tr` lowers the two Turkish letters i correctly.
    `characters`: the project's own rule for languages without spaces between words: Japanese, Korean, Lao, Khmer,
        Burmese. As `words`, without spaces. `characters-th` also unifies the Thai vowel am.
    `zh`: Chinese, also with words of other scripts. Simplified characters (OpenCC); numbers, dates, units and
        percentages written out (wetext); lower case; punctuation and symbols removed; spaces only between words of
        other scripts.
    `folded-XX`: the normaliser of a language in the rule `by-language`: as `words`, `characters`, `zh` or `whisper-en`,
        with numbers written out (`codec_bench.text.cardinals`) and spellings of the same speech unified
        (`codec_bench.text.spelling_variants`). XX is ar, de, en, es, fr, hi, id, it, ja, ko, pt, ru, th, vi or zh.
    `a,b,c`: the normalisers or steps of these names, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from codec_bench.messages.errors import UnknownName
from codec_bench.text import basic_steps, cardinals, open_asr, published_steps, spelling_variants
from codec_bench.text.basic_steps import Step
from codec_bench.text.whisper import REMEMBERED, whisper_en


def get_step(name: str) -> Step:
    """Return a step by name.

    Raises:
        UnknownName: there is none.
        MissingExtra: it needs a package that is not installed.
    """
    if name not in _STEPS:
        raise UnknownName("text_step", name, _STEPS)
    return _built(name)


def step_names() -> list[str]:
    """The names that `get_step` knows."""
    return sorted(_STEPS)


@cache
def _built(name: str) -> Step:
    return _STEPS[name]()


_STEPS = {
    **basic_steps.STEPS,
    **cardinals.steps(),
    **spelling_variants.STEPS,
    **published_steps.STEPS,
    **open_asr.STEPS,
}


@cache
def get_normaliser(name: str) -> Callable[[str], str]:
    """The normaliser of a name, or of comma-separated names and steps.

    Raises:
        UnknownName: there is no such normaliser.
        MissingExtra: it needs a package that is not installed.
        UserError: the installed whisper-normalizer has other rules than Whisper.
    """
    if name in _BUILDERS:
        return _BUILDERS[name]()
    if name in COMPOSED:
        return _compose(COMPOSED[name])
    if "," in name:
        return _compose(tuple(step.strip() for step in name.split(",")))
    if name in step_names():
        return get_step(name)
    raise UnknownName("normaliser", name, [*_BUILDERS, *COMPOSED, *step_names()])


def _compose(names: tuple[str, ...]) -> Callable[[str], str]:
    """Chain the named steps to one function with a cache."""
    # The cache holds the result of all steps together, not that of each step.
    steps = [get_step(name) if name in step_names() else get_normaliser(name) for name in names]

    def apply(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return lru_cache(maxsize=REMEMBERED)(apply)


def _basic() -> Callable[[str], str]:
    from whisper_normalizer.basic import BasicTextNormalizer

    return lru_cache(maxsize=REMEMBERED)(BasicTextNormalizer())


_BUILDERS: dict[str, Callable[[], Callable[[str], str]]] = {
    "basic": _basic,
    "none": lambda: str,
    "whisper-en": whisper_en,
}

_COMMON = ("clean", "apostrophes", "nfkc", "drop-bracketed", "digits")
_OWN_CHARACTERS = ("clean", "apostrophes", "nfkc", "drop-marked", "digits", "lower")
_OWN_ZH = ("clean", "apostrophes", "zh-hans", "width", "digits", "drop-marked")
_AFTER = ("lower", "nfkc", "words", "squeeze")
COMPOSED: dict[str, tuple[str, ...]] = {
    "characters": (*_OWN_CHARACTERS, "words", "no-spaces"),
    "characters-th": (*_OWN_CHARACTERS, "thai-am", "words", "no-spaces"),
    "folded-ar": (*_COMMON, "drop-vowel-points", "cardinals-ar", "alefs", *_AFTER, "variants-ar"),
    "folded-de": (*_COMMON, "cardinals-de", *_AFTER, "variants-de"),
    "folded-en": ("clean", "spelling-en", "numbers-en", "whisper-en", "letters-en", "okay", "names", "lone-points"),
    "folded-es": (*_COMMON, "cardinals-es", *_AFTER),
    "folded-fr": (*_COMMON, "cardinals-fr", *_AFTER),
    "folded-hi": (*_COMMON, "cardinals-hi", *_AFTER, "devanagari", "variants-hi"),
    "folded-id": (*_COMMON, "ordinals-id", "cardinals-id", *_AFTER),
    "folded-it": (*_COMMON, "cardinals-it", *_AFTER, "variants-it"),
    "folded-ja": (*_OWN_CHARACTERS, "positional-ja", "cardinals-ja", "words", "no-spaces", "variants-ja"),
    "folded-ko": (*_OWN_CHARACTERS[:-1], "numbers-ko", "lower", "cardinals-ko", "variants-ko", "words", "no-spaces"),
    "folded-pt": (*_COMMON, "cardinals-pt", *_AFTER, "variants-pt"),
    "folded-ru": (*_COMMON, "yo", "cardinals-ru", *_AFTER, "variants-ru"),
    "folded-th": (*_OWN_CHARACTERS, "thai-am", "cardinals-th", "words", "no-spaces"),
    "folded-vi": (*_COMMON, "cardinals-vi", *_AFTER, "variants-vi"),
    "folded-zh": (*_OWN_ZH, "groups-zh", "numbers-zh", "wetext-zh", "nfkc", "zh-digits", "zh-variants", "variants-zh",
                  "lower", "join-words", "words", "squeeze", "letters", "names", "join-alone"),
    "words": (*_COMMON, *_AFTER),
    "words-ar": (*_COMMON, "drop-vowel-points", *_AFTER),
    "words-he": (*_COMMON, "drop-vowel-points", *_AFTER),
    "words-tr": (*_COMMON, "turkish-i", *_AFTER),
    "zh": (*_OWN_ZH, "wetext-zh", "nfkc", "zh-digits", "zh-variants", "lower", "join-words", "words", "squeeze",
           "join-alone"),
}  # fmt: skip
"""The project's own normalisers, by their steps."""

"""Named text normalisers: what is counted as the same words.

Conventions
    A name stands for one rule for ever, since it is part of protocol ids: a changed rule gets a name of its own.
    Results are remembered per process, because a reference comes back for every system of a run.

Normalisers
    `whisper-en`: English as Whisper's authors compare it. Lower case; brackets and fillers (`hmm`, `uh`) gone;
        contractions, titles, numbers, currencies and British spellings written in one way; symbols and diacritics gone.
        A. Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", ICML 2023, appendix C. Equals
        transformers' `EnglishTextNormalizer` and `whisper.normalizers.EnglishTextNormalizer`.
    `basic`: the same paper's rule for other languages. Lower case; brackets gone; symbols and marks become spaces.
    `none`: the text as it is.
    `words`: the project's own rule for languages that put spaces between words. Lower case, NFKC, decimal digits of every
        script as ASCII; bracketed text gone; symbols and punctuation become spaces. Marks stay, since they are vowels in
        Hindi, Tamil or Thai and tones in Vietnamese. `words-ar`, `words-he` (and other languages of these scripts) leave
        out the optional vowel signs; `words-tr` knows the two letters i.
    `characters`: the same for languages without them, and without spaces: Japanese, Korean, Lao, Khmer, Burmese.
        `characters-th` writes the Thai vowel am in one way.
    `zh`: Chinese, with words of other scripts among it. Simplified characters (OpenCC); numbers, dates, units and
        percentages written out (wetext); lower case; punctuation and symbols gone; spaces between words of other scripts only.
    `a,b,c`: the normalisers or steps of these names (see `codec_bench.text.steps`), one after the other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from codec_bench.errors import UnknownName, UserError
from codec_bench.text.steps import get_step, step_names

REMEMBERED = 32_768
"""Texts remembered per normaliser, a few megabytes."""

_ADDED_BY_THE_PACKAGE = (r"\bcause\b", r"\bkinda\b", r"\bsorta\b", r"\bdunno\b")
_REPLACEMENTS_BLAKE2B = "5caff2d9ae3a9d02"


@cache
def get_normaliser(name: str) -> Callable[[str], str]:
    """The normaliser of that name, or of several names and steps with commas between them.

    Raises:
        UnknownName: there is none. UserError: the installed whisper-normalizer has other rules than Whisper.
        MissingExtra: it needs a package that is not installed.
    """
    if name in _BUILDERS:
        return _BUILDERS[name]()
    if name in COMPOSED:
        return _composed(COMPOSED[name])
    if "," in name:
        return _composed(tuple(part.strip() for part in name.split(",")))
    if name in step_names():
        return get_step(name)
    raise UnknownName("normaliser", name, [*_BUILDERS, *COMPOSED, *step_names()])


def normaliser_names() -> list[str]:
    """The names of whole normalisers; `get_normaliser` also takes the names of steps."""
    return sorted([*_BUILDERS, *COMPOSED])


def _composed(names: tuple[str, ...]) -> Callable[[str], str]:
    # Steps that are not worth remembering are taken as they are; the whole is remembered.
    steps = [get_step(name) if name in step_names() else get_normaliser(name) for name in names]

    def apply(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return lru_cache(maxsize=REMEMBERED)(apply)


def whisper_rules() -> Any:
    """Whisper's English rule as an object of whisper-normalizer, without what the package added.

    Raises:
        UserError: the installed package has other rules than Whisper.
    """
    from whisper_normalizer.english import EnglishTextNormalizer

    rules = EnglishTextNormalizer()
    # The package has rules that Whisper has not; one turns "the cause of it" into "the because of it".
    for pattern in _ADDED_BY_THE_PACKAGE:
        rules.replacers.pop(pattern, None)
    digest = hashlib.blake2b(repr(list(rules.replacers.items())).encode(), digest_size=8).hexdigest()
    if digest != _REPLACEMENTS_BLAKE2B:
        raise UserError(
            "the installed whisper-normalizer replaces other words than Whisper does, so 'whisper-en' would mean something else",
            hint="pip install whisper-normalizer==0.1.15",
        )
    return rules


def _whisper_en() -> Callable[[str], str]:
    rules = whisper_rules()
    return lru_cache(maxsize=REMEMBERED)(lambda text: rules(_quick(text)))


def _quick(text: str) -> str:
    """A text of which the rules make the same, without what costs the library a scan to its end for every character.

    Brackets that nothing closes become another symbol, which the rules blank out just the same, and very long runs of
    white space one space. An answer of nothing but brackets or line breaks would take minutes.
    """
    text = _LONG_BLANKS.sub(" ", text)
    end = max(text.rfind(">"), text.rfind("]")) + 1
    text = text[:end] + text[end:].translate(_UNCLOSED)
    end = text.rfind(")") + 1
    return text[:end] + text[end:].replace("(", "#")


_UNCLOSED = str.maketrans("<[", "##")
_LONG_BLANKS = re.compile(r"\s{64,}")


def _basic() -> Callable[[str], str]:
    from whisper_normalizer.basic import BasicTextNormalizer

    return lru_cache(maxsize=REMEMBERED)(BasicTextNormalizer())


def _none() -> Callable[[str], str]:
    return str


_BUILDERS: dict[str, Callable[[], Callable[[str], str]]] = {"basic": _basic, "none": _none, "whisper-en": _whisper_en}

_OWN = ("clean", "apostrophes", "nfkc", "drop-bracketed", "digits")
_OWN_CHARACTERS = ("clean", "apostrophes", "nfkc", "drop-marked", "digits", "lower")
COMPOSED: dict[str, tuple[str, ...]] = {
    "characters": (*_OWN_CHARACTERS, "words", "no-spaces"),
    "characters-th": (*_OWN_CHARACTERS, "thai-am", "words", "no-spaces"),
    "words": (*_OWN, "lower", "nfkc", "words", "squeeze"),
    "words-ar": (*_OWN, "drop-vowel-points", "lower", "nfkc", "words", "squeeze"),
    "words-he": (*_OWN, "drop-vowel-points", "lower", "nfkc", "words", "squeeze"),
    "words-tr": (*_OWN, "turkish-i", "lower", "nfkc", "words", "squeeze"),
    "zh": ("clean", "apostrophes", "zh-hans", "width", "digits", "drop-marked", "wetext-zh", "nfkc", "zh-digits",
           "zh-variants", "lower", "join-words", "words", "squeeze", "join-alone"),
}  # fmt: skip
"""The project's own normalisers, by the steps they take."""

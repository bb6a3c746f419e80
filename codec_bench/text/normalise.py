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
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, lru_cache

from codec_bench.errors import UnknownName, UserError

REMEMBERED = 32_768
"""Texts remembered per normaliser, a few megabytes."""

_ADDED_BY_THE_PACKAGE = (r"\bcause\b", r"\bkinda\b", r"\bsorta\b", r"\bdunno\b")
_REPLACEMENTS_BLAKE2B = "5caff2d9ae3a9d02"


@cache
def get_normaliser(name: str) -> Callable[[str], str]:
    """The normaliser of that name.

    Raises:
        UnknownName: there is none. UserError: the installed whisper-normalizer has other rules than Whisper.
    """
    if name not in _BUILDERS:
        raise UnknownName("normaliser", name, _BUILDERS)
    return _BUILDERS[name]()


def normaliser_names() -> list[str]:
    """The names that `get_normaliser` knows."""
    return sorted(_BUILDERS)


def _whisper_en() -> Callable[[str], str]:
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
    return lru_cache(maxsize=REMEMBERED)(rules)


def _basic() -> Callable[[str], str]:
    from whisper_normalizer.basic import BasicTextNormalizer

    return lru_cache(maxsize=REMEMBERED)(BasicTextNormalizer())


def _none() -> Callable[[str], str]:
    return str


_BUILDERS: dict[str, Callable[[], Callable[[str], str]]] = {"basic": _basic, "none": _none, "whisper-en": _whisper_en}

"""Whisper's English rule, by the package whisper-normalizer without its additions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from codec_bench.messages.errors import UserError

REMEMBERED = 32_768
"""How many texts each normaliser caches; they take a few megabytes."""

_ADDED_BY_THE_PACKAGE = (r"\bcause\b", r"\bkinda\b", r"\bsorta\b", r"\bdunno\b")
_REPLACEMENTS_BLAKE2B = "5caff2d9ae3a9d02"


def whisper_rules() -> Any:
    """Whisper's English rule of whisper-normalizer, without its additions.

    Raises:
        UserError: the installed package has other rules than Whisper.
    """
    from whisper_normalizer.english import EnglishTextNormalizer

    rules = EnglishTextNormalizer()
    # One of the package's own rules turns "the cause of it" into "the because of it".
    for pattern in _ADDED_BY_THE_PACKAGE:
        rules.replacers.pop(pattern, None)
    digest = hashlib.blake2b(repr(list(rules.replacers.items())).encode(), digest_size=8).hexdigest()
    if digest != _REPLACEMENTS_BLAKE2B:
        raise UserError("whisper_normalizer_version", hint="pip install whisper-normalizer==0.1.15")
    return rules


@cache
def whisper_en() -> Callable[[str], str]:
    """Whisper's English rule as a function of a text.

    Raises:
        UserError: the installed package has other rules than Whisper.
    """
    rules = whisper_rules()
    return lru_cache(maxsize=REMEMBERED)(lambda text: rules(_quick(text)))


def _quick(text: str) -> str:
    """Replace what makes the library slow, with the same result.

    Unclosed brackets become another symbol, which the rules blank out alike, and very long white space one space.
    Otherwise an answer of brackets or line breaks would take minutes.
    """
    text = _LONG_BLANKS.sub(" ", text)
    end = max(text.rfind(">"), text.rfind("]")) + 1
    text = text[:end] + text[end:].translate(_UNCLOSED)
    end = text.rfind(")") + 1
    return text[:end] + text[end:].replace("(", "#")


_UNCLOSED = str.maketrans("<[", "##")
_LONG_BLANKS = re.compile(r"\s{64,}")

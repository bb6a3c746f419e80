"""Matching of texts: normal form, words in order, negation.

A word is a run of letters, digits and marks, or one Han character or kana. So phrases are found in Chinese text too,
and `male` is not found in `female`. Every function takes linear time.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from codec_bench.text.language import ALONE_CLASS

NEGATIONS = frozenset(
    "not no never neither nor cannot without isn wasn aren weren don doesn didn won wouldn couldn shouldn".split()
) | frozenset("不非没無无")
_BETWEEN = frozenset("a an the t be by any really actually definitely option choice answer is 是 选 項 项 选项".split())
"""Words between a negation and its target: `is not a man`, `isn't the man`."""


def plain(text: str) -> str:
    """A text's normal form: NFKC, lower case, single spaces, no quotes around it."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).strip(" \t.,;:!?。、，；：！？\"'“”‘’`*")


def words(text: str, *, fold_accents: bool = False) -> list[str]:
    """Split a text into words in lower case (NFKC); accents may be removed."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    if fold_accents:
        decomposed = unicodedata.normalize("NFD", folded)
        folded = unicodedata.normalize("NFC", "".join(c for c in decomposed if not "\u0300" <= c <= "\u036f"))
    return _items().findall(folded)


def contains(items: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether the text has the expected words in a row; no words are never found."""
    if not expected:
        return False
    # No word has the joining character, so one linear search is enough.
    return f"\0{chr(0).join(expected)}\0" in f"\0{chr(0).join(items)}\0"


def negated(items: Sequence[str], at: int, word: str = "") -> bool:
    """Whether up to three words before a position negate the word there.

    Args:
        word: the word itself; a negation is not negated.
    """
    if word in NEGATIONS:
        return False
    for before in reversed(items[max(0, at - 3) : at]):
        if before in NEGATIONS:
            return True
        if before not in _BETWEEN:
            return False
    return False


@cache
def _items() -> Any:
    import regex

    return regex.compile(rf"[{ALONE_CLASS}]|[[\p{{L}}\p{{N}}\p{{M}}]--[{ALONE_CLASS}]]+", regex.V1)

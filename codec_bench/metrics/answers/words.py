"""Texts as they are matched: one form of writing, items in order, which of several phrases occur, negation.

Conventions
    An item is a run of letters, digits and marks, or one Han character or kana: a phrase is found in Chinese text
    too, and `male` is not found in `female`. Everything here takes time in proportion to the length of the text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from codec_bench.text.scripts import ALONE_CLASS

NEGATIONS = frozenset(
    "not no never neither nor cannot without isn wasn aren weren don doesn didn won wouldn couldn shouldn".split()
) | frozenset("不非没無无")
_BETWEEN = frozenset("a an the t be by any really actually definitely option choice answer is 是 选 項 项 选项".split())
"""Items that may stand between a negation and what it negates: `is not a man`, `isn't the man`."""


def plain(text: str) -> str:
    """One form of writing: NFKC, no case, single spaces, no quotes or closing marks outside."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).strip(" \t.,;:!?。、，；：！？\"'“”‘’`*")


def words(text: str, *, fold_accents: bool = False) -> list[str]:
    """The items of a text in order, without case and compatibility forms, and on demand without accents."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    if fold_accents:
        apart = unicodedata.normalize("NFD", folded)
        folded = unicodedata.normalize("NFC", "".join(c for c in apart if not "\u0300" <= c <= "\u036f"))
    return _items().findall(folded)


def contains(items: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the wanted items stand in a row among the items; nothing wanted is nowhere."""
    if not wanted:
        return False
    # Joined by a character that no item holds, this is one search by the interpreter's own linear algorithm.
    return f"\0{chr(0).join(wanted)}\0" in f"\0{chr(0).join(items)}\0"


def phrases_in(text: str, phrases: Mapping[Any, str] | Iterable[str]) -> set[Any]:
    """Which phrases occur in a text: their keys, or the phrases themselves. The longest wins where several begin.

    One that is negated right before (`not a man`, `不是猫`) does not count.
    """
    table = phrases if isinstance(phrases, Mapping) else {phrase: phrase for phrase in phrases}
    by_first: dict[str, list[tuple[tuple[str, ...], list[Any]]]] = {}
    keys: dict[tuple[str, ...], list[Any]] = {}
    for key, phrase in table.items():
        keys.setdefault(tuple(words(phrase)), []).append(key)
    for wanted, found_keys in keys.items():
        if wanted:
            by_first.setdefault(wanted[0], []).append((wanted, found_keys))
    for several in by_first.values():
        several.sort(key=lambda entry: -len(entry[0]))
    items, at, found = words(text), 0, set()
    while at < len(items):
        for wanted, found_keys in by_first.get(items[at], ()):
            if tuple(items[at : at + len(wanted)]) == wanted:
                if not negated(items, at, wanted[0]):
                    found.update(found_keys)
                at += len(wanted) - 1
                break
        at += 1
    return found


def negated(items: Sequence[str], at: int, word: str = "") -> bool:
    """Whether the item at a place is negated by what stands right before it."""
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

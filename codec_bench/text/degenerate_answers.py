"""Detect degenerate answers: empty, endless, copy, phonemes, other language.

A model that does not understand a prompt fails in these ways, often under some wordings only (AudioBench, arXiv
2406.16020, section on robustness). An item is a word, or a character of a script without spaces. A pattern of an
expected or offered answer itself does not count: a transcript of a counting rhyme may repeat itself. Only clear cases
count; an answer may be several. The time is linear in the length of the texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from codec_bench.text.language import ALONE_CLASS

EMPTY, ENDLESS, COPY, PHONEMES, LANGUAGE = "empty", "endless", "copy", "phonemes", "language"
WAYS = (EMPTY, ENDLESS, COPY, PHONEMES, LANGUAGE)
"""The kinds of degenerate answers, in the order of reports."""

_LONGEST = 20_000
"""Characters of a text that are examined: half from its beginning, half from its end."""
_ITEM = re.compile(rf"[{ALONE_CLASS}]|(?:(?![{ALONE_CLASS}])[^\W_])+")
_COPIED = 4
"""The fewest items in a row that make a copy, unless the prompt is shorter."""
_SHORTEST_PROMPT = 3
_MOST_PROMPT = 400
_LOOP_ITEMS, _LOOP_COPIES, _LOOP_PERIOD = 12, 4, 60
_LOOP_CHARACTERS, _LOOP_LETTER_COPIES, _LOOP_LETTERS = 48, 8, 30
_TAIL = 480

# The 39 phonemes of the CMU Pronouncing Dictionary; vowels may carry a stress of 0, 1 or 2.
_VOWELS = frozenset("AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW".split())
_CONSONANTS = frozenset("B CH D DH F G HH JH K L M N NG P R S SH T TH V W Y Z ZH".split())
_LONGEST_PHONEME = 7  # with its stress, and marks on both sides
_ARPABET = re.compile(r"([A-Za-z]{1,2})([012]?)")
_IPA = re.compile("[\u0250-\u02af\u02c8\u02cc\u02d0\u02d1]")
"""IPA letters that few spellings have, and the marks of stress and length."""

_FUNCTION_WORDS = {
    "en": "the and of to is was that it with for this are his her you they have not from which were there what",
    "de": "der die das und ist nicht ein eine ich sie mit den dem auf für von zu im wird sich auch wir des",
    "fr": "le les des et est une dans pour pas que qui sur avec il elle nous vous ce cette du au sont",
    "es": "el los las y es una por para con que no del se su está como pero al son más",
    "it": "il gli che di è una per non con della sono del dei nel questo anche come più alla si",
    "pt": "o os as e é uma para com não que do da em um por são mais dos na no",
    "nl": "de het een en van is niet dat ik met voor zijn op te aan wordt ook er naar",
    "id": "yang dan di ini itu dengan untuk tidak dari adalah ke pada akan ada oleh",
    "vi": "và của là có không được cho trong một những các với này đó người",
}
"""The most frequent function words of languages that share a script."""
_SCRIPTS = {
    "zh": ("CJK",), "yue": ("CJK",), "ja": ("CJK", "HIRAGANA", "KATAKANA"), "ko": ("HANGUL", "CJK"), "th": ("THAI",),
    "ru": ("CYRILLIC",), "uk": ("CYRILLIC",), "bg": ("CYRILLIC",), "ar": ("ARABIC",), "fa": ("ARABIC",),
    "ur": ("ARABIC",), "he": ("HEBREW",), "el": ("GREEK",), "hi": ("DEVANAGARI",), "mr": ("DEVANAGARI",),
    "ta": ("TAMIL",), "te": ("TELUGU",),
    **dict.fromkeys("ca cs cy da et fi fil hr hu lt lv ms no pl ro sk sl sv sw tl tr".split(), ("LATIN",)),
    **dict.fromkeys(_FUNCTION_WORDS, ("LATIN",)),
}  # fmt: skip
"""The scripts of languages by base code, as Unicode names characters."""


def find_degeneracies(
    text: str, *, prompt: str = "", known: Iterable[str] = (), language: str | None = None, at_limit: bool = False
) -> tuple[str, ...]:
    """The kinds of degeneracy of an answer; empty for a proper answer.

    Args:
        prompt: the text of the question, without its sound.
        known: the expected answers, and the offered options.
        language: base code of the language of the expected answers; None uses their scripts alone.
        at_limit: whether the answer ended at a limit of length.
    """
    items, expected = items_of(text), [one for one in known if isinstance(one, str)]
    if not items:
        return () if any(not _cached_items(one) for one in expected) else (EMPTY,)
    kinds = set()
    if at_limit or (_loops(text, items) and not any(_loops(one, _cached_items(one)) for one in expected)):
        kinds.add(ENDLESS)
    if _copies(items, _cached_items(prompt)[:_MOST_PROMPT], expected):
        kinds.add(COPY)
    if _is_phonetic(text) and not any(map(_is_phonetic, expected)):
        kinds.add(PHONEMES)
    elif _is_foreign(items, expected, language):
        kinds.add(LANGUAGE)
    return tuple(kind for kind in WAYS if kind in kinds)


def items_of(text: str) -> list[str]:
    """The words of a text in lower case; the characters of scripts without spaces."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} {text[-_LONGEST // 2 :]}"
    return _ITEM.findall(unicodedata.normalize("NFKC", text).casefold())


@lru_cache(256)
def _cached_items(text: str) -> tuple[str, ...]:
    return tuple(items_of(text))


def _loops(text: str, items: Sequence[str]) -> bool:
    """Whether a text ends in the same words, or the same letters, over and over."""
    letters = [c for c in text[-_TAIL:] if c.isalnum()]
    return _is_periodic(items[-_TAIL:], _LOOP_PERIOD, _LOOP_COPIES, _LOOP_ITEMS) or _is_periodic(
        letters, _LOOP_LETTERS, _LOOP_LETTER_COPIES, _LOOP_CHARACTERS
    )


def _is_periodic(items: Sequence[str], longest: int, copies: int, fewest: int) -> bool:
    """Whether a sequence ends in at least `copies` of at most `longest` items, with `fewest` items in all."""
    for period in range(1, min(longest, len(items) // copies) + 1):
        at = len(items) - 1
        while at >= period and items[at] == items[at - period]:
            at -= 1
        if len(items) - 1 - at + period >= max(copies * period, fewest):
            return True
    return False


def _copies(items: Sequence[str], prompt: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether an answer contains at least half of the prompt in a row and is hardly longer."""
    if len(prompt) < _SHORTEST_PROMPT or len(items) > 3 * len(prompt):
        return False
    run = max(min(_COPIED, len(prompt)), (len(prompt) + 1) // 2)
    parts = {tuple(items[at : at + run]) for at in range(len(items) - run + 1)}
    copied = any(tuple(prompt[at : at + run]) in parts for at in range(len(prompt) - run + 1))
    return copied and not any(_contains_run(_cached_items(one), items) for one in expected)


def _contains_run(items: Sequence[str], run: Sequence[str]) -> bool:
    return f"\0{chr(0).join(run)}\0" in f"\0{chr(0).join(items)}\0"


def _is_phonetic(text: str) -> bool:
    """Whether a text is in IPA or ARPAbet."""
    head = text[:_LONGEST]
    marks = 0 if head.isascii() else len(_IPA.findall(head))
    if marks >= 3 and marks >= 0.08 * sum(c.isalpha() for c in head):
        return True
    words = head.split()
    if len(words) < _COPIED or sum(len(word) <= _LONGEST_PHONEME for word in words) < 0.8 * len(words):
        return False
    tokens = [token for token_text in words if (token := token_text.strip(".,;:|/[]{}()\"'"))]
    read = [match for token in tokens if (match := _ARPABET.fullmatch(token)) is not None]
    vowels = sum(match[1].upper() in _VOWELS for match in read)
    consonants = [match[1].upper() for match in read if match[1].upper() in _CONSONANTS and not match[2]]
    if len(tokens) < _COPIED or vowels + len(consonants) < 0.8 * len(tokens):
        return False
    # Spelled-out letters have no phonemes of two letters, and hesitations ("uh er ah") no consonants.
    return vowels >= 0.2 * len(tokens) and len(consonants) >= 0.25 * len(tokens)


def _is_foreign(items: Sequence[str], expected: Sequence[str], language: str | None) -> bool:
    """Whether most of an answer is in an unexpected script, or has another language's function words."""
    scripts = Counter(name for item in items if (name := _script(item[0])) is not None)
    allowed = {name for one in expected for item in _cached_items(one) if (name := _script(item[0])) is not None}
    if not scripts or (not allowed and language not in _SCRIPTS):
        return False
    allowed.update(_SCRIPTS.get(language or "", ()))
    other = sum(count for name, count in scripts.items() if name not in allowed)
    if 2 * other > scripts.total():
        return True
    if language not in _FUNCTION_WORDS or other:
        return False
    spoken = _counted(items)
    native, most = spoken.pop(language, 0), max(spoken.values(), default=0)
    in_reference = _counted([item for one in expected for item in _cached_items(one)])
    in_reference.pop(language, None)
    return most >= 3 and most > 3 * native and most >= 0.1 * len(items) and not in_reference


def _counted(items: Iterable[str]) -> Counter[str]:
    """Count function words by language."""
    of = _languages()
    return Counter(of[item] for item in items if item in of)


@cache
def _languages() -> dict[str, str]:
    """The language of each function word that belongs to only one language."""
    held = Counter(word for words in _FUNCTION_WORDS.values() for word in words.split())
    return {word: name for name, words in _FUNCTION_WORDS.items() for word in words.split() if held[word] == 1}


@lru_cache(8192)
def _script(character: str) -> str | None:
    """The script of a letter, as the first word of its Unicode name; None for digits and unnamed characters."""
    if not character.isalpha():
        return None
    first, *rest = unicodedata.name(character, "").split(" ") or [""]
    return (rest[0] if first in ("FULLWIDTH", "HALFWIDTH") and rest else first) or None


__all__ = ["COPY", "EMPTY", "ENDLESS", "LANGUAGE", "PHONEMES", "WAYS", "find_degeneracies", "items_of"]

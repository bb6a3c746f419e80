"""What is said of a written text: numbers as words, and a reason where something cannot be said.

Conventions
    English numbers are read by `num2words`, Chinese ones by `wetext`. In other languages a text with digits cannot be spoken here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

from codec_bench.text.language import base_language
from codec_bench.text.own_steps import STEPS, optional

SCRIPTS = {"en": ("LATIN",), "zh": ("CJK", "LATIN")}
"""The scripts of letters that a text of a language may have; other languages are not checked."""
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_PERCENT = re.compile(r"(?<=\d)\s*%")


class Unspeakable(Exception):
    """A text cannot be said; the message is a reason that the funnel counts, and `what` is the part."""

    def __init__(self, reason: str, what: str = "") -> None:
        super().__init__(reason)
        self.reason, self.what = reason, what


def spoken_text(text: str, language: str) -> str:
    """A text as it is read out, with white space made one space.

    Raises:
        Unspeakable: it has no letter, or a sign that nobody reads out (formulas, emoji), a digit that is not read, or a letter of
            another script. MissingExtra: the package that reads numbers is not installed.
    """
    base = base_language(language)
    said = " ".join(unicodedata.normalize("NFC", text).split())
    if base in _READERS and re.search(r"\d", said):
        said = " ".join(_reader(base)(said).split())
    for character in said:
        kind = unicodedata.category(character)
        if kind.startswith("N"):
            raise Unspeakable("a number cannot be read out", character)
        if kind.startswith(("S", "C")) or character in "\\_{}@#*/<>":
            raise Unspeakable("a sign cannot be read out", character)
        if kind.startswith("L") and base in SCRIPTS and not _name(character).startswith(SCRIPTS[base]):
            raise Unspeakable("a letter is of another script", character)
    if not any(character.isalpha() for character in said):
        raise Unspeakable("there is nothing to say")
    return said


def check_options(choices: Sequence[str], normalise: Callable[[str], str]) -> None:
    """Checks that options can be told apart by ear.

    Args:
        choices: as they are read out. normalise: makes equal what sounds equal.

    Raises:
        Unspeakable: two of them sound alike.
    """
    heard: dict[str, str] = {}
    for choice in choices:
        form = normalise(choice).strip() or choice
        if form in heard:
            raise Unspeakable("two options sound alike", f"'{heard[form]}' and '{choice}'")
        heard[form] = choice


def _name(character: str) -> str:
    return unicodedata.name(character, "")


def _english() -> Callable[[str], str]:
    num2words = optional("num2words", "the reading of English numbers", "num2words").num2words

    def read(text: str) -> str:
        text = _PERCENT.sub(" percent", text)
        return _NUMBER.sub(lambda found: f" {_words(found[0])} ", text)

    def _words(number: str) -> str:
        plain = number.replace(",", "")
        # Without a sign between thousands, four digits are a year more often than not, but which is not known; all are read as counts.
        return str(num2words(float(plain) if "." in plain else int(plain), lang="en"))

    return read


_READERS: dict[str, Callable[[], Callable[[str], str]]] = {"en": _english, "zh": STEPS["wetext-zh"]}


@cache
def _reader(language: str) -> Callable[[str], str]:
    return _READERS[language]()

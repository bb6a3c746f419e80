"""The spoken form of a written text, with a reason where it has none.

`num2words` reads English numbers (times, money, ordinals and telephone numbers as such, years as counts), `wetext`
Chinese ones; other languages may have no digits. Options sound alike if the recognisers' text rule makes them equal
("8" and "eight"), or in English and for Latin letters in Chinese if names of letters or numbers up to ten differ by one
consonant (A and 8, B and D, M and N). Chinese homophones are not found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain, combinations

from codec_bench.messages import Diagnostic
from codec_bench.text.basic_steps import STEPS, optional
from codec_bench.text.language import base_language

SCRIPTS = {"en": ("LATIN",), "zh": ("CJK", "LATIN")}
"""The scripts allowed in texts of a language; other languages are not checked."""
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_SPACED_MARK = re.compile(r"\s+(?=[.,;:?!)])")
_PERCENT = re.compile(r"(?<=\d)\s*%")
_TIME = re.compile(r"\b([01]?\d|2[0-3]):([0-5]\d)\b(?:\s*([ap])\.?\s?m\b)?", re.IGNORECASE)
_NUMERO = re.compile(r"\bNo\.\s?(?=\d)")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b", re.IGNORECASE)
_TELEPHONE = re.compile(r"(?<![\d-])\d{3}-(?:\d{3}-)?\d{4}(?![\d-])")
_MONEY = re.compile(
    r"([$£€])\s?(\d+(?:,\d{3})*)(?:\.(\d\d))?(?![\d.,]*\d)"
    r"(?:\s(hundred|thousand|million|billion)\b)?"
)
_COINS = {"$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent")}
_FORMULA = re.compile(r"\b[A-Za-z]\([A-Za-z0-9,+\-]{1,9}\)")
"""A function of a variable. Other formulas have signs without a spoken form."""
_MARKED = re.compile("[\u20d0-\u20ff\ufe00-\ufe0f]")
"""Marks that turn a sign into an emoji or enclose it."""
_NAMES = {
    "a": "EY", "b": "B IY", "c": "S IY", "d": "D IY", "e": "IY", "f": "EH F", "g": "JH IY", "h": "EY CH", "i": "AY",
    "j": "JH EY",
    "k": "K EY", "l": "EH L", "m": "EH M", "n": "EH N", "o": "OW", "p": "P IY", "q": "K Y UW", "r": "AA R", "s": "EH S",
    "t": "T IY", "u": "Y UW", "v": "V IY", "w": "D AH B AH L Y UW", "x": "EH K S", "y": "W AY", "z": "Z IY",
    "zero": "Z IH R OW", "one": "W AH N", "two": "T UW", "three": "TH R IY", "four": "F AO R", "five": "F AY V",
    "six": "S IH K S", "seven": "S EH V AH N", "eight": "EY T", "nine": "N AY N", "ten": "T EH N",
}  # fmt: skip
"""Phones of the names of letters and numbers by the CMU Pronouncing Dictionary, without stress."""


class Unspeakable(Exception):
    """A text cannot be spoken: the funnel's reason, and the part of the text."""

    def __init__(self, reason: Diagnostic, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


def spoken_text(text: str, language: str) -> str:
    """Return the spoken form of a text, with single spaces.

    Raises:
        Unspeakable: it has no letter, a sign without a spoken form (formulas, emoji), an unreadable digit, or a letter
            of another script.
        MissingExtra: the package that reads numbers is not installed.
    """
    base = base_language(language)
    spoken = " ".join(unicodedata.normalize("NFC", text).split())
    if match := _FORMULA.search(spoken) or _MARKED.search(spoken):
        raise Unspeakable(
            Diagnostic("formula_unreadable") if match.re is _FORMULA else Diagnostic("sign_unreadable"), match[0]
        )
    if base == "en":
        spoken = spoken.replace(" & ", " and ")
    if base in _READERS and re.search(r"\d", spoken):
        spoken = " ".join(_reader(base)(spoken).split())
    for character in spoken:
        kind = unicodedata.category(character)
        if kind.startswith("N"):
            raise Unspeakable(Diagnostic("number_unreadable"), character)
        if kind.startswith(("S", "C")) or character in "\\_{}[]@#*/<>%&":
            raise Unspeakable(Diagnostic("sign_unreadable"), character)
        if kind.startswith("L") and base in SCRIPTS and not unicodedata.name(character, "").startswith(SCRIPTS[base]):
            raise Unspeakable(Diagnostic("letter_of_other_script"), character)
    if not any(character.isalpha() for character in spoken):
        raise Unspeakable(Diagnostic("nothing_to_say"))
    return spoken


def check_options(choices: Sequence[str], language: str, normalise: Callable[[str], str]) -> None:
    """Check that spoken options sound different.

    Args:
        normalise: equates what the recognisers' rule cannot tell apart.

    Raises:
        Unspeakable: two of them sound alike.
    """
    for (first, one), (second, other) in combinations([(choice, normalise(choice).strip()) for choice in choices], 2):
        if (one or first) == (other or second) or (base_language(language) in SCRIPTS and _rhyme(first, second)):
            raise Unspeakable(Diagnostic("options_sound_alike"), f"'{first}' and '{second}'")


def _rhyme(first: str, second: str) -> bool:
    """Whether the names of two letters or numbers differ by at most one consonant."""
    one, other = (_NAMES.get(text.strip(" .").lower(), "").split() for text in (first, second))
    if not one or not other or abs(len(one) - len(other)) > 1:
        return False
    if len(one) == len(other):
        changed = [pair for pair in zip(one, other) if pair[0] != pair[1]]
        return len(changed) <= 1 and not any(map(_is_vowel, chain.from_iterable(changed)))
    shorter, longer = sorted((one, other), key=len)
    vowel_free = (index for index in range(len(longer)) if not _is_vowel(longer[index]))
    return any(longer[:index] + longer[index + 1 :] == shorter for index in vowel_free)


def _is_vowel(phone: str) -> bool:
    return phone[0] in "AEIOU"


def _english() -> Callable[[str], str]:
    """Return the function that writes numbers in a text as English words."""
    num2words = optional("num2words", "number_words", "num2words").num2words

    def read(text: str) -> str:
        """Write the numbers of a text as words."""
        text = _PERCENT.sub(" percent", text)
        text = _NUMERO.sub("number ", text)
        text = _TELEPHONE.sub(lambda match: " ".join(map(_words, re.findall(r"\d", match[0]))), text)
        text = _MONEY.sub(_money, text)
        text = _TIME.sub(_time, text)
        text = _ORDINAL.sub(lambda match: str(num2words(int(match[1]), to="ordinal", lang="en")), text)
        # Spaces separate a number from letters, not from punctuation.
        return _SPACED_MARK.sub("", _NUMBER.sub(lambda match: f" {_words(match[0])} ", text))

    def _words(number: str) -> str:
        plain = number.replace(",", "")
        # Without a sign between thousands, four digits are a year more often than not, but which is not known; all are
        # read as counts.
        return str(num2words(float(plain) if "." in plain else int(plain), lang="en"))

    def _money(match: re.Match[str]) -> str:
        """Write an amount of money as words."""
        sign, units, parts, scale = match.groups()
        main, small = _COINS[sign]
        many = scale is not None or units != "1"
        amount = f"{_words(units)} {scale + ' ' if scale else ''}{main}{'s' if many else ''}"
        if not parts or not int(parts):
            return amount
        coins = small if int(parts) == 1 else "pence" if small == "penny" else f"{small}s"
        return f"{amount} and {_words(str(int(parts)))} {coins}"

    def _time(match: re.Match[str]) -> str:
        hour, minutes = _words(str(int(match[1]))), int(match[2])
        past = f" {'oh ' if minutes < 10 else ''}{_words(str(minutes))}" if minutes else "" if match[3] else " o'clock"
        return f"{hour}{past}" + (f" {match[3]}.m" if match[3] else "")

    return read


_READERS: dict[str, Callable[[], Callable[[str], str]]] = {"en": _english, "zh": STEPS["wetext-zh"]}


@cache
def _reader(language: str) -> Callable[[str], str]:
    return _READERS[language]()

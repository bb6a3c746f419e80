"""Whole numbers as words: digits in a text become what a speaker says.

Digits are written as words and not the reverse, because that direction has one answer: 21 is "vingt et un", while "un"
may be a number or an article, and "vingt et un" may be 21 or 20 and 1. Words stay as they are, so texts that differ in
words stay different. Two written numbers that are said in the same way become the same words ("20 1" and "21" in
French), as they should.

`cardinals.csv` holds the parts of the numbers from 0 to 9,999 as maintained libraries write them, with each library's
version: num2words, and indic-numtowords for Hindi. `scripts/make_cardinals.py` writes the file and compares all
numbers. So nothing needs to be installed, and a number takes a microsecond. The separators of thousands and decimals
are CLDR's (`SEPARATORS`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files

from codec_bench.text.own_steps import Step

FILE = files("codec_bench.text").joinpath("cardinals.csv")
LARGEST = 9_999
"""The largest number that is written as words, but in languages that count in units of ten thousand."""

SEPARATORS = {
    "ar": (",", "."), "de": (".", ","), "es": (".", ","), "fr": (" ", ","), "hi": (",", "."), "id": (".", ","), "it": (".", ","),
    "ja": (",", "."), "ko": (",", "."), "pt": (".", ","), "ru": (" ", ","), "th": (",", "."), "vi": (".", ","),
}  # fmt: skip
"""What stands between thousands and before decimals: CLDR's symbols `group` and `decimal` of each language."""

WITHOUT_SPACES = ("ja", "ko", "th")
"""Languages in which a number may touch a word: 10時, 3명. In the others, 3D and MP3 are names."""


@dataclass(frozen=True, slots=True)
class Cardinals:
    """The numbers of one language.

    Args:
        alone: words of the numbers below 100, and of round hundreds and thousands that nothing follows.
        before: words of round hundreds and thousands before the rest of a number, with the space that belongs there.
        after: by unit (100 or 1000), words of the rests that are said otherwise after that unit than alone.
        units: words of 10,000 and its powers, in languages that count in them.
        point: the word before decimals, which are read one by one; empty where the library reads them otherwise.
        source: the library and its version.
    """

    alone: dict[int, str]
    before: dict[int, str]
    after: dict[int, dict[int, str]]
    units: dict[int, str] = field(default_factory=dict)
    point: str = ""
    source: str = ""

    @property
    def largest(self) -> int:
        """The largest number that has words."""
        return max(self.units, default=1) * (LARGEST + 1) - 1

    def words(self, number: int) -> str:
        """A whole number from 0 to `largest` as words."""
        if number > LARGEST:
            return self._large(number)
        words = self.alone.get(number)
        if words is None:
            unit = 1000 if number >= 1000 else 100
            rest = number % unit
            words = self.before[number - rest] + (self.after[unit].get(rest) or self.words(rest))
        return words

    def _large(self, number: int) -> str:
        text = ""
        for unit in sorted(self.units, reverse=True):
            count, number = divmod(number, unit)
            if count:
                # One unit alone may have a word of its own: 10,000 is 만 in Korean, not 일만.
                text += self.alone[unit] if count == 1 else self.words(count) + self.units[unit]
        return text + (self.words(number) if number else "")


@cache
def load(language: str) -> Cardinals:
    """The numbers of a language of `SEPARATORS`."""
    numbers = Cardinals({}, {}, {100: {}, 1000: {}})
    single = {}
    with FILE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["language"] != language:
                continue
            position, words = row["place"], row["words"]
            if position in ("point", "source"):
                single[position] = words
            elif position.startswith("after "):
                numbers.after[int(position.removeprefix("after "))][int(row["number"])] = words
            else:
                kinds = {"alone": numbers.alone, "before": numbers.before, "unit": numbers.units}
                kinds[position][int(row["number"])] = words
    return Cardinals(numbers.alone, numbers.before, numbers.after, numbers.units, **single)


def cardinals(language: str) -> Step:
    """The step that writes the digits of a text as words, with a space on both sides.

    These stay as they are: numbers above `Cardinals.largest` (without their separators), numbers with zeros in front,
    digits that touch a letter, and numbers with decimals where the library has no word for the mark.
    """
    numbers = load(language)
    group, decimal = map(re.escape, SEPARATORS[language])
    letter = "[A-Za-z_]" if language in WITHOUT_SPACES else r"[^\W\d]"
    # In Hindi, thousands are followed by groups of two digits.
    grouped = rf"\d{{1,2}}(?:{group}\d\d){{0,6}}{group}\d{{3}}|" if language == "hi" else ""
    number = re.compile(
        rf"(?<!\d)(?<!{letter})({grouped}\d{{1,3}}(?:{group}\d{{3}})+(?!\d)|\d+)(?:{decimal}(\d+))?(?!\d)(?!{letter})"
    )
    # Digits and separators are found first, because a pattern that looks around itself is tried at every character.
    run = re.compile(rf"\d[\d{group}{decimal}]*")

    def spell(match: re.Match[str]) -> str:
        integer, decimals = re.sub(r"\D", "", match[1]), match[2]
        if (len(integer) > 1 and integer[0] == "0") or len(integer) > 16 or int(integer) > numbers.largest:
            return integer if decimals is None else match[0]
        if decimals is None:
            return f" {numbers.words(int(integer))} "
        if not numbers.point:
            return match[0]
        return (
            f" {numbers.words(int(integer))} {numbers.point} {' '.join(numbers.words(int(one)) for one in decimals)} "
        )

    def rewrite(hit: re.Match[str]) -> str:
        text, start, end = hit.string, hit.start(), hit.end()
        before, after = text[max(0, start - 1) : start], text[end : end + 1]
        spelled = number.sub(spell, f"{before}{hit[0]}{after}")
        return spelled[len(before) : len(spelled) - len(after)]

    return lambda text: run.sub(rewrite, text)


def steps() -> dict[str, Callable[[], Step]]:
    """The step `cardinals-XX` of each language."""
    return {f"cardinals-{language}": partial(cardinals, language) for language in SEPARATORS}

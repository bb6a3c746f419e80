"""Write whole numbers in digits as spoken words.

Digits become words, not the reverse, because only that direction is unambiguous: "un" may be a number or an article.
Numbers that sound alike become the same words ("20 1" and "21" in French). `cardinals.csv` holds the parts of 0 to
9,999 from num2words and, for Hindi, indic-numtowords, with versions; `scripts/make_cardinals.py` writes it and compares
all numbers. Separators of thousands and decimals are CLDR's (`SEPARATORS`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files

from codec_bench.text.basic_steps import Step

FILE = files("codec_bench.text").joinpath("cardinals.csv")
LARGEST = 9_999
"""The largest number with words, except in languages that count in units of ten thousand."""

SEPARATORS = {
    "ar": (",", "."), "de": (".", ","), "es": (".", ","), "fr": (" ", ","), "hi": (",", "."), "id": (".", ","),
    "it": (".", ","), "ja": (",", "."), "ko": (",", "."), "pt": (".", ","), "ru": (" ", ","), "th": (",", "."),
    "vi": (".", ","),
}  # fmt: skip
"""Separators of thousands and decimals: CLDR's symbols `group` and `decimal` of each language."""

WITHOUT_SPACES = ("ja", "ko", "th")
"""Languages whose numbers may touch a word: 10時, 3명. In the others, 3D and MP3 are names."""


@dataclass(frozen=True, slots=True)
class Cardinals:
    """The numbers of one language.

    Args:
        alone: words of numbers below 100, and of round hundreds and thousands on their own.
        before: words of round hundreds and thousands before the rest of a number, with the space after them.
        after: by unit (100 or 1000), words of the rests that differ after that unit.
        units: words of 10,000 and its powers, in languages that count in them.
        point: the word before decimals, which are read one by one; empty if the library reads them otherwise.
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
        """The words of a whole number from 0 to `largest`."""
        if number > LARGEST:
            return self._large(number)
        words = self.alone.get(number)
        if words is None:
            unit = 1000 if number >= 1000 else 100
            rest = number % unit
            words = self.before[number - rest] + (self.after[unit].get(rest) or self.words(rest))
        return words

    def _large(self, number: int) -> str:
        """Spell a number by its large units, such as thousand and million."""
        text = ""
        for unit in sorted(self.units, reverse=True):
            count, number = divmod(number, unit)
            if count:
                # A single unit may have a special word: 10,000 is 만 in Korean, not 일만.
                text += self.alone[unit] if count == 1 else self.words(count) + self.units[unit]
        return text + (self.words(number) if number else "")


@cache
def load(language: str) -> Cardinals:
    """Load the numbers of a language of `SEPARATORS`."""
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
    """A step that writes digits as words, with a space on each side.

    Unchanged: numbers above `Cardinals.largest` (except their separators), numbers with leading zeros, digits that
    touch a letter, and decimals in a language without a word for the point.
    """
    numbers = load(language)
    group, decimal = map(re.escape, SEPARATORS[language])
    letter = "[A-Za-z_]" if language in WITHOUT_SPACES else r"[^\W\d]"
    # In Hindi, thousands are followed by groups of two digits.
    grouped = rf"\d{{1,2}}(?:{group}\d\d){{0,6}}{group}\d{{3}}|" if language == "hi" else ""
    number = re.compile(
        rf"(?<!\d)(?<!{letter})({grouped}\d{{1,3}}(?:{group}\d{{3}})+(?!\d)|\d+)(?:{decimal}(\d+))?(?!\d)(?!{letter})"
    )
    # Digits and separators come first: a pattern with lookarounds is tried at every character.
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

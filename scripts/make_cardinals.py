"""Write codec_bench/text/cardinals.csv: number words, from other libraries.

Run it with num2words and indic-numtowords installed (both are in the extra `dev`): python scripts/make_cardinals.py
The file holds what the numbers from 0 to 9,999 are made of, and `codec_bench.text.cardinals` puts them together. This
script ends with an error unless every number then comes out as the library writes it; `tests/text/test_cardinals.py`
checks the same.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from codec_bench.text.cardinals import FILE, LARGEST, Cardinals, load

FROM_NUM2WORDS = ("ar", "de", "es", "fr", "id", "it", "ja", "ko", "pt", "ru", "th", "vi")
FROM_INDIC_NUMTOWORDS = ("hi",)
# Languages in which the library reads a fraction digit by digit after one word.
WITH_FRACTIONS = ("de", "es", "fr", "id", "it", "ja", "ko", "pt", "th")
# Languages that count in units of ten thousand, and how many of those units.
BY_TEN_THOUSANDS = {"ja": 3, "ko": 3}

Row = tuple[str, str, int | str, str]


def main() -> None:
    """Writes the file and compares every number with the library."""
    rows: list[Row] = []
    written = {language: library(language) for language in sorted((*FROM_NUM2WORDS, *FROM_INDIC_NUMTOWORDS))}
    for language, spell in written.items():
        rows += parts(language, spell)
    with Path(FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("language", "place", "number", "words"))
        writer.writerows(rows)
    load.cache_clear()
    for language, spell in written.items():
        wrong = [number for number in range(LARGEST + 1) if load(language).words(number) != spell(number)]
        if wrong:
            raise SystemExit(f"{language}: {len(wrong)} numbers are not the library's, the first is {wrong[0]}")


def library(language: str) -> Callable[[int | float], str]:
    """How a maintained library writes a number in a language."""
    if language in FROM_INDIC_NUMTOWORDS:
        from indic_numtowords import num2words as indic

        return lambda number: indic(number, lang=language)
    from num2words import num2words

    return lambda number: num2words(number, lang=language)


def parts(language: str, spell: Callable[[int | float], str]) -> list[Row]:
    """The rows of one language."""
    package = "indic-numtowords" if language in FROM_INDIC_NUMTOWORDS else "num2words"
    rows: list[Row] = [(language, "source", "", f"{package} {version(package)}")]
    cardinals = Cardinals({}, {}, {100: {}, 1000: {}})
    for number in (*range(100), *range(100, 1000, 100), *range(1000, 10_000, 1000)):
        cardinals.alone[number] = spell(number)
        rows.append((language, "alone", number, cardinals.alone[number]))
    for unit in (100, 1000):
        for first in range(unit, 10 * unit, unit):
            cardinals.before[first] = shared_start([spell(first + rest) for rest in range(1, unit)])
            rows.append((language, "before", first, cardinals.before[first]))
        for rest in range(1, unit):
            # What follows is the same after every unit of that size.
            (words,) = {spell(first + rest)[len(cardinals.before[first]) :] for first in range(unit, 10 * unit, unit)}
            if words != cardinals.words(rest):
                cardinals.after[unit][rest] = words
                rows.append((language, f"after {unit}", rest, words))
    if language in WITH_FRACTIONS:
        mark = spell(0.5).removeprefix(spell(0)).removesuffix(spell(5)).strip()
        rows.append((language, "point", "", mark))
    for power in range(1, BY_TEN_THOUSANDS.get(language, 0) + 1):
        number = 10_000**power
        rows.append((language, "unit", number, spell(2 * number).removeprefix(spell(2))))
        rows.append((language, "alone", number, spell(number)))
    return rows


def shared_start(texts: list[str]) -> str:
    """The characters with which all of the texts begin."""
    first, last = min(texts), max(texts)
    differ = (index for index, (one, other) in enumerate(zip(first, last)) if one != other)
    return first[: next(differ, len(first))]


if __name__ == "__main__":
    main()

"""The step `number`: numbers in texts, read exactly, such as `1,234.50` or `1/2`.

Numbers are fractions: rounding never makes two equal numbers differ.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

from codec_bench.benchmark.reading.base import NOTHING, REFUSAL, SEVERAL, Parsed, Unparsed, quote
from codec_bench.benchmark.reading.refusal import declines
from codec_bench.messages import Diagnostic

MOST_DIGITS = 300
_MINUS = str.maketrans("\u2212\u2012\u2013\uff0d", "----")
# A minus is a sign only without a digit, letter or closing bracket before it: 5-3 holds 5 and 3.
_NUMBER = re.compile(
    r"(?=[-+]?\.?\d)(?<![\w.])(?P<sign>(?<![\w)\]])[-+])?(?P<whole>\d{1,3}(?:,\d{3})+(?![\d])|\d+)?(?P<point>\.\d+)?"
    r"(?:[eE](?P<power>[-+]?\d{1,3})(?![\w]))?(?:\s?/\s?(?P<below>\d+)(?![\d/]))?"
)
_CUE = re.compile(r"answer(?:\s+is|\s*[:=])(?!\s+not\b)|####|\\boxed\s?\{|答案(?:是|为|[:=])", re.IGNORECASE)
_TWO = re.compile(
    r"[^\d\n]{0,20}[\d.,]+\W{0,4}(?:\b(?:or|and|to|oder|und|ou|et|o|y)\b|或|和|到|或者|или)\W{0,4}\d", re.IGNORECASE
)
_BOLD = re.compile(r"(?:\*\*|__)([^*_\n]{1,60})(?:\*\*|__)")
_REACH = 120
"""A number belongs to a cue such as `the answer is` if it begins within this many characters after it."""
_MOST_CUES = 100
"""How many cues are examined, to limit the time for an answer of cues alone."""


def number(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
    """Extract the number after `the answer is` and the like, or the only number.

    Of several different numbers without such words, the last one counts if it is the only one in bold. It is written
    without
    separators, and as a decimal number if possible: `1,234.50` gives `1234.5`, `1/2` gives `0.5`. Number words are not
    read. Unparsed if there is no number, or if several differ.
    """
    folded = unicodedata.normalize("NFKC", text)
    cued = set()
    for cue in islice(_CUE.finditer(folded), _MOST_CUES):
        reach = folded[cue.end() : cue.end() + _REACH]
        cued.update(numbers_in(reach)[: 2 if _TWO.match(reach) else 1])
    every = numbers_in(folded)
    chosen = cued or set(every)
    if len(chosen) > 1 and not cued:
        chosen = _strong(folded, every) or chosen
    if len(chosen) == 1:
        return Parsed(write_number(chosen.pop()))
    if declines(text):
        return Unparsed(Diagnostic("declines", answer=quote(text)), REFUSAL)
    if chosen:
        return Unparsed(Diagnostic("several_numbers", answer=quote(text)), SEVERAL)
    return Unparsed(Diagnostic("no_number", answer=quote(text)), NOTHING)


def _strong(text: str, every: Sequence[Fraction]) -> set[Fraction]:
    """The last number of a text if it is the only one in bold print."""
    bold = {number for match in _BOLD.finditer(text) for number in numbers_in(match[1])}
    return bold if bold == {every[-1]} else set()


def numbers_in(text: str) -> list[Fraction]:
    """All numbers in a text in order, in digits of any script; no number words."""
    folded = unicodedata.normalize("NFKC", text).translate(_MINUS)
    numbers = []
    for match in _NUMBER.finditer(folded):
        if match["whole"] is None and match["point"] is None:
            continue
        value = _value(match)
        if value is not None:
            numbers.append(value)
    return numbers


def read_number(text: str) -> Fraction | None:
    """Parse a text that is one number, or None; currency or percent may surround it."""
    folded = unicodedata.normalize("NFKC", text).translate(_MINUS).strip(" \t\r\n$€£¥%.。!*")
    match = _NUMBER.fullmatch(folded)
    if match is None or (match["whole"] is None and match["point"] is None):
        return None
    return _value(match)


def write_number(value: Fraction) -> str:
    """A number as text: whole or decimal if possible, else a fraction (`1/3`)."""
    if value.denominator == 1:
        return str(value.numerator)
    below, places = value.denominator, 0
    while below % 10 == 0 or below % 2 == 0 or below % 5 == 0:
        below = below // 10 if below % 10 == 0 else below // 2 if below % 2 == 0 else below // 5
        places += 1
    if below != 1:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")


def _value(match: re.Match[str]) -> Fraction | None:
    """Convert a matched number, with exponent or fraction, exactly."""
    integer, point, below = (match["whole"] or "0").replace(",", ""), (match["point"] or "")[1:], match["below"]
    if len(integer) + len(point) + len(below or "") > MOST_DIGITS:
        return None
    value = Fraction(int(integer + point), 10 ** len(point))
    if match["power"]:
        value *= Fraction(10) ** int(match["power"])
    if below is not None:
        if not int(below):
            return None
        value /= int(below)
    return -value if match["sign"] == "-" else value

"""Numbers in texts, read exactly: `1,234.50`, `-3`, `1/2`, `1e3`, `５０%`.

A number is kept as a fraction: `0.1 + 0.2` never gets in the way of an equality.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

MOST_DIGITS = 300
_MINUS = str.maketrans("\u2212\u2012\u2013\uff0d", "----")
# A sign counts where no digit, letter or closing bracket stands before it: 5-3 holds 5 and 3. Every part is bounded.
_NUMBER = re.compile(
    r"(?=[-+]?\.?\d)(?<![\w.])(?P<sign>(?<![\w)\]])[-+])?(?P<whole>\d{1,3}(?:,\d{3})+(?![\d])|\d+)?(?P<point>\.\d+)?"
    r"(?:[eE](?P<power>[-+]?\d{1,3})(?![\w]))?(?:\s?/\s?(?P<below>\d+)(?![\d/]))?"
)


def numbers_in(text: str) -> list[Fraction]:
    """Every number in a text, in order. Digits of other scripts count; number words are not read."""
    folded = unicodedata.normalize("NFKC", text).translate(_MINUS)
    found = []
    for match in _NUMBER.finditer(folded):
        if match["whole"] is None and match["point"] is None:
            continue
        value = _value(match)
        if value is not None:
            found.append(value)
    return found


def read_number(text: str) -> Fraction | None:
    """The number that a whole text is, or None; a currency or percent sign or a closing mark may stand around it."""
    folded = unicodedata.normalize("NFKC", text).translate(_MINUS).strip(" \t\r\n$€£¥%.。!*")
    match = _NUMBER.fullmatch(folded)
    if match is None or (match["whole"] is None and match["point"] is None):
        return None
    return _value(match)


def write_number(value: Fraction) -> str:
    """A number as text: a whole or a decimal number where it is one, else `1/3`."""
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
    whole, point, below = (match["whole"] or "0").replace(",", ""), (match["point"] or "")[1:], match["below"]
    if len(whole) + len(point) + len(below or "") > MOST_DIGITS:
        return None
    value = Fraction(int(whole + point), 10 ** len(point))
    if match["power"]:
        value *= Fraction(10) ** int(match["power"])
    if below is not None:
        if not int(below):
            return None
        value /= int(below)
    return -value if match["sign"] == "-" else value

"""The step `numbers-en`: English numbers as spoken, before Whisper's rule.

It writes what that rule drops or reads in two ways: a minus, "&", "a hundred" (one hundred), "half a million"
(0.5 million), and lists of single digits (4 7 1 1, as "four seven one one" becomes 4711).
"""

from __future__ import annotations

import re
from collections.abc import Callable

_LARGE = r"(?:hundred|thousand|million|billion|trillion)s?\b"

Rule = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]
_RULES: tuple[Rule, ...] = (
    (re.compile(r"(?<![\w.])[-\u2212](?=[$£€]?\d)"), "minus "),
    (re.compile(r"(?<=[\w.])\s*&\s*(?=\w)"), " and "),
    (re.compile(rf"\bhalf (?:a|an|of a) (?={_LARGE})", re.IGNORECASE), "0.5 "),
    (re.compile(rf"\ba (?={_LARGE})(?!\w+s\b)", re.IGNORECASE), "one "),
    (re.compile(r"\ba (?=1(?:,?000)+\b|100\b)", re.IGNORECASE), ""),
    (re.compile(r"(?<![\d.,$£€-])\d(?:,? \d)+(?![\d%]|[.,]\d)"), lambda match: re.sub("[, ]", "", match[0])),
)


def spoken_numbers(text: str) -> str:
    """Write these numbers as Whisper's rule reads them."""
    for pattern, read in _RULES:
        text = pattern.sub(read, text)
    return text

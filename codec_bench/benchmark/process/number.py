"""The step `number`: the one number that an answer gives."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from itertools import islice
from typing import Any

from codec_bench.benchmark.process.base import Parsed, Unparsed, quote
from codec_bench.metrics.answers.numbers import numbers_in, write_number

_CUE = re.compile(r"answer(?:\s+is|\s*[:=])(?!\s+not\b)|####|\\boxed\s?\{|答案(?:是|为|[:=])", re.IGNORECASE)
_REACH = 120
"""Characters after a cue in which its number must stand."""
_MOST_CUES = 100
"""Cues that are looked at: an answer of nothing but cues must not take long."""


def number(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
    """The number after `the answer is`, `answer:`, `####`, `\\boxed{` or `答案是`, else the only number of the answer.

    Written without separators, as a decimal where it is one (`1,234.50` is `1234.5`, `1/2` is `0.5`). Unparsed: no
    number, or several that differ. Number words are not read.
    """
    folded = unicodedata.normalize("NFKC", text)
    cued = set()
    for cue in islice(_CUE.finditer(folded), _MOST_CUES):
        cued.update(numbers_in(folded[cue.end() : cue.end() + _REACH])[:1])
    found = cued or set(numbers_in(folded))
    if len(found) == 1:
        return Parsed(write_number(found.pop()))
    what = "several numbers" if found else "no number"
    return Unparsed(f"there {'are' if found else 'is'} {what} in {quote(text)}")

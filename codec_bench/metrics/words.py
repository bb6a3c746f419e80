"""Word times, as the columns `words` and `estimate_words` of a manifest hold them."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

FORM = "[[START, END, WORD], ...] in seconds"


class Word(NamedTuple):
    """A word and its start and end in seconds."""

    start_s: float
    end_s: float
    word: str


def read_words(cell: Any, column: str) -> list[Word]:
    """Read word times from a table cell: a list or its JSON, empty entries removed.

    Args:
        column: the cell's column, for the message.

    Raises:
        ValueError: the cell holds no list of words, or a word does not end after it starts.
    """
    try:
        rows = json.loads(cell) if isinstance(cell, str) else cell
        words = [Word(float(start), float(end), str(word).strip()) for start, end, word in rows]
    except (ValueError, TypeError, RecursionError):
        raise ValueError(f"the column '{column}' is {str(cell)[:60]!r}; expected {FORM}") from None
    for start, end, word in words:
        if not 0 <= start < end < math.inf:
            raise ValueError(f"in the column '{column}' the word '{word}' lasts from {start:g} to {end:g} s")
    return [word for word in words if word.word]

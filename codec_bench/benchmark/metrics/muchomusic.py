"""RUL-MuchoMusic's rule for questions with options, with its quirks.

Source: `ExampleAudioEval/qwen_2_audio.py` of github.com/yongyizang/AreYouReallyListening d3971de.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_LETTERS = "ABCDE"
_REQUESTED = re.compile(r"\[\[([A-E])\]\]")
_STATED = re.compile(r"(?:answer is|chose|choose|select|guess is|I choose|I select|I guess) ([A-E])\b", re.IGNORECASE)


def letter_of(response: str, choices: Mapping[str, str]) -> str | None:
    """The letter that an answer names; None, which is wrong, if the rule finds none.

    The last `[[A]]` counts, else the last letter after words such as `answer is`, else the alphabetically first letter
    as `option A`, `Option A` or `(A)`, else the first choice whose text occurs in the answer, even inside of words.

    Examples:
        >>> letter_of("[[A]], or rather [[C]]", {})
        'C'
    """
    for pattern in (_REQUESTED, _STATED):
        if letters := pattern.findall(response):
            return str(letters[-1]).upper()
    for letter in _LETTERS:
        if any(form.format(letter) in response for form in ("option {}", "Option {}", "({})")):
            return letter
    lowered = response.lower()
    return next((letter for letter, text in choices.items() if text and text.lower() in lowered), None)

"""AIR-Bench's rule for questions with options, with its quirks.

Source: github.com/OFA-Sys/AIR-Bench 9832476 `score_foundation.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codec_bench.benchmark.metrics.ultraeval import first_or_last_but_one
from codec_bench.messages import Diagnostic


@dataclass(frozen=True, slots=True)
class Foundation:
    """The decision of the rule about one answer.

    Args:
        letter: the option: the first character, else the last but one; None if neither is A to D.
        counted: whether the answer counts in the published accuracy.
        correct: whether it is right; None if it does not count.
        reason: why the published program ends in an error here (the expected answer is none of the choices), or None.
    """

    letter: str | None
    counted: bool
    correct: bool | None
    reason: str | None = None


def letter_of(response: str) -> str | None:
    """The letter of an answer, A to D even with two choices; None without one."""
    text = response.strip().replace("\n", "")
    return None if text == "None" else first_or_last_but_one(text, "ABCD")


def foundation(response: str, answer: str, choices: Mapping[str, str | None]) -> Foundation:
    """Read a letter from A to D and compare it with the letter of the expected answer.

    Args:
        answer: the expected answer, the text of a choice.
        choices: texts of the choices by letter; the first one that equals the expected answer is the right one.
    """
    letter = letter_of(response)
    if letter is None:
        return Foundation(None, False, None)
    gold = next((of for of, choice in choices.items() if choice == answer), None)
    if gold is None:
        return Foundation(letter, False, None, Diagnostic("reference_outside_choices", reference=answer))
    return Foundation(letter, True, letter == gold)

"""AIR-Bench's matcher of single choices, quirks included (github.com/OFA-Sys/AIR-Bench 9832476 `score_foundation.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codec_bench.metrics.answers.ultraeval import first_or_last_but_one


@dataclass(frozen=True, slots=True)
class Foundation:
    """What the rule says of one answer.

    Args:
        letter: the option it read: the first character, else the last but one; None where neither is A to D.
        counted: whether the answer counts in the source's accuracy.
        correct: whether it is right; None where it does not count.
        reason: why the source ends here: the expected answer is none of the choices.
    """

    letter: str | None
    counted: bool
    correct: bool | None
    reason: str | None = None


def foundation(response: str, answer: str, choices: Mapping[str, str | None]) -> Foundation:
    """Reads a letter from A to D (also for two choices) and compares it with the first choice that equals the answer.

    Args:
        choices: texts by letter.
    """
    text = response.strip().replace("\n", "")
    letter = None if text == "None" else first_or_last_but_one(text, "ABCD")
    if letter is None:
        return Foundation(None, False, None)
    gold = next((of for of, choice in choices.items() if choice == answer), None)
    if gold is None:
        return Foundation(letter, False, None, f"the expected answer '{answer}' is none of the choices")
    return Foundation(letter, True, letter == gold)

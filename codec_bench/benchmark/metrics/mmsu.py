"""MMSU's rules for questions with options, with their quirks.

Source: `mmsu_evaluation.py` of github.com/dingdongwang/MMSU 217d1d3 (12 February 2026), and of
github.com/dingdongwang/MMSU_Bench f0ef334 (8 June 2025), the source of most published numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from codec_bench.benchmark.metrics.ultraeval import first_or_last_but_one


class MmsuDecision(NamedTuple):
    """The script's decision about one answer.

    Args:
        letter: the option, or None.
        counted: whether the answer counts in its accuracy.
    """

    letter: str | None
    counted: bool
    correct: bool


def marked(response: str, answer: str, choices: Mapping[str, str], fallback: str | None = None) -> MmsuDecision:
    """Read a letter from A to D and compare its option's text with the answer.

    An empty response, or `None`, counts as wrong; any other response without such a letter is excluded.

    Args:
        answer: the expected answer, the text of a choice.
        choices: the texts of the choices by letter.
        fallback: the letter that an empty response gets, or None.
    """
    text = response.strip().replace("\n", "")
    letter = fallback if text in ("", "None") else first_or_last_but_one(text, "ABCD")
    if letter is None and text not in ("", "None"):
        return MmsuDecision(None, False, False)
    return MmsuDecision(letter, True, letter is not None and choices.get(letter) == answer)


def marked_in_order(rows: Sequence[tuple[str, str, Mapping[str, str]]]) -> list[MmsuDecision | None]:
    """Apply `marked` to all answers; an empty one gets the previous answer's letter.

    So does MMSU's script of June 2025.

    Args:
        rows: of each question in order the answer, the expected answer and the choices, as in `marked`.

    Returns:
        The decision for each; None for empty answers before the first letter, where the script ends in an error.
    """
    rows_marked: list[MmsuDecision | None] = []
    fallback: str | None = None
    for response, answer, choices in rows:
        one = marked(response, answer, choices, fallback)
        rows_marked.append(None if one.counted and one.letter is None else one)
        fallback = one.letter or fallback
    return rows_marked

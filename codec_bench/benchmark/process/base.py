"""What post-processing is: named steps, one after the other, from a model's answer to the text that is scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SHOWN = 80


@dataclass(frozen=True, slots=True)
class Parsed:
    """What was read out of an answer.

    Args:
        text: what is scored.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Unparsed:
    """Nothing could be read out of an answer: never a default, never a guess.

    Args:
        reason: one sentence that quotes the shortened answer.
    """

    reason: str


Step = Callable[[str, Mapping[str, Any]], Parsed | Unparsed]
"""A step gets the text and the row's fields by the benchmark's names; it never raises, whatever the text holds."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps one after the other; the first that reads nothing ends it.

    Args:
        names: the steps as they were named, for the record.
        steps: what they do, without the marker `transcript[...]`.
        recogniser: who transcribes generated audio before the first step, or None.
    """

    names: tuple[str, ...]
    steps: tuple[Step, ...]
    recogniser: str | None = None

    def __call__(self, text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        """Takes an answer through all steps."""
        read: Parsed | Unparsed = Parsed(text)
        for step in self.steps:
            read = step(read.text, fields)
            if isinstance(read, Unparsed):
                break
        return read


def quote(text: str) -> str:
    """An answer for a reason: on one line, in quotes, shortened in the middle."""
    line = " ".join(text[: 4 * SHOWN].split()) if len(text) > 8 * SHOWN else " ".join(text.split())
    if len(text) > 8 * SHOWN:
        line = f"{line[: SHOWN // 2]} ... {' '.join(text[-4 * SHOWN :].split())[-SHOWN // 2 :]}"
    elif len(line) > SHOWN:
        line = f"{line[: SHOWN // 2]} ... {line[-SHOWN // 2 :]}"
    return f"'{line}'"

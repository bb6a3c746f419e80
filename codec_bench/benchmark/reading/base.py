"""Chains of post-processing steps, from a model's answer to the scored text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from codec_bench.messages import Diagnostic
from codec_bench.store.reasoning import cut_reasoning

SHOWN = 80
NOTHING, SEVERAL, REFUSAL, TRUNCATED = "nothing", "several", "refusal", "truncated"
"""Why an answer is unreadable: no decision, several, a refusal, or an end inside of the reasoning."""
FORMAT_IGNORED = "format_ignored"
"""The code of a readable answer without the format that the prompt requests."""
OFFICIAL = "official/"
"""Prefix of published rules. They read the whole answer, reasoning included, as their programs do."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The text to score.

    Args:
        code: `FORMAT_IGNORED` if the answer lacks the requested format; else None.
    """

    text: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Unparsed:
    """An unreadable answer, without a default or guess.

    Args:
        reason: a `Diagnostic` that quotes the shortened answer.
        code: why: `NOTHING`, `SEVERAL`, `REFUSAL` or `TRUNCATED`.
    """

    reason: str
    code: str = NOTHING


Step = Callable[[str, Mapping[str, Any]], Parsed | Unparsed]
"""A step takes the text and the row's fields by the benchmark's names. It never raises an exception."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps that are applied one after the other, until one gives `Unparsed`.

    Args:
        steps: the steps, without `transcript[...]`.
        recogniser: the recogniser that transcribes generated audio before the first step, or None.
        keeps_reasoning: whether the reasoning stays in the answer, as under a published rule.
    """

    names: tuple[str, ...]
    steps: tuple[Step, ...]
    recogniser: str | None = None
    keeps_reasoning: bool = False

    def __call__(self, text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        """Read an answer; `fields` are the question's columns by the benchmark's names."""
        if not self.keeps_reasoning:
            cut = cut_reasoning(text)
            if cut.unfinished:
                return Unparsed(Diagnostic("ends_in_reasoning", answer=quote(text)), TRUNCATED)
            text = cut.text
        code = None
        for step in self.steps:
            read = step(text, fields)
            if isinstance(read, Unparsed):
                return read
            text, code = read.text, code or read.code
        return Parsed(text, code)


def quote(text: str) -> str:
    """Shorten an answer for a message: on one line, cut in the middle, in quotes."""
    line = " ".join(text[: 4 * SHOWN].split()) if len(text) > 8 * SHOWN else " ".join(text.split())
    if len(text) > 8 * SHOWN:
        line = f"{line[: SHOWN // 2]} ... {' '.join(text[-4 * SHOWN :].split())[-SHOWN // 2 :]}"
    elif len(line) > SHOWN:
        line = f"{line[: SHOWN // 2]} ... {line[-SHOWN // 2 :]}"
    return f"'{line}'"

"""Align an answer in free words with the option that it means.

A rule reads the letter first; the judge gets only answers without one. The judge sees question, options and answer, but
not the right option. A letter that is no option, several letters, or none is no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from codec_bench.benchmark.judge.replies import Verdict, read_letter
from codec_bench.benchmark.metrics.air_bench_foundation import letter_of
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.benchmark.reading.base import Parsed
from codec_bench.benchmark.reading.choices import chance_of, choices_of, right_letters
from codec_bench.benchmark.reading.option import option_letter
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName
from codec_bench.stats.chance_level import STAGES
from codec_bench.types import Score

EXACT, ALIGNED, NEITHER = STAGES
"""The values of `detail["stage"]`."""


def _sound(answer: Answer) -> str | None:
    read = option_letter(None)(answer.text, answer.fields)
    return read.text if isinstance(read, Parsed) else None


FIRST: Mapping[str, Callable[[Answer], str | None]] = {
    "official/air-bench/foundation": lambda answer: letter_of(answer.text),
    "option-letter": _sound,
}
"""The rules that may read a letter before the judge, by name."""


def score_by_rule(rule: str, answer: Answer, protocol: str) -> Score | None:
    """Score an answer whose option a rule can read; None leaves it to the judge.

    A question whose right answer is none of its choices has no score.

    Args:
        rule: one of `FIRST`.
        answer: the raw answer.
        protocol: id of the scoring protocol, put into the score.

    Raises:
        UnknownName: there is no such rule.
    """
    if rule not in FIRST:
        raise UnknownName("option_rule", rule, FIRST)
    choices = choices_of(answer.fields)
    if not choices:
        return Score.undefined(Diagnostic("no_choices", id=answer.id), protocol)
    if not right_letters(answer.fields, answer.references):
        if not answer.references:
            return Score.undefined(Diagnostic("no_expected", id=answer.id), protocol)
        reason = Diagnostic("reference_outside_choices", reference=answer.references[0], choices=list(choices.values()))
        return Score.undefined(reason, protocol)
    letter = FIRST[rule](answer)
    return None if letter is None else _scored(answer, letter, EXACT, protocol, {})


def score_by_judge(reply: str, answer: Answer, protocol: str) -> Score:
    """Score an answer by the option letter in the judge's reply; unparsed without one."""
    verdict: Verdict = read_letter(reply, choices=choices_of(answer.fields), answer=answer.text)
    if verdict.reason is not None:
        detail = {"replies": [reply], "stage": NEITHER}
        return Score.unparsed(Diagnostic("judge_reply", cause=verdict.reason), protocol, detail=detail)
    return _scored(answer, verdict.text, ALIGNED, protocol, {"replies": [reply]})


def _scored(answer: Answer, letter: str, stage: str, protocol: str, more: Mapping[str, Any]) -> Score:
    detail = {**more, "letter": letter, "stage": stage, "chance": chance_of(answer.fields, answer.references)}
    return Score.ok(float(letter in right_letters(answer.fields, answer.references)), protocol, detail=detail)

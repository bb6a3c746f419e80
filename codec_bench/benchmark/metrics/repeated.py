"""`repeated`: how well an answer repeats a text. Higher is better.

The value of an answer is one minus its error rate, and 0 if more than half is wrong. The mean over a set is
URO-Bench's score: the share of accepted answers, times one minus their mean error rate.
"""

from __future__ import annotations

from codec_bench.benchmark.metrics.base import Answer, SeparateMetric
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName
from codec_bench.text.error_rate import error_rate
from codec_bench.text.rules import get_rule
from codec_bench.types import Score

OFFICIAL = "official/uro-bench"
MOST_WRONG = 0.5
"""The highest error rate of an accepted answer."""


class Repeated(SeparateMetric):
    """One minus the error rate, or 0 if that exceeds one half. Higher is better.

    Errors are counted by the rule `by-language`: words, or characters in languages without spaces. `official/uro-bench`
    counts words of English by Whisper's rule and divides by the length of the answer, because its program swaps the
    two; an answer without words is 0. Its Mandarin rule needs a package that is not included, so other languages are
    refused.

    Args:
        variant: `official/uro-bench`, or None for the project's own.
    """

    paper = "Yan et al.: URO-Bench, EMNLP Findings 2025"

    def __init__(self, variant: str | None = None) -> None:
        if variant not in (None, OFFICIAL):
            raise UnknownName("repetition_rule", str(variant), [OFFICIAL])
        self._rule = get_rule("by-language")
        self._official = variant is not None
        self.name = "repeated" if variant is None else f"repeated[{variant}]"
        self.protocol = f"repeated/{variant or self._rule.name}"
        official = "github.com/Ruiqi-Yan/URO-Bench 9e74bc0 metrics/mark_wer.py eval_repeat, English, exactly"
        self.source = official if variant else ""

    def _one(self, answer: Answer) -> Score:
        """Score one answer by its best reference."""
        if not answer.references:
            return Score.undefined(Diagnostic("no_expected", id=answer.id), self.protocol)
        if self._official and answer.language not in (None, "en"):
            return Score.refused(Diagnostic("english_rule_only", language=answer.language), self.protocol)
        rates = [rate for ref in answer.references if (rate := self._rate(answer, ref)) is not None]
        if not rates:
            return Score.undefined(Diagnostic("nothing_to_repeat", id=answer.id), self.protocol)
        rate = min(rates)
        value = 1 - rate if rate <= MOST_WRONG else 0.0
        return Score.ok(value, self.protocol, detail={"error_rate": rate})

    def _rate(self, answer: Answer, reference: str) -> float | None:
        """Compute the error rate of an answer against a reference; None if undefined."""
        if self._official:
            estimate, expected = answer.text.strip().lower(), reference.strip().lower()
            rate = error_rate(reference=estimate, estimate=expected).rate
            return 1.0 if rate is None else rate  # the program's comparison fails on an empty answer
        (compared,) = self._rule.compare(reference=[reference], estimate=[answer.text], language=[answer.language])
        return self._rule.item_value(compared)

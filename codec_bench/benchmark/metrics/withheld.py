"""`withheld`: a placeholder where the expected answers are not published."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.messages import Diagnostic
from codec_bench.types import Score

REASON = Diagnostic("answers_not_published")


class Withheld(AnswerMetric):
    """No number: expected answers are not published. Higher would be better.

    Every answer is refused, with the command that writes the file for the authors' service.

    Source: none; there is nothing to compare.
    """

    name = "withheld"
    protocol = "withheld/1"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """A refusal for each answer."""
        return [Score.refused(REASON, self.protocol) for _ in answers]

    def worst(self, answer: Answer) -> Score:
        """The same: nothing counts."""
        return Score.refused(REASON, self.protocol)

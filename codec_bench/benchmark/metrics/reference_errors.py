"""`original_followed@RULE`: whether a transcript follows a reference where the reference is known to be wrong."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.errors import UserError
from codec_bench.text.disagreement import followed
from codec_bench.text.rules import get_rule
from codec_bench.types import Score

RULE = "official/open-asr/2026-06-22"
ORIGINAL = "original"
"""The name of the field that holds the reference before it was corrected."""


class OriginalFollowed(AnswerMetric):
    """The share of places with the original reference's words, of those where a transcript has these or the corrected ones.

    The expected answer is the corrected transcript, and the field `original` the reference that was published before. At the places where
    these two differ a transcript of the sound has the corrected words; one that has the original's has seen them elsewhere, or errs as
    their writer did. Lower is better, 0 to 1. It is a sign of a model that was fitted to a benchmark, and no proof. For a corpus the places of
    all items are counted, so an item with several weighs more. An item is undefined if the references agree, or the transcript has neither.

    Args:
        point: the rule by which the texts are normalised; None for the Open ASR leaderboard's.

    Raises:
        UnknownName: there is no such rule.
    """

    higher_is_better = False
    aggregate = "ratio"
    bounds = (0.0, 1.0)
    needs = (ORIGINAL,)
    paper = "Open ASR leaderboard, benchmark_fitting/README.md, section 1, 2026"
    source = "github.com/huggingface/open_asr_leaderboard d1e99b2, benchmark_fitting/ref_error_utils.py: equal counts"

    def __init__(self, point: str | None = None) -> None:
        self._rule = get_rule(point or RULE)
        self.name = "original_followed" + (f"@{point}" if point else "")
        self.protocol = f"original_followed/{self._rule.name}"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per answer; `detail` has how many `places` there are at which the references disagree."""
        return [self._one(answer) for answer in answers]

    def _one(self, answer: Answer) -> Score:
        if len(answer.references) != 1:
            reason = f"the sample '{answer.id}' has {len(answer.references)} expected answers; expected one"
            return Score.undefined(reason, self.protocol)
        texts = (str(answer.fields[ORIGINAL]), answer.references[0], answer.text)
        try:
            original, corrected, said = (self._normalised(text, answer.language) for text in texts)
        except UserError as error:
            return Score.refused(error.message, self.protocol)
        found = followed(original, corrected, said)
        if not found.eligible:
            reason = (
                "the transcript has the words of neither reference where they differ"
                if found.places
                else "the references agree"
            )
            return Score.undefined(reason, self.protocol)
        share = found.original / found.eligible
        detail = {"places": found.places}
        return Score.ok(share, self.protocol, numerator=found.original, denominator=found.eligible, detail=detail)

    def _normalised(self, text: str, language: str | None) -> str:
        steps = self._rule.trace(text, language)
        return steps[-1][1] if steps else text

"""`wer`, `cer` and `hallucinated`, each `[answer]@RULE`: answers as transcripts.

Rules: `codec_bench.text.rules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.text.rules import EMPTY_REFERENCE, HALLUCINATED, ComparedTexts, get_rule
from codec_bench.types import Score, Status

RULE = "by-language"


class _AnswerErrorRate(AnswerMetric):
    """A metric from the edit distance of an answer to its best reference."""

    compares = True

    higher_is_better = False
    bounds = (0.0, None)
    range: tuple[float | None, float | None] = (0.0, None)
    aggregate = "ratio"
    paper = "Levenshtein: Binary codes capable of correcting deletions, insertions and reversals, 1966"
    source = "counts equal to jiwer 4.0's; the rule of the text is in the protocol"
    stem: ClassVar[str]
    unit_counted: ClassVar[Any] = None

    def __init__(self, variant: str = "answer", point: str | None = None) -> None:
        if variant != "answer":
            raise UserError("no_variant_of_metric", stem=self.stem, variant=variant, hint=f"{self.stem}[answer]@RULE")
        self._rule = get_rule(point or RULE)
        self.name = f"{self.stem}[answer]" + (f"@{point}" if point else "")
        self.protocol = f"{self.stem}/answer/{self._rule.name}"
        self.empty_references = self._rule.empty_reference == "counted"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """Score each answer by its best reference, with counts and both texts in `detail`.

        With an empty reference, an answer's words are errors by the rules that count them.
        """
        references = [ref for answer in answers for ref in answer.references]
        texts = [answer.text for answer in answers for _ in answer.references]
        languages = [answer.language for answer in answers for _ in answer.references]
        unit = None if self._rule.fixed else self.unit_counted
        compared = self._rule.compare(reference=references, estimate=texts, language=languages, unit=unit)
        scores, at = [], 0
        for answer in answers:
            own_counts = compared[at : at + len(answer.references)]
            at += len(answer.references)
            scores.append(self._score(answer, own_counts))
        return scores

    def _score(self, answer: Answer, compared: Sequence[ComparedTexts]) -> Score:
        """Score an answer by its comparison with the fewest errors; undefined without any."""
        if not compared:
            return Score.undefined(Diagnostic("no_expected", id=answer.id), self.protocol)
        rule = self._rule
        best = min(compared, key=lambda one: (rule.item_value(one) is None, rule.item_value(one) or 0.0))
        return self._score_texts(answer, best)

    def _score_texts(self, answer: Answer, best: ComparedTexts) -> Score:
        """Convert the best reference's comparison to a score."""
        value, detail = self._rule.item_value(best), self._detail(answer, best)
        if value is None and best.hallucinated and self._rule.fixed and self._rule.aggregate == "ratio":
            value = float(best.counts.insertions)
        if value is None:
            return Score(None, self._status(answer, best), best.note, self.protocol, detail=detail)
        if best.note:
            # The item has no rate and adds only its insertions to the corpus.
            detail["note"] = best.note
        if best.hallucinated:
            detail["flag"] = HALLUCINATED
        above, below = self._rule.share(best)
        return Score.ok(value, self.protocol, numerator=above, denominator=below, detail=detail)

    @staticmethod
    def _detail(answer: Answer, best: ComparedTexts) -> dict[str, Any]:
        """Collect counts, both normalised texts and the transcript as the model wrote it."""
        return {**best.detail, "transcript": answer.text}

    def worst(self, answer: Answer) -> Score:
        """The score of an empty answer; undefined for a question with an empty reference."""
        score = super().worst(answer)
        if score.status == "ok" and not score.denominator:
            return Score.undefined(Diagnostic("any_words_of_silence"), self.protocol)
        return score

    def _status(self, answer: Answer, compared: ComparedTexts) -> Status:
        """The status without a value: unknown language, empty reference or a failed step."""
        if self._rule.recipe(answer.language, compared.reference) is None:
            return "refused"
        return "undefined" if compared.note == EMPTY_REFERENCE else "failed"


class AnswerWer(_AnswerErrorRate):
    """Word error rate of an answer's transcript. Lower is better; may exceed 1.

    For languages without spaces the default rule counts characters.
    """

    stem = "wer"


class AnswerCer(_AnswerErrorRate):
    """Character error rate of an answer's transcript. Lower is better."""

    stem = "cer"
    unit_counted = "char"


class AnswerHallucinated(_AnswerErrorRate):
    """The share of answers with words where none are expected. Lower is better.

    It is measured if the reference is empty, or the rule leaves nothing of it. Other questions are refused.
    """

    stem = "hallucinated"
    range = (0.0, 1.0)
    aggregate = "mean"
    paper = "Barański et al.: Investigation of Whisper ASR Hallucinations Induced by Non-Speech Audio, ICASSP 2025"
    source = "the share of non-empty transcripts; the rule of the text is in the protocol"

    def worst(self, answer: Answer) -> Score:
        """The score of an answer with words to a question without."""
        score = super().worst(answer)
        return Score.ok(1.0, self.protocol) if score.status == "ok" else score

    def _score_texts(self, answer: Answer, best: ComparedTexts) -> Score:
        """Score words where the reference has none; refuse other references."""
        if best.counts.reference_length:
            reason = Diagnostic("expected_has_words")
            return Score.refused(reason, self.protocol)
        if best.note != EMPTY_REFERENCE:
            return Score(None, self._status(answer, best), best.note, self.protocol, detail=self._detail(answer, best))
        return Score.ok(float(best.hallucinated), self.protocol, detail=self._detail(answer, best))

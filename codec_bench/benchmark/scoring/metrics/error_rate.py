"""`wer[answer]@RULE` and `cer[answer]@RULE`: error rates of an answer that is a transcript.

Rules: `codec_bench.text.rules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from codec_bench.benchmark.scoring.metrics.base import Answer, AnswerMetric
from codec_bench.errors import UserError
from codec_bench.types import Score, Status

RULE = "by-language"


class _AnswerErrorRate(AnswerMetric):
    """The common part of both error rates.

    Args:
        variant: always `answer`; audio metrics of the same name have a recogniser here.
        point: the rule by which texts are compared; None for `by-language`.

    Raises:
        UserError: the variant is not `answer`.
        UnknownName: there is no such rule.
    """

    higher_is_better = False
    range = (0.0, None)
    aggregate = "ratio"
    paper = "Levenshtein: Binary codes capable of correcting deletions, insertions and reversals, 1966"
    source = "counts equal to jiwer 4.0's; the rule of the text is in the protocol"
    stem: ClassVar[str]
    unit_counted: ClassVar[Any] = None

    def __init__(self, variant: str = "answer", point: str | None = None) -> None:
        from codec_bench.text.rules import get_rule

        if variant != "answer":
            raise UserError(f"'{self.stem}[{variant}]' is no metric of answers", hint=f"{self.stem}[answer]@RULE")
        self._rule = get_rule(point or RULE)
        self.name = f"{self.stem}[answer]" + (f"@{point}" if point else "")
        self.protocol = f"{self.stem}/answer/{self._rule.name}"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per answer, by the reference with the fewest errors. `detail` holds the counts and both texts.

        `Rule.share` is what an item adds to the corpus value. If the reference is empty, an answer's words are errors
        by a published rule, as in its source; by the project's own rules such an item has no value.
        """
        references = [ref for answer in answers for ref in answer.references]
        texts = [answer.text for answer in answers for _ in answer.references]
        languages = [answer.language for answer in answers for _ in answer.references]
        unit = None if self._rule.fixed else self.unit_counted
        compared = self._rule.compare(reference=references, estimate=texts, language=languages, unit=unit)
        scores, at = [], 0
        for answer in answers:
            own = compared[at : at + len(answer.references)]
            at += len(answer.references)
            scores.append(self._score(answer, own))
        return scores

    def _score(self, answer: Answer, compared: Sequence[Any]) -> Score:
        if not compared:
            return Score.undefined(f"the sample '{answer.id}' has no reference", self.protocol)
        best = min(compared, key=lambda one: (one.value is None, one.value or 0.0))
        counts = best.counts
        detail = {
            "hits": counts.hits,
            "substitutions": counts.substitutions,
            "deletions": counts.deletions,
            "insertions": counts.insertions,
            "reference": best.reference,
            "hypothesis": best.estimate,
            "unit": best.unit,
        }
        above, below = self._rule.share(best)
        if best.value is None:
            heard = counts.reference_length == 0 and counts.insertions > 0
            if not (heard and self._rule.fixed and self._rule.aggregate == "ratio"):
                return Score(None, self._status(answer, best), best.note, self.protocol, detail=detail)
            # The item has no rate of its own. It adds only its insertions to the corpus.
            return Score.ok(
                float(counts.insertions),
                self.protocol,
                numerator=above,
                denominator=below,
                detail={**detail, "note": best.note},
            )
        return Score.ok(best.value, self.protocol, numerator=above, denominator=below, detail=detail)

    def _status(self, answer: Answer, compared: Any) -> Status:
        """The status of a pair without a value: its language is unknown to the rule, its reference is empty, or a
        step failed.
        """
        from codec_bench.text.rules import EMPTY_REFERENCE

        if self._rule.recipe(answer.language, compared.reference) is None:
            return "refused"
        return "undefined" if compared.note == EMPTY_REFERENCE else "failed"


class Wer(_AnswerErrorRate):
    """Word error rate of an answer that is a transcript. Lower is better. With many insertions it is above 1.

    For languages without spaces the default rule counts characters.
    """

    stem = "wer"


class Cer(_AnswerErrorRate):
    """Character error rate of an answer that is a transcript. Lower is better. A published rule keeps its own unit."""

    stem = "cer"
    unit_counted = "char"

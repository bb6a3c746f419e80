"""Two signs, from transcripts alone, that a model was fitted to a benchmark.

`original_followed@RULE` looks at places where the reference is known to be wrong, `rendering_followed` at places where
the same words have several written forms.
"""

from __future__ import annotations

from collections.abc import Mapping

from codec_bench.benchmark.metrics.base import Answer, SeparateMetric
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.text.disagreement import followed
from codec_bench.text.language import base_language
from codec_bench.text.rendering import KINDS, Rendered, rendered
from codec_bench.text.rule import Rule
from codec_bench.text.rules import get_rule
from codec_bench.types import Score

RULE = "official/open-asr/2026-06-22"
ORIGINAL = "original"
"""The field of the reference before its correction."""


class OriginalFollowed(SeparateMetric):
    """The share of places with the uncorrected words. Lower is better, 0 to 1.

    The expected answer is the corrected transcript, and the field `original` the earlier published reference. Where
    they differ, a transcript of the sound has the corrected words; one with the original's has seen them elsewhere, or
    errs like their writer. A corpus counts the places of all items; `detail` has their number. An item is undefined if
    the references agree, or the transcript has neither.

    Args:
        point: the rule that normalises the texts; None for the Open ASR leaderboard's.
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

    def _one(self, answer: Answer) -> Score:
        """Score one answer; `numerator` and `denominator` count its places."""
        if len(answer.references) != 1:
            reason = Diagnostic("expected_count", id=answer.id, expected=len(answer.references))
            return Score.undefined(reason, self.protocol)
        texts = (str(answer.fields[ORIGINAL]), answer.references[0], answer.text)
        try:
            original, corrected, estimate = (_normalised(self._rule, text, answer.language) for text in texts)
        except UserError as error:
            return Score.refused(error.message, self.protocol)
        result = followed(original, corrected, estimate)
        if not result.eligible:
            reason = Diagnostic("neither_reference") if result.places else Diagnostic("references_agree")
            return Score.undefined(reason, self.protocol)
        share = result.original / result.eligible
        detail = {"places": result.places}
        return Score.ok(share, self.protocol, numerator=result.original, denominator=result.eligible, detail=detail)


class RenderingFollowed(SeparateMetric):
    """The share of places with the reference's spelling. Lower is better, 0 to 1.

    British and American spelling, initials with or without dots and spaces, numbers from 11 to 99 in digits or words,
    and pairs such as `e-mail` and `email`: the sound does not tell which one the reference has. A corpus counts the
    places of all items. `detail` has the counts of each kind. An item is undefined without such a place, or if the
    transcript has other words there. English only.

    Args:
        variant: one of the kinds (`spelling`, `initialism`, `number`, `lexical`), or None for all of them.
    """

    higher_is_better = False
    aggregate = "ratio"
    bounds = (0.0, 1.0)
    paper = "Open ASR leaderboard, benchmark_fitting/README.md, section 2, 2026"
    source = (
        "github.com/huggingface/open_asr_leaderboard d1e99b2, benchmark_fitting/ref_rendering_utils.py: equal counts"
    )

    def __init__(self, variant: str | None = None) -> None:
        if variant is not None and variant not in KINDS:
            raise UnknownName("rendering", variant, KINDS)
        self._kinds = KINDS if variant is None else (variant,)
        self._rule = get_rule(RULE)
        self.name = "rendering_followed" + (f"[{variant}]" if variant else "")
        self.protocol = f"{self.name}/{self._rule.name}"

    def _one(self, answer: Answer) -> Score:
        """Score one English answer by the kinds of spelling that its reference has."""
        if answer.language is not None and base_language(answer.language) != "en":
            return Score.refused(Diagnostic("english_renderings_only", language=answer.language), self.protocol)
        if len(answer.references) != 1:
            reason = Diagnostic("expected_count", id=answer.id, expected=len(answer.references))
            return Score.undefined(reason, self.protocol)
        results = rendered(answer.references[0], answer.text, lambda text: _normalised(self._rule, text, "en"))
        return self._share({kind: results[kind] for kind in self._kinds if results[kind].places})

    def _share(self, results: Mapping[str, Rendered]) -> Score:
        """The share of places with the reference's spelling, over the kinds in `results`."""
        places = sum(one.places for one in results.values())
        if not places:
            reason = Diagnostic("no_other_rendering")
            return Score.undefined(reason, self.protocol)
        same = sum(one.same for one in results.values())
        detail = {kind: {"same": one.same, "places": one.places} for kind, one in results.items()}
        return Score.ok(same / places, self.protocol, numerator=same, denominator=places, detail=detail)


def _normalised(rule: Rule, text: str, language: str | None) -> str:
    steps = rule.trace(text, language)
    return steps[-1][1] if steps else text

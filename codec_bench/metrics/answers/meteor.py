"""`meteor[exact-stem]`, `meteor`: word matches with a penalty for broken order, by NLTK.

S. Banerjee and A. Lavie, "METEOR", ACL workshop 2005. `meteor[exact-stem]` matches equal words and equal Porter stems
and no synonyms, so it stands a little below METEOR proper. `meteor` asks WordNet for synonyms as well, which NLTK
fetches separately; with it the value is that of `nltk.translate.meteor_score` (alpha 0.9, beta 3, gamma 0.5) on the
same words. The Java program that caption benchmarks use (METEOR 1.5, other parameters and paraphrases) is a third
measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codec_bench.errors import MissingExtra, UnknownName, UserError
from codec_bench.metrics.answers.base import Answer, AnswerMetric
from codec_bench.metrics.answers.words import words
from codec_bench.types import Score


class _NoSynonyms:
    """A WordNet that knows no word."""

    def synsets(self, word: str) -> list[Any]:
        return []


class Meteor(AnswerMetric):
    """METEOR, from 0 to 1. Higher is better. Of several references the best one counts.

    Args:
        variant: `exact-stem` leaves synonyms out and needs no WordNet.

    Raises:
        UnknownName: another variant. MissingExtra: NLTK is not installed. UserError: its WordNet is not there.
    """

    paper = "Banerjee and Lavie: METEOR, 2005"
    source = "nltk.translate.meteor_score on the project's words"

    def __init__(self, variant: str | None = None) -> None:
        if variant not in (None, "exact-stem"):
            raise UnknownName("variant of METEOR", str(variant), ["exact-stem"])
        try:
            import nltk
            from nltk.translate.meteor_score import meteor_score
        except ImportError:
            raise MissingExtra("METEOR", "nltk", "text") from None
        self._score = meteor_score
        self._synonyms: Any = _NoSynonyms() if variant else _wordnet(nltk)
        self.name = f"meteor[{variant}]" if variant else "meteor"
        self.protocol = f"meteor/{variant or 'wordnet'}/nltk-{nltk.__version__}/words-1"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per answer; one without words has 0."""
        return [self._one(answer) for answer in answers]

    def _one(self, answer: Answer) -> Score:
        references = [items for ref in answer.references if (items := words(ref))]
        if not references:
            return Score.undefined(f"the sample '{answer.id}' has no reference, or one without words", self.protocol)
        said = words(answer.text)
        value = self._score(references, said, wordnet=self._synonyms) if said else 0.0
        return Score.ok(value, self.protocol)


def _wordnet(nltk: Any) -> Any:
    for name in ("corpora/wordnet", "corpora/wordnet.zip"):
        try:
            nltk.data.find(name)
        except LookupError:
            continue
        from nltk.corpus import wordnet

        return wordnet
    raise UserError(
        "METEOR looks synonyms up in WordNet, which is not on this machine",
        hint="python -m nltk.downloader wordnet, or meteor[exact-stem], which needs none",
    )

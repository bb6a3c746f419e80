"""`meteor[exact-stem]`, `meteor`: word matches with a penalty for broken order, by NLTK.

S. Banerjee and A. Lavie, "METEOR", ACL workshop 2005. `meteor` matches equal words, equal Porter stems and synonyms.
Its value is that of `nltk.translate.meteor_score` (alpha 0.9, beta 3, gamma 0.5) on the same words. The synonyms come
from WordNet, which NLTK downloads separately. `meteor[exact-stem]` matches no synonyms, and its values are a little
lower. Caption benchmarks use a Java program (METEOR 1.5) with other parameters and paraphrases, whose values differ
from both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codec_bench.benchmark.scoring.metrics.base import WordMetric
from codec_bench.errors import MissingExtra, UnknownName, UserError
from codec_bench.types import Score


class _NoSynonyms:
    """Stands in for WordNet and has no synonyms."""

    def synsets(self, word: str) -> list[Any]:
        return []


class Meteor(WordMetric):
    """METEOR, from 0 to 1. Higher is better. Of several references the best one counts.

    Args:
        variant: `exact-stem` matches no synonyms and needs no WordNet; None matches them.

    Raises:
        UnknownName: there is no such variant.
        MissingExtra: NLTK is not installed.
        UserError: NLTK's WordNet is not on this machine.
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

    def compare(self, references: Sequence[Sequence[str]], said: Sequence[str]) -> Score:
        """The score of the best reference; an answer without words has 0."""
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
        "METEOR needs WordNet for synonyms, and it is not on this machine",
        hint="run python -m nltk.downloader wordnet, or use meteor[exact-stem], which needs no WordNet",
    )

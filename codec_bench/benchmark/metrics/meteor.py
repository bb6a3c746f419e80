"""`meteor[exact-stem]`, `meteor`: word matches less disorder, by NLTK.

S. Banerjee and A. Lavie, "METEOR", ACL workshop 2005. `meteor` matches equal words, equal Porter stems and synonyms,
like `nltk.translate.meteor_score` (alpha 0.9, beta 3, gamma 0.5) on the same words. Synonyms are from WordNet 3.0, from
NLTK's download or the system's package (Debian's `wordnet-base`, the same version). `meteor[exact-stem]` matches no
synonyms; its values are a little lower. The Java program of caption benchmarks (METEOR 1.5) has other parameters and
paraphrases, and differs from both.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

from codec_bench.benchmark.metrics.base import WordMetric
from codec_bench.messages.errors import MissingExtra, MissingResource, UnknownName
from codec_bench.types import Score

_SYSTEM = "/usr/share/wordnet"
"""Where distributions install WordNet's own files."""


class _NoSynonyms:
    """Replaces WordNet and has no synonyms."""

    def synsets(self, word: str) -> list[Any]:
        return []


class Meteor(WordMetric):
    """METEOR by the best reference, from 0 to 1. Higher is better.

    Args:
        variant: `exact-stem` matches no synonyms and needs no WordNet; None matches them.

    Raises:
        MissingExtra: NLTK is not installed.
        MissingResource: WordNet is not on this machine.
    """

    paper = "Banerjee and Lavie: METEOR, 2005"
    source = "nltk.translate.meteor_score on the project's words"

    def __init__(self, variant: str | None = None) -> None:
        if variant not in (None, "exact-stem"):
            raise UnknownName("meteor_variant", str(variant), ["exact-stem"])
        try:
            import nltk
            from nltk.translate.meteor_score import meteor_score
        except ImportError:
            raise MissingExtra("METEOR", "nltk", "text") from None
        self._score = meteor_score
        self._synonyms: Any = _NoSynonyms() if variant else _find_wordnet(nltk)
        self.name = f"meteor[{variant}]" if variant else "meteor"
        self.protocol = f"meteor/{variant or 'wordnet'}/nltk-{nltk.__version__}/words-1"

    def compare(self, references: Sequence[Sequence[str]], estimate: Sequence[str]) -> Score:
        """The score of the best reference; an answer without words has 0."""
        value = self._score(references, estimate, wordnet=self._synonyms) if estimate else 0.0
        return Score.ok(value, self.protocol)


def _find_wordnet(nltk: Any) -> Any:
    """Find WordNet: that of nltk, else the system's; raises MissingResource."""
    for name in ("corpora/wordnet", "corpora/wordnet.zip"):
        try:
            nltk.data.find(name)
        except LookupError:
            continue
        from nltk.corpus import wordnet

        return wordnet
    if os.path.isfile(os.path.join(_SYSTEM, "data.noun")):
        return _system_wordnet()
    raise MissingResource(
        "no_wordnet",
        hint="run python -m nltk.downloader wordnet, install Debian's wordnet-base, or use meteor[exact-stem]",
    )


@cache
def _system_wordnet() -> Any:
    """Read WordNet from the files of the Linux distribution."""
    import nltk
    from nltk.corpus.reader import WordNetCorpusReader

    class Reader(WordNetCorpusReader):
        def open(self, file: str) -> Any:
            # Distributions omit this list of lexicographers' files, which no synonym needs.
            if file == "lexnames" and not os.path.isfile(os.path.join(_SYSTEM, file)):
                return io.StringIO("".join(f"{number:02} file-{number} 0\n" for number in range(45)))
            return super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            """Map nothing to another version."""

    nltk.data.path.append(_SYSTEM)  # NLTK reads files in these folders only
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there is no WordNet of other languages
        return Reader(_SYSTEM, None)

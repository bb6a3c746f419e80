"""`rouge_l`: the longest common subsequence of words, as a share of both texts.

C.-Y. Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004. `rouge_l` is the F measure of rouge-score
0.1.2 without stemming, on the project's own words, which equal rouge-score's in plain English; they keep accents, and a
Han character is a word. `rouge_l[coco]` is the version of caption benchmarks, as in pycocoevalcap 1.2: the best
precision and the best recall over the references, with more weight on recall (beta 1.2).
"""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.benchmark.metrics.base import WordMetric
from codec_bench.messages.errors import UnknownName
from codec_bench.types import Score

COCO_BETA = 1.2


class RougeL(WordMetric):
    """ROUGE-L by the best reference, from 0 to 1. Higher is better.

    Args:
        variant: `coco` for the version of caption benchmarks; None for rouge-score's.
    """

    paper = "Lin: ROUGE, 2004"

    def __init__(self, variant: str | None = None) -> None:
        if variant not in (None, "coco"):
            raise UnknownName("rouge_variant", str(variant), ["coco"])
        self._coco = variant == "coco"
        self.name = "rouge_l[coco]" if self._coco else "rouge_l"
        self.source = "pycocoevalcap 1.2 on the same words, to 1e-12" if self._coco else "rouge-score 0.1.2, to 1e-12"
        self.protocol = f"{'rouge-l-coco' if self._coco else 'rouge-l-f1'}/words-1"

    def compare(self, references: Sequence[Sequence[str]], estimate: Sequence[str]) -> Score:
        """The score of the best reference; an answer without words has 0."""
        if not estimate:
            return Score.ok(0.0, self.protocol)
        common = [common_subsequence(estimate, items) for items in references]
        precisions = [n / len(estimate) for n in common]
        recalls = [n / len(items) for n, items in zip(common, references)]
        if self._coco:
            return Score.ok(_f_measure(max(precisions), max(recalls), COCO_BETA), self.protocol)
        return Score.ok(max(_f_measure(p, r, 1.0) for p, r in zip(precisions, recalls)), self.protocol)


def common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence of two lists of words.

    Bits of one integer represent the words of the shorter list (M. Crochemore et al., "A fast and practical bit-vector
    algorithm for the longest common subsequence problem", 2001).
    """
    if len(one) < len(other):
        one, other = other, one
    places: dict[str, int] = {}
    for index, word in enumerate(other):
        places[word] = places.get(word, 0) | 1 << index
    everywhere = (1 << len(other)) - 1
    row = everywhere
    for word in one:
        matched = row & places.get(word, 0)
        if matched:
            row = ((row + matched) | (row - matched)) & everywhere
    return len(other) - row.bit_count()


def _f_measure(precision: float, recall: float, beta: float) -> float:
    if not precision or not recall:
        return 0.0
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision)

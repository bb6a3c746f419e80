"""Metrics of caption benchmarks: `coco_bleu[1]` to `coco_bleu[4]` and `cider`.

With `rouge_l[coco]` they are the group `captions`.

X. Chen et al., "Microsoft COCO Captions", 2015; R. Vedantam et al., "CIDEr: Consensus-based Image Description
Evaluation", CVPR 2015. Formulas as in pycocoevalcap 1.2, to 1e-9 on the same words. The words are the project's own
(`words-1` in the protocol: lower case, without punctuation) instead of the Penn Treebank's Java program; in plain
English they differ in contractions: `don't` is `don` and `t` here, `do` and `n't` there. METEOR and SPICE of that
package need Java and are not available here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from codec_bench.benchmark.metrics.base import Answer, AnswerMetric, WordMetric
from codec_bench.benchmark.reading.words import words
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName
from codec_bench.types import Score

ORDERS = 4
SIGMA = 6.0
"""Standard deviation, in words, of CIDEr-D's length penalty."""

Gram = tuple[str, ...]


class CocoBleu(WordMetric):
    """BLEU of captions, 0 to 1. Higher is better. The corpus value is no mean.

    Args:
        variant: the longest n-gram, `1` to `4`.
    """

    paper = "Papineni et al.: BLEU, ACL 2002; Chen et al.: Microsoft COCO Captions, 2015"
    source = "pycocoevalcap 1.2 Bleu on the same words, to 1e-9"

    def __init__(self, variant: str = "4") -> None:
        if variant not in ("1", "2", "3", "4"):
            raise UnknownName("coco_bleu_order", variant, ["1", "2", "3", "4"])
        self._order = int(variant)
        self.name = f"coco_bleu[{variant}]"
        self.aggregate = f"coco-bleu-{variant}"
        self.protocol = f"coco-bleu-{variant}/words-1"

    def compare(self, references: Sequence[Sequence[str]], estimate: Sequence[str]) -> Score:
        """The score of one answer against all its references.

        `detail["counts"]` is its share of the corpus: both lengths, 4 matches, 4 numbers of n-grams.
        """
        closest = min((abs(len(items) - len(estimate)), len(items)) for items in references)[1]
        matched, total = [], []
        for n in range(1, ORDERS + 1):
            grams = _grams(estimate, n)
            most: Counter[Gram] = Counter()
            for items in references:
                most |= _grams(items, n)
            matched.append((grams & most).total())
            total.append(max(0, len(estimate) - n + 1))
        value = self._value(len(estimate), closest, matched, total)
        return Score.ok(value, self.protocol, detail={"counts": [len(estimate), closest, *matched, *total]})

    def _value(self, length: int, expected: int, matched: Sequence[int], total: Sequence[int]) -> float:
        """Compute BLEU of n-gram counts, with pycocoevalcap's brevity penalty.

        Args:
            length, expected: words of the answer and of the closest reference.
            matched, total: n-grams that match, and all of them, by order.
        """
        tiny, small = 1e-15, 1e-9  # pycocoevalcap's constants against a division by 0
        shares = ((m + tiny) / (t + small) for m, t in zip(matched[: self._order], total))
        ratio = (length + tiny) / (expected + small)
        brevity = math.exp(1 - 1 / ratio) if 1 / 700 < ratio < 1 else float(ratio >= 1)
        return math.prod(shares) ** (1 / self._order) * brevity


class Cider(AnswerMetric):
    """CIDEr-D, mostly 0 to 2 (at most 10). Higher is better. The mean over the set.

    The weight of an n-gram depends on the number of items in the set whose references contain it, so values of
    different sets, or of a set and a part of it, are not comparable.
    """

    compares = True

    name = "cider"
    range = (0.0, 10.0)
    whole_set = True
    protocol = "cider-d/words-1"
    paper = "Vedantam et al.: CIDEr, CVPR 2015"
    source = "pycocoevalcap 1.2 Cider on the same words, to 1e-9"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per answer; the weights come from the references of all."""
        references = [[_all_grams(words(ref)) for ref in answer.references if ref.strip()] for answer in answers]
        documents: Counter[Gram] = Counter()
        for several in references:
            documents.update({gram for counts in several for gram in counts})
        size = math.log(sum(bool(several) for several in references) or 1)
        weight = {gram: size - math.log(n) for gram, n in documents.items()}
        scores = []
        for answer, several in zip(answers, references):
            if not several:
                scores.append(Score.undefined(Diagnostic("no_expected", id=answer.id), self.protocol))
                continue
            vector = _weighted(_all_grams(words(answer.text)), weight, size)
            similar = [_similar(vector, _weighted(counts, weight, size)) for counts in several]
            scores.append(Score.ok(10.0 * math.fsum(similar) / len(similar), self.protocol))
        return scores

    def worst(self, answer: Answer) -> Score:
        """0: the answer has nothing in common with a reference."""
        return Score.ok(0.0, self.protocol)


Vector = tuple[list[dict[Gram, float]], list[float], int]


def _grams(items: Sequence[str], n: int) -> Counter[Gram]:
    return Counter(zip(*(items[shift:] for shift in range(n))))


def _all_grams(items: Sequence[str]) -> Counter[Gram]:
    return sum((_grams(items, n) for n in range(1, ORDERS + 1)), Counter())


def _weighted(counts: Mapping[Gram, int], weight: Mapping[Gram, float], unseen: float) -> Vector:
    """Weight the n-grams of a text by TF-IDF.

    Args:
        weight: the IDF of each n-gram.
        unseen: that of other n-grams.

    Returns:
        (n-grams by order, norm of each order, length as the number of bigrams).
    """
    vectors: list[dict[Gram, float]] = [{} for _ in range(ORDERS)]
    for gram, count in counts.items():
        vectors[len(gram) - 1][gram] = count * weight.get(gram, unseen)
    norms = [math.sqrt(math.fsum(value * value for value in vector.values())) for vector in vectors]
    return vectors, norms, sum(count for gram, count in counts.items() if len(gram) == 2)


def _similar(estimate: Vector, expected: Vector) -> float:
    """Compute the CIDEr-D similarity of two n-gram vectors, mean over orders."""
    penalty = math.exp(-((estimate[2] - expected[2]) ** 2) / (2 * SIGMA**2))
    total = 0.0
    for grams, other, own_norm, other_norm in zip(estimate[0], expected[0], estimate[1], expected[1]):
        product = math.fsum(min(value, other[gram]) * other[gram] for gram, value in grams.items() if gram in other)
        total += product / (own_norm * other_norm) * penalty if own_norm and other_norm else 0.0
    return total / ORDERS

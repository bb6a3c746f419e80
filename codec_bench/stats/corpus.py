"""Corpus values that are not a ratio of two sums. A fold turns the summed counts of a set of items into such a value.

A metric of answers names its fold as `aggregate`, and each of its scores holds its counts as `detail["counts"]`. Folds
are vectorised over leading axes: an interval leaves each speaker out once, and folds all these sums at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

ORDERS = 4
_TINY, _SMALL = 1e-15, 1e-9
_END = 1e-6
_MOST_ODDS = 700.0


def bleu(counts: np.ndarray, *, smooth_no_match: bool = False) -> np.ndarray:
    """Corpus BLEU, 0 to 100, from summed counts; higher is better.

    Exponential smoothing, all four orders. Equals `sacrebleu.corpus_bleu` (2.6) to rounding.

    Args:
        counts: `(..., 10)`: the tokens of the answers, those of the closest references, the matched n-grams for n from
            1 to 4, and all n-grams for n from 1 to 4.
        smooth_no_match: whether a set in which nothing matches is smoothed too, as in sacreBLEU before 2.0. If not,
            such a set has the value 0.

    Returns:
        float64 `(...)`; 0 if there are no n-grams of an order, NaN if there is no reference.
    """
    counts = np.asarray(counts, np.float64)
    said, expected = counts[..., 0], counts[..., 1]
    correct, total = counts[..., 2 : 2 + ORDERS], counts[..., 2 + ORDERS :]
    with np.errstate(divide="ignore", invalid="ignore"):
        brevity = np.where(said < expected, np.exp(1 - expected / said), 1.0)
        # The n-th order without a match counts as half of the one before: 1/2, 1/4, ...
        halvings = np.cumsum(correct == 0, axis=-1)
        precision = 100.0 * np.where(correct == 0, 0.5**halvings, correct) / total
        value = brevity * np.exp(np.log(precision).mean(axis=-1))
    scored = (total > 0).all(axis=-1) & (smooth_no_match | (correct.sum(axis=-1) > 0))
    value = np.where(scored, value, 0.0)
    return np.where(expected > 0, value, np.nan)


def coco_bleu(counts: np.ndarray, order: int) -> np.ndarray:
    """The BLEU of caption benchmarks, 0 to 1, from the same counts; higher is better.

    No smoothing; a brevity penalty over the closest reference lengths. Equals `Bleu_<order>` of pycocoevalcap 1.2.

    Args:
        counts: `(..., 10)` as for `bleu`.
        order: the longest n-gram, 1 to 4.

    Returns:
        float64 `(...)`; NaN where there is no reference.
    """
    counts = np.asarray(counts, np.float64)
    said, expected = counts[..., 0], counts[..., 1]
    correct, total = counts[..., 2 : 2 + order], counts[..., 2 + ORDERS : 2 + ORDERS + order]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = ((correct + _TINY) / (total + _SMALL)).prod(axis=-1) ** (1 / order)
        ratio = (said + _TINY) / (expected + _SMALL)
        value = np.where(ratio < 1, value * np.exp(1 - 1 / ratio), value)
    return np.where(expected > 0, value, np.nan)


@dataclass(frozen=True, slots=True)
class CorpusFold:
    """A fold with what its interval needs to know.

    Args:
        make: counts `(..., k)` to values `(...)`. most: the best value that there is; the least is 0.
        longest: the place of the matches of the longest n-grams among the counts.
    """

    make: Callable[[np.ndarray], np.ndarray]
    most: float
    longest: int

    def __call__(self, counts: np.ndarray) -> np.ndarray:
        """The values of counts."""
        return self.make(counts)

    def log_odds(self, counts: np.ndarray) -> np.ndarray:
        """The values on a scale on which they scatter alike to both sides; NaN at the ends, which it does not have."""
        share = self.make(counts) / self.most
        share = np.where((share > _END) & (share < 1 - _END), share, np.nan)
        return np.log(share) - np.log1p(-share)

    def of_log_odds(self, odds: float) -> float:
        """A value from its log odds, which may be infinite."""
        return self.most / (1 + math.exp(min(-odds, _MOST_ODDS)))


_LONGEST = 1 + ORDERS
FOLDS: dict[str, CorpusFold] = {
    "bleu": CorpusFold(bleu, 100.0, _LONGEST),
    "bleu-sacrebleu-1.5": CorpusFold(partial(bleu, smooth_no_match=True), 100.0, _LONGEST),
    **{
        f"coco-bleu-{order}": CorpusFold(partial(coco_bleu, order=order), 1.0, 1 + order)
        for order in range(1, ORDERS + 1)
    },
}
"""Fold by name: counts `(..., k)` to values `(...)`."""

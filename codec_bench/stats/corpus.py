"""Corpus values that are no ratio of two sums: folds of summed counts.

A metric names its fold as `aggregate`, and its scores hold counts as `detail["counts"]`. Folds are vectorised over
leading axes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

ORDERS = 4
_TINY, _SMALL = 1e-15, 1e-9


def bleu(counts: np.ndarray, *, smooth_no_match: bool = False) -> np.ndarray:
    """Corpus BLEU, 0 to 100, exponentially smoothed; `sacrebleu.corpus_bleu` (2.6).

    Args:
        counts: `(..., 10)`: tokens of the answers, of the closest references, matched n-grams for n from 1 to 4, all
            n-grams for n from 1 to 4.
        smooth_no_match: whether a set without a match is smoothed too, as in sacreBLEU before 2.0.

    Returns:
        float64 `(...)`; 0 if there are no n-grams of an order, NaN if there is no reference.
    """
    counts = np.asarray(counts, np.float64)
    output, expected = counts[..., 0], counts[..., 1]
    correct, total = counts[..., 2 : 2 + ORDERS], counts[..., 2 + ORDERS :]
    with np.errstate(divide="ignore", invalid="ignore"):
        brevity = np.where(output < expected, np.exp(1 - expected / output), 1.0)
        # The n-th order without a match counts as half of the one before: 1/2, 1/4, ...
        halvings = np.cumsum(correct == 0, axis=-1)
        precision = 100.0 * np.where(correct == 0, 0.5**halvings, correct) / total
        value = brevity * np.exp(np.log(precision).mean(axis=-1))
    scored = (total > 0).all(axis=-1) & (smooth_no_match | (correct.sum(axis=-1) > 0))
    value = np.where(scored, value, 0.0)
    return np.where(expected > 0, value, np.nan)


def coco_bleu(counts: np.ndarray, order: int) -> np.ndarray:
    """Caption BLEU, 0 to 1, of n-grams to `order`: `Bleu_<order>`, pycocoevalcap 1.2."""
    counts = np.asarray(counts, np.float64)
    output, expected = counts[..., 0], counts[..., 1]
    correct, total = counts[..., 2 : 2 + order], counts[..., 2 + ORDERS : 2 + ORDERS + order]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = ((correct + _TINY) / (total + _SMALL)).prod(axis=-1) ** (1 / order)
        ratio = (output + _TINY) / (expected + _SMALL)
        value = np.where(ratio < 1, value * np.exp(1 - 1 / ratio), value)
    return np.where(expected > 0, value, np.nan)


FOLDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "bleu": bleu,
    "bleu-sacrebleu-1.5": partial(bleu, smooth_no_match=True),
    **{f"coco-bleu-{order}": partial(coco_bleu, order=order) for order in range(1, ORDERS + 1)},
}
"""Fold by the `aggregate` of a metric. Their intervals are from a bootstrap."""

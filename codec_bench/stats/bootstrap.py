"""The bootstrap over units: BCa intervals, percentiles, and paired tests.

References: Efron 1987; Bisani and Ney 2004; Koehn 2004; Post 2018 (sacreBLEU).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

DRAWS = 10_000
"""Of BCa, as is usual for error rates."""
CORPUS_DRAWS = 1_000
"""Of a value of a corpus, as in sacreBLEU."""
_AT_ONCE = 4_000_000
"""Units in the draws that are summed at a time."""


def draw_sums(units: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """The sums of the units' parts, `(units, k)`, in each draw, float64 `(draws, k)`."""
    rng, count, sums = np.random.default_rng(seed), len(units), []
    at_once = max(1, _AT_ONCE // count)
    for begin in range(0, resamples, at_once):
        some = min(at_once, resamples - begin)
        places = rng.integers(count, size=(some, count)) + count * np.arange(some)[:, None]
        times = np.bincount(places.ravel(), minlength=some * count).reshape(some, count)
        sums.append(times.astype(np.float64) @ units)
    return np.concatenate(sums)


def bca_ends(
    fold: Callable[[np.ndarray], np.ndarray], units: np.ndarray, value: float, level: float, seed: int
) -> tuple[float, float]:
    """Compute the ends of a BCa bootstrap interval over units, such as speakers.

    Args:
        fold: computes values from summed parts, `(draws, k)` to `(draws,)`.
        units: summed parts per unit, `(units, k)`.
    """
    from scipy.special import ndtr, ndtri

    drawn = fold(draw_sums(units, DRAWS, seed))
    drawn = np.sort(drawn[np.isfinite(drawn)])
    below = (np.count_nonzero(drawn < value) + np.count_nonzero(drawn <= value)) / 2
    bias = float(ndtri(min(max(below, 0.5), len(drawn) - 0.5) / len(drawn)))
    without = fold(units.sum(axis=0) - units)
    deviations = without.mean() - without
    spread = float(np.square(deviations).sum())
    acceleration = float((deviations**3).sum()) / (6 * spread**1.5) if spread else 0.0
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = bias + float(ndtri(tail))
        ends.append(float(np.quantile(drawn, ndtr(bias + z / (1 - acceleration * z)))))
    return ends[0], ends[1]


def corpus_interval(
    fold: Callable[[np.ndarray], np.ndarray], units: np.ndarray, level: float, seed: int
) -> tuple[float, float]:
    """Compute the ends of a percentile bootstrap interval; arguments as `bca_ends`."""
    drawn = fold(draw_sums(units, CORPUS_DRAWS, seed))
    low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def corpus_difference(
    fold: Callable[[np.ndarray], np.ndarray], a: np.ndarray, b: np.ndarray, difference: float, level: float, seed: int
) -> tuple[float, float, float, float]:
    """Ends, p and standard error of two corpus values' difference, paired bootstrap.

    Args:
        a, b: the units of both systems, `(units, k)`, in one order.
        difference: of the two values.
    """
    both = draw_sums(np.concatenate([a, b], axis=1), CORPUS_DRAWS, seed)
    drawn = fold(both[:, : a.shape[1]]) - fold(both[:, a.shape[1] :])
    drawn = drawn[np.isfinite(drawn)]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    reached = np.count_nonzero(np.abs(drawn - drawn.mean()) >= abs(difference))
    return float(low), float(high), (reached + 1) / (len(drawn) + 1), float(drawn.std(ddof=1))

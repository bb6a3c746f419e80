"""Ends of intervals that allow for one item that was not seen: for scores at a ceiling, and error rates with rare
losses.

How it is done
    Most samples of a few items hold none of the rare ones that are entirely wrong, and the spread of what they hold
    says nothing of these. So one more item is added, with the worst (or best) value that there can be, and every item
    gets a weight by chance: independent exponential weights. The end of the interval is the value that the weighted
    mean passes with a probability of (1 - level) / 2. For items that are right or wrong this is the interval of Clopper
    and Pearson. The probability is computed by the saddlepoint formula of Lugannani and Rice, to about 0.001, so
    nothing is drawn. Items of a unit, such as a speaker, are lost together, and the unit that was not seen may be one
    of those (`lost_together`). As many of its items are lost as the worst item that was seen lets expect, and some more
    where units are few. An item that is as bad as can be shows that there are such. Where all seen items are near one
    another, one system alone failing on many is not supposed. Of one value, though not of a difference, up to
    `MOST_LOST` of all items may be lost besides, in whole units of which none was seen.

References: Gaffke 2005, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable"; Learned-Miller and Thomas 2020, "A new confidence interval for the mean of a bounded random variable"; Rubin
1981, "The Bayesian bootstrap"; Lugannani and Rice 1980, "Saddle point approximation for the distribution of the sum of
independent random variables".
"""

from __future__ import annotations

import math

import numpy as np

from codec_bench.stats.bounds import Rare
from codec_bench.stats.sign_flips import FEWEST_FOR_FLIPS

MOST_LOST = 0.05
"""The share of items that may be lost in whole units that were not seen."""
TOGETHER, ALONE = 0.4, 0.6
"""Which power of a unit's items is lost where a lost one was seen: of a value, and of a difference, which allows for no
whole units besides.
"""
_STEPS = 60
# Of more units than this, those of usual values are taken together: sums of many have the same spread together as one
# by one.
_MOST_UNITS = 4_000


def lost_together(worst: float, each: float, units: int, power: float = TOGETHER) -> float:
    """How many items of a unit that was not seen are at the bound.

    The constants were chosen on the first rows of losses in the study (`CHOSEN_LOSSES` in bench/interval_designs.py).

    Args:
        worst: how far the worst item that was seen lies beyond the value, over how far an item of mean size at the
        bound does.
        each: items of a unit. units: how many were seen. power: `TOGETHER` or `ALONE`.
    """
    # Of fewer units Student's t reaches so far that one item is enough.
    least = 1 + 10 / units if units >= FEWEST_FOR_FLIPS else 1.0
    return min(each, max(least, worst * each**power))


def rare_ends(
    units: np.ndarray, items: np.ndarray, value: float, level: float, rare: Rare, *, lower: bool
) -> tuple[float, float]:
    """The ends of the interval of a ratio of sums, with items at the bounds that were not seen.

    Args:
        units: what each unit adds above and below, float64 `(units, 2)`. items: the same of each item, `(items, 2)`.
        value: of all of them. level: of the two-sided interval.
        rare: what an item may be. lower: whether the lower end is asked for too; it is the value otherwise.
    """
    size, each = float(items[:, 1].mean()), len(items) / len(units)
    beyond, few = items[:, 0] - value * items[:, 1], _gathered(units)
    seen = float(units[:, 0].sum() / units[:, 1].sum())

    def end(bound: float, lost: float | None, upper: bool) -> float:
        if value >= bound if upper else value <= bound:  # errors of items without words may lead there
            return value
        far = size * (bound - value)
        worst = float((beyond.max() if far > 0 else beyond.min()) / far)
        several = size * lost_together(worst, each, len(units))
        farther, nearer = (max, min) if upper else (min, max)
        found = _end(few, seen, (bound * several, several), level, upper)
        limit = found if lost is None else value + MOST_LOST * (lost - value)
        if lost is None or each <= 1 or farther(found, limit) == found:
            return found
        return farther(found, nearer(limit, _end(few, seen, (lost * size * each, size * each), level, upper)))

    return end(rare.low, rare.lost_low, False) if lower else value, end(rare.high, rare.lost_high, True)


def unseen_p(units: np.ndarray, item: tuple[float, float], *, upper: bool) -> float:
    """The two-sided p of a difference of 0, with one more item: 0.05 or less where the end of 0.95 that `unseen_end`
    gives excludes 0.

    Args:
        units: what each unit adds to the difference, and its size, `(units, 2)`.
        item: the same of the item that was not seen. upper: whether it is the upper end, so that the difference is
            negative.
    """
    beyond = _positive(np.append(_gathered(units)[:, 0], item[0]))
    return min(1.0, 2 * (beyond if upper else 1 - beyond))


def unseen_end(units: np.ndarray, item: tuple[float, float], level: float, *, upper: bool) -> float:
    """The upper or lower end of the interval of a ratio of sums, with one more item.

    Args:
        units: what each unit adds above and below, float64 `(units, 2)`.
        item: the same of the item that was not seen.
        level: of the two-sided interval.
        upper: which end.

    Returns:
        The end; where the value itself is the extreme, that extreme.
    """
    return _end(_gathered(units), float(units[:, 0].sum() / units[:, 1].sum()), item, level, upper)


def _end(few: np.ndarray, value: float, item: tuple[float, float], level: float, upper: bool) -> float:
    """As `unseen_end`, of units that are gathered and have this value."""
    table = np.concatenate([few, [item]])
    above, below = table[:, 0], table[:, 1]
    sized = below > 0
    rates = above[sized] / below[sized]
    far = float(rates.max() if upper else rates.min())
    wanted = (1 - level) / 2
    near, end = value, far
    for _ in range(_STEPS):
        middle = (near + end) / 2
        beyond = _positive(above - middle * below)
        if (beyond if upper else 1 - beyond) > wanted:
            near = middle
        else:
            end = middle
        if abs(end - near) <= 1e-6 * max(abs(far - value), 1e-300):
            break
    return near


def _gathered(units: np.ndarray) -> np.ndarray:
    """At most `_MOST_UNITS` rows: the ones farthest from the value as they are, the others in sums of some."""
    if len(units) <= _MOST_UNITS:
        return units
    value = units[:, 0].sum() / units[:, 1].sum()
    order = np.argsort(-np.abs(units[:, 0] - value * units[:, 1]), kind="stable")
    several = _MOST_UNITS // 2
    kept, rest = units.take(order[:several], axis=0), units.take(order[several:], axis=0)
    left = len(rest) % several
    sums = rest[: len(rest) - left].reshape(-1, several, 2).sum(axis=0)
    sums[:left] += rest[len(rest) - left :]
    return np.concatenate([kept, sums])


def _positive(terms: np.ndarray) -> float:
    """The probability that a sum of terms with independent exponential weights is above 0."""
    most, least = float(terms.max()), float(terms.min())
    if least >= 0 or most <= 0:
        return float(least >= 0)
    low, high = 1 / least, 1 / most
    at = 0.0
    begin, end = low, high
    for _ in range(_STEPS):  # Newton's method for the saddle, within the ends between which it lies
        parts = terms / (1 - at * terms)
        slope = float(parts.sum())
        begin, end = (begin, at) if slope > 0 else (at, end)
        after = at - slope / float(np.square(parts).sum())
        after = after if begin < after < end else (begin + end) / 2
        if abs(after - at) <= 1e-10 * (high - low):
            break
        at = after
    parts = terms / (1 - at * terms)
    second = float(np.square(parts).sum())
    height = 2 * float(np.log1p(-at * terms).sum())
    first = math.copysign(math.sqrt(max(0.0, height)), at)
    if abs(first) < 1e-4:
        return 0.5 - float((parts**3).sum()) / (3 * second**1.5 * math.sqrt(2 * math.pi))
    density = math.exp(-first * first / 2) / math.sqrt(2 * math.pi)
    tail = math.erfc(first / math.sqrt(2)) / 2
    return min(1.0, max(0.0, tail + density * (1 / (at * math.sqrt(second)) - 1 / first)))

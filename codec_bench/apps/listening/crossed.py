"""Means over crossed raters and items, both drawn at random.

The variance is two-way cluster-robust (Cameron, Gelbach and Miller 2011): over raters plus over items minus single
ratings, at least the larger of the first two, each times n / (n - 1). Degrees of freedom are Satterthwaite's. Ratings
may be missing at random or repeated.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from codec_bench.stats.cluster_variance import detectable_effect, t_p_value, t_quantile
from codec_bench.stats.intervals import FEWEST_UNITS, LEVEL, Interval
from codec_bench.stats.notes import Note
from codec_bench.stats.paired import POWER, PairedTest

_CANCELLED = 1e-3
CANCELLED = Note("cancelled")


@dataclass(frozen=True, slots=True)
class CrossedSpread:
    """A mean's standard error (or None with `note`), freedom and number of units."""

    mean: float
    error: float | None
    freedom: float
    units: int
    note: Note | None = None

    def reach(self, level: float) -> float | None:
        """Return half the width of the mean's interval, or None."""
        return None if self.error is None else t_quantile(level, self.freedom) * self.error


def crossed_spread(values: Sequence[float], people: Sequence[Hashable], sounds: Sequence[Hashable]) -> CrossedSpread:
    """Compute the standard error of a mean rating, with raters and items as random.

    Args:
        people, sounds: the rater and the item (or its speaker) of each rating.

    Examples:
        >>> scores = [1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 3.0, 3.0, 6.0]
        >>> spread = crossed_spread(scores, [0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2] * 3)
        >>> round(spread.mean, 2), round(spread.error, 2), round(spread.freedom, 1)
        (3.33, 0.94, 1.8)
    """
    numbers = np.asarray(values, np.float64)
    mean, count = float(numbers.mean()), len(numbers)
    deviations = (numbers - mean) / count
    codes = [np.unique([str(one) for one in which], return_inverse=True)[1] for which in (people, sounds)]
    sizes = [int(of.max()) + 1 for of in codes]
    fewest = min(sizes)
    for size, name in zip(sizes, ("raters", "speakers or items")):
        if size < FEWEST_UNITS:
            note = Note("few_crossed", size=size, of=name, needed=FEWEST_UNITS)
            return CrossedSpread(mean, None, 0.0, fewest, note)
    if np.ptp(numbers) == 0:
        return CrossedSpread(mean, 0.0, float(fewest - 1), fewest, Note("all_equal"))
    parts = [size / (size - 1) * float((np.bincount(of, deviations) ** 2).sum()) for of, size in zip(codes, sizes)]
    single = count / (count - 1) * float((deviations**2).sum())
    variance, freedoms = sum(parts) - single, [size - 1 for size in sizes]
    if max(parts) < _CANCELLED * single:
        return CrossedSpread(mean, None, 0.0, fewest, CANCELLED)
    if variance > max(parts):
        weighed = sum(term**2 / freedom for term, freedom in zip(parts, freedoms)) + single**2 / (
            freedoms[0] * freedoms[1]
        )
        return CrossedSpread(mean, variance**0.5, variance**2 / weighed, fewest)
    larger = int(np.argmax(parts))
    return CrossedSpread(mean, parts[larger] ** 0.5, freedoms[larger], fewest)


def crossed_interval(values: Sequence[float], people: Sequence[Hashable], sounds: Sequence[Hashable]) -> Interval:
    """Compute the interval of a mean rating over raters and items (`crossed_spread`)."""
    spread = crossed_spread(values, people, sounds)
    reach = spread.reach(LEVEL)
    if reach is None:
        return Interval(None, None, spread.units, "", spread.note)
    return Interval(spread.mean - reach, spread.mean + reach, spread.units, "crossed", spread.note)


def crossed_test(differences: Sequence[float], people: Sequence[Hashable], sounds: Sequence[Hashable]) -> PairedTest:
    """Test the mean difference of two systems by t, with raters and items as random."""
    spread = crossed_spread(differences, people, sounds)
    reach = spread.reach(LEVEL)
    if spread.error is None or reach is None:
        return PairedTest(spread.mean, None, None, None, spread.units, spread.note)
    low, high = spread.mean - reach, spread.mean + reach
    if not spread.error:
        p = float(spread.mean == 0)
        return PairedTest(spread.mean, low, high, p, spread.units, spread.note, None, method="crossed")
    p = t_p_value(spread.mean / spread.error, spread.freedom)
    detectable = detectable_effect(spread.error, spread.freedom, LEVEL, POWER)
    return PairedTest(spread.mean, low, high, p, spread.units, None, detectable, method="crossed")

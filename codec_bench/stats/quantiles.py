"""Quantiles of values, such as the median and the 99th percentile of latencies, with their intervals.

How an interval is made
    If a number is the true quantile, its share of the values is at most as large, but for chance. How far chance goes
    follows from as many effective values as the standard error CR2 of that share over units stands for, as of a share
    of right answers (`stats.intervals`), by Student's t and the skewness of the binomial law. The interval holds every
    number for which the share that was seen is within that (Woodruff 1952, "Confidence intervals for medians and other
    position measures", doi:10.1080/01621459.1952.10483443). Nothing is assumed of the law of the values, and equal
    values do no harm.

What has no interval
    A quantile beyond which few values, or values of few units, are to be expected (`TOO_FEW`): how alike the values of
    a unit are shows there in these alone. It is asked how many are to be expected, and not how many there are, as the
    runs that have enough by luck are no fair sample.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.stats.cluster_variance import degrees_of_freedom, effective_units, left_out_error, t_quantile
from codec_bench.stats.intervals import (
    LEVEL,
    Interval,
    check_level,
    effective_items,
    item_table,
    ratios,
    unit_codes,
    unit_sums,
)

FEWEST_BEYOND = 6
"""Values beyond a quantile, for it to have an interval: 12 values for the median, 60 for the 90th percentile, 600 for
the 99th.
"""
FEWEST_UNITS_BEYOND = 3
"""And of how many units of equal size: 6 for the median, 30 for the 90th percentile, 300 for the 99th."""
TOO_FEW = (
    f"fewer than {FEWEST_BEYOND} values, or values of fewer than {FEWEST_UNITS_BEYOND} units, are to be expected beyond this quantile, "
    "which do not say how far it may be off"
)


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile.

    Args:
        share: of the values that are at most `value`. value: the smallest value of which that is true.
        interval: of it, over the units.
    """

    share: float
    value: float
    interval: Interval

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"value": self.value, "ci95": self.interval.ends, "note": self.interval.note}


def quantile(
    values: Sequence[float], share: float, *, clusters: Sequence[Hashable | None] | None = None, level: float = LEVEL
) -> Quantile | None:
    """A quantile with its interval; None if there are no values.

    Args:
        values: finite numbers. share: between 0 and 1, such as 0.5 for the median.
        clusters: one label for each value; values with the same label are not independent, such as those of one
        session.
        level: the share of such intervals that should contain the true quantile.

    Raises:
        UserError: as `interval`.
    """
    if not len(values):
        return None
    check_level(level)
    table, codes = item_table(values), unit_codes(clusters, len(values))
    ordered = np.sort(table[:, 0])
    value, beyond = _at(ordered, share), min(share, 1 - share)
    table[:, 0] = table[:, 0] <= value
    units = unit_sums(table, codes)
    alike = effective_units(units[:, 1])
    if beyond * ordered.size < FEWEST_BEYOND - 1e-9 or beyond * alike < FEWEST_UNITS_BEYOND - 1e-9:
        return Quantile(share, value, Interval(None, None, len(units), "", TOO_FEW, level))
    below = float(table[:, 0].mean())  # more than `share` where several values are equal to the quantile
    error = left_out_error(ratios(units.sum(axis=0) - units), below, units[:, 1]) or 0.0
    effective = effective_items(below, error, ordered.size, alike)
    t = t_quantile(level, degrees_of_freedom(units[:, 1]))
    middle = share + (t * t - 1) * (1 - 2 * share) / (6 * effective)
    reach = t * math.sqrt(share * (1 - share) / effective)
    ends = _at(ordered, middle - reach), _at(ordered, middle + reach)
    return Quantile(share, value, Interval(*ends, len(units), "woodruff", None, level))


def _at(ordered: np.ndarray, share: float) -> float:
    """The smallest of the ordered values for which at least this share of them is at most as large."""
    return float(ordered[min(max(0, math.ceil(share * ordered.size - 1e-9) - 1), ordered.size - 1)])

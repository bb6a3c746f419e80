"""Quantiles of values, such as the median and the 99th percentile of latencies, with their intervals.

The interval of a quantile is that of a share, turned around (Woodruff 1952, "Confidence intervals for medians and other position
measures", doi:10.1080/01621459.1952.10483443): the share of values that are at most the quantile has Wilson's interval, over the units
that are independent, and the values at the two ends of it are the ends of the quantile's.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.stats.intervals import LEVEL, Interval, interval

FEWEST_BEYOND = 6
"""Values beyond a quantile, for it to have an interval: 12 values for the median, 60 for the 90th percentile, 600 for the 99th."""
TOO_FEW = f"fewer than {FEWEST_BEYOND} values lie beyond this quantile, which do not say how far it may be off"


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
        clusters: one label for each value; values with the same label are not independent, such as those of one session.
        level: the share of such intervals that should contain the true quantile.

    Raises:
        UserError: as `interval`.
    """
    if not len(values):
        return None
    ordered = np.sort(np.asarray(values, np.float64))
    value = _at(ordered, share)
    below = np.asarray(values, np.float64) <= value
    found = interval(below.astype(np.float64), clusters=clusters, bounds=(0.0, 1.0), level=level)
    if min(share, 1 - share) * ordered.size < FEWEST_BEYOND - 1e-9:
        return Quantile(share, value, Interval(None, None, found.units, "", TOO_FEW, level))
    if found.low is None or found.high is None:
        return Quantile(share, value, found)
    ends = _at(ordered, found.low), _at(ordered, found.high)
    return Quantile(share, value, Interval(*ends, found.units, found.method, found.note, level))


def _at(ordered: np.ndarray, share: float) -> float:
    """The smallest of the ordered values for which at least this share of them is at most as large."""
    return float(ordered[max(0, math.ceil(share * ordered.size - 1e-9) - 1)])

"""Quantiles with Woodruff's intervals: that of the share below, inverted at the order statistics.

Over clusters the share has an effective number of values. `sparse_tail` notes that an end is cut at a last value.
Reference: Woodruff 1952, "Confidence intervals for medians and other position measures".
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.stats.cluster_variance import jackknife_error, t_quantile
from codec_bench.stats.intervals import (
    FEW_UNITS,
    FEWEST_UNITS,
    LEVEL,
    Interval,
    check_level,
    effective_items,
    item_table,
    ratios,
    unit_codes,
    unit_sums,
)
from codec_bench.stats.notes import Note, too_few


@dataclass(frozen=True, slots=True)
class Quantile:
    """The smallest `value` that at least this `share` of the values does not exceed."""

    share: float
    value: float
    interval: Interval

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"value": self.value, "ci95": self.interval.ends, "note": self.interval.note}


def quantile(
    values: Sequence[float], share: float, *, clusters: Sequence[Hashable | None] | None = None, level: float = LEVEL
) -> Quantile | None:
    """Compute a quantile of finite values with its interval; None without values."""
    if not len(values):
        return None
    check_level(level)
    table, codes = item_table(values), unit_codes(clusters, len(values))
    ordered = np.sort(table[:, 0])
    value = _at(ordered, share)
    table[:, 0] = table[:, 0] <= value
    units = unit_sums(table, codes)
    if len(units) < FEWEST_UNITS:
        small_sample = too_few(len(units), FEWEST_UNITS, "an interval")
        return Quantile(share, value, Interval(None, None, len(units), "", small_sample, level))
    below = float(table[:, 0].mean())  # more than `share` where several values are equal to the quantile
    error = jackknife_error(ratios(units.sum(axis=0) - units), below, units[:, 1]) or 0.0
    items = effective_items(below, error, ordered.size, units[:, 1], level)
    reach = t_quantile(level, math.inf) * math.sqrt(share * (1 - share) / items)
    ends = _at(ordered, share - reach), _at(ordered, share + reach + 1 / items)
    note: Note | None = Note("sparse_tail") if share - reach <= 0 or share + reach >= 1 else None
    if note is None and len(units) < FEW_UNITS:
        note = Note("few_units", units=len(units))
    return Quantile(share, value, Interval(*ends, len(units), "woodruff", note, level))


def _at(ordered: np.ndarray, share: float) -> float:
    """Return the smallest ordered value that at least this share does not exceed."""
    return float(ordered[min(max(0, math.ceil(share * ordered.size - 1e-9) - 1), ordered.size - 1)])

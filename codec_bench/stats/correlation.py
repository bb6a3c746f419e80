"""Correlations of columns, such as those of a leaderboard.

Spearman's rho has the interval of Bonett and Wright, Pearson's r that of Fisher, from `FEWEST_ROWS` rows on; Kendall's
tau-b has none. References: Bonett and Wright 2000, Psychometrika 65; Fisher 1921, Metron 1; Kendall 1945, Biometrika
33.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.stats.cluster_variance import t_quantile
from codec_bench.stats.intervals import LEVEL
from codec_bench.stats.notes import Note

FEWEST_ROWS = 10
ROWS_OF_A_CORRELATION = 3
FLAT = Note("constant_column", of="rows")


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A correlation with its interval and a note, each None if missing."""

    value: float | None
    low: float | None = None
    high: float | None = None
    note: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values: `value`, `ci95` as `[low, high]` or None, `note`."""
        ends = None if self.low is None or self.high is None else [self.low, self.high]
        return {"value": self.value, "ci95": ends, "note": self.note}


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """The correlations of two columns over the `rows` that have a cell in both."""

    first: int
    second: int
    rows: int
    spearman: Coefficient
    kendall: Coefficient


def correlations(values: np.ndarray) -> list[ColumnPair]:
    """Rank correlations of all column pairs, float64 `(rows, columns)`; NaN: no cell."""
    columns = values.shape[1]
    return [_correlate(values, a, b) for a in range(columns) for b in range(a + 1, columns)]


def _correlate(values: np.ndarray, a: int, b: int) -> ColumnPair:
    """Correlate two columns (Spearman, Kendall) over the rows that have both."""
    from scipy.stats import kendalltau

    both = np.isfinite(values[:, [a, b]]).all(axis=1)
    x, y = values[both, a], values[both, b]
    tau = _why_undefined(x, y) or Coefficient(float(kendalltau(x, y).statistic))
    return ColumnPair(a, b, len(x), spearman(x, y), tau)


def spearman(x: np.ndarray, y: np.ndarray) -> Coefficient:
    """Spearman's rank correlation of two columns without gaps, float64 `(rows,)` each."""
    from scipy.stats import spearmanr

    return _why_undefined(x, y) or _with_interval(rho := float(spearmanr(x, y).statistic), len(x), 1 + rho**2 / 2)


def pearson(x: np.ndarray, y: np.ndarray) -> Coefficient:
    """Pearson's correlation of two columns without gaps, float64 `(rows,)` each."""
    from scipy.stats import pearsonr

    return _why_undefined(x, y) or _with_interval(float(pearsonr(x, y).statistic), len(x), 1.0)


def _why_undefined(x: np.ndarray, y: np.ndarray) -> Coefficient | None:
    """Why two columns have no correlation; None if they have one."""
    if len(x) < ROWS_OF_A_CORRELATION:
        return Coefficient(None, note=Note("few_rows", rows=len(x), of="rows", needed=ROWS_OF_A_CORRELATION))
    return Coefficient(None, note=FLAT) if np.ptp(x) == 0 or np.ptp(y) == 0 else None


def _with_interval(value: float, rows: int, variance: float) -> Coefficient:
    """A correlation with its interval by Fisher's scale, variance over `rows` - 3."""
    if rows < FEWEST_ROWS:
        return Coefficient(value, note=Note("few_rows_for_interval", rows=rows, of="rows", needed=FEWEST_ROWS))
    if abs(value) > 1 - 1e-12:
        return Coefficient(value, note=Note("same_order", of="rows"))
    middle, reach = math.atanh(value), math.sqrt(variance / (rows - 3)) * t_quantile(LEVEL, math.inf)
    return Coefficient(value, math.tanh(middle - reach), math.tanh(middle + reach))


def order_by_similarity(pairs: list[ColumnPair], columns: int) -> list[int]:
    """The columns in an order with similar ones adjacent (`cluster_similar`)."""
    if columns < 3:
        return list(range(columns))
    clusters = cluster_similar([pair.spearman.value for pair in pairs], math.inf)
    return [position for group in clusters for position in group]


def cluster_similar(correlated: Sequence[float | None], least: float) -> list[list[int]]:
    """Clusters of similar columns: average linkage on 1 - correlation, best order.

    Args:
        correlated: the correlations of every two columns, in the order of `correlations`; None counts as 0.
        least: the smallest mean correlation within a cluster.
    """
    from scipy.cluster.hierarchy import fcluster, leaves_list, linkage

    distances = [max(0.0, 1.0 - (value or 0.0)) for value in correlated]  # in the order of SciPy's condensed matrices
    tree = linkage(np.asarray(distances), "average", optimal_ordering=True)
    # Rounding must not part columns that are equal.
    numbers = fcluster(tree, 1.0 - least + 1e-12, "distance")
    clusters: dict[int, list[int]] = {}
    for position in leaves_list(tree):
        clusters.setdefault(int(numbers[position]), []).append(int(position))
    return list(clusters.values())

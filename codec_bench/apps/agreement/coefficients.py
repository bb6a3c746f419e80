"""Agreement of two raters: correlations, kappas and shares, with intervals.

Ties are handled as in SciPy. Kappa's weights use the values of ratings, so an unused value changes nothing.
`within_one` is the share at most 1 apart; `difference` is rater minus reference. Standard errors sum each item's
influence (infinitesimal jackknife) over independent units, with units / (units - 1). Intervals use Student's t with
units - 1 degrees of freedom, for correlations on Fisher's scale; shares and difference use `stats.intervals`. Below
`FEWEST_UNITS` correlations and kappas have no interval (20 items rated 0 to 5: 88 % coverage of quadratic kappa; 30
items: 91 %), below `FEW_UNITS` (94 %) they carry the note `SHORT`.
References: Kendall 1945; Cohen 1968, "Weighted kappa"; Fleiss, Cohen and Everitt 1969 (the same error for independent
items); Efron 1982, "The Jackknife, the Bootstrap and Other Resampling Plans", chapter 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.stats.cluster_variance import has_dominant_unit, t_quantile
from codec_bench.stats.correlation import Coefficient
from codec_bench.stats.intervals import LEVEL, check_level, folded, interval_of, ratios, too_few
from codec_bench.stats.notes import Note

FEWEST_UNITS = 30
FEW_UNITS = 60
FLAT = Diagnostic("constant_rater")
ALIKE = Diagnostic("no_spread")
CERTAIN = Diagnostic("constant_raters")
NOTHING = Diagnostic("no_shared_item")
CORRELATIONS = ("spearman", "kendall", "pearson")
KAPPAS = ("kappa_quadratic", "kappa_linear", "kappa")
SHARES = ("exact", "within_one")
OF_RATINGS = (*CORRELATIONS, *KAPPAS, *SHARES, "difference")
OF_LABELS = ("kappa", "exact")
"""The coefficients of ratings (numbers), and of labels (unordered)."""


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Agreement of a rater with a reference on `n` shared items in `units` units."""

    n: int
    units: int
    coefficients: Mapping[str, Coefficient] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {"n": self.n, "units": self.units, **{k: c.as_dict() for k, c in self.coefficients.items()}}


class _Cells(NamedTuple):
    """The pairs of values that occur.

    Sorted values of both raters, indices of each cell in them, items per cell, and the cell of each item.
    """

    x: np.ndarray
    y: np.ndarray
    row: np.ndarray
    column: np.ndarray
    items: np.ndarray
    of_item: np.ndarray

    @property
    def share(self) -> np.ndarray:
        return self.items / self.items.sum()

    @property
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the shares of items by value of the reference, and of the rater."""
        share = self.share
        return np.bincount(self.row, share, len(self.x)), np.bincount(self.column, share, len(self.y))


Estimate = tuple[float, np.ndarray] | str
"""A coefficient with the influence of each cell, or the reason why there is none."""


def agreement_of(
    *,
    reference: np.ndarray,
    rater: np.ndarray,
    codes: np.ndarray | None = None,
    names: Sequence[str] = OF_RATINGS,
    without: Mapping[str, str] | None = None,
    level: float = LEVEL,
) -> PairAgreement:
    """Compute the agreement of two raters. Higher is better, except for `difference`.

    Args:
        reference, rater: one finite number per item, `(items,)`; labels as numbers.
        codes: the independent unit of each item from `intervals.unit_codes`; None if every item is one.
        names: the coefficients; see `OF_RATINGS` and `OF_LABELS`.
        without: inapplicable coefficients with their reasons; they have no value.
        level: of the intervals.

    Raises:
        UserError: the two differ in length, or a number is not finite.
    """
    check_level(level)
    x, y = np.asarray(reference, np.float64), np.asarray(rater, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise UserError("ratings_shapes", shape=x.shape, other_shape=y.shape)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise UserError("rating_not_finite", hint="leave out items without a rating")
    units = len(x) if codes is None else len(np.unique(codes))
    refused = dict(without or {})
    if not len(x):
        return PairAgreement(0, 0, {name: Coefficient(None, note=refused.get(name, NOTHING)) for name in names})
    cells = _cells(x, y)
    table = np.stack([np.zeros_like(x), np.ones_like(x)], axis=1)
    coefficients: dict[str, Coefficient] = {}
    for name in names:
        if name in refused:
            coefficients[name] = Coefficient(None, note=refused[name])
        elif name in _FROM_CELLS:
            coefficients[name] = _with_interval(_FROM_CELLS[name](cells), cells, codes, name in CORRELATIONS, level)
        else:
            # Ratings are decimal: 3.3 and 2.3 are 1 apart, unlike in binary.
            table[:, 0] = {
                "exact": x == y, "within_one": np.abs(x - y) <= 1 + 1e-9, "difference": y - x,
            }[name]  # fmt: skip
            of = interval_of(ratios, table, codes, level, share=name in SHARES)
            coefficients[name] = Coefficient(folded(ratios, table), of.low, of.high, of.note)
    return PairAgreement(len(x), units, coefficients)


def confusion(reference: np.ndarray, rater: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the pairs of values; return values of reference (rows), of rater, counts."""
    cells = _cells(reference, rater)
    counts = np.zeros((len(cells.x), len(cells.y)), np.int64)
    counts[cells.row, cells.column] = cells.items
    return cells.x, cells.y, counts


def middle_ranks(values: np.ndarray) -> np.ndarray:
    """Return the mid-ranks of values, divided by the number of items, `(items,)`."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: np.ndarray = ((np.cumsum(counts) - counts / 2) / max(1, len(values)))[inverse]
    return ranks


def _cells(x: np.ndarray, y: np.ndarray) -> _Cells:
    """Count the distinct pairs of values of two raters."""
    levels_x, row = np.unique(x, return_inverse=True)
    levels_y, column = np.unique(y, return_inverse=True)
    cells, of_item, counts = np.unique(row * len(levels_y) + column, return_inverse=True, return_counts=True)
    return _Cells(levels_x, levels_y, cells // len(levels_y), cells % len(levels_y), counts, of_item)


def _with_interval(
    estimate: Estimate, cells: _Cells, codes: np.ndarray | None, correlates: bool, level: float
) -> Coefficient:
    """Add a t interval to a coefficient, from the influence of each independent unit.

    Args:
        codes: the unit of each item; None if every item is one.
        correlates: whether to compute the interval in Fisher's z.
    """
    if isinstance(estimate, str):
        return Coefficient(None, note=estimate)
    value, influence = estimate
    value = min(1.0, max(-1.0, value))
    each = influence[cells.of_item] / len(cells.of_item)
    sums = each if codes is None else np.bincount(codes, each)
    sums = sums if codes is None else sums[np.unique(codes)]
    present = len(sums)
    if present < FEWEST_UNITS:
        return Coefficient(value, note=too_few(present, FEWEST_UNITS, "coefficient_interval"))
    error = math.sqrt(present / (present - 1) * float(np.square(sums).sum()))
    if error <= 1e-12 or (correlates and 1 - abs(value) <= 1e-12):
        return Coefficient(value, note=ALIKE)
    reach = t_quantile(level, present - 1) * error
    if correlates:
        middle, reach = math.atanh(value), reach / (1 - value * value)
        low, high = math.tanh(middle - reach), math.tanh(middle + reach)
    else:
        low, high = max(-1.0, value - reach), min(1.0, value + reach)
    if present < FEW_UNITS:
        return Coefficient(value, low, high, Note("few_units", units=present))
    has_one = has_dominant_unit(sums, np.ones(len(sums)))
    return Coefficient(value, low, high, Note("dominant_unit") if has_one else None)


def _pearson(cells: _Cells) -> Estimate:
    """Pearson's correlation, and the influence of each cell on it."""
    if len(cells.x) < 2 or len(cells.y) < 2:
        return FLAT
    share, x, y = cells.share, cells.x[cells.row], cells.y[cells.column]
    from_x, from_y = x - share @ x, y - share @ y
    spread_x, spread_y = math.sqrt(share @ from_x**2), math.sqrt(share @ from_y**2)
    if not spread_x * spread_y:  # the values differ by less than the numbers can hold
        return FLAT
    at_x, at_y = from_x / spread_x, from_y / spread_y
    value = float(share @ (at_x * at_y))
    return value, at_x * at_y - value / 2 * (at_x**2 + at_y**2)


def _spearman(cells: _Cells) -> Estimate:
    """Spearman's correlation, and the influence of each cell on it."""
    if len(cells.x) < 2 or len(cells.y) < 2:
        return FLAT
    rows, columns = cells.shares
    rank_x, rank_y = np.cumsum(rows) - rows / 2 - 0.5, np.cumsum(columns) - columns / 2 - 0.5
    x, y, share = rank_x[cells.row], rank_y[cells.column], cells.share

    def moved(level: np.ndarray, by: np.ndarray) -> np.ndarray:
        """Sum for each cell over items of a higher level, and half of its own."""
        sums = np.bincount(level, share * by)
        return (np.cumsum(sums[::-1])[::-1] - sums / 2)[level]

    both, of_x, of_y = float(share @ (x * y)), float(rows @ rank_x**2), float(columns @ rank_y**2)
    scale = math.sqrt(of_x * of_y)
    value = both / scale
    d_both = x * y + moved(cells.row, y) + moved(cells.column, x) - 3 * both
    d_x = x**2 + 2 * moved(cells.row, x) - 3 * of_x
    d_y = y**2 + 2 * moved(cells.column, y) - 3 * of_y
    return value, d_both / scale - value / 2 * (d_x / of_x + d_y / of_y)


def _kendall(cells: _Cells) -> Estimate:
    """Kendall's tau-b, and the influence of each cell on it."""
    if len(cells.x) < 2 or len(cells.y) < 2:
        return FLAT
    rows, columns = cells.shares
    share = cells.share
    agreeing = _concordant(cells) / cells.items.sum()
    discordant = 1 - rows[cells.row] - columns[cells.column] + share
    signs = 2 * agreeing - discordant
    both, of_x, of_y = float(share @ signs), 1 - float(rows @ rows), 1 - float(columns @ columns)
    scale = math.sqrt(of_x * of_y)
    value = both / scale
    d_x, d_y = 2 * (1 - rows[cells.row] - of_x), 2 * (1 - columns[cells.column] - of_y)
    return value, 2 * (signs - both) / scale - value / 2 * (d_x / of_x + d_y / of_y)


def _concordant(cells: _Cells) -> np.ndarray:
    """Count the items above or below each cell by both raters; `(cells,)`.

    Cells (`_Cells`) are in the order of the reference. Blocks of 1, 2, 4, ... cells are compared with their right
    neighbours in log2(cells) sorting steps.
    """
    # Falling column order: no cell of a row counts as above another.
    order = np.lexsort((-cells.column, cells.row))
    key, weight = cells.column[order].astype(np.int64), cells.items[order].astype(np.int64)
    total, most = np.zeros(len(order), np.int64), len(cells.y)
    size = 1
    while size < len(order):
        block = np.arange(len(order)) // size
        placed = (block // 2) * most + key
        left, right = np.flatnonzero(block % 2 == 0), np.flatnonzero(block % 2 == 1)
        first = (block // 2) * most
        for values, others, above in ((right, left, False), (left, right, True)):
            ranked = others[np.argsort(placed[others], kind="stable")]
            sums = np.concatenate([[0], np.cumsum(weight[ranked])])
            at = np.searchsorted(placed[ranked], placed[values], "right" if above else "left")
            end = np.searchsorted(placed[ranked], first[values] + (most if above else 0), "left")
            total[values] += np.abs(sums[at] - sums[end])
        size *= 2
    out = np.empty_like(total)
    out[order] = total
    return out


class _Distance(NamedTuple):
    """A distance of pairs of values, and its mean from each value to weighted values."""

    of_pairs: Callable[[np.ndarray, np.ndarray], np.ndarray]
    mean: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _mean_square(values: np.ndarray, levels: np.ndarray, shares: np.ndarray) -> np.ndarray:
    middle = shares @ levels
    squares: np.ndarray = (values - middle) ** 2 + shares @ (levels - middle) ** 2
    return squares


def _mean_absolute(values: np.ndarray, levels: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the mean absolute difference of each value to `levels` with `shares`."""
    below = np.searchsorted(levels, values, "right")
    weight = np.concatenate([[0.0], np.cumsum(shares)])
    moment = np.concatenate([[0.0], np.cumsum(shares * levels)])
    distances: np.ndarray = values * (2 * weight[below] - weight[-1]) - 2 * moment[below] + moment[-1]
    return distances


def _mean_unequal(values: np.ndarray, levels: np.ndarray, shares: np.ndarray) -> np.ndarray:
    at = np.minimum(np.searchsorted(levels, values), len(levels) - 1)
    return 1 - np.where(levels[at] == values, shares[at], 0.0)


_SQUARE = _Distance(lambda x, y: (x - y) ** 2, _mean_square)
_ABSOLUTE = _Distance(lambda x, y: np.abs(x - y), _mean_absolute)
_UNEQUAL = _Distance(lambda x, y: (x != y).astype(np.float64), _mean_unequal)


def _kappa(cells: _Cells, distance: _Distance) -> Estimate:
    """Cohen's kappa weighted by a distance, and the influence of each cell on it."""
    rows, columns = cells.shares
    to_rater, to_reference = distance.mean(cells.x, cells.y, columns), distance.mean(cells.y, cells.x, rows)
    expected = float(rows @ to_rater)
    if expected <= 1e-12:
        return CERTAIN
    distances = distance.of_pairs(cells.x[cells.row], cells.y[cells.column])
    seen = float(cells.share @ distances)
    d_expected = to_rater[cells.row] + to_reference[cells.column] - 2 * expected
    return 1 - seen / expected, -(distances - seen) / expected + seen / expected**2 * d_expected


_FROM_CELLS: Mapping[str, Callable[[_Cells], Estimate]] = {
    "spearman": _spearman,
    "kendall": _kendall,
    "pearson": _pearson,
    "kappa_quadratic": partial(_kappa, distance=_SQUARE),
    "kappa_linear": partial(_kappa, distance=_ABSOLUTE),
    "kappa": partial(_kappa, distance=_UNEQUAL),
}

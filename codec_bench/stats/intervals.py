"""Confidence intervals of means, ratios of sums (WER) and corpus values (BLEU).

Methods
    mean, ratio of sums     `t`: Student's t with the cluster-robust standard error CR2 and Satterthwaite's degrees of
                            freedom; without clusters a mean has the one-sample t interval.
    share of right answers  `wilson`, or `clopper-pearson` where fewer than ten are right or wrong; with clusters, both
                            over the effective number of items (Korn and Graubard).
    corpus value            `bootstrap`: percentiles over units, as sacreBLEU.
    any, on request         `bca`: BCa bootstrap over units.

Units are speakers where they are known, else items. A unit that adds nothing to any sum is not counted. Declared bounds
cut the ends. `docs/design/intervals.md` has the references.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from numbers import Integral, Real
from typing import Any

import numpy as np

from codec_bench.messages.errors import UserError
from codec_bench.stats.bootstrap import bca_ends, corpus_interval
from codec_bench.stats.bounds import Bounds, check_bounds, count_at_bound, infer_bounds, is_rate, within_bounds
from codec_bench.stats.cluster_variance import (
    degrees_of_freedom,
    effective_units,
    has_dominant_unit,
    jackknife_error,
    t_quantile,
)
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.notes import Note, too_few
from codec_bench.types import LARGEST

LEVEL = 0.95
FEWEST_UNITS = 3  # for an interval; of a share, two
FEW_UNITS = 6  # fewer are noted
FEW_RIGHT = 10  # or wrong: fewer take Clopper and Pearson's interval
METHODS = ("bootstrap",)

Fold = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a corpus value.

    Args:
        low, high: its ends in the unit of the value; both None without enough units or a value.
        units: number of independent units.
        method: `t`, `wilson`, `clopper-pearson`, `bootstrap`, `bca`, `woodruff`, `crossed`, `jackknife-blocks`, or "".
        note: a caution (see `stats.notes`), or None.
        level: the share of such intervals that contain the true value.
    """

    low: float | None
    high: float | None
    units: int
    method: str
    note: Note | None = None
    level: float = LEVEL

    @property
    def ends(self) -> list[float] | None:
        """`[low, high]`, or None if one is missing."""
        return None if self.low is None or self.high is None else [self.low, self.high]


def interval(
    values: Sequence[float] | np.ndarray,
    *,
    denominators: Sequence[float] | np.ndarray | None = None,
    clusters: Sequence[Hashable | None] | None = None,
    bounds: Bounds | None = None,
    level: float = LEVEL,
    method: str | None = None,
    seed: int = 0,
) -> Interval:
    """The confidence interval of a mean, or of a ratio of sums such as a WER.

    Args:
        values: one number per item; with `denominators` the numerators. Values that are all 0 or 1 are a share.
        denominators: one number per item, such as reference words, for the value sum(values) / sum(denominators).
        clusters: one label per item, such as its speaker; an item with None is a separate unit.
        bounds: the least and the greatest value of an item, None for an open end; they cut the ends of the interval.
        level: the share of such intervals that contain the true value, between 0 and 1.
        method: None for the method of the value's kind; `bootstrap` for BCa over units, except of a share.

    Returns:
        The interval. Its ends are None with fewer than three units (two of a share); the note then says so.

    Raises:
        UserError: an argument is invalid, or a value is outside of the bounds.

    Examples:
        >>> found = interval([3.1, 3.4, 2.9, 3.6, 3.3], clusters=["ann", "ann", "bob", "cy", "dee"])
        >>> round(found.low, 3), round(found.high, 3), found.units, found.method, found.note.code
        (2.88, 3.64, 4, 't', 'few_units')
        >>> interval([3.1, 3.4]).note.code
        'too_few_units'
    """
    table = item_table(values, denominators)
    known = infer_bounds(table) if bounds is None else check_bounds(ratios(table), bounds)
    check_seed(seed)
    codes = unit_codes(labels_of(clusters), len(table))
    if method is not None and method not in METHODS:
        raise UserError("interval_method", method=method, known=" or ".join(METHODS))
    return interval_of(ratios, table, codes, level, share=True, bounds=known, method=method, seed=seed)


def item_table(values: object, denominators: object = None, name: str = "values") -> np.ndarray:
    """Validate values as (numerator, denominator) rows, float64 `(items, 2)`.

    The value of the set is the ratio of the columns' sums. Without denominators all are 1, which gives a mean.
    """
    numerators = _numbers(values, name)
    if denominators is None:
        return np.stack([numerators, np.ones_like(numerators)], axis=1)
    below = _numbers(denominators, "denominators")
    if len(below) != len(numerators):
        raise UserError("denominator_count", denominators=len(below), items=len(numerators), name=name)
    negative = np.flatnonzero(below < 0)
    if negative.size:
        raise UserError("denominator_negative", item=negative[0], value=below[negative[0]])
    return np.stack([numerators, below], axis=1)


def _numbers(values: object, name: str) -> np.ndarray:
    """Finite numbers that can be squared, float64 `(items,)`."""
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind in "cSU":
            raise TypeError(f"its type is {numbers.dtype}")
        array = numbers.astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:  # RuntimeError: a tensor of torch that has a gradient
        raise UserError("not_numbers", name=name, cause=error) from error
    if array.ndim != 1:
        raise UserError("values_shape", name=name, shape=array.shape)
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise UserError(
            "value_not_finite",
            name=name,
            item=wrong[0],
            value=array[wrong[0]],
            hint="leave out the items that have no score, from the denominators and clusters too",
        )
    wrong = np.flatnonzero(np.abs(array) > LARGEST)
    if wrong.size:
        raise UserError("value_too_large", name=name, item=wrong[0], value=array[wrong[0]], most=LARGEST)
    return array


def labels_of(clusters: Any) -> list[Hashable | None] | None:
    """The labels of the items, None for no cluster; None without labels.

    A missing label in pandas is NaN, and elements of a tensor are never equal.
    """
    if clusters is None:
        return None
    listed = clusters.tolist() if hasattr(clusters, "tolist") else clusters
    if isinstance(listed, str | bytes | Mapping) or not isinstance(listed, Iterable):
        raise UserError("clusters_type", type=type(clusters).__name__)
    labels = [None if isinstance(label, float) and math.isnan(label) else label for label in listed]
    for index, label in enumerate(labels):
        if not isinstance(label, Hashable):
            raise UserError("cluster_type", item=index, type=type(label).__name__)
    return labels


def unit_codes(clusters: Sequence[Hashable | None] | None, items: int) -> np.ndarray | None:
    """The unit number of each item, int64 `(items,)`; None if every item is a unit."""
    if clusters is None:
        return None
    if len(clusters) != items:
        raise UserError("cluster_count", clusters=len(clusters), items=items)
    numbers = count()
    seen: defaultdict[Hashable, int] = defaultdict(numbers.__next__)
    codes = np.fromiter(map(seen.__getitem__, clusters), np.int64, items)
    if None in seen:
        alone = np.flatnonzero(codes == seen[None])
        # The number of None goes to the first of its items, and no number is without an item.
        codes[alone[1:]] = np.arange(len(seen), len(seen) + len(alone) - 1)
    return codes


def unit_sums(table: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
    """Sums of parts `(items, k)` per unit, `(units, k)`; without codes, the parts."""
    if codes is None:
        return np.asarray(table, np.float64)
    units = int(codes.max()) + 1 if len(codes) else 0
    return np.stack([np.bincount(codes, column, units) for column in table.T], axis=1)


def ratios(sums: np.ndarray) -> np.ndarray:
    """Numerator over denominator, `(..., 2)` to `(...)`; NaN where that is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[..., 1] != 0, sums[..., 0] / sums[..., 1], np.nan)


def folded(fold: Fold, sums: np.ndarray) -> float | None:
    """Compute a set's value from its items' parts; None if empty or not finite."""
    if not len(sums):
        return None
    value = float(fold(_exact_sums(sums)[None])[0])
    return value if np.isfinite(value) else None


def _exact_sums(table: np.ndarray) -> np.ndarray:
    """Exact column sums, independent of the order of the items."""
    # Whole numbers add up exactly in any order, and that is many times faster.
    if max(table.max(), -table.min()) * len(table) < 2**53 and (table == np.floor(table)).all():
        return np.asarray([column.sum() for column in table.T])
    return np.asarray([math.fsum(column.tolist()) for column in table.T])


def interval_of(
    fold: Fold, table: np.ndarray, codes: np.ndarray | None, level: float = LEVEL, *, share: bool = False,
    bounds: Bounds | None = None, method: str | None = None, seed: int = 0,
) -> Interval:  # fmt: skip
    """As `interval`, for a value that a fold makes from summed parts.

    Args:
        fold: turns summed parts `(..., k)` into values. The second part says how large an item is.
        table: each item's parts, `(items, k)`, k at least 2.
        codes: their units from `unit_codes`; None if every item is one.
        share: whether values of 0 and 1 are wrong and right answers. A metric such as STOI reaches 1 too.
        bounds: as in `interval`, but for `ratios` only; values beyond them widen them.
        method: as in `interval`; shares and the folds of `FOLDS` keep their own.
    """
    check_level(level)
    value = folded(fold, table)
    if value is None:
        why = Note("zero_denominator" if fold is ratios and len(table) else "no_value")
        every = len(table) if codes is None or not len(codes) else int(codes.max()) + 1
        return Interval(None, None, every, "", why, level)
    units = unit_sums(table, codes)
    # A unit that adds nothing to any sum, such as silence in which nothing was recognised, does not make it surer.
    adding = units.any(axis=1)
    units = units if adding.all() else units[adding]
    unit_count = len(units)
    is_answer = share and fold is ratios and is_share(table)
    if unit_count < (fewest := 2 if is_answer else FEWEST_UNITS):
        return Interval(None, None, unit_count, "", too_few(unit_count, fewest, "interval"), level)
    small_sample = Note("few_units", units=unit_count) if unit_count < FEW_UNITS else None
    if fold in FOLDS.values():
        return Interval(*corpus_interval(fold, units, level, seed), unit_count, "bootstrap", small_sample, level)
    error = jackknife_error(fold(units.sum(axis=0) - units), value, units[:, 1])
    if error is None:
        return Interval(None, None, unit_count, "", Note("single_unit"), level)
    if is_answer:
        ends, name = _share_ends(value, error, len(table), units[:, 1], level)
        note = small_sample or _note(units, None, value, error, None, bool((units[:, 1] > 1).any()))
        return Interval(*ends, unit_count, name, note, level)
    rates = ratios(table) if fold is ratios else None
    if method == "bootstrap" and error:
        (low, high), name = bca_ends(fold, units, value, level, seed), "bca"
    else:
        reach = t_quantile(level, degrees_of_freedom(units[:, 1])) * error
        low, high, name = value - reach, value + reach, "t"
    if rates is not None:
        low, high = within_bounds(low, high, rates, bounds)
    return Interval(low, high, unit_count, name, _note(units, rates, value, error, bounds, rates is not None), level)


def _note(
    units: np.ndarray, rates: np.ndarray | None, value: float, error: float, bounds: Bounds | None, of_means: bool
) -> Note | None:
    """The most important note; `rates` are the items' values."""
    if error == 0:
        return Note("all_equal")
    if len(units) < FEW_UNITS:
        return Note("few_units", units=len(units))
    if of_means and has_dominant_unit(units[:, 0] - value * units[:, 1], units[:, 1]):
        return Note("dominant_unit")
    if rates is None:
        return None
    at_end = count_at_bound(rates, bounds)
    if at_end > len(rates) / 2 and not is_rate(bounds):
        return Note("ceiling", at_bound=at_end, items=len(rates), rest=len(rates) - at_end)
    above = int(np.count_nonzero(rates > 1)) if is_rate(bounds) else 0
    return Note("heavy_tail", items=above) if above else None


def check_level(level: float) -> None:
    """Raise UserError if a level is not between 0 and 1."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise UserError("level_value", level=level)


def check_seed(seed: int) -> None:
    """Raise UserError if a seed is no whole number of at least 0."""
    if not isinstance(seed, Integral) or seed < 0:
        raise UserError("seed_value", seed=seed)


def is_share(table: np.ndarray) -> bool:
    """Whether the value is the share of items that are 1 among items that are 0 or 1."""
    return bool((table[:, 1] == 1).all() and (table[:, 0] * (table[:, 0] - 1) == 0).all())


def _share_ends(
    share: float, error: float, items: int, sizes: np.ndarray, level: float
) -> tuple[tuple[float, float], str]:
    """The interval of a share of right answers over units, and its method."""
    number = effective_items(share, error, items, sizes, level)
    right = round(share * items)
    if min(right, items - right) < FEW_RIGHT:
        return clopper_pearson(share, number, level), "clopper-pearson"
    return wilson(share, number, level), "wilson"


def wilson(share: float, items: float, level: float) -> tuple[float, float]:
    """Wilson's score interval of a share of (effective) items."""
    z = t_quantile(level, math.inf)
    middle = (share + z * z / (2 * items)) / (1 + z * z / items)
    half = z / (1 + z * z / items) * math.sqrt(share * (1 - share) / items + z * z / (4 * items**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def clopper_pearson(share: float, items: float, level: float) -> tuple[float, float]:
    """The Clopper-Pearson interval of a share of (effective) items."""
    from scipy.special import betaincinv

    right, wrong, tail = share * items, (1 - share) * items, (1 - level) / 2
    return (
        float(betaincinv(right, wrong + 1, tail)) if right > 0 else 0.0,
        float(betaincinv(right + 1, wrong, 1 - tail)) if wrong > 0 else 1.0,
    )


def effective_items(share: float, error: float, items: int, sizes: np.ndarray, level: float) -> float:
    """A share's effective number of items, with Korn and Graubard's factor.

    Args:
        error: the standard error of the share over units.
        sizes: how many items each unit has.
        level: of the interval to be made.
    """
    if len(sizes) >= items:
        return float(items)
    # All right or all wrong: nothing is known of how alike the items of a unit are, so a unit counts as one item.
    number = share * (1 - share) / error**2 if error > 0 else effective_units(sizes)
    factor = t_quantile(level, math.inf) / t_quantile(level, degrees_of_freedom(sizes))
    return min(number * factor**2, float(items)) if error > 0 else number

"""The difference of two systems on the same items: paired test and interval.

Methods
    means, ratios of sums    `t`: Student's t of paired differences over units, with CR2 and Satterthwaite's degrees of
                             freedom. Interval and p are of the same t.
    shares of right answers  `mcnemar`: McNemar's mid-p test with Newcombe's interval; with clusters `t`.
    corpus values            `bootstrap`: the paired bootstrap of Koehn, as in sacreBLEU.

Differences are A minus B. A win is an item on which A is better, whatever the direction of the metric.
`docs/design/intervals.md` has the references.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from codec_bench.messages.errors import UserError
from codec_bench.stats.bootstrap import CORPUS_DRAWS, corpus_difference
from codec_bench.stats.bounds import Bounds, check_bounds, infer_bounds
from codec_bench.stats.cluster_variance import (
    degrees_of_freedom,
    detectable_effect,
    has_dominant_unit,
    jackknife_error,
    linear_parts,
    t_p_value,
    t_quantile,
)
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.intervals import (
    FEW_UNITS,
    FEWEST_UNITS,
    LEVEL,
    Fold,
    check_level,
    check_seed,
    folded,
    is_share,
    item_table,
    labels_of,
    ratios,
    unit_codes,
    unit_sums,
    wilson,
)
from codec_bench.stats.notes import Note, too_few

FEWEST_FOR_P = FEWEST_UNITS
POWER = 0.8


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The difference of two corpus values on the same items.

    Args:
        difference: A minus B; None if one of the two has no value. low, high: the ends of its interval, or None.
        p: two-sided; None with fewer than three units.
        note: a caution (see `stats.notes`), or None.
        detectable: minimum detectable effect, at a power of 80 % and a level of 95 %.
        level: of the interval.
        method: `t`, `mcnemar`, `bootstrap`, `crossed`, or "".
    """

    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    units: int
    note: Note | None = None
    detectable: float | None = None
    level: float = LEVEL
    method: str = ""


class ItemParts(NamedTuple):
    """Parts of one item in a corpus value.

    `value` and `parts` are None if it failed; `speaker` is for clustering.
    """

    id: str
    value: float | None
    parts: Sequence[float] | None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on one metric, over the items for which both have a number.

    Args:
        dropped: items for which one of the two has no number.
        value_a, value_b: over the pairs. wins, losses, ties: items on which A is better, worse, equal.
        p_holm: p adjusted for all comparisons of the call.
        barred: why neither can be the better one.
    """

    metric: str
    unit: str
    higher_is_better: bool | None
    pairs: int
    dropped: int
    value_a: float | None
    value_b: float | None
    test: PairedTest
    wins: int
    losses: int
    ties: int
    p_holm: float | None = None
    barred: str | None = None


def paired_test(
    a: Sequence[float] | np.ndarray,
    b: Sequence[float] | np.ndarray,
    *,
    denominators: Sequence[float] | np.ndarray | None = None,
    clusters: Sequence[Hashable | None] | None = None,
    bounds: Bounds | None = None,
    seed: int = 0,
) -> PairedTest:
    """Compare two systems on the same items: two means, or two ratios of sums.

    Args:
        a, b: one number per item and system, `(items,)`; with `denominators` the numerators, such as errors.
        denominators: one number per item, the same for both systems, such as reference words.
        clusters, bounds, seed: as for `interval`.

    Returns:
        The difference A minus B with its 95 % interval and a two-sided p; without these with fewer than three units.

    Raises:
        UserError: an argument is invalid, lengths differ, or a value is outside of the bounds.

    Examples:
        >>> a, b = [3.1, 3.4, 2.9, 3.6, 3.3, 3.0, 3.5, 3.2], [2.9, 3.1, 2.8, 3.5, 3.0, 2.9, 3.1, 3.0]
        >>> found = paired_test(a, b)
        >>> round(found.difference, 4), round(found.low, 4), round(found.high, 4), round(found.p, 5)
        (0.2125, 0.1184, 0.3066, 0.00108)
    """
    table_a, table_b = item_table(a, denominators, "a"), item_table(b, denominators, "b")
    if len(table_a) != len(table_b):
        raise UserError("unpaired_items", one=len(table_a), other=len(table_b))
    known = infer_bounds(np.concatenate([table_a, table_b])) if bounds is None else bounds
    for table in (table_a, table_b):
        known = check_bounds(ratios(table), known)
    check_seed(seed)
    codes = unit_codes(labels_of(clusters), len(table_a))
    return paired_parts(ratios, table_a, table_b, codes, seed=seed, bounds=known)


def paired_parts(
    fold: Fold, a: np.ndarray, b: np.ndarray, codes: np.ndarray | None, *, seed: int, level: float = LEVEL,
    bounds: Bounds | None = None,
) -> PairedTest:  # fmt: skip
    """As `paired_test`, for values that a fold makes of items' parts `(items, k)`."""
    check_level(level)
    value_a, value_b = folded(fold, a), folded(fold, b)
    units_a, units_b = unit_sums(a, codes), unit_sums(b, codes)
    adding = units_a.any(axis=1) | units_b.any(axis=1)  # others tell the two no more apart
    units_a, units_b = units_a[adding], units_b[adding]
    count = len(units_a)
    if value_a is None or value_b is None:
        code = "no_value" if not len(a) else "zero_denominator" if fold is ratios else "one_without_value"
        return PairedTest(None, None, None, None, count, Note(code), None, level)
    difference = value_a - value_b
    if count < FEWEST_UNITS:
        return PairedTest(difference, None, None, None, count, too_few(count, FEWEST_UNITS, "test"), None, level)
    note = Note("few_units", units=count) if count < FEW_UNITS else None
    if np.array_equal(units_a, units_b):
        return PairedTest(difference, 0.0, 0.0, 1.0, count, Note("equal_systems"), None, level, "t")
    if fold in FOLDS.values():
        low, high, p, error = corpus_difference(fold, units_a, units_b, difference, level, seed)
        detectable = detectable_effect(error, count - 1, level, POWER)
        return PairedTest(difference, low, high, p, count, note, detectable, level, "bootstrap")
    if fold is ratios and count == len(a) and is_share(a) and is_share(b):
        return _mcnemar(a[:, 0] > 0, b[:, 0] > 0, note, level)
    unit_effects = np.stack(
        [_one_sided(fold, units_a, units_b, difference), (units_a[:, 1] + units_b[:, 1]) / 2], axis=1
    )
    without = fold(units_a.sum(axis=0) - units_a) - fold(units_b.sum(axis=0) - units_b)
    of_units = jackknife_error(without, difference, unit_effects[:, 1])
    if of_units is None:
        return PairedTest(difference, None, None, None, count, Note("single_unit"), None, level)
    if of_units == 0:
        return PairedTest(difference, difference, difference, 0.0, count, Note("constant_difference"), None, level, "t")
    freedom = degrees_of_freedom(unit_effects[:, 1])
    reach = t_quantile(level, freedom) * of_units
    low, high = _within(difference - reach, difference + reach, bounds)
    if note is None and has_dominant_unit(unit_effects[:, 0] - difference * unit_effects[:, 1], unit_effects[:, 1]):
        note = Note("dominant_unit")
    p = t_p_value(difference / of_units, freedom)
    detectable = detectable_effect(of_units, freedom, level, POWER)
    return PairedTest(difference, low, high, p, count, note, detectable, level, "t")


def _within(low: float, high: float, bounds: Bounds | None) -> tuple[float, float]:
    """The ends of a difference, no farther than the bounds of the values are apart."""
    if bounds is None or bounds[0] is None or bounds[1] is None:
        return low, high
    most = bounds[1] - bounds[0]
    return max(low, -most), min(high, most)


def _mcnemar(a: np.ndarray, b: np.ndarray, note: Note | None, level: float) -> PairedTest:
    """McNemar's mid-p test and Newcombe's interval (10) of right answers, `(items,)`."""
    from scipy.special import bdtr

    count = len(a)
    both, neither = int((a & b).sum()), int((~a & ~b).sum())
    only_a, only_b = int((a & ~b).sum()), int((~a & b).sum())
    discordant, fewer = only_a + only_b, min(only_a, only_b)
    point = float(bdtr(fewer, discordant, 0.5)) - (float(bdtr(fewer - 1, discordant, 0.5)) if fewer else 0.0)
    p = 1.0 if only_a == only_b else min(1.0, 2 * float(bdtr(fewer, discordant, 0.5)) - point)
    share_a, share_b = (both + only_a) / count, (both + only_b) / count
    (low_a, high_a), (low_b, high_b) = wilson(share_a, count, level), wilson(share_b, count, level)
    margins = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    association = both * neither - only_a * only_b
    phi = (
        (max(0.0, association - count / 2) if association > 0 else association) / math.sqrt(margins) if margins else 0.0
    )

    def reach(down: float, up: float) -> float:
        return math.sqrt(max(0.0, down**2 - 2 * phi * down * up + up**2))

    difference = share_a - share_b
    low = difference - reach(share_a - low_a, high_b - share_b)
    high = difference + reach(high_a - share_a, share_b - low_b)
    detectable = _mcnemar_detectable(discordant / count, count, level)
    return PairedTest(difference, low, high, p, count, note, detectable, level, "mcnemar")


def _mcnemar_detectable(discordant: float, items: int, level: float) -> float:
    """The effect that McNemar's test finds with power `POWER` (Connor's formula).

    A difference adds that many discordant items to the observed share.
    """
    z_level, z_power = t_quantile(level, math.inf), t_quantile(2 * POWER - 1, math.inf)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        share = min(1.0, discordant + middle)
        needed = z_level * math.sqrt(share) + z_power * math.sqrt(max(0.0, share - middle**2))
        low, high = (low, middle) if items * middle**2 >= needed**2 and middle <= share else (middle, high)
    return high


def _one_sided(fold: Fold, a: np.ndarray, b: np.ndarray, difference: float) -> np.ndarray:
    """The units' shares `(units,)` of the difference, over both sides' mean sizes."""
    if fold is ratios and np.array_equal(a[:, 1], b[:, 1]):
        return a[:, 0] - b[:, 0]
    both = [linear_parts(fold, table, float(fold(table.sum(axis=0)[None])[0])) for table in (a, b)]
    sizes = (a[:, 1] + b[:, 1]) / 2
    # The parts of a side add up to its value; those of the difference to the difference times all sizes.
    return (both[0][:, 0] - both[1][:, 0]) * float(sizes.sum())


def compare_items(
    a_items: Iterable[ItemParts],
    b_items: Iterable[ItemParts],
    *,
    metric: str,
    unit: str = "",
    higher_is_better: bool | None,
    seed: int,
    level: float = LEVEL,
    fold: Fold = ratios,
    bounds: Bounds | None = None,
) -> Comparison:
    """Compare two systems over the items for which both have a number, in any order.

    Args:
        a_items, b_items: the scores of A and of B, ids unique within each.
        metric, unit: for the result.
        higher_is_better: None counts larger values as wins.
        fold: turns the items' summed parts into the corpus value. seed, level, bounds: as for `interval`.
    """
    a, b, dropped = split_common(a_items, b_items)
    table_a, table_b = parts_table(a), parts_table(b)
    codes = unit_codes([item.speaker for item in a], len(a))
    test = paired_parts(fold, table_a, table_b, codes, seed=seed, level=level, bounds=bounds)
    values_a, values_b = (np.array([item.value for item in items], np.float64) for items in (a, b))
    more, less = int((values_a > values_b).sum()), int((values_a < values_b).sum())
    wins, losses = (less, more) if higher_is_better is False else (more, less)
    return Comparison(
        metric, unit, higher_is_better, len(a), dropped, folded(fold, table_a), folded(fold, table_b), test,
        wins, losses, len(a) - more - less,
    )  # fmt: skip


def split_common(
    a_items: Iterable[ItemParts], b_items: Iterable[ItemParts]
) -> tuple[list[ItemParts], list[ItemParts], int]:
    """Select the items with a value in both systems, sorted by id.

    Returns:
        Items of A, items of B, and the number of ids without a value in one of them.
    """
    scored_a = {item.id: item for item in a_items}
    scored_b = {item.id: item for item in b_items}
    valued = ({id for id, item in of.items() if item.value is not None} for of in (scored_a, scored_b))
    ids = sorted(set.intersection(*valued))
    return [scored_a[id] for id in ids], [scored_b[id] for id in ids], len(scored_a.keys() | scored_b.keys()) - len(ids)


def parts_table(items: Sequence[ItemParts]) -> np.ndarray:
    """The parts of items that all have some, float64 `(items, k)`."""
    return np.asarray([item.parts for item in items], np.float64).reshape(len(items), -1 if items else 2)


def item_differences(fold: Fold, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute each item's jackknife pseudo-value of a difference, `(items,)`."""
    without = fold(a.sum(axis=0) - a) - fold(b.sum(axis=0) - b)
    difference = float(fold(a.sum(axis=0)) - fold(b.sum(axis=0)))
    return difference + (len(a) - 1) * (difference - without)


def undecidable(tests: Sequence[PairedTest]) -> list[bool]:
    """Find exact tests with too few units to reach a Holm-adjusted p below 0.05."""
    least = {"mcnemar": lambda units: 0.5**units, "bootstrap": lambda units: 1 / (CORPUS_DRAWS + 1)}
    smallest = [None if t.p is None else least.get(t.method, lambda units: 0.0)(t.units) for t in tests]
    return [p is not None and p >= 1 - LEVEL for p in holm(smallest)]


def holm(probabilities: Sequence[float | None]) -> list[float | None]:
    """Holm-adjusted p-values of a family of tests, in order; None stays None."""
    known = sorted((p, index) for index, p in enumerate(probabilities) if p is not None)
    adjusted: list[float | None] = [None] * len(probabilities)
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        adjusted[index] = largest
    return adjusted

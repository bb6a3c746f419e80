"""Whether one system is better than another on the same items: an interval of the difference, and an exact test.

Every table and page of this package takes its differences from here. `codec_bench.paired_test` is the public function.

How it is done
    If two systems are equal, the two results of a unit (a speaker, or an item of unknown speaker) could as well be
    exchanged. The test exchanges them in every possible way, or in up to `DRAWS` random ways if there are more than
    `EXACT_UNITS` units, and counts how often the difference is at least as large as the one that was seen. So p is never
    smaller than the number of units can show: six units cannot go below 2/64 = 0.031. Random ways end early once
    `ENOUGH` of them were at least as large, since p is then large and known well enough.
    The interval of the difference is that of `stats.intervals`: a jackknife over the same units, with Student's t.
    The interval and p rest on different assumptions. Where only one of them tells the systems apart, the note says so.

Conventions
    Differences are A minus B. A win is an item on which A is better, also for metrics whose lower values are better.

References: Fisher, "The Design of Experiments", 1935, section 21 (exchanging the results of a pair); Winkler et al. 2015,
"Multi-level block permutation", NeuroImage 123 (exchanging whole clusters); Phipson and Smyth 2010, "Permutation
p-values should never be zero"; Besag and Clifford 1991, "Sequential Monte Carlo p-values"; Holm 1979, "A simple sequentially rejective multiple test procedure".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from codec_bench.errors import UserError
from codec_bench.stats.intervals import (
    FEWEST_UNITS,
    LEVEL,
    NOTHING_BELOW,
    Fold,
    check_level,
    folded,
    item_table,
    left_out_error,
    ratios,
    t_quantile,
    too_few,
    unit_codes,
    unit_sums,
)

FEWEST_FOR_P = 6
EXACT_UNITS = 12
DRAWS = 9_999
ENOUGH = 400
POWER = 0.8
DISAGREE = "the interval and p disagree: only one of them tells the two apart, so the difference is at the edge of what the data show"
EQUAL = "the two are equal in every unit, so the data do not say how small a difference they could show"
ALIKE = "every unit gives the same difference, so the data do not say how small a difference they could show"
# Of more units than this, several are exchanged together. The test stays exact, and its time stays bounded.
_MOST_EXCHANGED = 4_000
_DRAWS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The difference of two corpus values on the same items.

    Args:
        difference: A minus B; None if one of the two has no value.
        low, high: the ends of the interval of the difference; both None with fewer than three units.
        p: the two-sided probability of a difference at least this far from 0 if the two systems are equal; None with
            fewer than six units.
        units: how many independent units the two rest on: clusters, and items that belong to no cluster.
        note: why there is no interval or no p, or what else a reader should know; None if there is nothing to say.
        detectable: the smallest difference that such data show with a probability of 80 % (`POWER`) at a level of 95 %;
            None without an interval, and if all units give the same difference.
        level: of the interval.
    """

    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    units: int
    note: str | None = None
    detectable: float | None = None
    level: float = LEVEL


class ItemParts(NamedTuple):
    """What one item adds to a corpus value.

    Args:
        id: of the sample.
        value: the item's own score, or None if it failed.
        parts: what it adds to the sums that the value is made from; None if it failed.
        speaker: for clustering, or None.
    """

    id: str
    value: float | None
    parts: Sequence[float] | None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on one metric, over the items for which both have a number.

    Args:
        metric: its name. unit: of its values. higher_is_better: its direction.
        pairs: items compared.
        dropped: items that were left out, because one of the two systems has no number for them.
        value_a, value_b: corpus values over the pairs, or None if there are no pairs.
        test: the difference, with its interval and p.
        wins, losses, ties: items on which A is better, worse, the same.
        p_holm: p adjusted for all comparisons of the same call; None until `adjusted`, or without p.
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


def paired_test(
    a: Sequence[float] | np.ndarray,
    b: Sequence[float] | np.ndarray,
    *,
    denominators: Sequence[float] | np.ndarray | None = None,
    clusters: Sequence[Hashable | None] | None = None,
    seed: int = 0,
) -> PairedTest:
    """Compares two systems on the same items: the difference of two means, or of two ratios of sums.

    This is the code that every table of this package uses.

    Args:
        a, b: one number per item and system, `(items,)`; with `denominators` the numerators, such as errors.
        denominators: one number per item, the same for both systems, such as reference words.
        clusters: one label per item, such as its speaker; an item with None is a unit of its own. Without clusters every
            item is one.
        seed: of the random exchanges, which are drawn if there are more than twelve units.

    Returns:
        The difference A minus B with its 95 % interval and a two-sided p. There is no interval with fewer than three
        units, and no p with fewer than six; the note then says so.

    Raises:
        UserError: lengths differ, a number is not finite, or a denominator is negative.

    Examples:
        >>> a, b = [3.1, 3.4, 2.9, 3.6, 3.3, 3.0, 3.5, 3.2], [2.9, 3.1, 2.8, 3.5, 3.0, 2.9, 3.1, 3.0]
        >>> found = paired_test(a, b)
        >>> round(found.difference, 4), round(found.low, 4), round(found.high, 4), found.p
        (0.2125, 0.1184, 0.3066, 0.0078125)
    """
    table_a, table_b = item_table(a, denominators, "a"), item_table(b, denominators, "b")
    if len(table_a) != len(table_b):
        raise UserError(f"a has {len(table_a)} values and b has {len(table_b)}; expected the same items in both")
    return paired_parts(ratios, table_a, table_b, unit_codes(clusters, len(table_a)), seed=seed)


def paired_parts(
    fold: Fold, a: np.ndarray, b: np.ndarray, codes: np.ndarray | None, *, seed: int, level: float = LEVEL
) -> PairedTest:
    """As `paired_test`, for values that a fold makes from summed parts.

    Args:
        fold: turns summed parts `(..., k)` into values.
        a, b: each item's parts, `(items, k)`.
        codes: the units from `unit_codes`; None if every item is one.
        seed: of the random exchanges.
        level: of the interval.
    """
    check_level(level)
    value_a, value_b = folded(fold, a), folded(fold, b)
    units_a, units_b = unit_sums(a, codes), unit_sums(b, codes)
    adding = units_a.any(axis=1) | units_b.any(axis=1)  # others tell the two no more apart
    units_a, units_b = units_a[adding], units_b[adding]
    count = len(units_a)
    if value_a is None or value_b is None:
        note = NOTHING_BELOW if fold is ratios else "one of the two has no value"
        if not len(a):
            note = "there is no value, because no item has one from both systems"
        return PairedTest(None, None, None, None, count, note, None, level)
    difference = value_a - value_b
    if count < FEWEST_UNITS:
        note = too_few(count, FEWEST_UNITS, "an interval") + f", and p at least {FEWEST_FOR_P}"
        return PairedTest(difference, None, None, None, count, note, None, level)
    left_out = fold(units_a.sum(axis=0) - units_a) - fold(units_b.sum(axis=0) - units_b)
    error = left_out_error(left_out, difference)
    if error is None:
        note = "without one of the units there is no value, so nothing is known of the spread"
        return PairedTest(difference, None, None, None, count, note, None, level)
    reach = t_quantile(level, count - 1) * error
    detectable = reach + t_quantile(2 * POWER - 1, count - 1) * error if error else None
    low, high = difference - reach, difference + reach
    notes = [] if error else [EQUAL if np.array_equal(units_a, units_b) else ALIKE]
    if count < FEWEST_FOR_P:
        notes.insert(0, too_few(count, FEWEST_FOR_P, "p"))
        return PairedTest(difference, low, high, None, count, "; ".join(notes), detectable, level)
    p = _exchanged(fold, units_a, units_b, seed)
    apart = low > 0 or high < 0
    if apart != (p <= 1 - level):
        notes.insert(0, DISAGREE)
    return PairedTest(difference, low, high, p, count, "; ".join(notes) or None, detectable, level)


def _exchanged(fold: Fold, a: np.ndarray, b: np.ndarray, seed: int) -> float:
    """Two-sided p of the difference of two folds, if the two results of each unit may be exchanged."""
    a, b = _together(a, seed), _together(b, seed)
    units = len(a)
    both, apart = a.sum(axis=0) + b.sum(axis=0), a - b

    def differences(signs: np.ndarray) -> np.ndarray:
        moved = signs.astype(np.float64) @ apart
        return np.abs(fold((both + moved) / 2) - fold((both - moved) / 2))

    # Equal sums may differ in their last digits, since they are added in another order.
    seen = differences(np.ones((1, units), np.int8))[0] * (1 - 1e-9)
    if units <= EXACT_UNITS:
        signs = 1 - 2 * ((np.arange(2**units)[:, None] >> np.arange(units)) & 1)
        return float((differences(signs) >= seen).mean())
    rng = np.random.default_rng(seed)
    width = (units + 7) // 8
    reached = drawn = 0
    while drawn < DRAWS and reached < ENOUGH:
        rows = min(_DRAWS_AT_ONCE, DRAWS - drawn)
        octets = np.frombuffer(rng.bytes(rows * width), np.uint8).reshape(rows, width)
        signs = 1 - 2 * np.unpackbits(octets, axis=1, count=units).astype(np.int8)
        reached += int((differences(signs) >= seen).sum())
        drawn += rows
    return (1 + reached) / (1 + drawn)


def _together(table: np.ndarray, seed: int) -> np.ndarray:
    """The sums of units that are exchanged together, at most `_MOST_EXCHANGED` rows; the same units for equal seeds."""
    if len(table) <= _MOST_EXCHANGED:
        return table
    rows = np.random.default_rng(seed).permutation(np.arange(len(table)) % _MOST_EXCHANGED)
    return np.stack([np.bincount(rows, column, _MOST_EXCHANGED) for column in table.T], axis=1)


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
) -> Comparison:
    """Compares two systems on one metric over the items for which both have a number. The order of the items does not matter.

    Args:
        a_items, b_items: the scores of A and of B, ids unique within each.
        metric, unit: for the result.
        higher_is_better: direction of the metric; None counts larger values as wins.
        seed: of the random exchanges.
        level: of the interval, such as 0.95.
        fold: turns the items' summed parts into the corpus value.
    """
    a, b, dropped = in_common(a_items, b_items)
    table_a, table_b = parts_table(a), parts_table(b)
    codes = unit_codes([item.speaker for item in a], len(a))
    test = paired_parts(fold, table_a, table_b, codes, seed=seed, level=level)
    values_a, values_b = (np.array([item.value for item in side], np.float64) for side in (a, b))
    more, less = int((values_a > values_b).sum()), int((values_a < values_b).sum())
    wins, losses = (less, more) if higher_is_better is False else (more, less)
    return Comparison(
        metric, unit, higher_is_better, len(a), dropped, folded(fold, table_a), folded(fold, table_b), test,
        wins, losses, len(a) - more - less,
    )  # fmt: skip


def in_common(
    a_items: Iterable[ItemParts], b_items: Iterable[ItemParts]
) -> tuple[list[ItemParts], list[ItemParts], int]:
    """The items that both systems have a number for, sorted by id, and how many were left out."""
    scored_a = {item.id: item for item in a_items}
    scored_b = {item.id: item for item in b_items}
    ids = sorted(
        id
        for id, item in scored_a.items()
        if item.value is not None and id in scored_b and scored_b[id].value is not None
    )
    return [scored_a[id] for id in ids], [scored_b[id] for id in ids], len(scored_a.keys() | scored_b.keys()) - len(ids)


def parts_table(items: Sequence[ItemParts]) -> np.ndarray:
    """The parts of items that all have some, float64 `(items, k)`."""
    return np.asarray([item.parts for item in items], np.float64).reshape(len(items), -1 if items else 2)


def item_differences(fold: Fold, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How much each item adds to the difference of two values, `(items,)`; their mean is the difference.

    These are the jackknife's pseudo-values (Tukey 1958). For a mean they are the items' own differences.
    """
    left_out = fold(a.sum(axis=0) - a) - fold(b.sum(axis=0) - b)
    difference = float(fold(a.sum(axis=0)) - fold(b.sum(axis=0)))
    return difference + (len(a) - 1) * (difference - left_out)


def holm(probabilities: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p of a family of tests, in the same order; a test without p stays without.

    Below 0.05 an adjusted p says that the difference stands out although so many comparisons were made. Agrees with
    `statsmodels.stats.multitest.multipletests(method="holm")`.
    """
    known = sorted((p, place) for place, p in enumerate(probabilities) if p is not None)
    adjusted: list[float | None] = [None] * len(probabilities)
    largest = 0.0
    for rank, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        adjusted[place] = largest
    return adjusted

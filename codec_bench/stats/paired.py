"""Whether one system is better than another on the same items: an interval of the difference, and an exact test.

Every table and page of this package takes its differences from here. `codec_bench.paired_test` is the public function.

How it is done
    If two systems are equal, the two results of a unit (a speaker, or an item of unknown speaker) could as well be
    exchanged. The test exchanges them in every possible way, or in `DRAWS` random ways if there are more than
    `EXACT_UNITS` units, and counts how often the difference is at least as large as the one that was seen. So p is
    never smaller than the number of units can show: six units cannot go below 2/64 = 0.031. The interval holds every
    difference that the same exchanges do not tell from the one that was seen, so it excludes 0 exactly where p is 0.05
    or less (`stats.sign_flips`). With three to five units it is that of `stats.intervals`. Where one system alone may
    fail on rare items, both the interval and p allow for some that were not seen (`stats.unseen_items`): p is the
    larger of that of the exchanges and of that with these items. Error rates of fewer than `FEW_ITEMS` items that may
    loop have no interval, and p says whether chance explains what was seen. Of BLEU the interval alone allows for the
    luck of having enough matches (`stats.conditional_ends`): where it holds 0 and p is small, the note says so
    (`LUCK`).

Conventions
    Differences are A minus B. A win is an item on which A is better, also for metrics whose lower values are better.

References: those of `stats.sign_flips` and `stats.intervals`; Holm 1979, "A simple sequentially rejective multiple test
procedure".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from codec_bench.errors import UserError
from codec_bench.stats.bounds import Bounds, Rare, checked_bounds, is_rate, rare_item, supposed_bounds
from codec_bench.stats.cluster_variance import (
    FEWEST_EFFECTIVE,
    ONE_UNIT,
    degrees_of_freedom,
    effective_units,
    left_out_error,
    linear_parts,
    reaches_of_few,
    t_quantile,
)
from codec_bench.stats.conditional_ends import passing_end
from codec_bench.stats.corpus import CorpusFold
from codec_bench.stats.corpus_ends import corpus_doubt, corpus_ends, matches_cut
from codec_bench.stats.intervals import (
    FEW_ITEMS,
    FEWEST_UNITS,
    LEVEL,
    NOTHING_BELOW,
    SHORT,
    Fold,
    check_level,
    check_seed,
    folded,
    item_table,
    labels_of,
    ratios,
    too_few,
    unit_codes,
    unit_sums,
)
from codec_bench.stats.sign_flips import FEWEST_FOR_FLIPS, flip_interval, flip_p, flipped_together, flips
from codec_bench.stats.unseen_items import ALONE, MOST_LOST, lost_together, unseen_end, unseen_p

FEWEST_FOR_P = FEWEST_FOR_FLIPS
_LOST = 0.9
"""From which share of what an item can have it is lost by one system alone."""
POWER = 0.8
DISAGREE = "the interval and p disagree: only one of them tells the two apart, so the difference is at the edge of what the data show: take more items before you call the two different"
EQUAL = (
    "the two are equal in every unit, so the data do not say how small a difference they could show: harder items would"
)
ALIKE = "every unit gives the same difference, so the data do not say how small a difference they could show: other items would"
UNSEEN = "the interval and p allow for rare items that were not seen: the two differ on these items, and few bad items would take that away"
ENOUGH_TO_SHOW = math.ceil(math.log(0.05) / math.log(1 - MOST_LOST))
"""So many speakers show one of whom a twentieth are lost as a whole, in 0.95 of the runs."""
LUCK = "p tells the two apart on these items; few n-grams match, and p does not allow for the luck of having enough of them, as the interval does: take more items before you say how far the two differ"


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The difference of two corpus values on the same items.

    Args:
        difference: A minus B; None if one of the two has no value.
        low, high: the ends of the interval of the difference; both None where no method holds.
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
        barred: why neither of the two is the better one, whatever the numbers; None if one of them can be.
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
    """Compares two systems on the same items: the difference of two means, or of two ratios of sums.

    This is the code that every table of this package uses.

    Args:
        a, b: one number per item and system, `(items,)`; with `denominators` the numerators, such as errors.
        denominators: one number per item, the same for both systems, such as reference words.
        clusters: one label per item, such as its speaker; an item with None is a unit of its own. Without clusters
            every item is one.
        bounds: what a value of either system can be at least and at most, as for `interval`.
        seed: of the random exchanges, which are drawn if there are more than twelve units.

    Returns:
        The difference A minus B with its 95 % interval and a two-sided p. There is no interval where no method holds,
        such as with fewer than three units, and no p with fewer than six; the note then says so.

    Raises:
        UserError: something is not what it should be, lengths differ, a number is not finite, a denominator is
            negative, or a value is outside of the bounds.

    Examples:
        >>> a, b = [3.1, 3.4, 2.9, 3.6, 3.3, 3.0, 3.5, 3.2], [2.9, 3.1, 2.8, 3.5, 3.0, 2.9, 3.1, 3.0]
        >>> found = paired_test(a, b)
        >>> round(found.difference, 4), round(found.low, 4), round(found.high, 4), found.p
        (0.2125, 0.1, 0.3, 0.0078125)
    """
    table_a, table_b = item_table(a, denominators, "a"), item_table(b, denominators, "b")
    if len(table_a) != len(table_b):
        raise UserError(f"a has {len(table_a)} values and b has {len(table_b)}; expected the same items in both")
    known = supposed_bounds(np.concatenate([table_a, table_b])) if bounds is None else bounds
    for table in (table_a, table_b):
        known = checked_bounds(ratios(table), known)
    check_seed(seed)
    codes = unit_codes(labels_of(clusters), len(table_a))
    return paired_parts(ratios, table_a, table_b, codes, seed=seed, bounds=known)


def paired_parts(
    fold: Fold,
    a: np.ndarray,
    b: np.ndarray,
    codes: np.ndarray | None,
    *,
    seed: int,
    level: float = LEVEL,
    bounds: Bounds | None = None,
) -> PairedTest:
    """As `paired_test`, for values that a fold makes from summed parts.

    Args:
        fold: turns summed parts `(..., k)` into values.
        a, b: each item's parts, `(items, k)`.
        codes: the units from `unit_codes`; None if every item is one.
        seed: of the random exchanges.
        level: of the interval.
        bounds: of the values of either system.
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
        note = too_few(count, FEWEST_FOR_P, f"an interval needs at least {FEWEST_UNITS}, and p")
        return PairedTest(difference, None, None, None, count, note, None, level)
    if np.array_equal(units_a, units_b):
        few = count < FEWEST_FOR_P
        note = f"{too_few(count, FEWEST_FOR_P, 'p')}; {EQUAL}" if few else EQUAL
        return PairedTest(difference, None, None, None if few else 1.0, count, note, None, level)
    apart = np.stack([_one_sided(fold, units_a, units_b, difference), (units_a[:, 1] + units_b[:, 1]) / 2], axis=1)
    left_out = fold(units_a.sum(axis=0) - units_a) - fold(units_b.sum(axis=0) - units_b)
    error = left_out_error(left_out, difference, apart[:, 1])
    freedom = degrees_of_freedom(apart[:, 1])
    notes: list[str] = []
    ends: tuple[float, float] | None = None
    unseen: _Unseen | None = None
    detectable: float | None = None
    if error is None:
        note = "without one of the units there is no value, so nothing is known of the spread"
        return PairedTest(difference, None, None, None, count, note, None, level)
    if error == 0:
        notes.append(ALIKE)
    elif count < FEWEST_FOR_P and effective_units(apart[:, 1]) < FEWEST_EFFECTIVE:
        notes.append(ONE_UNIT)
    elif isinstance(fold, CorpusFold) and (doubt := corpus_doubt(fold, units_a) or corpus_doubt(fold, units_b)):
        notes.append(doubt)
    else:
        reach = t_quantile(level, freedom) * error
        detectable = reach + t_quantile(2 * POWER - 1, freedom) * error
        ends = flip_interval(apart, level, seed)
        if ends is None:  # so few units may be skewed
            below, above = reaches_of_few(apart[:, 0] - difference * apart[:, 1])
            ends = difference - below * reach, difference + above * reach
        if isinstance(fold, CorpusFold):
            ends = _of_corpora(
                fold,
                (units_a, units_b),
                (difference, error, freedom),
                left_out,
                ends,
                level,
                seed=seed,
                together=count < len(a),
            )
        rate = fold is ratios and is_rate(bounds)
        if rate and len(a) < FEW_ITEMS:
            ends = None
            notes.append(SHORT)
        elif fold is ratios:
            unseen = _unseen_units(a, b, count, bounds)
        if ends is not None and unseen is not None:
            ends = (
                min(ends[0], unseen_end(apart, unseen.low, level, upper=False)),
                max(ends[1], unseen_end(apart, unseen.high, level, upper=True)),
            )
            # A difference must outweigh what is allowed for, too, before it is found.
            towards_none = difference - ends[0] if difference > 0 else ends[1] - difference
            detectable += max(0.0, towards_none - reach)
        if ends is not None and unseen is not None and unseen.together and count < ENOUGH_TO_SHOW:
            notes.append(not_shown(count))
    low, high = ends if ends is not None else (None, None)
    if count < FEWEST_FOR_P:
        notes.insert(0, too_few(count, FEWEST_FOR_P, "p"))
        return PairedTest(difference, low, high, None, count, "; ".join(notes), detectable, level)
    p = exchanged = _exchanged(fold, units_a, units_b, seed)
    if unseen is not None:
        p = max(exchanged, unseen_p(apart, unseen.against(difference), upper=difference < 0))
    if low is not None and high is not None and (low > 0 or high < 0) != (p <= 1 - level):
        notes.insert(0, LUCK if isinstance(fold, CorpusFold) and exchanged <= 1 - level else DISAGREE)
    elif exchanged <= 1 - level < p:
        notes.insert(0, UNSEEN)
    return PairedTest(difference, low, high, p, count, "; ".join(notes) or None, detectable, level)


def _of_corpora(
    fold: CorpusFold,
    sides: tuple[np.ndarray, np.ndarray],
    found: tuple[float, float, float],
    left_out: np.ndarray,
    ends: tuple[float, float],
    level: float,
    *,
    together: bool,
    seed: int,
) -> tuple[float, float]:
    """The ends of a difference of two values of a corpus, which allow for the luck that each had enough matches.

    They reach as far as those of Student's t, at least, and beyond these no farther than the ends of the two values are
    apart.

    Args:
        sides: the units of A and of B. found: the difference, its standard error, its degrees of freedom. left_out: the
            difference without each unit. ends: from exchanges. together: whether units are of several items. seed: of
            random flips.
    """
    difference, error, freedom = found
    reach = t_quantile(level, freedom) * error
    low, high = min(ends[0], difference - reach), max(ends[1], difference + reach)
    of_a, of_b = (corpus_ends(fold, side, level, together=together, seed=seed) for side in sides)
    (least_a, most_a), (least_b, most_b) = ((0.0, fold.most) if isinstance(of, str) else of for of in (of_a, of_b))
    for side in sides:
        beyond = matches_cut(fold, side, difference, error, left_out)
        if beyond < difference:
            low = min(low, max(least_a - most_b, passing_end(difference, error, beyond, freedom, level)))
        else:
            high = max(high, min(most_a - least_b, -passing_end(-difference, error, -beyond, freedom, level)))
    return low, high


def not_shown(units: int) -> str:
    """What so few units cannot show of a difference: with a chance of 0.05 or more, none of them is one of those that
    are lost as a whole.
    """
    every = math.ceil(1 / (1 - 0.05 ** (1 / units)))
    return (
        f"{units} speakers do not show whether one of the two loses one speaker in {every} as a whole, and neither the interval nor p "
        "allows for that: look at the interval of each beside it, or take more speakers"
    )


class _Unseen(NamedTuple):
    """What one more unit may add to a difference and its size.

    Args:
        low, high: at the low and at the high end. together: whether all items of a unit may be lost at once, and no
            such unit was seen.
    """

    low: tuple[float, float]
    high: tuple[float, float]
    together: bool

    def against(self, difference: float) -> tuple[float, float]:
        """What would take a difference away."""
        return self.high if difference < 0 else self.low


def _unseen_units(a: np.ndarray, b: np.ndarray, units: int, bounds: Bounds | None) -> _Unseen | None:
    """What one more unit may add; None if nothing is allowed for.

    Args:
        a, b: each item's parts, `(items, 2)`. units: how many there are. bounds: of the values.
    """
    found = _rare_loss(a, b, bounds)
    if found is None:
        return None
    rare, each = found.rare, len(a) / units
    low, high = (found.lost(side, each, units) for side in found.beyond)
    may = rare.lost_low is not None or rare.lost_high is not None
    seen = max(low, high) > lost_together(0.0, each, units)
    size, most = found.size, found.reach * found.size
    return _Unseen((-most * low, size * low), (most * high, size * high), may and each > 1 and not seen)


class _RareLoss(NamedTuple):
    """What the items of two systems say of an item that only one of them loses.

    Args:
        rare: what an item may be. reach: how much worse an item can be. size: of an item, on average. sizes: of each,
        `(items,)`.
        beyond: how much worse A, and how much worse B, is on each item than on average, `(items,)`.
    """

    rare: Rare
    reach: float
    size: float
    sizes: np.ndarray
    beyond: tuple[np.ndarray, np.ndarray]

    def lost(self, beyond: np.ndarray, each: float, units: int) -> float:
        """How many items of one more unit a system alone may lose, of so many units with so many items."""
        return _lost_alone(beyond, self.sizes, self.reach, each, units)


def _rare_loss(a: np.ndarray, b: np.ndarray, bounds: Bounds | None) -> _RareLoss | None:
    """What the items, `(items, 2)`, say of one that only one system loses; None if nothing is allowed for."""
    both = np.concatenate([a, b])
    whole_a, whole_b = a.sum(axis=0), b.sum(axis=0)
    sizes = (a[:, 1] + b[:, 1]) / 2
    residuals = a[:, 0] - b[:, 0] - float(ratios(whole_a) - ratios(whole_b)) * sizes
    rare = rare_item(both, ratios(both), residuals, bounds, rate=is_rate(bounds))
    if rare is None:
        return None
    return _RareLoss(rare, rare.high - rare.low, float(both[:, 1].mean()), sizes, (-residuals, residuals))


def unseen_shift(fold: Fold, a: np.ndarray, b: np.ndarray, bounds: Bounds | None) -> Callable[[int, int], float] | None:
    """How far what a test allows for may move the difference of another study of these systems; None if it allows for
    nothing.

    Args:
        fold, a, b, bounds: as in `paired_parts`.

    Returns:
        A function of the study's number of units and of each unit's number of items. The shift is a mean: the test
        gives the unit that was not seen an exponential weight.
    """
    found = _rare_loss(a, b, bounds) if fold is ratios else None
    if found is None:
        return None
    return lambda units, each: (
        found.reach * max(found.lost(side, each, units) for side in found.beyond) / (units * each)
    )


def _lost_alone(beyond: np.ndarray, sizes: np.ndarray, reach: float, each: float, units: int) -> float:
    """How many items of a unit that was not seen one system alone may lose.

    Args:
        beyond: how much worse it is on each item, `(items,)`. sizes: of the items. reach: how much worse an item of
        size 1 can be.
        each: items of a unit. units: how many were seen.
    """
    size = float(sizes.mean())
    several = lost_together(float(beyond.max()) / (reach * size), each, units)
    lost = beyond > _LOST * reach * sizes
    if not lost.any():
        return several
    # A short item that is lost adds little, and shows nearly as well as a long one that items of one unit are lost.
    shown = math.sqrt(min(1.0, float(sizes[lost].max()) / size))
    return max(several, lost_together(shown, each, units, ALONE))


def exchange_p(
    fold: Fold, a: np.ndarray, b: np.ndarray, codes: np.ndarray | None, *, seed: int, bounds: Bounds | None = None
) -> float | None:
    """The p of `paired_parts` alone, which takes a third of the time; None if there are too few units for it."""
    units_a, units_b = unit_sums(a, codes), unit_sums(b, codes)
    adding = units_a.any(axis=1) | units_b.any(axis=1)
    if np.count_nonzero(adding) < FEWEST_FOR_P:
        return None
    if np.array_equal(units_a, units_b):
        return 1.0
    units_a, units_b = units_a[adding], units_b[adding]
    p = _exchanged(fold, units_a, units_b, seed)
    if fold is not ratios or (is_rate(bounds) and len(a) < FEW_ITEMS):
        return p
    unseen = _unseen_units(a, b, len(units_a), bounds)
    if unseen is None:
        return p
    difference = float(ratios(units_a.sum(axis=0)) - ratios(units_b.sum(axis=0)))
    apart = np.stack([_one_sided(fold, units_a, units_b, difference), (units_a[:, 1] + units_b[:, 1]) / 2], axis=1)
    return max(p, unseen_p(apart, unseen.against(difference), upper=difference < 0))


def _one_sided(fold: Fold, a: np.ndarray, b: np.ndarray, difference: float) -> np.ndarray:
    """What each unit adds to the difference, `(units,)`, over sizes that are the mean of both sides'."""
    if fold is ratios and np.array_equal(a[:, 1], b[:, 1]):
        return a[:, 0] - b[:, 0]
    both = [linear_parts(fold, side, float(fold(side.sum(axis=0)[None])[0])) for side in (a, b)]
    sizes = (a[:, 1] + b[:, 1]) / 2
    # The parts of a side add up to its value; those of the difference to the difference times all sizes.
    return (both[0][:, 0] - both[1][:, 0]) * float(sizes.sum())


def _exchanged(fold: Fold, a: np.ndarray, b: np.ndarray, seed: int) -> float:
    """Two-sided p of the difference of two folds, if the two results of each unit may be exchanged."""
    if fold is ratios and np.array_equal(a[:, 1], b[:, 1]):
        return flip_p(a[:, 0] - b[:, 0], seed)
    a, b = flipped_together(a, seed), flipped_together(b, seed)
    whole_a, whole_b, apart = a.sum(axis=0), b.sum(axis=0), a - b
    # Equal sums may differ in their last digits, since they are added in another order.
    seen = abs(float(fold(whole_a[None])[0] - fold(whole_b[None])[0])) * (1 - 1e-9)
    reached = made = 0
    for chosen in flips(len(a), seed):
        moved = chosen @ apart
        reached += int((np.abs(fold(whole_a - moved) - fold(whole_b + moved)) >= seen).sum())
        made += len(chosen)
    return reached / made


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
    """Compares two systems on one metric over the items for which both have a number. The order of the items does not
    matter.

    Args:
        a_items, b_items: the scores of A and of B, ids unique within each.
        metric, unit: for the result.
        higher_is_better: direction of the metric; None counts larger values as wins.
        seed: of the random exchanges.
        level: of the interval, such as 0.95.
        fold: turns the items' summed parts into the corpus value.
        bounds: of the metric's values, as for `interval`.
    """
    a, b, dropped = in_common(a_items, b_items)
    table_a, table_b = parts_table(a), parts_table(b)
    codes = unit_codes([item.speaker for item in a], len(a))
    test = paired_parts(fold, table_a, table_b, codes, seed=seed, level=level, bounds=bounds)
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

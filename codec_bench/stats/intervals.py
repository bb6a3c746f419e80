"""Confidence intervals of corpus values: means, ratios of sums such as a word error rate, and folds such as BLEU.

Every table and page of this package takes its intervals from here. `codec_bench.interval` is the public function.

How an interval is made
    The items of one cluster (a speaker, say) resemble each other, so whole clusters are the independent units. An item of
    no cluster is a unit of its own. Each unit is left out once, which gives the jackknife's standard error of the value.
    The interval is the value plus and minus that error times a quantile of Student's t with (units - 1) degrees of
    freedom. For a mean this is the interval of the one-sample t test. For a ratio it is the interval of survey sampling
    with units of unequal size.
    The interval of an error rate does not reach below 0.
    An item may add to the numerator alone: words heard in silence are errors among no words. A unit that adds nothing at
    all is not counted. Where all denominators add up to 0 there is no value (`NOTHING_BELOW`).
    A share of items, whose values are all 0 or 1, gets Wilson's interval with as many effective items as the
    jackknife's error stands for, because an error of 0 (all right, or all wrong) does not mean certainty.

What it does not promise
    Below `FEWEST_UNITS` units there is no interval, because two units say next to nothing about the spread.
    An error rate over a few hundred items or fewer, of which rare items are entirely wrong, has intervals that are too
    short by every known method. A sample that holds none of the rare items looks regular, so all error rates over fewer
    than `FEW_ITEMS` items carry the note `SHORT`. A value of which one unit carries most of the spread carries the note
    `LONE`. The study of the coverage is in docs/design/intervals.md.

References: Tukey 1958, "Bias and confidence in not-quite large samples"; Efron and Tibshirani, "An Introduction to the
Bootstrap", 1993, chapter 11 (jackknife); Cameron and Miller 2015, "A practitioner's guide to cluster-robust inference"
(clusters, t with G - 1 degrees of freedom); Wilson 1927, and Franco, Little, Louis and Slud 2019, "Comparative study of
confidence intervals for proportions in complex sample surveys" (effective sample size).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from codec_bench.errors import UserError

LEVEL = 0.95
FEWEST_UNITS = 3
FEW_ITEMS = 300
ENOUGH_FOR_LONE = 20
SHORT = f"may be too short: an error rate over fewer than {FEW_ITEMS} items, of which rare ones may be entirely wrong"
LONE = "may be too short: one speaker or item carries more than half of the spread"
NOTHING_BELOW = "the denominators (words, for an error rate) add up to 0, and a ratio over nothing has no value"
"""The rule for a ratio whose denominators add up to 0, whatever its numerators add up to: it is undefined."""

Fold = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a corpus value.

    Args:
        low, high: its ends, in the unit of the value. Both are None where no method holds; `note` then says why.
        units: how many independent units it rests on: clusters, and items that belong to no cluster.
        method: `jackknife-t`, `wilson` for a share of items, or "" if there is no interval.
        note: what a reader should know beside the numbers, or why there are none; None if there is nothing to say.
        level: the share of such intervals that contain the true value.
    """

    low: float | None
    high: float | None
    units: int
    method: str
    note: str | None = None
    level: float = LEVEL

    @property
    def ends(self) -> list[float] | None:
        """`[low, high]`, or None if there is no interval."""
        return None if self.low is None or self.high is None else [self.low, self.high]


def interval(
    values: Sequence[float] | np.ndarray,
    *,
    denominators: Sequence[float] | np.ndarray | None = None,
    clusters: Sequence[Hashable | None] | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> Interval:
    """The confidence interval of a mean, or of a ratio of two sums such as a corpus word error rate.

    This is the code that every table of this package uses.

    Args:
        values: one number per item, `(items,)`; with `denominators` the numerators, such as errors. Values that are all 0
            or 1 are taken for items that are wrong or right.
        denominators: one number per item, such as reference words. The value is then sum(values) / sum(denominators). An
            item's own may be 0.
        clusters: one label per item, such as its speaker; an item with None is a unit of its own. Without clusters every
            item is one.
        level: the share of such intervals that should contain the true value, between 0 and 1.
        seed: of methods that draw at random. The present methods draw nothing, so the result does not depend on it.

    Returns:
        The interval. Its ends are None with fewer than three units, with the reason as `note`.

    Raises:
        UserError: lengths differ, a number is not finite, a denominator is negative, or the level is not between 0 and 1.

    Examples:
        >>> found = interval([3.1, 3.4, 2.9, 3.6, 3.3], clusters=["ann", "ann", "bob", "cy", "dee"])
        >>> round(found.low, 3), round(found.high, 3), found.units, found.method
        (2.917, 3.603, 4, 'jackknife-t')
        >>> interval([3.1, 3.4]).note is None
        False
    """
    table = item_table(values, denominators)
    return interval_of(ratios, table, unit_codes(clusters, len(table)), level, share=True)


def item_table(values: object, denominators: object = None, name: str = "values") -> np.ndarray:
    """The items' numerators and denominators, float64 `(items, 2)`; denominators of 1 for a mean. `name` is for messages.

    Raises:
        UserError: these are not numbers, lengths differ, a number is not finite, or a denominator is negative.
    """
    numerators = _numbers(values, name)
    if denominators is None:
        return np.stack([numerators, np.ones_like(numerators)], axis=1)
    below = _numbers(denominators, "denominators")
    if len(below) != len(numerators):
        raise UserError(f"there are {len(below)} denominators for {len(numerators)} {name}; expected one for each")
    negative = np.flatnonzero(below < 0)
    if negative.size:
        raise UserError(
            f"denominator {negative[0]} is {below[negative[0]]:g}; expected a number that is not negative, such as a count of words"
        )
    return np.stack([numerators, below], axis=1)


def _numbers(values: object, name: str) -> np.ndarray:
    """Finite numbers, float64 `(items,)`.

    Raises:
        UserError: these are not numbers in one row, or one of them is not finite.
    """
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{name} holds something that is not a number ({error}); expected one number per item"
        ) from error
    if array.ndim != 1:
        raise UserError(f"{name} has the shape {array.shape}; expected one number per item, (items,)")
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise UserError(
            f"{name}[{wrong[0]}] is {array[wrong[0]]}; expected finite numbers",
            hint="leave out the items that have no score, from the denominators and clusters too",
        )
    return array


def unit_codes(clusters: Sequence[Hashable | None] | None, items: int) -> np.ndarray | None:
    """The number of each item's unit, int64 `(items,)`; None if every item is a unit of its own.

    Raises:
        UserError: there is not one label for each item.
    """
    if clusters is None:
        return None
    if len(clusters) != items:
        raise UserError(f"there are {len(clusters)} clusters for {items} values; expected one label for each value")
    numbers = count()
    seen: defaultdict[Hashable, int] = defaultdict(numbers.__next__)
    codes = np.fromiter(map(seen.__getitem__, clusters), np.int64, items)
    if None in seen:
        alone = np.flatnonzero(codes == seen[None])
        # The number that None was given goes to the first of its items, so that no number is left without an item.
        codes[alone[1:]] = np.arange(len(seen), len(seen) + len(alone) - 1)
    return codes


def unit_sums(table: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
    """Sums of the items' parts per unit, `(items, k)` to float64 `(units, k)`. Without codes, the parts themselves."""
    if codes is None:
        return np.asarray(table, np.float64)
    units = int(codes.max()) + 1 if len(codes) else 0
    return np.stack([np.bincount(codes, column, units) for column in table.T], axis=1)


def ratios(sums: np.ndarray) -> np.ndarray:
    """Numerator over denominator of each row, `(..., 2)` to `(...)`; NaN where the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[..., 1] != 0, sums[..., 0] / sums[..., 1], np.nan)


def folded(fold: Fold, sums: np.ndarray) -> float | None:
    """The value of all items together; None if there are no items or it is not defined."""
    if not len(sums):
        return None
    # The sums are exact, so the order of the items does not matter.
    value = float(fold(np.asarray([[math.fsum(column.tolist()) for column in sums.T]]))[0])
    return value if np.isfinite(value) else None


def interval_of(
    fold: Fold,
    table: np.ndarray,
    codes: np.ndarray | None,
    level: float = LEVEL,
    *,
    share: bool = False,
    items: int | None = None,
) -> Interval:
    """The interval of a value that a fold makes from summed parts.

    Args:
        fold: turns summed parts `(..., k)` into values; `ratios` for means and ratios.
        table: each item's parts, `(items, k)`.
        codes: the units from `unit_codes`; None if every item is one.
        level: of the interval.
        share: whether values that are all 0 or 1 are the share of items that are right. A metric such as STOI reaches 1
            too, and is no share.
        items: how many different items the rows are about, where several rows are answers to one question; None if each row
            is an item.

    Raises:
        UserError: the level is not between 0 and 1.
    """
    check_level(level)
    value = folded(fold, table)
    if value is None:
        every = len(table) if codes is None or not len(codes) else int(codes.max()) + 1
        why = NOTHING_BELOW if fold is ratios and len(table) else "there is no value"
        return Interval(None, None, every, "", why, level)
    units = unit_sums(table, codes)
    # A unit that adds nothing to any sum, such as silence in which nothing was heard, does not make the value surer.
    units = units[units.any(axis=1)]
    found = len(units)
    none = lambda note: Interval(None, None, found, "", note, level)  # noqa: E731
    if found < FEWEST_UNITS:
        return none(too_few(found, FEWEST_UNITS, "an interval"))
    error = left_out_error(fold(units.sum(axis=0) - units), value)
    if error is None:
        return none("without one of the units there is no value, so nothing is known of the spread")
    t = t_quantile(level, found - 1)
    if share and fold is ratios and is_share(table):
        low, high = _wilson(value, error, len(table), found, t)
        return Interval(low, high, found, "wilson", None, level)
    rate = fold is ratios and _is_error_rate(table)
    low, high = value - t * error, value + t * error
    # An interval of a thousandth of the value, such as that of a fixed bitrate, is short in any case.
    wide = fold is ratios and t * error > 1e-3 * abs(value)
    # No error at all is seen by chance too, and is an interval of no width.
    few = rate and (len(table) if items is None else items) < FEW_ITEMS and (wide or value == 0)
    note = SHORT if few else LONE if wide and _has_lone_unit(units, value) else None
    return Interval(max(0.0, low) if rate else low, high, found, "jackknife-t", note, level)


def check_level(level: float) -> None:
    """Raises UserError if a level is not between 0 and 1."""
    if not 0 < level < 1:
        raise UserError(f"the level is {level}; expected a number between 0 and 1, such as 0.95")


def too_few(units: int, fewest: int, what: str) -> str:
    """Why there is no interval or p-value, in words."""
    have = {0: "there is no independent unit", 1: "there is 1 independent unit"}.get(
        units, f"there are {units} independent units"
    )
    return f"{have} (speakers, or items of unknown speaker); {what} needs at least {fewest}"


def left_out_error(left_out: np.ndarray, value: float) -> float | None:
    """The jackknife's standard error from the values with each unit left out, `(units,)`; None if one is not defined."""
    if not np.isfinite(left_out).all():
        return None
    units = len(left_out)
    error = math.sqrt((units - 1) / units * float(np.square(left_out - value).sum()))
    # Units that are all equal differ by rounding alone.
    return error if error > 1e-12 * abs(value) else 0.0


def t_quantile(level: float, freedom: int) -> float:
    """How many standard errors an interval of this level reaches to each side."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def is_share(table: np.ndarray) -> bool:
    """Whether the value is the share of items that are 1 among items that are 0 or 1."""
    return bool((table[:, 1] == 1).all() and (table[:, 0] * (table[:, 0] - 1) == 0).all())


def _wilson(share: float, error: float, items: int, units: int, t: float) -> tuple[float, float]:
    """Wilson's interval for as many effective items as the jackknife's error stands for."""
    # All right or all wrong: nothing is known of how alike the items of a unit are, so a unit counts as one item.
    effective = share * (1 - share) / error**2 if error > 0 else units
    effective = min(effective, items)
    middle = (share + t * t / (2 * effective)) / (1 + t * t / effective)
    half = t / (1 + t * t / effective) * math.sqrt(share * (1 - share) / effective + t * t / (4 * effective**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def _is_error_rate(table: np.ndarray) -> bool:
    """Whether the parts are counts over counts, such as errors over words: whole numbers, none below 0, not all over 1."""
    return bool((table >= 0).all() and (table == np.floor(table)).all() and (table[:, 1] != 1).any())


def _has_lone_unit(units: np.ndarray, value: float) -> bool:
    """Whether one unit carries more than half of the spread.

    With fewer than `ENOUGH_FOR_LONE` units this happens by chance in ordinary data, and says nothing.
    """
    squares = np.square(units[:, 0] - value * units[:, 1])
    return len(units) >= ENOUGH_FOR_LONE and float(squares.max()) > 0.5 * float(squares.sum())

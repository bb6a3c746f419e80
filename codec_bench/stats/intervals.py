"""Confidence intervals of corpus values: means, ratios of sums such as a word error rate, and folds such as BLEU.

Every table and page of this package takes its intervals from here. `codec_bench.interval` is the public function.

How an interval is made
    The items of one cluster (a speaker, say) resemble each other, so whole clusters are the independent units. An item
    of no cluster is a unit of its own. Each unit is left out once. What the value loses, weighted by the unit's share
    of all items, gives the standard error CR2, which has no bias if the items are independent. The interval is the
    value plus and minus that error times a quantile of Student's t with the degrees of freedom of Bell and McCaffrey:
    (units - 1) for units of equal size, as in the one-sample t test, and fewer for unequal ones. Where one of few units
    holds nearly everything, so that the value rests on fewer than two (`effective_units`), there is no interval. Where
    sizes are so unequal that few of these degrees are left, the interval is that of flipped signs (`stats.sign_flips`),
    which holds whatever the sizes are. A share of items, whose values are all 0 or 1, gets Wilson's interval with as
    many effective items as that error stands for. The error says little where few units hold any of the rarer items, so
    it is then drawn towards one item a unit. Where only a few items are right, or wrong (at most about ten), an end is
    the one-sided one of Clopper and Pearson. BLEU, and other values of a corpus that lie between 0 and a best value,
    have Student's t on the scale of log odds, on which they scatter alike to both sides. The lower end allows for the
    luck of having enough matches (`stats.conditional_ends`), and over speakers an end reaches as far as that of flipped
    signs, if that is farther. Few units may be skewed, and Student's t reaches farther on the side on which they may be
    (`stats.cluster_variance.reaches_of_few`). Scores with declared bounds that crowd at one of them, or are skewed, get
    an interval that allows for one more item at the far bound (`stats.unseen_items`), and so do error rates, of which
    rare items are entirely lost. Of units with several items it allows for several at once, because losses that come in
    few speakers show in few runs: also for whole units, up to one item in twenty of all. An item may add to the
    numerator alone: words heard in silence are errors among no words. A unit that adds nothing at all is not counted.
    Where all denominators add up to 0 there is no value (`NOTHING_BELOW`).

What has no interval
    Fewer than `FEWEST_UNITS` units say next to nothing about the spread, and units that are all equal say nothing of it
    (`EQUAL`). An error rate without an upper bound, of fewer than `FEW_ITEMS` items: an item may loop, and one that
    loops twenty times moves the value however rare it is. Fewer items do not show one in a thousand (`SHORT`). Where it
    is known how bad an item can be, `bounds` says so, and there is an interval. A value of which one unit carries most
    of the spread carries the note `LONE`. The study is in docs/design/intervals.md.

References: Tukey 1958, "Bias and confidence in not-quite large samples" (jackknife); Bell and McCaffrey 2002, "Bias
reduction in standard errors for linear regression with multi-stage samples", and Pustejovsky and Tipton 2018,
"Small-sample methods for cluster-robust variance estimation" (CR2 and its degrees of freedom; `clubSandwich`); Hartigan
1969, "Using subsample values as typical values"; Wilson 1927, Brown, Cai and DasGupta 2001, "Interval estimation for a
binomial proportion" (modified Wilson), and Franco, Little, Louis and Slud 2019, "Comparative study of confidence
intervals for proportions in complex sample surveys" (effective sample size); Gaffke 2005 (see `stats.unseen_items`).
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

from codec_bench.errors import UserError
from codec_bench.stats.bounds import Bounds, checked_bounds, crowds, is_rate, rare_item, supposed_bounds, within_bounds
from codec_bench.stats.cluster_variance import (
    EQUAL,
    FEWEST_EFFECTIVE,
    ONE_UNIT,
    degrees_of_freedom,
    effective_units,
    left_out_error,
    linear_parts,
    reaches_of_few,
    t_quantile,
)
from codec_bench.stats.corpus import CorpusFold
from codec_bench.stats.corpus_ends import corpus_ends
from codec_bench.stats.sign_flips import FEWEST_FOR_FLIPS, flip_interval
from codec_bench.stats.unseen_items import rare_ends
from codec_bench.types import LARGEST

LEVEL = 0.95
FEWEST_UNITS = 3
FEW_ITEMS = 3_000
ENOUGH_FOR_LONE = 20
MANY_DEGREES, MOST_DEGREES = 30.0, 0.75
"""From so many degrees of freedom, or from such a share of (units - 1), Student's t holds; below, signs are flipped."""
FEW_RARE = 5.0
SHORT = (
    f"fewer than {FEW_ITEMS:,} items do not show whether one in a thousand is lost or looped many times over, "
    "which would move an error rate: take more items, or a recogniser that cannot loop"
)
_ALONE = ", or leave the speakers out of the manifest for an interval over the utterances of these alone"
CROWDED = "half of the values are equal, at one end of all, and how far others may lie is not declared: declare the metric's bounds"
LONE = "may be too short: one speaker or item carries more than half of the spread, so look at that one"
NOTHING_BELOW = "the denominators (words, for an error rate) add up to 0, and a ratio over nothing has no value"
"""The rule for a ratio whose denominators add up to 0, whatever its numerators add up to: it is undefined."""

Fold = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a corpus value.

    Args:
        low, high: its ends, in the unit of the value. Both are None where no method holds; `note` then says why.
        units: how many independent units it rests on: clusters, and items that belong to no cluster.
        method: `t`, `skewed-t` where few units may be skewed, `sign-flips` for units of very unequal size, `wilson` for
            a share of items, `one-unseen` if it allows for what was not seen at a bound, `woodruff` of a quantile, or
            "" if there is no interval.
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
    bounds: Bounds | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> Interval:
    """The confidence interval of a mean, or of a ratio of two sums such as a corpus word error rate.

    This is the code that every table of this package uses.

    Args:
        values: one number per item, `(items,)`; with `denominators` the numerators, such as errors. Values that are all
            0 or 1 are taken for items that are wrong or right.
        denominators: one number per item, such as reference words. The value is then sum(values) / sum(denominators).
            An item's own may be 0.
        clusters: one label per item, such as its speaker; an item with None is a unit of its own. Without clusters
            every item is one.
        bounds: what an item's value can be at least and at most, such as (1.0, 4.643889) for wide-band PESQ; None for
            an end that is not known. Counts over counts, such as errors over words, are taken for (0, None) if nothing
            is said: an item that loops has many times as many errors as words. (0, 1) says that an item is lost at
            worst, (None, None) that any value can be.
        level: the share of such intervals that should contain the true value, between 0 and 1.
        seed: of the signs that are flipped at random, if units are many and of very unequal size.

    Returns:
        The interval. Its ends are None where no method holds, with the reason as `note`.

    Raises:
        UserError: something is not what it should be, lengths differ, a number is not finite, a denominator is
            negative, the level is not between 0 and 1, or a value is outside of the bounds.

    Examples:
        >>> found = interval([3.1, 3.4, 2.9, 3.6, 3.3], clusters=["ann", "ann", "bob", "cy", "dee"])
        >>> round(found.low, 3), round(found.high, 3), found.units, found.method
        (2.73, 3.744, 4, 'skewed-t')
        >>> interval([3.1, 3.4]).note is None
        False
    """
    table = item_table(values, denominators)
    known = supposed_bounds(table) if bounds is None else checked_bounds(ratios(table), bounds)
    check_seed(seed)
    codes = unit_codes(labels_of(clusters), len(table))
    return interval_of(ratios, table, codes, level, share=True, bounds=known, seed=seed)


def item_table(values: object, denominators: object = None, name: str = "values") -> np.ndarray:
    """The items' numerators and denominators, float64 `(items, 2)`; denominators of 1 for a mean. `name` is for
    messages.

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
        UserError: these are not numbers in one row, or one of them is not finite or too large to be squared.
    """
    try:
        given = np.asarray(values)
        if given.dtype.kind in "cSU":
            raise TypeError(f"its type is {given.dtype}")
        array = given.astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:  # RuntimeError: a tensor of torch that has a gradient
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
    wrong = np.flatnonzero(np.abs(array) > LARGEST)
    if wrong.size:
        raise UserError(f"{name}[{wrong[0]}] is {array[wrong[0]]:g}; expected numbers of at most {LARGEST:g}")
    return array


def labels_of(clusters: Any) -> list[Hashable | None] | None:
    """The labels of the items as a list, with None for no cluster; None if there are no labels at all.

    A missing label in a column of pandas is NaN, and the elements of a tensor are objects of which no two are equal.

    Raises:
        UserError: these are no labels.
    """
    if clusters is None:
        return None
    given = clusters.tolist() if hasattr(clusters, "tolist") else clusters
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise UserError(f"the clusters are a {type(clusters).__name__}; expected a list with one label for each value")
    labels = [None if isinstance(label, float) and math.isnan(label) else label for label in given]
    for place, label in enumerate(labels):
        if not isinstance(label, Hashable):
            raise UserError(
                f"the cluster of item {place} is a {type(label).__name__}; expected a label, such as a text or a number"
            )
    return labels


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
    value = float(fold(_exact_sums(sums)[None])[0])
    return value if np.isfinite(value) else None


def _exact_sums(table: np.ndarray) -> np.ndarray:
    """The sums of columns, `(items, k)` to float64 `(k,)`, without an error by rounding: the order of the items does
    not matter.
    """
    # Whole numbers add up exactly in any order, and that is many times faster.
    if max(table.max(), -table.min()) * len(table) < 2**53 and (table == np.floor(table)).all():
        return np.asarray([column.sum() for column in table.T])
    return np.asarray([math.fsum(column.tolist()) for column in table.T])


def interval_of(
    fold: Fold,
    table: np.ndarray,
    codes: np.ndarray | None,
    level: float = LEVEL,
    *,
    share: bool = False,
    items: int | None = None,
    bounds: Bounds | None = None,
    seed: int = 0,
) -> Interval:
    """The interval of a value that a fold makes from summed parts.

    Args:
        fold: turns summed parts `(..., k)` into values; `ratios` for means and ratios. The second part says how large
        an item is.
        table: each item's parts, `(items, k)`.
        codes: the units from `unit_codes`; None if every item is one.
        level: of the interval.
        share: whether values that are all 0 or 1 are the share of items that are right. A metric such as STOI reaches 1
            too, and is no share.
        items: how many different items the rows are about, where several rows are answers to one question; None if each
            row is an item.
        bounds: as in `interval`; values beyond them widen them.
        seed: of random flips.

    Raises:
        UserError: the level is not between 0 and 1.
    """
    check_level(level)
    value = folded(fold, table)
    if value is None:
        every = len(table) if codes is None or not len(codes) else int(codes.max()) + 1
        why = NOTHING_BELOW if fold is ratios and len(table) else "there is no value"
        return Interval(None, None, every, "", why, level)
    if isinstance(fold, CorpusFold):
        return _of_corpus(fold, table, codes, level, seed)
    units = unit_sums(table, codes)
    # A unit that adds nothing to any sum, such as silence in which nothing was heard, does not make the value surer.
    adding = units.any(axis=1)
    units = units if adding.all() else units[adding]
    found = len(units)
    none = lambda note: Interval(None, None, found, "", note, level)  # noqa: E731
    if found < FEWEST_UNITS:
        return none(too_few(found, FEWEST_UNITS, "an interval") + (_ALONE if found < len(table) else ""))
    error = left_out_error(fold(units.sum(axis=0) - units), value, units[:, 1])
    if error is None:
        return none("without one of the units there is no value, so nothing is known of the spread")
    freedom, effective = degrees_of_freedom(units[:, 1]), effective_units(units[:, 1])
    answers = share and fold is ratios and is_share(table)
    if effective < FEWEST_EFFECTIVE and (answers or found < FEWEST_FOR_FLIPS):
        return none(ONE_UNIT)
    t = t_quantile(level, freedom)
    if answers:
        low, high = _wilson(value, error, len(table), effective, t, level)
        return Interval(low, high, found, "wilson", None, level)
    if error == 0:
        return none(EQUAL)
    rate = fold is ratios and is_rate(bounds)
    if rate and (len(table) if items is None else items) < FEW_ITEMS:
        return none(SHORT)
    if fold is ratios and bounds is None and crowds(ratios(table)):
        return none(CROWDED)
    made = _unequal(fold, units, value, freedom, level, seed)
    low, high, method = (*made, "sign-flips") if made is not None else _student(fold, units, value, t * error)
    rare = fold is ratios and rare_item(table, ratios(table), table[:, 0] - value * table[:, 1], bounds, rate=rate)
    if rare:
        farther = rare_ends(units, table, value, level, rare, lower=not rate)
        low, high = low if rate else min(low, farther[0]), max(high, farther[1])
        low, high, method = max(low, rare.low), min(high, rare.high), "one-unseen"
    elif fold is ratios:
        low, high = within_bounds(low, high, ratios(table), bounds)
    # An interval of a thousandth of the value, such as that of a nearly fixed bitrate, is short in any case.
    by_t = made is None and not rare
    lone = by_t and fold is ratios and t * error > 1e-3 * abs(value) and _has_lone_unit(units, value)
    return Interval(low, high, found, method, LONE if lone else None, level)


def _student(fold: Fold, units: np.ndarray, value: float, reach: float) -> tuple[float, float, str]:
    """The ends of Student's t with this reach, farther where few units may be skewed, and the method."""
    parts = units if fold is ratios else linear_parts(fold, units, value)
    below, above = reaches_of_few(parts[:, 0] - value * parts[:, 1])
    return value - below * reach, value + above * reach, "t" if below == above == 1 else "skewed-t"


def _of_corpus(fold: CorpusFold, table: np.ndarray, codes: np.ndarray | None, level: float, seed: int) -> Interval:
    """The interval of a value of a corpus such as BLEU."""
    units = unit_sums(table, codes)
    units = units[units.any(axis=1)]
    found = len(units)
    if found < FEWEST_UNITS:
        note = too_few(found, FEWEST_UNITS, "an interval") + (_ALONE if found < len(table) else "")
        return Interval(None, None, found, "", note, level)
    ends = corpus_ends(fold, units, level, together=found < len(table), seed=seed)
    return (
        Interval(None, None, found, "", ends, level)
        if isinstance(ends, str)
        else Interval(*ends, found, "t", None, level)
    )


def _unequal(
    fold: Fold, units: np.ndarray, value: float, freedom: float, level: float, seed: int
) -> tuple[float, float] | None:
    """The ends from flipped signs where the units' sizes are so unequal that Student's t does not hold; else None."""
    if freedom >= min(MANY_DEGREES, MOST_DEGREES * (len(units) - 1)):
        return None
    return flip_interval(units if fold is ratios else linear_parts(fold, units, value), level, seed)


def check_level(level: float) -> None:
    """Raises UserError if a level is not between 0 and 1."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise UserError(f"the level is {level!r}; expected a number between 0 and 1, such as 0.95")


def check_seed(seed: int) -> None:
    """Raises UserError if a seed is no whole number of at least 0."""
    if not isinstance(seed, Integral) or seed < 0:
        raise UserError(f"the seed is {seed!r}; expected a whole number that is not negative")


def too_few(units: int, fewest: int, what: str) -> str:
    """Why there is no interval or p-value, in words."""
    have = {0: "there is no independent unit", 1: "there is 1 independent unit"}.get(
        units, f"there are {units} independent units"
    )
    return f"{have} (speakers, or items of unknown speaker); {what} needs at least {fewest}: take more of them"


def is_share(table: np.ndarray) -> bool:
    """Whether the value is the share of items that are 1 among items that are 0 or 1."""
    return bool((table[:, 1] == 1).all() and (table[:, 0] * (table[:, 0] - 1) == 0).all())


def _wilson(share: float, error: float, items: int, units: float, t: float, level: float) -> tuple[float, float]:
    """Wilson's interval for as many effective items as the error stands for, farther where only a few items are right,
    or wrong.

    There Wilson's end is too near: of fifty items of which 0.4 % are right it holds 0.84. So an end reaches at least as
    far as the one-sided bound of Clopper and Pearson, by which Brown, Cai and DasGupta replace it for one to three
    items. That bound is the farther one for at most about ten items.

    Args:
        share: the value. error: of it. items: how many. units: the effective ones. t: the quantile. level: of the
            interval.
    """
    from scipy.special import betaincinv

    effective = effective_items(share, error, items, units)
    middle = (share + t * t / (2 * effective)) / (1 + t * t / effective)
    half = t / (1 + t * t / effective) * math.sqrt(share * (1 - share) / effective + t * t / (4 * effective**2))
    right, wrong = share * effective, (1 - share) * effective
    return (
        max(0.0, min(middle - half, float(betaincinv(right, wrong + 1, 1 - level)))) if share else 0.0,
        min(1.0, max(middle + half, float(betaincinv(right + 1, wrong, level)))) if share < 1 else 1.0,
    )


def effective_items(share: float, error: float, items: int, units: float) -> float:
    """How many independent items say as much of a share as these.

    Args:
        share: the value. error: of it. items: how many. units: the effective ones.
    """
    # All right or all wrong: nothing is known of how alike the items of a unit are, so a unit counts as one item.
    effective = min(share * (1 - share) / error**2 if error > 0 else units, items)
    if effective > units and units < items:
        # How alike the items of a unit are shows in the units that hold some of the rarer items, of which there may be
        # few.
        rare = min(share, 1 - share) * units
        effective *= (units / effective) ** (0.5 * min(1.0, FEW_RARE / rare if rare else 1.0))
    return effective


def _has_lone_unit(units: np.ndarray, value: float) -> bool:
    """Whether one unit carries more than half of the spread.

    With fewer than `ENOUGH_FOR_LONE` units this happens by chance in ordinary data, and says nothing.
    """
    squares = np.square(units[:, 0] - value * units[:, 1])
    return len(units) >= ENOUGH_FOR_LONE and float(squares.max()) > 0.5 * float(squares.sum())

"""The ends of the interval of a value of a corpus such as BLEU, and the conditions under which it has one."""

from __future__ import annotations

import math

import numpy as np

from codec_bench.stats.cluster_variance import (
    EQUAL,
    FEWEST_EFFECTIVE,
    ONE_UNIT,
    degrees_of_freedom,
    effective_units,
    left_out_error,
    linear_parts,
    t_quantile,
)
from codec_bench.stats.conditional_ends import cut, passing_end
from codec_bench.stats.corpus import CorpusFold
from codec_bench.stats.sign_flips import FEWEST_FOR_FLIPS, flip_interval

FEWEST_MATCHES = 10
"""Of the longest n-grams, for a value of a corpus."""
FEW_MATCHES = f"fewer than {FEWEST_MATCHES} of the longest n-grams match, so one more or less would move the value too far: take more items"
EXTREME = "with or without one of the units the value is the best or the least there is, so the spread is unknown: take more units"


def corpus_ends(
    fold: CorpusFold, units: np.ndarray, level: float, *, together: bool, seed: int
) -> tuple[float, float] | str:
    """The ends of the interval of a value of a corpus, or why there is none.

    They are those of Student's t of its log odds, on which it scatters alike to both sides. The lower end allows for
    the luck of having enough matches. If units are of several items, the ends reach as far as those that flipped signs
    give, if these are farther.

    Args:
        units: their sums, `(units, k)`, at least `FEWEST_UNITS`. together: whether units are of several items. seed: of
            random flips.
    """
    if (doubt := corpus_doubt(fold, units)) is not None:
        return doubt
    sizes, whole = units[:, 1], units.sum(axis=0)
    value, left_out = float(fold.log_odds(whole)), fold.log_odds(whole - units)
    error = left_out_error(left_out, value, sizes) if math.isfinite(value) else None
    if error is None:
        return EXTREME
    if error == 0:
        return EQUAL
    freedom = degrees_of_freedom(sizes)
    reach = t_quantile(level, freedom) * error
    low, high = value - reach, value + reach
    above = matches_cut(fold, units, value, error, left_out)
    if above < value:
        low = min(low, passing_end(value, error, above, freedom, level))
    flipped = flip_interval(linear_parts(fold.log_odds, units, value), level, seed) if together else None
    low, high = (low, high) if flipped is None else (min(low, flipped[0]), max(high, flipped[1]))
    return fold.of_log_odds(low), fold.of_log_odds(high)


def matches_cut(fold: CorpusFold, units: np.ndarray, value: float, error: float, left_out: np.ndarray) -> float:
    """Beyond which value there would have been enough matches in these units `(units, k)`; it is above the value if
    fewer matches go with more.

    Args:
        value, error: what was found and its standard error. left_out: the value without each unit, `(units,)`.
    """
    matches, shares = units[:, fold.longest], units[:, 1] / units[:, 1].sum()
    logs = np.log1p(-matches / matches.sum())
    return cut(
        value, error, float(matches.sum()), FEWEST_MATCHES, float(((1 - shares) * logs * (left_out - value)).sum())
    )


def corpus_doubt(fold: CorpusFold, units: np.ndarray) -> str | None:
    """Why no method holds for a value of a corpus over these units `(units, k)`; None if one does."""
    matches = units[:, fold.longest]
    if float(matches.sum()) < FEWEST_MATCHES:
        return FEW_MATCHES
    alone = len(units) < FEWEST_FOR_FLIPS and effective_units(units[:, 1]) < FEWEST_EFFECTIVE
    return ONE_UNIT if alone or float(matches.max()) == float(matches.sum()) else None

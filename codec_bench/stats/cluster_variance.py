"""How far a value of a corpus scatters: the standard error CR2 over units, its degrees of freedom, and the skewness of
few units.

References: those of `stats.intervals`; Johnson 1978, "Modified t tests and confidence intervals for asymmetrical
populations" (skewness).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

FEWEST_EFFECTIVE = 2.0
EQUAL = "all values are equal, so the spread is unknown: take harder items, unless they should be equal"
ONE_UNIT = "nearly everything comes from one unit, so the value rests on fewer than two: take more of the others"
_MANY_UNITS = 1_000
"""More are so skewed only where one of them carries the spread, which a note says."""


def left_out_error(left_out: np.ndarray, value: float, sizes: np.ndarray) -> float | None:
    """The standard error CR2 from the values with each unit left out, `(units,)`; None if one is not defined.

    Args:
        left_out: the values. value: of all units. sizes: of the units, such as their words, `(units,)`.
    """
    if not np.isfinite(left_out).all():
        return None
    shares = sizes / sizes.sum() if sizes.any() else np.zeros(len(sizes))
    error = math.sqrt(float(((1 - shares) * np.square(left_out - value)).sum()))
    # Units that are all equal differ by rounding alone.
    return error if error > 1e-12 * abs(value) else 0.0


def effective_units(sizes: np.ndarray) -> float:
    """How many units of equal size say as much as these, if the items of a unit all say the same (Kish)."""
    return float(sizes.sum()) ** 2 / float(np.square(sizes).sum()) if sizes.any() else float(len(sizes))


def degrees_of_freedom(sizes: np.ndarray) -> float:
    """The degrees of freedom of Bell and McCaffrey of the error CR2, for a mean or ratio over units of these sizes.

    They are (units - 1) for equal sizes, and tend to 1 where one unit is nearly everything, with many small ones
    beside.
    """
    shares = sizes / sizes.sum() if sizes.any() else np.full(len(sizes), 1 / len(sizes))
    if (shares >= 1).any():
        return 0.0
    # The variance is a quadratic form in the units' residuals. Of independent items its matrix has the diagonal
    # `shares` and, beside it, minus the products of these: the weights are those of CR2.
    beside = shares**2 / (1 - shares)
    others = float(beside.sum()) ** 2 - float(np.square(beside).sum())
    return 1 / (float(np.square(shares).sum()) + max(0.0, others))


def linear_parts(fold: Callable[[np.ndarray], np.ndarray], units: np.ndarray, value: float) -> np.ndarray:
    """What each unit adds to a value as if it were a mean: `(units, 2)`, the parts of a ratio with the same value."""
    shares = units[:, 1] / units[:, 1].sum()
    left_out = fold(units.sum(axis=0) - units)
    return np.stack([shares * value + (1 - shares) * (value - left_out), shares], axis=1)


def skewness(residuals: np.ndarray) -> float:
    """How far numbers of sum 0 lie to one side: their mean cube over that of their spread."""
    squares = np.square(residuals)
    return float(squares @ residuals) / len(residuals) / float(squares.mean()) ** 1.5


def reaches_of_few(residuals: np.ndarray) -> tuple[float, float]:
    """How many times as far as Student's t an interval reaches below and above, since few units may be skewed; 1 where
    t holds.

    Where units are skewed to one side, the samples that hold none of the far ones have both a value and a spread that
    are too small, and t misses the truth on that side. The skewness of the sample shows it from about eight units on;
    of fewer it shows hardly anything, so both ends reach farther. The constants hold the mean of 3 to 20 exponential
    values in 0.92 of the runs or more, and normal values are 1.5 times as wide as t from three units, 1.3 times from
    five, 1.1 from eight, and as wide from twenty.

    Args:
        residuals: what each unit adds beyond the value, `(units,)`, of sum 0.
    """
    if len(residuals) > _MANY_UNITS:
        return 1.0, 1.0
    to_above = skewness(residuals)
    below, above = ((2.0 + side) / math.sqrt(len(residuals)) + 1 / 3 for side in (-to_above, to_above))
    return max(1.0, below), max(1.0, above)


def t_quantile(level: float, freedom: float) -> float:
    """How many standard errors an interval of this level reaches to each side."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))

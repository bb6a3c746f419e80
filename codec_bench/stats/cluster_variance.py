"""The cluster-robust error CR2 of a mean or ratio over units, and its degrees.

References: Bell and McCaffrey 2002; Pustejovsky and Tipton 2018 (`clubSandwich`); Grubbs and Beck 1972.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np

_USUAL_LEVEL = 0.99
_NEWTON_STEPS = 30


def jackknife_error(leave_one_out: np.ndarray, value: float, sizes: np.ndarray) -> float | None:
    """The CR2 standard error from leave-one-unit-out values `(units,)`, or None."""
    if not np.isfinite(leave_one_out).all():
        return None
    shares = sizes / sizes.sum() if sizes.any() else np.zeros(len(sizes))
    error = math.sqrt(float(((1 - shares) * np.square(leave_one_out - value)).sum()))
    # Units that are all equal differ by rounding alone.
    return error if error > 1e-12 * abs(value) else 0.0


def effective_units(sizes: np.ndarray) -> float:
    """How many equal units inform as much, if a unit's items agree (Kish 1965)."""
    return float(sizes.sum()) ** 2 / float(np.square(sizes).sum()) if sizes.any() else float(len(sizes))


def has_dominant_unit(residuals: np.ndarray, sizes: np.ndarray) -> bool:
    """Whether one unit has over half of the variance, by size or as an outlier.

    With few units the largest square often is half of the sum by chance, so the unit's mean must also be an outlier by
    Grubbs' test at 0.1 %: at 1 %, one in ten samples of a skewed distribution has such a unit.

    Args:
        residuals: sums of the units minus their expectations, `(units,)`.
    """
    if _largest_share(np.square(sizes)) > 0.5:
        return True
    squares = np.square(residuals)
    if _largest_share(squares) <= 0.5:
        return False
    means = np.divide(residuals, sizes, where=sizes > 0, out=residuals.astype(np.float64))
    deviations = np.square(means - means.mean())
    return float(deviations[squares.argmax()]) > grubbs_share(len(means)) * float(deviations.sum())


def _largest_share(squares: np.ndarray) -> float:
    return float(squares.max()) / (float(squares.sum()) or 1.0)


def grubbs_share(count: int, tail: float = 0.001) -> float:
    """Grubbs' two-sided critical value as the outlier's share: G^2 / (count - 1)."""
    from scipy.special import stdtrit

    square = float(stdtrit(count - 2, tail / (2 * count))) ** 2
    return (count - 1) / count * square / (count - 2 + square)


def degrees_of_freedom(sizes: np.ndarray) -> float:
    """The Satterthwaite degrees of freedom of CR2, for units of these sizes.

    They are (units - 1) for equal sizes, and tend to 1 where one unit is nearly everything.
    """
    shares = sizes / sizes.sum() if sizes.any() else np.full(len(sizes), 1 / len(sizes))
    if (shares >= 1).any():
        return 0.0
    # The variance is a quadratic form in the units' residuals. Of independent items its matrix has the diagonal
    # `shares`, and off it minus the products of these: the weights are those of CR2.
    weights = shares**2 / (1 - shares)
    others = float(weights.sum()) ** 2 - float(np.square(weights).sum())
    return 1 / (float(np.square(shares).sum()) + max(0.0, others))


def linear_parts(fold: Callable[[np.ndarray], np.ndarray], units: np.ndarray, value: float) -> np.ndarray:
    """Each unit's part in a value as if it were a mean, `(units, 2)`."""
    shares = units[:, 1] / units[:, 1].sum()
    without = fold(units.sum(axis=0) - units)
    return np.stack([shares * value + (1 - shares) * (value - without), shares], axis=1)


@lru_cache(maxsize=1024)
def t_quantile(level: float, df: float) -> float:
    """Half the width of an interval of this level in standard errors: Student's t.

    The tangent of an angle whose density is a power of the cosine, by Newton's method and Gauss-Legendre quadrature. To
    1e-13 it equals `scipy.special.stdtrit`, whose import costs every command 0.15 s.
    """
    if not (1 <= df < math.inf and level <= _USUAL_LEVEL):
        from scipy.special import stdtrit

        return float(stdtrit(df, (1 + level) / 2))
    half = df / 2
    if half < 50:
        scale = math.gamma(half + 0.5) / math.gamma(half)
    else:
        scale = math.sqrt(half) * math.exp(-1 / (8 * half) + 1 / (192 * half**3) - 1 / (640 * half**5))
    nodes, weights = _gauss_legendre()
    target, angle = level / 2 * math.sqrt(math.pi) / scale, 0.0
    for _ in range(_NEWTON_STEPS):
        at = np.append(angle / 2 * (nodes + 1), angle)
        density = np.exp((half - 0.5) * np.log1p(-(np.sin(at) ** 2)))
        step = (target - angle / 2 * float(weights @ density[:-1])) / float(density[-1])
        angle += step
        if abs(step) <= 1e-14 * angle:
            break
    return math.sqrt(df) * math.tan(angle)


@cache
def _gauss_legendre() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(64)


def t_p_value(statistic: float, df: float) -> float:
    """The two-sided p-value of Student's t with `df` degrees of freedom."""
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(statistic)))


def detectable_effect(error: float, df: float, level: float, power: float) -> float:
    """The effect that a two-sided t test finds with this power (noncentral t)."""
    from scipy.special import nctdtrinc

    # The other tail, where an effect of the wrong sign is found, holds less than one in a million from three units on.
    return float(nctdtrinc(df, 1 - power, t_quantile(level, df))) * error

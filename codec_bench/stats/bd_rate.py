"""Bjøntegaard's delta rate: how much more or less bitrate one codec needs for the same quality as another.

Conventions
    A curve is bitrate against quality at several operating points. The logarithm of the rate is used, so a difference is a
    percentage. Curves are monotone piecewise cubics (PCHIP), which do not overshoot between points.
    Only the range of quality that both curves reach is compared; nothing is extrapolated.

G. Bjøntegaard, "Calculation of average PSNR differences between RD-curves", ITU-T VCEG-M33, 2001; with the monotone
interpolation that JCT-VC adopted (JCTVC-O1100, 2013). Agrees with the `bjontegaard` package's `pchip` method.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.errors import UserError

MIN_POINTS = 4


def bd_rate(
    *,
    anchor: Sequence[tuple[float, float]],
    test: Sequence[tuple[float, float]],
    higher_is_better: bool = True,
) -> float:
    """Mean difference in bitrate of `test` against `anchor` at equal quality, as a fraction. Lower is better.

    -0.25 means that `test` needs a quarter less bitrate, averaged over the range of quality that both reach.

    Args:
        anchor, test: (bitrate in bits per second, quality) of each operating point, in any order.
        higher_is_better: whether a higher number is a better quality.

    Raises:
        UserError: fewer than four points, a rate that is not positive, a curve whose quality does not rise with its
            bitrate, or curves that reach no quality in common.
    """
    curves = [_curve(points, name, higher_is_better) for points, name in ((anchor, "anchor"), (test, "test"))]
    low = max(quality[0] for quality, _ in curves)
    high = min(quality[-1] for quality, _ in curves)
    if not low < high:
        sign = 1 if higher_is_better else -1
        ranges = " and ".join(f"{sign * quality[0]:g} to {sign * quality[-1]:g}" for quality, _ in curves)
        raise UserError(
            f"the curves reach no quality in common: they reach {ranges}",
            hint="choose operating points whose qualities overlap; a delta rate is not extrapolated",
        )
    means = [_mean_log_rate(quality, log_rate, low, high) for quality, log_rate in curves]
    return float(np.expm1(means[1] - means[0]))


def _curve(points: Sequence[tuple[float, float]], name: str, higher_is_better: bool) -> tuple[np.ndarray, np.ndarray]:
    """The quality, in rising order, and the logarithm of the rate, `(points,)` each."""
    if len(points) < MIN_POINTS:
        raise UserError(f"the {name} curve has {len(points)} points; a delta rate needs at least {MIN_POINTS}")
    values = np.asarray(sorted(points), np.float64)
    if not np.isfinite(values).all() or values[0, 0] <= 0:
        raise UserError(
            f"the {name} curve has a rate or a quality that is not a number, or a rate that is not positive"
        )
    quality = values[:, 1] if higher_is_better else -values[:, 1]
    falls = np.flatnonzero(np.diff(quality) <= 0)
    if falls.size:
        first, second = _neighbours(values, falls[0])
        raise UserError(
            f"the {name} curve is not better at {second} than at {first}; expected a quality that rises with the bitrate"
        )
    return quality, np.log(values[:, 0])


def _neighbours(values: np.ndarray, index: int) -> tuple[str, str]:
    """Two neighbouring points of a curve, in words."""
    return tuple(f"{rate:g} bit/s ({quality:g})" for rate, quality in values[index : index + 2])  # type: ignore[return-value]


def _mean_log_rate(quality: np.ndarray, log_rate: np.ndarray, low: float, high: float) -> float:
    from scipy.interpolate import PchipInterpolator

    return float(PchipInterpolator(quality, log_rate).integrate(low, high)) / (high - low)

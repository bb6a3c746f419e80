"""Bjøntegaard's delta rate: the bitrate difference of two codecs at equal quality.

Curves of log rate over quality are monotone piecewise cubics (PCHIP), compared over the qualities that both reach.

G. Bjøntegaard, ITU-T VCEG-M33, 2001, with the interpolation of JCTVC-O1100, 2013; the `bjontegaard` package's `pchip`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from codec_bench.messages.errors import UserError
from codec_bench.stats.cluster_variance import degrees_of_freedom, jackknife_error, t_quantile
from codec_bench.stats.intervals import FEW_UNITS, FEWEST_UNITS, LEVEL, Interval
from codec_bench.stats.notes import Note, too_few

MIN_POINTS = 4


def bd_rate(
    *, anchor: Sequence[tuple[float, float]], test: Sequence[tuple[float, float]], higher_is_better: bool = True
) -> float:
    """Mean relative bitrate difference to `anchor` at equal quality; lower is better.

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
            "curves_apart",
            ranges=ranges,
            hint="choose operating points whose qualities overlap; a delta rate is not extrapolated",
        )
    means = [_mean_log_rate(quality, log_rate, low, high) for quality, log_rate in curves]
    return float(np.expm1(means[1] - means[0]))


def bd_rate_interval(
    *,
    anchor: Sequence[tuple[float, float]],
    test: Sequence[tuple[float, float]],
    leave_one_out: np.ndarray,
    sizes: np.ndarray | None = None,
    higher_is_better: bool = True,
) -> Interval:
    """The interval of `bd_rate`: delta method, Student's t, CR2 on the log rate.

    Args:
        anchor, test: as of `bd_rate`; bitrates are as measured.
        leave_one_out: how the qualities change without each unit, float64 `(units, points of anchor and test)`.
        sizes: of the units, `(units,)`; None if all are equal.
    """
    log_ratio = math.log1p(bd_rate(anchor=anchor, test=test, higher_is_better=higher_is_better))
    units = len(leave_one_out)
    if units < FEWEST_UNITS:
        return Interval(None, None, units, "", too_few(units, FEWEST_UNITS, "interval"), LEVEL)
    sizes = np.ones(units) if sizes is None else sizes
    points = [*anchor, *test]
    slopes = []
    for index, (rate, quality) in enumerate(points):
        step = 1e-4 * _closest(anchor if index < len(anchor) else test, quality)
        moved = [*points[:index], (rate, quality + step), *points[index + 1 :]]
        sides = moved[: len(anchor)], moved[len(anchor) :]
        changed = bd_rate(anchor=sides[0], test=sides[1], higher_is_better=higher_is_better)
        slopes.append((math.log1p(changed) - log_ratio) / step)
    error = jackknife_error(log_ratio + leave_one_out @ np.asarray(slopes), log_ratio, sizes)
    if error is None:
        return Interval(None, None, units, "", Note("single_unit"), LEVEL)
    reach = t_quantile(LEVEL, degrees_of_freedom(sizes)) * error
    note = Note("all_equal") if error == 0 else Note("few_units", units=units) if units < FEW_UNITS else None
    return Interval(math.expm1(log_ratio - reach), math.expm1(log_ratio + reach), units, "t", note, LEVEL)


def _closest(points: Sequence[tuple[float, float]], quality: float) -> float:
    return min(abs(other - quality) for _, other in points if other != quality)


def _curve(points: Sequence[tuple[float, float]], name: str, higher_is_better: bool) -> tuple[np.ndarray, np.ndarray]:
    """Convert (rate, quality) points to rising quality and natural logs of the rate.

    Args:
        name: of the curve, for errors.
        higher_is_better: False negates the quality.
    """
    if len(points) < MIN_POINTS:
        raise UserError("curve_points", curve=name, points=len(points), least=MIN_POINTS)
    values = np.asarray(sorted(points), np.float64)
    if not np.isfinite(values).all() or values[0, 0] <= 0:
        raise UserError("curve_not_numbers", curve=name)
    quality = values[:, 1] if higher_is_better else -values[:, 1]
    falls = np.flatnonzero(np.diff(quality) <= 0)
    if falls.size:
        first, second = (f"{rate:g} bit/s ({at:g})" for rate, at in values[falls[0] : falls[0] + 2])
        raise UserError("curve_not_rising", curve=name, rate=second, other=first)
    return quality, np.log(values[:, 0])


def _mean_log_rate(quality: np.ndarray, log_rate: np.ndarray, low: float, high: float) -> float:
    from scipy.interpolate import PchipInterpolator

    return float(PchipInterpolator(quality, log_rate).integrate(low, high)) / (high - low)

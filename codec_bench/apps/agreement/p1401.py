"""Prediction of people's votes by metrics, after ITU-T P.1401.

A file is one system's output of one sample, a condition a system with all its files. Each has the mean of M votes with
c = t(0.975, M - 1) sd / sqrt(M). With the error e of the mapped value, rmse = sqrt(sum e^2 / (N - d)), rmse* uses
max(0, |e| - c), and the outlier ratio is the share with |e| > c; d is 1 without a mapping, 2 for a line, 4 for a cubic.
Mappings are least squares among non-decreasing ones. Without a mapping, the metric's range must be within the votes'
scale and cover half of it.
Intervals: rmse chi-square with N - d; outlier ratio Wilson's, since the standard's has no width at 0 and 1; Pearson
Fisher's z +- k / sqrt(N - 3), k = 1.96 from 30 on, else t(0.975, N - 1); Spearman `codec_bench.stats.correlation`. Two
metrics: F(N - d, N - d) for rmse and rmse*, Fisher's z, pooled standard error for outlier ratios, as if independent;
`p_dependent` is Williams' test for the same files. Every p is multiplied by the number of pairs (Bonferroni).
References: ITU-T P.1401 (01/2020), clauses 7.3 to 7.7; Williams 1959, JRSS B 21.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from codec_bench.messages import Diagnostic, to_json
from codec_bench.stats.cluster_variance import t_quantile
from codec_bench.stats.correlation import Coefficient, spearman
from codec_bench.stats.intervals import LEVEL
from codec_bench.stats.notes import Note, rename_units

DEGREES = {"none": 1, "first": 2, "third": 4}
"""The mappings, with their degrees of freedom."""
FEWEST = 4
"""Fisher's z divides by N - 3."""
NORMAL_FROM = 30
LEVELS = ("conditions", "files")
NONE = Coefficient(None)
OTHER_SCALE = Note("other_scale")
SCALES = ((1.0, 5.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0))
"""Without a stated scale, the first that holds all votes counts."""


class Values(NamedTuple):
    """A metric's value of each file.

    Args:
        values: NaN where there is none, float64 `(files,)`.
        better: whether higher is better; None for neither.
        range: minimum and maximum; None for an unknown end.
    """

    name: str
    values: np.ndarray
    better: bool | None = True
    range: Sequence[float | None] = (None, None)


class Votes(NamedTuple):
    """One row per vote: file number, int64, and vote, float64, both `(votes,)`."""

    file: np.ndarray
    vote: np.ndarray


@dataclass(frozen=True, slots=True)
class MetricPoints:
    """Files or conditions: value (more is better), mean vote and half its interval."""

    names: tuple[str, ...]
    value: np.ndarray
    mos: np.ndarray
    ci: np.ndarray

    def rows(self) -> Iterator[tuple[str, float, float, float]]:
        """Yield name, value, mean vote and half its interval of each point."""
        return zip(self.names, self.value.tolist(), self.mos.tolist(), self.ci.tolist())


@dataclass(frozen=True, slots=True)
class Mapped:
    """The errors of a metric after one mapping.

    Args:
        mapping: `none`, `first` or `third`.
        coefficients: of the polynomial, the constant first, of the value with more as better.
    """

    mapping: str
    coefficients: tuple[float, ...] = ()
    rmse: Coefficient = NONE
    rmse_star: float | None = None
    outlier_ratio: Coefficient = NONE
    pearson: Coefficient = NONE
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """One metric's prediction of the votes, over conditions or over files.

    Args:
        turned: the metric was negated, so that more is better.
        level: one of `LEVELS`.
        excluded: points without a value, or with a single vote and so without an interval.
    """

    metric: str
    turned: bool
    level: str
    n: int
    excluded: int
    spearman: Coefficient
    mapped: tuple[Mapped, ...]
    points: MetricPoints

    def of(self, mapping: str) -> Mapped:
        """Return the errors after a mapping: `none`, `first` or `third`."""
        return next(one for one in self.mapped if one.mapping == mapping)


@dataclass(frozen=True, slots=True)
class Against:
    """Two metrics on their common points. Every p is multiplied by `pairs`, up to 1.

    Args:
        f_rmse, f_rmse_star: the greater mean square over the smaller; None where the smaller is 0.
        z_pearson, p_pearson: Fisher's, as if independent.
        p_dependent: Williams'.
    """

    first: str
    second: str
    level: str
    mapping: str
    n: int
    pairs: int
    f_rmse: float | None
    p_rmse: float | None
    f_rmse_star: float | None
    p_rmse_star: float | None
    z_pearson: float | None
    p_pearson: float | None
    p_dependent: float | None
    p_outliers: float | None


@dataclass(frozen=True, slots=True)
class Standard:
    """P.1401 figures: `fits` of each metric at each level, and every two `compared`."""

    fits: tuple[Fit, ...]
    compared: tuple[Against, ...]
    notes: tuple[Diagnostic, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Convert to the JSON values of the record."""
        fits = [
            {
                "metric": fit.metric, "turned": fit.turned, "level": fit.level, "n": fit.n, "left_out": fit.excluded,
                "spearman": fit.spearman.as_dict(),
                "mapped": [
                    {
                        "mapping": one.mapping, "coefficients": list(one.coefficients), "rmse": one.rmse.as_dict(),
                        "rmse_star": one.rmse_star,
                        "outlier_ratio": one.outlier_ratio.as_dict(), "pearson": one.pearson.as_dict(),
                        "note": one.note,
                    }
                    for one in fit.mapped
                ],
                "points": [dict(zip(("name", "value", "mos", "ci"), one)) for one in fit.points.rows()],
            }
            for fit in self.fits
        ]  # fmt: skip
        compared = [asdict(one) for one in self.compared]
        return dict(to_json({"fits": fits, "compared": compared, "notes": list(self.notes)}))


def p1401(
    metrics: Sequence[Values],
    votes: Votes,
    files: Sequence[str],
    conditions: Sequence[str],
    scale: tuple[float, float] | None = None,
) -> Standard:
    """Measure how well metrics predict votes, and which of two predicts better.

    Args:
        files, conditions: the name of each file, and that of its condition.
        scale: the least and the greatest vote; None for the first of `SCALES` with all votes, or else the votes' own
            ends.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> quality = np.repeat(np.linspace(1.5, 4.5, 8), 4)
        >>> scores = np.clip(np.round(np.repeat(quality, 6) + rng.normal(0, 0.7, 192)), 1, 5)
        >>> votes = Votes(np.repeat(np.arange(32), 6), scores)
        >>> names = [f"{system}/{clip}" for system in "abcdefgh" for clip in range(4)]
        >>> good = Values("good", quality + rng.normal(0, 0.1, 32), range=(1, 5))
        >>> found = p1401([good], votes, names, [name[0] for name in names])
        >>> fit = found.fits[0]
        >>> fit.level, fit.n, fit.of("first").rmse.value < 0.3, fit.of("third").pearson.value > 0.95
        ('conditions', 8, True, True)
    """
    if scale is None:
        least, most = float(votes.vote.min()), float(votes.vote.max())
        scale = next((one for one in SCALES if one[0] <= least and most <= one[1]), (least, most))
    pairs = len(metrics) * (len(metrics) - 1) // 2
    fits: list[Fit] = []
    compared: list[Against] = []
    for level in LEVELS:
        held = [_points(one, votes, files, conditions, level) for one in metrics]
        fits += [_fit(one, points, excluded, level, scale) for one, (points, excluded) in zip(metrics, held)]
        for (one, (a, _)), (other, (b, _)) in combinations(zip(metrics, held), 2):
            compared += _against(one, other, *_common(a, b), level, scale, pairs)
    return Standard(tuple(fits), tuple(compared), _notes(metrics, pairs))


def _notes(metrics: Sequence[Values], pairs: int) -> tuple[Diagnostic, ...]:
    """List the caveats of the figures."""
    undirected = [one.name for one in metrics if one.better is None]
    notes = [Diagnostic("metrics_without_direction", metrics=undirected)] if undirected else []
    notes.append(Diagnostic("files_taken_as_independent"))
    if pairs:
        notes.append(Diagnostic("p_times_pairs", pairs=pairs))
    return tuple(notes)


def _points(
    metric: Values, votes: Votes, files: Sequence[str], conditions: Sequence[str], level: str
) -> tuple[MetricPoints, int]:
    """Return a metric's points with mean votes, and the number of excluded ones.

    A point has two or more votes; it is a file or a condition, by `level`.
    """
    known = np.isfinite(metric.values)
    voted = np.bincount(votes.file, minlength=len(files)) > 0
    of = list(conditions) if level == "conditions" else list(files)
    names = list(dict.fromkeys(name for name, there in zip(of, voted) if there))
    index_of = {name: number for number, name in enumerate(names)}
    code = np.array([index_of.get(name, -1) for name in of], np.int64)
    used = known & voted  # a condition's votes and values are of the same files
    row = used[votes.file]
    at, vote = code[votes.file[row]], votes.vote[row]
    count = np.bincount(at, minlength=len(names))
    with np.errstate(invalid="ignore", divide="ignore"):
        mos = np.bincount(at, vote, len(names)) / count
        spread = np.sqrt(np.bincount(at, (vote - mos[at]) ** 2, len(names)) / (count - 1))
        value = np.bincount(code[used], metric.values[used], len(names)) / np.bincount(code[used], minlength=len(names))
    repeated = np.flatnonzero(count > 1)
    ci = np.array([t_quantile(LEVEL, int(m) - 1) * s / math.sqrt(m) for m, s in zip(count[repeated], spread[repeated])])
    turned = -value if metric.better is False else value
    points = MetricPoints(tuple(names[n] for n in repeated), turned[repeated], mos[repeated], ci)
    return points, len(names) - len(repeated)


def _common(a: MetricPoints, b: MetricPoints) -> tuple[MetricPoints, MetricPoints]:
    """Select from two metrics the points that both have, in the same order."""
    of_b = {name: number for number, name in enumerate(b.names)}
    shared = [(number, of_b[name]) for number, name in enumerate(a.names) if name in of_b]
    take = lambda points, at: MetricPoints(  # noqa: E731
        tuple(points.names[n] for n in at), points.value[at], points.mos[at], points.ci[at]
    )
    return take(a, [one for one, _ in shared]), take(b, [other for _, other in shared])


def _fit(metric: Values, points: MetricPoints, excluded: int, level: str, scale: tuple[float, float]) -> Fit:
    """Compare one metric with mean votes, under each mapping of `DEGREES`.

    Args:
        excluded: count of excluded points, for the record.
        level: `files` or `conditions`.
        scale: the least and the greatest vote.
    """
    n = len(points.names)
    of_ranks = Coefficient(None, note=_too_few(n, level, FEWEST))
    if n >= FEWEST:
        of_ranks = spearman(points.value, points.mos)
        of_ranks = replace(of_ranks, note=rename_units(of_ranks.note, level))
    mapped = tuple(_fit_mapping(metric, points, mapping, level, scale) for mapping in DEGREES)
    return Fit(metric.name, metric.better is False, level, n, excluded, of_ranks, mapped, points)


def _too_few(n: int, level: str, fewest: int) -> Note:
    return Note("few_voted", count=n, of=level, needed=fewest)


def _fit_mapping(metric: Values, points: MetricPoints, mapping: str, level: str, scale: tuple[float, float]) -> Mapped:
    """Fit a mapping of a metric to votes: RMSE, RMSE*, outlier ratio, Pearson.

    It has only a note if there are too few points, or an unmapped metric is on another scale.
    """
    n, d = len(points.names), DEGREES[mapping]
    fewest = max(FEWEST, d + 1)
    if n < fewest:
        return Mapped(mapping, note=_too_few(n, level, fewest))
    if np.ptp(points.value) == 0:
        return Mapped(mapping, note=Note("nothing_to_map"))
    if mapping == "none":
        low, high = metric.range
        if metric.better is False or low is None or high is None or not _is_of(low, high, scale):
            return Mapped(mapping, note=OTHER_SCALE)
    coefficients = mapping_of(points.value, points.mos, mapping)
    predicted = np.polynomial.polynomial.polyval(points.value, coefficients)
    errors = np.abs(points.mos - predicted)
    excess = np.maximum(0.0, errors - points.ci)
    rmse = math.sqrt(float((errors**2).sum()) / (n - d))
    from scipy.stats import binomtest

    outliers = binomtest(int((excess > 0).sum()), n)
    share_ci = outliers.proportion_ci(method="wilson")
    return Mapped(
        mapping,
        tuple(coefficients.tolist()),
        Coefficient(rmse, *_of_chi_square(rmse, n - d)),
        math.sqrt(float((excess**2).sum()) / (n - d)),
        Coefficient(outliers.statistic, share_ci.low, share_ci.high),
        _pearson(predicted, points.mos),
    )


def _is_of(low: float, high: float, scale: tuple[float, float]) -> bool:
    """Whether values are on this scale: PESQ's 1 to 4.64 fit 1 to 5, not 0 to 100."""
    return scale[0] <= low and high <= scale[1] and 2 * (high - low) >= scale[1] - scale[0]


def _of_chi_square(rmse: float, degrees: int) -> tuple[float, float]:
    from scipy.stats import chi2

    low, high = (rmse * math.sqrt(degrees / float(chi2.ppf(q, degrees))) for q in ((1 + LEVEL) / 2, (1 - LEVEL) / 2))
    return low, high


def _pearson(x: np.ndarray, y: np.ndarray) -> Coefficient:
    """Pearson's correlation with its interval by Fisher's z."""
    r = _correlation(x, y)
    if r is None:
        return Coefficient(None, note=Note("nothing_to_correlate"))
    if abs(r) > 1 - 1e-12:
        return Coefficient(r, note=Note("perfect_correlation"))
    errors = 1.96 if len(x) >= NORMAL_FROM else t_quantile(LEVEL, len(x) - 1)
    z, reach = math.atanh(r), errors / math.sqrt(len(x) - 3)
    return Coefficient(r, math.tanh(z - reach), math.tanh(z + reach))


def _correlation(x: np.ndarray, y: np.ndarray) -> float | None:
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return max(-1.0, min(1.0, float(x @ y) / scale)) if scale > 1e-12 * len(x) else None


def mapping_of(value: np.ndarray, mos: np.ndarray, mapping: str) -> np.ndarray:
    """Fit a polynomial without falling parts from metric values to mean votes.

    It has the least squares among polynomials that do not fall between minimum and maximum. Where the free cubic falls,
    the best one has slope 0 at an end, at both, or touches 0 once between; each is tried.

    Returns:
        Coefficients, constant first.
    """
    if mapping == "none":
        return np.array([0.0, 1.0])
    low, high = float(value.min()), float(value.max())
    middle, half = (low + high) / 2, (high - low) / 2
    t = (value - middle) / half
    if mapping == "first":
        slope = max(0.0, float((t - t.mean()) @ (mos - mos.mean())) / float((t - t.mean()) @ (t - t.mean())))
        line = np.array([float(mos.mean() - slope * t.mean()), slope])
    else:
        line = _rising_cubic(t, mos)
    # Substitute t = (value - middle) / half.
    step, power, out = np.array([-middle / half, 1 / half]), np.array([1.0]), np.zeros(len(line))
    for order, coefficient in enumerate(line):
        out[: order + 1] += coefficient * power
        power = np.convolve(power, step)
    return out


def _rising_cubic(t: np.ndarray, mos: np.ndarray) -> np.ndarray:
    """Fit the least-squares cubic that does not fall on [-1, 1]; constant first."""
    from scipy.optimize import minimize_scalar

    def solved(*columns: np.ndarray) -> tuple[float, np.ndarray]:
        """Fit a sum of these cubics (coefficients); return squared error and coefficients."""
        basis = np.stack(columns, axis=1)
        design = np.stack([np.ones_like(t), t, t**2, t**3], axis=1) @ basis
        coefficients = basis @ np.linalg.lstsq(design, mos, rcond=None)[0]
        left = mos - np.polynomial.polynomial.polyval(t, coefficients)
        return float(left @ left), coefficients

    one, line, square, cube = np.eye(4)

    def touching(at: float) -> tuple[float, np.ndarray]:
        """Solve with the slope k (t - at)^2, k >= 0."""
        coefficients = solved(one, cube - 3 * at * square + 3 * at**2 * line)
        return coefficients if coefficients[1][3] >= 0 else solved(one)

    grid = np.linspace(-1, 1, 41)
    best = int(np.argmin([touching(at)[0] for at in grid]))
    ends = grid[max(0, best - 1)], grid[min(40, best + 1)]
    at = minimize_scalar(lambda at: touching(at)[0], bounds=ends, method="bounded", options={"xatol": 1e-10}).x
    tried = [
        solved(one, line, square, cube),
        solved(one, square + 2 * line, cube - 3 * line),  # slope 0 at -1
        solved(one, square - 2 * line, cube - 3 * line),  # slope 0 at 1
        solved(one, line - cube / 3),  # slope 0 at both
        touching(float(at)),
        solved(one),
    ]
    return min((one for one in tried if _is_rising(one[1])), key=lambda one: one[0])[1]


def _is_rising(cubic: np.ndarray) -> bool:
    """Whether a cubic's slope is nowhere negative from -1 to 1."""
    _, b, c, d = cubic
    places = [-1.0, 1.0, *([-c / (3 * d)] if d and abs(c) < abs(3 * d) else [])]
    slack = 1e-9 * max(1.0, float(np.abs(cubic).max()))
    return all(b + 2 * c * t + 3 * d * t * t >= -slack for t in places)


def _against(
    one: Values, other: Values, a: MetricPoints, b: MetricPoints, level: str, scale: tuple[float, float], pairs: int
) -> list[Against]:
    """Test which of two metrics predicts votes better, under each mapping both allow.

    Args:
        a, b: their common points.
        pairs: number of pairs tested; p-values are multiplied by it (Bonferroni).
    """
    from scipy.stats import f, norm, t

    comparisons = []
    n = len(a.names)
    for mapping, d in DEGREES.items():
        x, y = _fit_mapping(one, a, mapping, level, scale), _fit_mapping(other, b, mapping, level, scale)
        if x.note or y.note:
            continue
        adjust = lambda p: None if p is None else min(1.0, pairs * float(p))  # noqa: E731
        (f_rmse, p_rmse), (f_star, p_star) = (
            (ratio, None if ratio is None else adjust(f.sf(ratio, n - d, n - d)))
            for ratio in (_ratio(x.rmse.value, y.rmse.value), _ratio(x.rmse_star, y.rmse_star))
        )
        z = p_pearson = p_dependent = None
        r, s = x.pearson.value, y.pearson.value
        if r is not None and s is not None and max(abs(r), abs(s)) < 1 - 1e-12:
            z = (math.atanh(r) - math.atanh(s)) / math.sqrt(2 / (n - 3))
            p_pearson = adjust(2 * (norm.sf(abs(z)) if n >= NORMAL_FROM else t.sf(abs(z), n - 1)))
            p_dependent = adjust(_williams(r, s, _between(x, y, a, b), n))
        share = ((x.outlier_ratio.value or 0.0) + (y.outlier_ratio.value or 0.0)) / 2
        error = math.sqrt(2 * share * (1 - share) / n)
        ratio_difference = abs((x.outlier_ratio.value or 0.0) - (y.outlier_ratio.value or 0.0))
        p_outliers = adjust(2 * norm.sf(ratio_difference / error)) if error else None
        comparisons.append(
            Against(
                one.name, other.name, level, mapping, n, pairs, f_rmse, p_rmse, f_star, p_star, z, p_pearson,
                p_dependent, p_outliers
            )
        )  # fmt: skip
    return comparisons


def _ratio(left: float | None, right: float | None) -> float | None:
    """Return the greater mean square over the smaller; None where that is 0."""
    small, large = sorted((left or 0.0, right or 0.0))
    return (large / small) ** 2 if small > 0 else None


def _between(x: Mapped, y: Mapped, a: MetricPoints, b: MetricPoints) -> float | None:
    polyval = np.polynomial.polynomial.polyval
    return _correlation(polyval(a.value, x.coefficients), polyval(b.value, y.coefficients))


def _williams(r: float, s: float, between: float | None, n: int) -> float | None:
    """Return Williams' two-sided p for two predictors with correlations `r` and `s`.

    `between` is the predictors' own correlation; None if they are equal.
    """
    from scipy.stats import t

    if between is None or abs(between) > 1 - 1e-12:
        return None
    determinant = 1 - r * r - s * s - between * between + 2 * r * s * between
    below = 2 * (n - 1) / (n - 3) * determinant + ((r + s) / 2) ** 2 * (1 - between) ** 3
    if below <= 0:
        return None
    return float(2 * t.sf(abs(r - s) * math.sqrt((n - 1) * (1 + between) / below), n - 3))


def shown_mapping(fit: Fit) -> Mapped:
    """Return the mapping to show first: the cubic, else the line."""
    return next((one for one in reversed(fit.mapped) if one.note is None), fit.mapped[-1])


def ranges_of(facts: Mapping[str, Mapping[str, Any]], name: str) -> Sequence[float | None]:
    """Return a metric's range from a run's metric facts."""
    return (facts.get(name) or {}).get("range") or (None, None)

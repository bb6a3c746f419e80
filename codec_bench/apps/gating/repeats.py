"""The statistics of a gate: loss, spread of repeats, detectable regression.

Over items, the interval is that of `stats.paired` on means over repeats (clustered t (CR2), Newcombe or bootstrap);
over runs, Student's t on whole runs, which covers shifts shared by a run's items. The wider one counts, so a regression
shows over both (intersection-union test). One run against one has items alone. The verdict is non-inferiority: a
regression is an interval of the loss beyond the margin (CONSORT).
References: Berger 1982, Technometrics 24; Piaggio et al. 2012, "Reporting of noninferiority and equivalence randomized
trials".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from codec_bench.stats.bounds import Bounds
from codec_bench.stats.cluster_variance import degrees_of_freedom, jackknife_error, t_quantile
from codec_bench.stats.intervals import Fold, folded, unit_sums
from codec_bench.stats.paired import paired_parts

_STEPS, _LOG_ODDS = 28, 27.0
"""Of the bisection for p, and its largest log odds."""


def rounding_of(margin: float) -> float:
    """Return the float tolerance of a loss that equals the margin."""
    return 1e-9 * abs(margin) + 1e-12


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of a metric's value, as standard deviations in its unit.

    Args:
        items: standard error over the items of one run.
        repeats: of the value over repeats of the run; None with one run.
        noise: the part of it that independent items explain; None with one run.
        units: independent units (speakers, or items of unknown speaker).
        freedom: degrees of freedom over units.
    """

    items: float
    repeats: float | None
    noise: float | None
    units: int
    freedom: float
    count: int

    def detectable(self, level: float, power: float, *, repeats: int | None = None, items: float = 1.0) -> float | None:
        """Return the smallest loss that one run shows with probability `power`.

        Args:
            level: of the two-sided interval whose lower end is compared.
            repeats: of the baseline, in place of the present ones.
            items: a multiple of the items.

        Returns:
            In the metric's unit; None without a spread of repeats.
        """
        if self.repeats is None or self.noise is None:
            return None
        count = repeats or self.count
        noise = self.noise / math.sqrt(items)
        spread = math.hypot(noise, math.sqrt(max(0.0, self.repeats**2 - self.noise**2)))
        # The spread of present repeats is known; that of more repeats is not.
        seen = spread if count > self.count else min(spread, self.repeats)
        reach = max(t_quantile(level, self.freedom) * noise, t_quantile(level, count - 1) * seen)
        return (reach + t_quantile(2 * power - 1, count - 1) * spread) * math.sqrt(1 + 1 / count)


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of a run against a baseline, in the metric's unit; positive is worse.

    Args:
        p: one-sided, of no loss beyond the margin.
        by_runs: the interval over runs is the wider one.
    """

    loss: float
    low: float
    high: float
    p: float
    units: int
    method: str
    by_runs: bool


def measure_spread(fold: Fold, repeats: Sequence[np.ndarray], codes: np.ndarray | None) -> Spread | None:
    """Measure the spread over items and over repeats; None if a value is undefined.

    Args:
        fold: turns summed parts into the value.
        repeats: each run's parts, `(items, k)`, in one order.
        codes: of the units from `unit_codes`.
    """
    values = [folded(fold, run) for run in repeats]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    units = unit_sums(repeats[0], codes)
    sizes = units[:, 1]
    over_items = jackknife_error(fold(units.sum(axis=0) - units), known[0], sizes)
    if over_items is None:
        return None
    count, freedom = len(units), degrees_of_freedom(sizes)
    if len(repeats) == 1:
        return Spread(over_items, None, None, count, freedom, 1)
    noise = float(np.mean([_paired_error(fold, a, b, codes) ** 2 / 2 for a, b in combinations(repeats, 2)]))
    total = float(np.var(known, ddof=1))
    return Spread(over_items, math.sqrt(total), math.sqrt(noise), count, freedom, len(repeats))


def _paired_error(fold: Fold, a: np.ndarray, b: np.ndarray, codes: np.ndarray | None) -> float:
    """Return the CR2 standard error of the difference of two runs over the same items."""
    units_a, units_b = unit_sums(a, codes), unit_sums(b, codes)
    jackknife = fold(units_a.sum(axis=0) - units_a) - fold(units_b.sum(axis=0) - units_b)
    difference = float((fold(units_a.sum(axis=0)[None]) - fold(units_b.sum(axis=0)[None]))[0])
    return jackknife_error(jackknife, difference, (units_a[:, 1] + units_b[:, 1]) / 2) or 0.0


def _error_of_runs(groups: Sequence[Sequence[float]]) -> float:
    """Return the pooled standard error of two groups' difference; 0 for single values."""
    freedom = sum(len(values) - 1 for values in groups)
    if not freedom:
        return 0.0
    squares = sum(float(np.var(values)) * len(values) for values in groups)
    return math.sqrt(squares / freedom * sum(1 / len(values) for values in groups))


class LossInterval(NamedTuple):
    """The loss with its interval at a level; fields as of `Loss`."""

    loss: float
    low: float
    high: float
    units: int
    method: str
    by_runs: bool


class PairedRuns:
    """The runs of a baseline and of a candidate over the same items.

    Args:
        baseline, candidate: the parts of each repeat, `(items, k)`, in one order of items.
        codes: of the units from `unit_codes`.
    """

    def __init__(
        self,
        fold: Fold,
        baseline: Sequence[np.ndarray],
        candidate: Sequence[np.ndarray],
        codes: np.ndarray | None,
        *,
        higher_is_better: bool,
        bounds: Bounds | None = None,
        seed: int = 0,
    ) -> None:
        before, after = np.mean(baseline, axis=0), np.mean(candidate, axis=0)
        pair = (before, after) if higher_is_better else (after, before)
        self._test = partial(paired_parts, fold, *pair, codes, seed=seed, bounds=bounds)
        groups = [[folded(fold, run) for run in runs] for runs in (baseline, candidate)]
        self._freedom = len(baseline) + len(candidate) - 2
        self._error = _error_of_runs([[one for one in values if one is not None] for values in groups])

    def interval(self, level: float) -> LossInterval | None:
        """Return the loss with its two-sided interval at a level; None if undefined."""
        test = self._test(level=level)
        if test.difference is None or test.low is None or test.high is None:
            return None
        reach = t_quantile(level, self._freedom) * self._error if self._error else 0.0
        low, high = test.difference - reach, test.difference + reach
        is_wider = low < test.low or high > test.high
        ends = min(low, test.low), max(high, test.high)
        return LossInterval(test.difference, *ends, test.units, test.method, is_wider)

    def p_beyond(self, margin: float) -> float:
        """Return the one-sided p of the hypothesis that the loss is at most `margin`."""

        def is_beyond(tail: float) -> bool:
            ends = self.interval(max(abs(1 - 2 * tail), 1e-9))
            return ends is not None and (ends.low if tail < 0.5 else ends.high) > margin + rounding_of(margin)

        # The bound rises with the tail: p is the tail at which it meets the margin, on the scale of log odds.
        below, above = -_LOG_ODDS, _LOG_ODDS
        for _ in range(_STEPS):
            middle = (below + above) / 2
            below, above = (below, middle) if is_beyond(1 / (1 + math.exp(-middle))) else (middle, above)
        return 1 / (1 + math.exp(-above))


def measure_loss(runs: PairedRuns, *, margin: float, level: float) -> Loss | None:
    """Measure loss, interval at `level` and p beyond `margin`; None if undefined."""
    interval = runs.interval(level)
    if interval is None:
        return None
    p = runs.p_beyond(margin)
    return Loss(interval.loss, interval.low, interval.high, p, interval.units, interval.method, interval.by_runs)

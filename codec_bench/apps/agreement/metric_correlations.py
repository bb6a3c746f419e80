"""Redundant metrics: correlations of every two over the items and over the systems of runs.

Spearman's and Pearson's correlations, over systems from three on; metrics that are better when lower are negated. Items
without a value of either metric are excluded from the pair, and counted. Intervals over items use influences of units
(speakers, or samples over all systems; `coefficients.py`) from 30 units on, over systems
`codec_bench.stats.correlation` from 10 on. Average linkage joins metrics with a mean Spearman correlation of at least
`least`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from codec_bench.apps.agreement.coefficients import PairAgreement, agreement_of
from codec_bench.apps.agreement.p1401 import Standard
from codec_bench.apps.agreement.score_columns import Scored
from codec_bench.stats.correlation import Coefficient, alike, pearson, spearman
from codec_bench.stats.notes import renamed

LEAST = 0.9
COEFFICIENTS = ("spearman", "pearson")


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """One metric, or the listeners, with counts of values and of missing ones."""

    name: str
    better: str
    n: int
    without: int


@dataclass(frozen=True, slots=True)
class MetricPair:
    """Agreement of two metrics.

    Args:
        items: over the items that have both values. excluded: items scored by both without both values.
        systems: number with both values. of_systems: over these, by the names of `COEFFICIENTS`.
        is_same: Spearman's correlation over items reaches the threshold.
    """

    first: str
    second: str
    items: PairAgreement
    excluded: int
    systems: int
    of_systems: Mapping[str, Coefficient]
    is_same: bool

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        over_systems = {"n": self.systems, **{name: one.as_dict() for name, one in self.of_systems.items()}}
        return {
            "first": self.first, "second": self.second, "left_out": self.excluded, "same": self.is_same,
            "items": self.items.as_dict(), "systems": over_systems,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """Agreement of metrics with each other.

    Args:
        columns: the metrics, similar ones adjacent. clusters: redundant ones by name, in this order.
        pairs: every two of them, in this order. least: the threshold of redundancy.
        problems: unusable ratings of listeners, as `codec_bench.apps.agreement.ratings.RatingProblem`.
        standard: P.1401 figures; None without listeners. judges: test results by metric with a judge.
    """

    columns: tuple[MetricColumn, ...]
    clusters: tuple[tuple[str, ...], ...]
    pairs: tuple[MetricPair, ...]
    systems: tuple[str, ...]
    least: float
    problems: tuple[Mapping[str, Any], ...] = ()
    standard: Standard | None = None
    judges: Mapping[str, str] = field(default_factory=dict)

    def pair(self, one: str, other: str) -> MetricPair:
        """Return the pair of two metrics, in either order; raises KeyError."""
        for candidate in self.pairs:
            if {candidate.first, candidate.second} == {one, other}:
                return candidate
        raise KeyError(f"{one} and {other}")

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        metrics = [{"name": c.name, "better": c.better, "n": c.n, "without": c.without} for c in self.columns]
        return {
            "least": self.least, "systems": list(self.systems), "metrics": metrics,
            "clusters": [list(cluster) for cluster in self.clusters],
            "pairs": [pair.as_dict() for pair in self.pairs], "problems": [dict(problem) for problem in self.problems],
            **({"p1401": self.standard.as_dict()} if self.standard else {}),
            **({"judges": dict(self.judges)} if self.judges else {}),
        }  # fmt: skip


def metric_agreement_of(
    scored: Scored,
    *,
    least: float = LEAST,
    problems: Sequence[Mapping[str, Any]] = (),
    standard: Standard | None = None,
) -> MetricAgreement:
    """Correlate two or more metrics of columns."""
    count, units = len(scored.names), scored.item_units
    metric_pairs = [_pair(scored, a, b, units, least) for a in range(count) for b in range(a + 1, count)]
    clusters = alike([pair.items.coefficients["spearman"].value for pair in metric_pairs], least)
    order = [index for cluster in clusters for index in cluster]
    of = {frozenset((pair.first, pair.second)): pair for pair in metric_pairs}
    names = [scored.names[index] for index in order]
    pairs = [of[frozenset((a, b))] for n, a in enumerate(names) for b in names[n + 1 :]]
    return MetricAgreement(
        tuple(_column(scored, index) for index in order),
        tuple(tuple(scored.names[index] for index in cluster) for cluster in clusters),
        tuple(pairs),
        tuple(scored.systems),
        least,
        tuple(problems),
        standard,
    )


def _column(scored: Scored, index: int) -> MetricColumn:
    values = scored.values[index]
    better = {True: "higher", False: "lower", None: "neither"}[scored.better[index]]
    return MetricColumn(scored.names[index], better, int(np.isfinite(values).sum()), int(np.isinf(values).sum()))


def _pair(scored: Scored, a: int, b: int, units: np.ndarray, least: float) -> MetricPair:
    x, y = scored.column(a), scored.column(b)
    both = np.isfinite(x) & np.isfinite(y)
    excluded = int((~(np.isnan(x) | np.isnan(y)) & ~both).sum())
    items = agreement_of(reference=x[both], rater=y[both], codes=units[both], names=COEFFICIENTS)
    of_x, of_y = scored.systems_of(a), scored.systems_of(b)
    known = np.isfinite(of_x) & np.isfinite(of_y)
    of_systems = {
        "spearman": _of_systems(spearman(of_x[known], of_y[known])),
        "pearson": _of_systems(pearson(of_x[known], of_y[known])),
    }
    value = items.coefficients["spearman"].value
    return MetricPair(
        scored.names[a], scored.names[b], items, excluded, int(known.sum()), of_systems,
        value is not None and value >= least
    )  # fmt: skip


def _of_systems(coefficient: Coefficient) -> Coefficient:
    return replace(coefficient, note=renamed(coefficient.note, "systems"))

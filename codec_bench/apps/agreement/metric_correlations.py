"""Which metrics say the same: the correlation of every two over the items of runs, and over the systems.

What is computed
    Over items, Spearman's and Pearson's correlation of the two metrics' values, of all systems together. Over systems,
    the same of the systems' values, from three systems on. Metrics of which less is better are turned, so that a
    positive correlation means that what is good by one is good by the other; metrics of neither direction are not. An
    item without a value of either metric is left out of the pair, and counted.

How an interval is made
    Over items as in `codec_bench.apps.agreement.coefficients`: from the influence of each independent unit (speakers
    where they are known, or else samples), so that what several systems made of a sample is one unit; from 30 units on.
    Over systems as in `codec_bench.stats.correlation`, from 10 systems on.

Which say the same
    Metrics are joined (average linkage) as long as the mean of their correlations over items (Spearman) is `least` or
    more.
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
    """One metric, or the listeners.

    Args:
        name: of it. better: `higher`, `lower` or `neither`. n: how many items have a value. without: how many were
            scored and have none.
    """

    name: str
    better: str
    n: int
    without: int


@dataclass(frozen=True, slots=True)
class MetricPair:
    """How well two metrics agree.

    Args:
        first, second: their names. items: over the items that have both values. excluded: how many items were scored by
            both and lack a value of one of them.
        systems: how many systems have both values. of_systems: over these, by the names of `COEFFICIENTS`.
        is_same: whether Spearman's correlation over items is as large as was asked for.
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
    """How well metrics agree with each other.

    Args:
        columns: the metrics, those that are alike side by side. clusters: their names in clusters that say the same, in
            this order.
        pairs: every two of them, in this order. systems: the names. least: the correlation from which two say the same.
        problems: what could not be used of the ratings of listeners, as `codec_bench.apps.agreement.ratings.Problem`
            has it.
        standard: what P.1401 says of the metrics; None without listeners. judges: by metric that rests on a judge, who
            marked and how that judge did in its test.
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
        """The pair of two metrics, in either order.

        Raises:
            KeyError: there is none.
        """
        for candidate in self.pairs:
            if {candidate.first, candidate.second} == {one, other}:
                return candidate
        raise KeyError(f"{one} and {other}")

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        metrics = [{"name": c.name, "better": c.better, "n": c.n, "without": c.without} for c in self.columns]
        return {
            "least": self.least, "systems": list(self.systems), "metrics": metrics, "clusters": [list(cluster) for cluster in self.clusters],
            "pairs": [pair.as_dict() for pair in self.pairs], "problems": [dict(problem) for problem in self.problems],
            **({"p1401": self.standard.as_dict()} if self.standard else {}), **({"judges": dict(self.judges)} if self.judges else {}),
        }  # fmt: skip


def metric_agreement_of(
    scored: Scored,
    *,
    least: float = LEAST,
    problems: Sequence[Mapping[str, Any]] = (),
    standard: Standard | None = None,
) -> MetricAgreement:
    """How well the metrics of columns agree with each other. There are two or more.

    Args:
        scored: the columns. least: Spearman's correlation from which two metrics say the same. problems, standard: see
            `MetricAgreement`.
    """
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
        scored.names[a], scored.names[b], items, excluded, int(known.sum()), of_systems, value is not None and value >= least
    )  # fmt: skip


def _of_systems(coefficient: Coefficient) -> Coefficient:
    """A correlation over systems, whose notes say systems for rows."""
    return replace(coefficient, note=renamed(coefficient.note, "systems"))

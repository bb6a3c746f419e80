"""Redundant metrics: correlations of every two over items and systems of runs.

Spearman's and Pearson's correlations, over systems from three on; metrics that are better when lower are negated. Items
without a value of either metric are excluded from the pair, and counted. Intervals over items use influences of units
(speakers, or samples over all systems; `coefficients.py`) from 30 units on, over systems
`codec_bench.stats.correlation` from 10 on. Average linkage joins metrics with a mean Spearman correlation of at least
`least`.

The values of all metrics over the items of runs, one file-backed column each. Items of several runs match by benchmark
(or data), system and id; the first value counts. A cell is finite for a value, infinite for a score without one
(failed, refused, ...), and NaN if the metric was not requested.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from codec_bench.apps.agreement.coefficients import PairAgreement, agreement_of
from codec_bench.apps.agreement.p1401 import Standard
from codec_bench.apps.agreement.raters import name_of
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.stats.correlation import Coefficient, cluster_similar, pearson, spearman
from codec_bench.stats.notes import rename_units
from codec_bench.stats.summary import summarise
from codec_bench.store.record import Run

LEAST = 0.9
COEFFICIENTS = ("spearman", "pearson")
WITHOUT = np.inf
_ROWS = np.dtype([("sample", np.int64), ("value", np.float64)])
_SCORES = (
    "SELECT c.sample, CASE WHEN c.status = 'ok' THEN c.value END FROM scores c JOIN systems s ON s.number = c.system "
    "JOIN metrics m ON m.number = c.metric WHERE s.name = ? AND m.name = ? ORDER BY c.sample"
)
_FAILED = (
    "SELECT i.sample, NULL FROM items i JOIN systems s ON s.number = i.system WHERE s.name = ? AND i.status != 'ok'"
)


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
        items: over the items that have both values.
        excluded: items scored by both without both values.
        of_systems: over these, by the names of `COEFFICIENTS`.
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
        """Convert both names and the correlations to JSON values."""
        over_systems = {"n": self.systems, **{name: one.as_dict() for name, one in self.of_systems.items()}}
        return {
            "first": self.first, "second": self.second, "left_out": self.excluded, "same": self.is_same,
            "items": self.items.as_dict(), "systems": over_systems,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """Agreement of metrics with each other.

    Args:
        columns: the metrics, similar ones adjacent.
        clusters: redundant ones by name, in this order.
        least: the threshold of redundancy.
        problems: unusable ratings of listeners, as `codec_bench.apps.agreement.ratings.RatingProblem`.
        standard: P.1401 figures; None without listeners.
        judges: test results by metric with a judge.
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
        """Convert to JSON values."""
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
    """Correlate every two metrics, and cluster the redundant ones.

    Args:
        least: Spearman's correlation over items from which two metrics are redundant.
        problems, standard: of people's ratings; they are passed on to the result.
    """
    count, units = len(scored.names), scored.item_units
    metric_pairs = [_pair(scored, a, b, units, least) for a in range(count) for b in range(a + 1, count)]
    clusters = cluster_similar([pair.items.coefficients["spearman"].value for pair in metric_pairs], least)
    order = [index for cluster in clusters for index in cluster]
    of = {frozenset((pair.first, pair.second)): pair for pair in metric_pairs}
    names = [scored.names[index] for index in order]
    pairs = [of[frozenset((a, b))] for n, a in enumerate(names) for b in names[n + 1 :]]
    columns = tuple(_column(scored, index) for index in order)
    named = tuple(tuple(scored.names[index] for index in cluster) for cluster in clusters)
    return MetricAgreement(columns, named, tuple(pairs), tuple(scored.systems), least, tuple(problems), standard)


def _column(scored: Scored, index: int) -> MetricColumn:
    values = scored.values[index]
    better = {True: "higher", False: "lower", None: "neither"}[scored.better[index]]
    return MetricColumn(scored.names[index], better, int(np.isfinite(values).sum()), int(np.isinf(values).sum()))


def _pair(scored: Scored, a: int, b: int, units: np.ndarray, least: float) -> MetricPair:
    """Correlate two metrics over items, and their summary values over systems."""
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
    return replace(coefficient, note=rename_units(coefficient.note, "systems"))


@dataclass(slots=True)
class Scored:
    """Metric values of runs, by metric, system and sample.

    Args:
        better: whether higher is better by column; None for neither.
        samples: the number of each sample by (benchmark, id).
        values: float64 `(columns, systems, samples)`, see above.
        units: the number of the independent unit (speaker, or sample) of each sample, int64 `(samples,)`.
        of_systems: summary values; NaN if there is none, float64 `(systems, columns)`.
    """

    names: list[str]
    better: list[bool | None]
    systems: list[str]
    samples: dict[tuple[str, str], int]
    values: np.ndarray
    units: np.ndarray
    of_systems: np.ndarray

    def column(self, index: int) -> np.ndarray:
        """Load the metric `index`, negated if lower is better, float64 `(items,)`."""
        values = np.array(self.values[index], np.float64).ravel()
        return -values if self.better[index] is False else values

    def systems_of(self, index: int) -> np.ndarray:
        """Summary values of the metric `index`, negated if lower is better, `(systems,)`."""
        values = self.of_systems[:, index]
        return -values if self.better[index] is False else values

    @property
    def item_units(self) -> np.ndarray:
        """The unit of each item in the order of `column`, shared by all systems."""
        return np.tile(self.units, len(self.systems))

    @property
    def benchmarks(self) -> list[str]:
        """The names of the benchmarks, or of the data."""
        return list(dict.fromkeys(benchmark for benchmark, _ in self.samples))


def scored(runs: Sequence[Run], metrics: Sequence[str] = (), extra: Mapping[str, bool | None] | None = None) -> Scored:
    """Read the metrics of runs into columns over systems and samples.

    Args:
        metrics: only these, in this order; empty for all that have a value for some item.
        extra: the names of further columns and their direction, to be filled by others; NaN.

    Raises:
        UnknownName: no run has such a metric.
        UserError: two runs measured a metric by different protocols.
    """
    facts = _facts(runs)
    for name in metrics:
        if name not in facts:
            raise UnknownName("metric_of_runs", name, facts)
    chosen = {name: facts[name].get("higher_is_better") for name in (metrics or facts)} | dict(extra or {})
    systems = list(dict.fromkeys(system for run in runs for system in run.systems))
    samples, units = _samples(runs)
    shape = (len(chosen), len(systems), len(samples))
    with tempfile.TemporaryFile() as file:  # the mapping keeps the file until it is gone itself
        values = np.memmap(file, np.float64, "w+", shape=shape) if np.prod(shape) else np.empty(shape)
    for column in values:
        column[:] = np.nan
    of_systems = np.full((len(systems), len(chosen)), np.nan)
    scores = Scored(list(chosen), list(chosen.values()), systems, samples, values, units, of_systems)
    for run in runs:
        _read(run, scores)
    return scores


def _facts(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Collect metric facts; raises UserError where protocols differ between runs."""
    facts: dict[str, dict[str, Any]] = {}
    for run in runs:
        for name, about in run.metrics.items():
            before = facts.setdefault(name, about)
            if before.get("protocol") != about.get("protocol"):
                raise UserError(
                    "metric_of_two_protocols",
                    metric=name,
                    protocol=about.get("protocol"),
                    folder=run.folder,
                    other_protocol=before.get("protocol"),
                    hint="name fewer runs, or with --metrics only metrics that they measured alike",
                )
    return facts


def _samples(runs: Sequence[Run]) -> tuple[dict[tuple[str, str], int], np.ndarray]:
    """Number the samples of all runs, and their independent units.

    Returns:
        Numbers by (benchmark, id), and the unit of each sample.
    """
    samples: dict[tuple[str, str], int] = {}
    units: dict[tuple[str, str, bool], int] = {}
    of: list[int] = []
    for run in runs:
        benchmark = name_of(run)
        for id, unit in run.units().items():
            if (benchmark, id) not in samples:
                samples[benchmark, id] = len(samples)
                # A speaker and a sample may have one name.
                of.append(units.setdefault((benchmark, unit or id, unit is None), len(units)))
    return samples, np.asarray(of, np.int64)


def _read(run: Run, scores: Scored) -> None:
    """Fill the columns with the scores and summary values of one run."""
    benchmark, summary = name_of(run), summarise(run).systems
    ((last,),) = run.query("SELECT COALESCE(MAX(number), 0) FROM samples")
    numbers = np.zeros(last + 1, np.int64)
    for number, id in run.query_lazily("SELECT number, id FROM samples"):
        numbers[number] = scores.samples[benchmark, id]
    for system in run.systems:
        row = scores.systems.index(system)
        failed = numbers[_rows(run, _FAILED, (system,))["sample"]]
        for index, name in enumerate(scores.names):
            if name not in run.metrics:
                continue
            rows = _rows(run, _SCORES, (system, name))
            column = scores.values[index, row]
            _take(column, numbers[rows["sample"]], rows["value"])
            _take(column, failed, np.full(len(failed), WITHOUT))
            entry = summary[system].metrics.get(name)
            value = None if entry is None else entry.value
            if value is not None and np.isnan(scores.of_systems[row, index]):
                scores.of_systems[row, index] = value


def _rows(run: Run, sql: str, of: Sequence[str]) -> np.ndarray:
    """Return sample numbers and values of a query; infinity for no value."""
    rows = ((number, WITHOUT if value is None else value) for number, value in run.query_lazily(sql, of))
    return np.fromiter(rows, _ROWS)


def _take(column: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """Fill empty cells; failures and other values never replace a value."""
    open_ = ~np.isfinite(column[places])
    column[places[open_]] = values[open_]

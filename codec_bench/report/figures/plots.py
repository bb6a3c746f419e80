"""The points of each plot with their intervals, and the same as rows of a CSV."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from codec_bench.messages import together
from codec_bench.report import numbers
from codec_bench.report.breakdown.rows import columns_of as broken_down_by
from codec_bench.report.breakdown.rows import shown_name, subsets_of
from codec_bench.report.page.columns import PageColumn, PageSystem, metrics_of, side_by_side
from codec_bench.stats.summary_types import BITRATE, MetricSummary, Subset, Summary, SystemSummary
from codec_bench.store.record import Run

MOST_POINTS = 100
"""The most rows of a plot of systems; its CSV holds all."""
_BETTER = {"True": "higher is better", "False": "lower is better"}
_SLUG = re.compile(r"[^a-z0-9.]+")
_POINT_HEADS = (
    "system", "family", "run", "bitrate_kbps", "bitrate_kbps_low", "bitrate_kbps_high", "value", "ci95_low",
    "ci95_high", "note", "n", "failed", "metric", "unit", "higher_is_better", "protocol", "data", "suspect",
)  # fmt: skip
Ends = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """One value of one system.

    Args:
        group: the value of a column, or "".
        family: the codec's name without operating point, and its index; ("", -1) for an unrated system.
        rate_kbps: the measured bitrate, or None.
        value: in the unit of the plot.
        ends: of its 95 % interval, or None.
    """

    label: str
    family: tuple[str, int]
    rate_kbps: float | None
    value: float
    ends: Ends
    note: str
    n: int
    group: str = ""

    @property
    def at_kbps(self) -> float:
        """The bitrate of a point that has one."""
        assert self.rate_kbps is not None, "only points with a bitrate are on an axis of bitrates"
        return self.rate_kbps


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot.

    Args:
        kind: `rate` (value against bitrate), `systems` (a row for each), `groups` (rows by the values of a column),
            `time`.
        doubts: findings of its systems' checks.
        excluded: how many points are in the table only.
    """

    kind: Literal["rate", "systems", "groups", "time"]
    stem: str
    measure: str
    points: Sequence[PlotPoint]
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    column: str = ""
    excluded: int = 0
    doubts: Sequence[str] = ()


def plots_of(runs: Sequence[Run], summaries: Sequence[Summary]) -> list[Plot]:
    """Return all plots of some runs: by metric, and then the time."""
    tables = _SideBySide(runs, summaries)
    stems = FileStems()
    plots = []
    for column, facts in tables.columns.items():
        metric = _Metric(column, facts)
        points = list(tables.points(metric))
        if not points:
            continue
        if column.metric != "bitrate" and any(point.rate_kbps for point in points):
            plots.append(_plot("rate", stems.of("rate", column.metric), metric, points, tables.rows(metric)))
        plots.append(_plot("systems", stems.of("systems", column.metric), metric, points, tables.rows(metric)))
        for by in tables.broken_down_by(column):
            grouped = list(tables.points(metric, by))
            stem = stems.of("by", by, column.metric)
            plots.append(_plot("groups", stem, metric, grouped, tables.rows(metric, by), by))
    plots = [replace(plot, doubts=tables.doubts({point.label for point in plot.points})) for plot in plots]
    return [*plots, *(plot for run, name in zip(runs, tables.names) if (plot := _time(run, stems.of("time", name))))]


def _plot(
    kind: Any, stem: str, metric: _Metric, points: Sequence[PlotPoint], rows: Iterable[Sequence[Any]], by: str = ""
) -> Plot:
    """Build a plot of the first `MOST_POINTS` points, cut between groups."""
    heads = (numbers.plain(by), *_POINT_HEADS) if by else _POINT_HEADS
    # Only complete groups are drawn, at least one.
    cut = len(points) if kind == "rate" else MOST_POINTS
    while by and 0 < cut < len(points) and points[cut].group == points[cut - 1].group != points[0].group:
        cut -= 1
    return Plot(kind, stem, metric.label, points[:cut], heads, list(rows), by, max(0, len(points) - cut))


@dataclass(frozen=True, slots=True)
class _Metric:
    """A column of the runs' tables, and the format of its numbers."""

    column: PageColumn
    facts: Mapping[str, Any]
    factor: float = field(init=False)
    unit: str = field(init=False)

    def __post_init__(self) -> None:
        factor, unit = numbers.shown_unit(self.facts.get("unit", ""))
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "unit", unit)

    @property
    def label(self) -> str:
        better = _BETTER.get(str(self.facts.get("higher_is_better")), "")
        name = f"{self.column.metric} ({self.unit})" if self.unit else self.column.metric
        return numbers.plain(
            ", ".join(filter(None, (name, better))) + (f"\n{self.column.data}" if self.column.data else "")
        )

    def scaled(self, entry: MetricSummary | Subset) -> tuple[float | None, Ends]:
        """Return an entry's value and interval in the shown unit."""
        return _scaled(entry, self.factor)


def _scaled(entry: MetricSummary | Subset, factor: float) -> tuple[float | None, Ends]:
    value, ends = entry.value, entry.ci95
    return None if value is None else factor * value, None if ends is None else (factor * ends[0], factor * ends[1])


class _SideBySide:
    """The systems of all runs with their results."""

    def __init__(self, runs: Sequence[Run], summaries: Sequence[Summary]) -> None:
        tables = side_by_side(runs, summaries)
        self.names, self.columns = tables.names, tables.columns
        self._systems, self._entries = tables.systems, tables.entries
        self._held = [summaries[system.run].systems.get(system.name, SystemSummary()) for system in tables.systems]
        self._rates = [metrics_of(summaries, system).get(BITRATE) for system in tables.systems]
        self._families = tables.families()
        self._places = {column: index for index, column in enumerate(tables.columns)}

    def _measured(self, column: PageColumn) -> list[tuple[int, PageSystem, MetricSummary]]:
        measured = (
            (s, system, row[self._places[column]]) for s, (system, row) in enumerate(zip(self._systems, self._entries))
        )
        return [(s, system, entry) for s, system, entry in measured if entry is not None]

    def doubts(self, labels: Collection[str]) -> list[str]:
        """Return the findings of the checks of the systems with these labels."""
        by_system = ((numbers.plain(s.label), numbers.doubts_text(held)) for s, held in zip(self._systems, self._held))
        return [f"{label}: {text}" for label, text in by_system if text and label in labels]

    def broken_down_by(self, column: PageColumn) -> list[str]:
        return broken_down_by([entry for _, _, entry in self._measured(column)])

    def _rate_kbps(self, column: int, system: PageSystem) -> tuple[float | None, Ends]:
        entry = self._rates[column]
        if entry is None or system.name == numbers.UNPROCESSED or not entry.value or entry.value <= 0:
            return None, None
        return _scaled(entry, 1e-3)

    def _results(self, metric: _Metric, by: str) -> Iterator[tuple[str, int, PageSystem, MetricSummary | Subset]]:
        """Yield (column value or "", position, system, entry)."""
        entries = self._measured(metric.column)
        if not by:
            yield from (("", column, system, entry) for column, system, entry in entries)
            return
        groups = dict.fromkeys(name for _, _, entry in entries for name in subsets_of(entry).get(by, ()))
        for name in groups:
            for column, system, entry in entries:
                held = subsets_of(entry).get(by, {}).get(name)
                if held is not None:
                    judged = entry.judging.tested if entry.judging else None
                    yield name, column, system, replace(held, note=together(held.note, judged))

    def points(self, metric: _Metric, by: str = "") -> Iterator[PlotPoint]:
        """Yield a point for each existing value, by the values of a column `by` if named."""
        for group, column, system, entry in self._results(metric, by):
            value, ends = metric.scaled(entry)
            if value is not None:
                rate, _ = self._rate_kbps(column, system)
                label, note = numbers.plain(system.label), entry.note or ""
                name = shown_name(group) if by else ""
                yield PlotPoint(label, self._families[column], rate, value, ends, note, entry.n, name)

    def rows(self, metric: _Metric, by: str = "") -> Iterator[list[Any]]:
        """Yield the rows of the CSV, also of systems without a value."""
        higher = metric.facts.get("higher_is_better")
        better = None if higher is None else str(higher).lower()
        for group, column, system, entry in self._results(metric, by):
            value, ends = metric.scaled(entry)
            rate, rate_ends = self._rate_kbps(column, system)
            label, family = system.label.removesuffix(numbers.SUSPECT), self._families[column][0]
            rates, bounds = (rate, *(rate_ends or (None, None))), (value, *(ends or (None, None)))
            about = (metric.column.metric, metric.unit, better, metric.column.protocol, metric.column.data)
            counts, doubts = (entry.note, entry.n, entry.failed), numbers.doubts_text(self._held[column])
            head = [*([group] if by else []), label, family, self.names[system.run]]
            yield [*head, *rates, *bounds, *counts, *about, doubts]


def _time(run: Run, stem: str) -> Plot | None:
    """Plot each stage's share of the workers' time, and the idle rest."""
    timings = run.meta.get("timings") or {}
    stages = [
        stage for stage in timings.get("stages") or [] if isinstance(stage, Mapping) and stage.get("share") is not None
    ]
    if not stages:
        return None
    rows = [[str(s["stage"]), 100 * s["share"], s.get("busy_s"), s.get("items"), s.get("audio_s")] for s in stages]
    if timings.get("worker_use") is not None:
        rows.append(["idle workers", 100 * max(0.0, 1 - timings["worker_use"]), None, None, None])
    points = [PlotPoint(numbers.plain(row[0]), ("", -1), None, row[1], None, "", 0) for row in rows]
    heads = ("stage", "share_percent", "busy_s", "items", "audio_s")
    return Plot("time", stem, "share of the workers' time (%)", points, heads, rows)


class FileStems:
    """File names: short, safe everywhere, and unique."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, *parts: str) -> str:
        """Return a name from its parts."""
        base = "-".join(filter(None, (_SLUG.sub("-", word.lower()).strip("-.") for word in parts)))[:80].rstrip("-.")
        name, count = base, 1
        while name in self._used:
            count += 1
            name = f"{base}-{count}"
        self._used.add(name)
        return name

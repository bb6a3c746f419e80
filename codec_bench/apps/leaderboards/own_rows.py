"""The rows of a leaderboard that come from own runs.

Conventions
    A rating depends on the judge and on the wording of its question, and ours is not the published one. So a rating of an own
    run is shown with its judge and its wording, and enters neither the column of published ratings nor the average. Where all
    columns of a group are ratings by one judge, so is their mean, and likewise the average. A mean over fewer columns says so,
    and the columns without a value are named.
    Where a benchmark says how its own toolkit counts failures, a cell follows that rule.
    A later run replaces the values of an earlier one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from codec_bench.apps.leaderboards.board import AVERAGE, Column, Row, Rules, Source, Variant, average, group_mean
from codec_bench.report.breakdown.rows import subsets_of
from codec_bench.report.opened import open_run
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import MetricSummary, Subset
from codec_bench.store.folders import run_folders
from codec_bench.store.record import Run


class _Found(NamedTuple):
    """A value that a run gives: the name of its row, its column, the entry of the summary, who gave a rating (or None), its source, and whether another
    model answered than was asked for."""

    row: str
    column: Column
    entry: MetricSummary | Subset
    judge: str | None
    source: Source
    rerouted: bool


@dataclass(slots=True)
class _Values:
    """What the runs of one row give: see `Row`. `ratings` holds the judged values by column, each with its judge."""

    cells: dict[str, Decimal] = field(default_factory=dict)
    ratings: dict[str, tuple[Decimal, str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    policies: dict[str, dict[str, Decimal]] = field(default_factory=dict)
    worded: dict[str, dict[str, Decimal]] = field(default_factory=dict)
    folders: dict[str, None] = field(default_factory=dict)
    limited: bool = False
    rerouted: bool = False
    unfinished: bool = False
    doubled: dict[str, list[str]] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)

    def take(self, found: _Found) -> None:
        """Takes the value of one column."""
        column, entry, judge = found.column, found.entry, found.judge
        value, told = _by_rule(entry)
        self.sources[column.name] = found.source
        before = self.cells.get(column.name)
        if judge is None and before is not None and before != column.shown(value):
            self.doubled.setdefault(column.name, []).append(str(before))
        if judge is not None:
            self.ratings[column.name] = (column.shown(value), judge)
        else:
            self.cells[column.name] = column.shown(value)
        self.counts[column.name] = entry.n
        self.worded.pop(column.name, None)
        if spread := _over_wordings(entry, column):
            self.worded[column.name] = spread
        self.policies.pop(column.name, None)
        if told:
            self.policies[column.name] = {rule: column.shown(number) for rule, number in told.items()}


def own_rows(
    runs: Iterable[str | os.PathLike[str]], rules: Rules, variants: Sequence[Variant]
) -> tuple[list[Row], list[str]]:
    """Rows from runs, and the folders of runs without a value for this board.

    There is a row for every system and variant with a value for at least one column.

    Args:
        runs: run folders, or folders that hold run folders at any depth.
        rules: the columns of the board, and how its rows are computed.
        variants: the ways to run what the board shows; the first one has no name.

    Raises:
        UserError: a folder holds no run, or a record is damaged.
    """
    found: dict[str, _Values] = {}
    ignored: list[str] = []
    for place in (found_in for folder in runs for found_in in run_folders(folder)):
        run = open_run(place)
        run.check()  # a damaged run of another benchmark is told too
        values = list(_values(run, rules.columns, variants))
        ignored += [] if values else [str(place)]
        for value in values:
            row = found.setdefault(value.row, _Values())
            row.take(value)
            row.folders[str(place)] = None
            row.limited |= (run.meta.get("config") or {}).get("limit") is not None
            row.unfinished |= run.meta.get("state") not in (None, "finished")
            row.rerouted |= value.rerouted
    return [_row(name, values, rules) for name, values in found.items()], ignored


def _row(name: str, values: _Values, rules: Rules) -> Row:
    return rules.row(
        name,
        values.cells,
        {},
        values.counts,
        tuple(c.name for c in rules.columns if c.name not in values.cells and c.name not in values.ratings),
        published=False,
        folders=tuple(values.folders),
        limited=values.limited,
        rerouted=values.rerouted,
        unfinished=values.unfinished,
        doubled={name: ", ".join(others) for name, others in values.doubled.items()},
        judged=_judged(values, rules),
        policies=values.policies,
        worded=values.worded,
        sources=values.sources,
    )


def _over_wordings(entry: MetricSummary | Subset, column: Column) -> dict[str, Decimal]:
    """How far the wordings of the prompt lie apart, in the unit of the column; empty if every question was asked in one wording."""
    over = entry.robustness if isinstance(entry, MetricSummary) else None
    if not over or not over.same_questions:
        return {}
    told = {"mean": over.mean, "worst": over.worst, "best": over.best, "sd": over.sd}
    found = {name: column.shown(one.value) for name, one in told.items() if one is not None and one.value is not None}
    return {"n": Decimal(over.n), **found}


def _judged(values: _Values, rules: Rules) -> dict[str, str]:
    """The ratings of a row by column, group and as the average, each with its judge."""
    told = {name: f"{value} by {judge}" for name, (value, judge) in values.ratings.items()}
    if len({judge for _, judge in values.ratings.values()}) != 1:
        return told
    judge = next(iter(values.ratings.values()))[1]
    cells = {name: value for name, (value, _) in values.ratings.items()}
    for group in rules.means:
        mean = group_mean(cells, rules.columns, group)
        if mean is not None and group not in told:
            whole = all(column.name in cells for column in rules.columns if column.group == group)
            told[group] = f"{mean} by {judge}" + ("" if whole else " (part)")
    if rules.averages and all(column.counts == "rating" for column in rules.columns):
        mean, _ = average(cells, rules.columns)
        told[AVERAGE] = f"{mean} by {judge}" + ("" if len(cells) == len(rules.columns) else " (part)")
    return told


def _by_rule(entry: MetricSummary | Subset) -> tuple[float, dict[str, float]]:
    """The value by the rule of the benchmark's toolkit, and by every rule where they differ."""
    value, policies = entry.value, entry.policies if isinstance(entry, MetricSummary) else None
    assert value is not None, "what has no value is not found"
    if not policies:
        return value, {}
    official = policies.official.value
    left_out, as_wrong = policies.left_out, policies.as_wrong
    every = {"left_out": left_out, "as_wrong": as_wrong, "official": official}
    known = {rule: value for rule, value in every.items() if value is not None}
    return (value if official is None else official), known if left_out != as_wrong else {}


def _values(run: Run, columns: Sequence[Column], variants: Sequence[Variant]) -> Iterator[_Found]:
    """The values that a run gives."""
    benchmark = (run.meta.get("benchmark") or {}).get("name")
    every = [(variant, column, variant.of(column)) for variant in variants for column in columns]
    wanted = [one for one in every if one[2][0] == benchmark]
    if not wanted:
        return
    summary = summarise(run)
    rerouted = bool(summary.answers) and any(one.other for one in summary.answers.served)
    for system, held in summary.systems.items():
        for variant, column, (_, metric, subset) in wanted:
            whole = held.metrics.get(metric)
            entry: MetricSummary | Subset | None = whole
            if subset is not None:
                kind, _, value = subset.partition("=")
                entry = subsets_of(whole).get(kind, {}).get(value)
            if entry is None or entry.value is None:
                continue
            judge = _judge_of(run, metric)
            source = Source(str(run.folder), system, metric, str(run.metrics[metric].get("protocol", "")))
            if judge is None or column.counts == "rating":
                rated_by = judge and " ".join(filter(None, judge))
                yield _Found(_name(system, variant.name), column, entry, rated_by, source, rerouted)
            else:  # the judge read the answers, and did not rate them
                name = _name(system, variant.name, f"read by {judge[0]}")
                yield _Found(name, column, entry, None, source, rerouted)


def _name(system: str, *about: str) -> str:
    """The name of a row: that of the model, and in brackets how its benchmarks were run."""
    told = ", ".join(filter(None, about))
    return f"{system} ({told})" if told else system


def _judge_of(run: Run, metric: str) -> tuple[str, str] | None:
    """Who gave a rating, and in brackets by which wording, as far as the record says; None if no judge did."""
    kind, _, rest = str(run.metrics[metric].get("protocol", "")).partition("/")
    rubric, _, judge = rest.partition("/")
    if kind == "rating" and judge:
        return judge, f"({rubric})"
    if not metric.startswith("rating["):
        return None
    return (run.meta.get("config") or {}).get("judge") or "an unknown judge", ""

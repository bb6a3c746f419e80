"""A leaderboard's columns and rows, the means of groups, and the average.

Averages follow the board's authors, in decimal arithmetic: an error rate counts as 100 minus it, a MOS 20 times, a
rating by its column's factor. Columns of one group count as one, or every sample counts as one. Missing cells are
ignored, and the average is then incomplete. Published rows keep printed group means and averages next to computed ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass as checked_dataclass

from codec_bench.apps.leaderboards.ranking import Robustness
from codec_bench.apps.leaderboards.raters import BoardJudge, describe_offsets, published_rater, published_words
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import first_of
from codec_bench.stats.correlation import Coefficient, ColumnPair

Counting = Literal["score", "error", "mos", "rating"]
AVERAGE = "average"
"""The published table's column of printed averages."""
_CENT = Decimal("0.01")
_MOST_NAMED = 8


@checked_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Column:
    """One column of a board, as its definition gives it.

    Args:
        counts: in the average: `score` and `rating` as shown, `error` as 100 minus it, `mos` 20 times.
        group: columns of one group enter the average as their mean. A column without one is its own group.
        family: the kind of task where groups do not state it. Ranks are computed without each family too.
        subset: the subset of the benchmark, as `COLUMN=VALUE`; None for all of it.
        factor: from the metric's unit to the column's; None takes 100 for per cent and 10 for ratings.
        scale: of the column's numbers, such as `of 10`; None for the usual words.
        chance: the accuracy of guessing among the options, in per cent; None without options.
    """

    name: str
    benchmark: str
    metric: str
    counts: Counting
    group: str = ""
    subset: str | None = None
    factor: int | None = None
    scale: str | None = None
    chance: int | None = None
    family: str | None = None

    def __post_init__(self) -> None:
        if not self.group:
            object.__setattr__(self, "group", self.name)

    def shown(self, value: float) -> Decimal:
        """Convert a run's value to the column's unit, rounded half up to 0.01."""
        return (Decimal(repr(value)) * self._factor).quantize(_CENT, ROUND_HALF_UP)

    @property
    def _factor(self) -> int:
        usual = 100 if self.unit == "%" else 10 if self.counts == "rating" else 1
        return usual if self.factor is None else self.factor

    @property
    def points_of_unit(self) -> int:
        """Points of the average per 1 of the metric's value in a run."""
        return self._factor * {"score": 1, "rating": 1, "error": -1, "mos": 20}[self.counts]

    @property
    def unit(self) -> str:
        """The unit of its cells."""
        usual = {"mos": "MOS", "rating": "of 100"}.get(self.counts, "BLEU" if self.metric.startswith("bleu") else "%")
        return self.scale or usual

    def points(self, shown: Decimal) -> Decimal:
        """Convert a cell to points of the average, higher being better."""
        return {"score": shown, "rating": shown, "error": 100 - shown, "mos": 20 * shown}[self.counts]


@checked_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Variant:
    """A further configuration of the same models, shown in rows with a suffixed name.

    Args:
        name: follows the name of the model.
        metric: replaces the columns' metrics.
        suffix: follows the names of the columns' benchmarks.
        benchmark: one benchmark for all columns; `by` is the kind of subsets named like columns.
    """

    name: str
    metric: str | None = None
    suffix: str = ""
    benchmark: str | None = None
    by: str | None = None

    def of(self, column: Column) -> tuple[str, str, str | None]:
        """Benchmark, metric and subset from which this variant fills a column."""
        subset = f"{self.by}={column.name}" if self.by is not None else column.subset
        return self.benchmark or column.benchmark + self.suffix, self.metric or column.metric, subset


@dataclass(frozen=True, slots=True)
class View:
    """A mean over columns of one unit; it decides no rank."""

    name: str
    columns: tuple[str, ...]

    def value(self, row: BoardRow) -> Decimal | None:
        """Average a row's cells to two decimals; None if one is missing."""
        if any(name not in row.cells for name in self.columns):
            return None
        return _mean([(row.cells[name], 1) for name in self.columns]).quantize(_CENT, ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class CellSource:
    """The source of a cell: run folder, system, metric and protocol."""

    folder: str
    system: str
    metric: str
    protocol: str


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A row of a leaderboard: published, or from the user's runs.

    Args:
        cells: value by column, as shown.
        average: None without a cell, or without averages.
        complete: every group, and for an own row every column, has a value.
        limited: one of them used `--limit`.
        short: one of them has another number of questions than its benchmark, without a limit.
        parts: by column the number of questions of such a row, such as `4 of 896 questions`.
        deviations: differences from the columns' benchmarks, such as `other data` or `other prompt`; it has no rank.
        rerouted: a service reported another model than the requested one.
        states: the services' model names with their states.
        judged: ratings by another judge or wording than the published one, by column, group and `average`, each with
            judge and rubric.
        raters: by column, the judge of an own value.
        means: of groups with a shown mean, in the columns' unit.
        printed: the authors' numbers of groups and `average`; they replace computed ones.
        policies: where failures matter, the value with failures `left_out`, `as_wrong`, and by the benchmark's toolkit
            (`official`), if it has a rule.
        failures: on the columns with failed items, how many, and whether the metric has no worst value for them.
        unfinished: a run is not finished.
        earlier_values: by column, values of earlier runs of the same system, which are not shown.
        wording_spreads: by column, statistics over wordings of the prompt: `mean`, `worst`, `best`, `sd`, failures as
            wrong, and `n`.
        sources: by column, ratings included.
        missing: columns without an own value, ratings included.
        intervals: by column the 95 % interval of an own value.
        gains_over_text: by column, the gain over the same model on text alone, more being better, with its 95 %
            interval or None.
    """

    name: str
    cells: Mapping[str, Decimal]
    average: Decimal | None
    complete: bool
    published: bool
    folders: tuple[str, ...] = ()
    limited: bool = False
    short: bool = False
    parts: Mapping[str, str] = field(default_factory=dict)
    deviations: tuple[str, ...] = ()
    rerouted: bool = False
    states: tuple[str, ...] = ()
    unfinished: bool = False
    earlier_values: Mapping[str, str] = field(default_factory=dict)
    judged: Mapping[str, str] = field(default_factory=dict)
    raters: Mapping[str, BoardJudge] = field(default_factory=dict)
    means: Mapping[str, Decimal] = field(default_factory=dict)
    printed: Mapping[str, Decimal] = field(default_factory=dict)
    note: str = ""
    policies: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    failures: tuple[Diagnostic, ...] = ()
    wording_spreads: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    sources: Mapping[str, CellSource] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    intervals: Mapping[str, tuple[Decimal, Decimal]] = field(default_factory=dict)
    gains_over_text: Mapping[str, tuple[Decimal, tuple[Decimal, Decimal] | None]] = field(default_factory=dict)

    @property
    def gain_over_text(self) -> str:
        """The gain over the model on text alone, as text; over several columns the mean."""
        if not self.gains_over_text:
            return ""
        if len(self.gains_over_text) == 1 and len(self.cells) == 1:
            ((value, ends),) = self.gains_over_text.values()
            return f"{value:+}" + ("" if ends is None else f" [{ends[0]}, {ends[1]}]")
        mean = _mean([(value, 1) for value, _ in self.gains_over_text.values()]).quantize(_CENT, ROUND_HALF_UP)
        return f"{mean:+} (mean of {len(self.gains_over_text)} of {len(self.cells)} columns)"

    @property
    def compared(self) -> bool:
        """Whether the row covers the complete benchmarks, and so has a rank."""
        return not (self.limited or self.short or self.deviations or self.unfinished)

    @property
    def parts_text(self) -> str:
        """The number of questions of incomplete columns, or ""."""
        return "; ".join(
            f"{column} is {'' if share.startswith('limited') else 'over '}{share}"
            for column, share in self.parts.items()
        )

    @property
    def shown_average(self) -> Decimal | None:
        """The printed average, else the computed one."""
        return self.printed.get(AVERAGE, self.average)

    def shown_mean(self, group: str) -> Decimal | None:
        """Return a group's printed mean, else the computed one."""
        return self.printed.get(group, self.means.get(group))


@dataclass(frozen=True, slots=True)
class Trust:
    """The certainty of a board's ranks, each field by row in the board's order.

    Args:
        robustness: the ranks under other rules.
        rank_intervals: of the middle 95 % of draws; None for a row without items.
        shares: by rank, the share of draws of a row with items; ranks without draws are missing.
        above: by row number, the share of draws with that row above, where one of the two has items.
        tied: the names of indistinguishable rows.
        notes: why a row has no rank interval.
        dispensable: columns in the order of removal that preserves the ranking, each with Kendall's tau of full and
            reduced ranking.
    """

    robustness: tuple[Robustness, ...]
    rank_intervals: tuple[tuple[int, int] | None, ...]
    shares: tuple[Mapping[int, float], ...]
    above: tuple[Mapping[int, float], ...]
    tied: tuple[tuple[str, ...], ...]
    notes: tuple[Diagnostic | None, ...]
    dispensable: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Likeness:
    """Rank correlations of a board's columns, and an order by similarity."""

    columns: tuple[str, ...]
    pairs: tuple[ColumnPair, ...]
    order: tuple[str, ...]

    def value(self, first: str, second: str) -> Coefficient | None:
        """Return Spearman's rho of two columns; None of a column with itself."""
        columns = {self.columns.index(first), self.columns.index(second)}
        return next((pair.spearman for pair in self.pairs if {pair.first, pair.second} == columns), None)


@dataclass(frozen=True, slots=True)
class Board:
    """A leaderboard: columns, and rows by average, incomplete and limited rows last.

    Args:
        ignored: run folders without a value for this board.
        means: the groups whose means are shown.
        by_sample: every sample counts as one in the average, in place of every group.
    """

    name: str
    summary: str
    source: str
    columns: tuple[Column, ...]
    rows: tuple[BoardRow, ...]
    ignored: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    averages: bool = True
    by_sample: bool = False
    views: tuple[View, ...] = ()
    trust: Trust | None = None
    likeness: Likeness | None = None

    @property
    def mixed(self) -> list[Diagnostic]:
        """Notes on columns and rows with several protocols, and on several model states."""
        notes = []
        for column in self.columns:
            of = self.protocols(column)
            if len(of) > 1:
                protocols, systems = list(of), list(of.values())
                notes.append(
                    Diagnostic("column_of_several_protocols", column=column.name, protocols=protocols, systems=systems)
                )
        for row in self.rows:
            by_metric: dict[str, dict[str, list[str]]] = {}
            for source, name in [(row.sources[c.name], c.name) for c in self.columns if c.name in row.sources]:
                if name in row.cells:
                    by_metric.setdefault(source.metric, {}).setdefault(source.protocol, []).append(name)
            for metric, of in by_metric.items():
                if len(of) > 1:
                    about = {"row": row.name, "metric": metric, "protocols": list(of), "columns": list(of.values())}
                    notes.append(Diagnostic("row_of_several_protocols", **about))
        return notes + [
            Diagnostic("row_of_several_states", row=row.name, states=row.states)
            for row in self.rows
            if len(row.states) > 1
        ]

    def protocols(self, column: Column) -> dict[str, list[str]]:
        """The names of the rows from the user's runs with a cell in a column, by protocol."""
        of: dict[str, list[str]] = {}
        for row in self.rows:
            if column.name in row.cells and column.name in row.sources:
                of.setdefault(row.sources[column.name].protocol, []).append(row.name)
        return of

    @property
    def judge_notes(self) -> list[str]:
        """Sentences on the judges of published values, and offsets between judges."""
        published = {
            c.name: c.metric for c in self.columns if any(r.published and c.name in r.cells for r in self.rows)
        }
        marked = {name: rater for name, metric in published.items() if (rater := published_rater(metric)) is not None}
        raters = {
            c.name: [*([marked[c.name]] if c.name in marked else []), *_raters(self.rows, c.name)] for c in self.columns
        }
        return [*published_words(published), *describe_offsets(raters, {c.name: c._factor for c in self.columns})]

    def lacking(self, row: BoardRow) -> str:
        """Describe the columns that a row from the user's runs lacks; empty if none."""
        if not row.missing:
            return ""
        by_group: dict[str, list[str]] = {}
        for column in self.columns:
            if column.name in row.missing:
                by_group.setdefault(column.group if column.group in self.means else "", []).append(column.name)
        sizes = Counter(column.group for column in self.columns)
        texts = [
            first_of(names, _MOST_NAMED) if not group
            else f"all {len(names)} of {group}" if len(names) == sizes[group] > 1
            else f"{first_of(names, _MOST_NAMED)} (of {group})"
            for group, names in by_group.items()
        ]  # fmt: skip
        return f"no value for {len(row.missing)} of {len(self.columns)} columns: {'; '.join(texts)}"

    def is_part(self, row: BoardRow, group: str) -> bool:
        """Whether a row from the user's runs lacks a column of a group."""
        return any(column.group == group and column.name in row.missing for column in self.columns)


def _raters(rows: Sequence[BoardRow], column: str) -> list[BoardJudge]:
    """Return the judges of a column's values from the user's runs, each once."""
    return list({row.raters[column].key: row.raters[column] for row in rows if column in row.raters}.values())


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for rows: columns, groups with a mean, and the unit of the average."""

    columns: tuple[Column, ...]
    means: tuple[str, ...]
    averages: bool
    by_sample: bool

    def build_row(
        self,
        name: str,
        cells: Mapping[str, Decimal],
        printed: Mapping[str, Decimal],
        counts: Mapping[str, int],
        missing: tuple[str, ...] = (),
        **more: Any,
    ) -> BoardRow:
        """Build a row with its group means and its average.

        Args:
            cells: value by column, as shown.
            printed: the authors' numbers by group and `average`.
            counts: number of samples by column.
            missing: columns without a value.
            more: further fields of `BoardRow`.
        """
        weights = counts if self.by_sample else None
        mean, complete = average(cells, self.columns, printed, weights)
        means = {
            group: value
            for group in self.means
            if (value := group_mean(cells, self.columns, group, weights)) is not None
        }
        shown = mean if self.averages else None
        return BoardRow(
            name, cells, shown, complete and not missing, means=means, printed=printed, missing=missing, **more
        )


def average(
    cells: Mapping[str, Decimal],
    columns: Sequence[Column],
    printed: Mapping[str, Decimal] | None = None,
    weights: Mapping[str, int] | None = None,
) -> tuple[Decimal | None, bool]:
    """Compute `exact_average`, rounded half up to two decimals."""
    value, complete = exact_average(cells, columns, printed, weights)
    return None if value is None else value.quantize(_CENT, ROUND_HALF_UP), complete


def exact_average(
    cells: Mapping[str, Decimal],
    columns: Sequence[Column],
    printed: Mapping[str, Decimal] | None = None,
    weights: Mapping[str, int] | None = None,
) -> tuple[Decimal | None, bool]:
    """Compute a row's average, and whether each group of columns has a value.

    The average is the mean over groups of the mean of their cells, in points.

    Args:
        cells: value by column, as shown.
        printed: the authors' mean by group; it replaces a group without cells.
        weights: number of samples by column; the average is then the mean over all samples. None weights groups
            equally.

    Returns:
        The average, None without any value; and False if a group has no value.
    """
    groups: dict[str, list[tuple[Decimal, int]]] = {column.group: [] for column in columns}
    for column in columns:
        if column.name in cells:
            groups[column.group].append((column.points(cells[column.name]), (weights or {}).get(column.name, 1)))
    columns_by_group = {column.group: column for column in columns}
    for group, values in groups.items():
        if not values and group in (printed or {}):
            values.append((columns_by_group[group].points((printed or {})[group]), 1))
    complete = all(groups.values())
    means = [[pair for values in groups.values() for pair in values]] if weights is not None else list(groups.values())
    averages = [_mean(values) for values in means if values]
    if not averages:
        return None, False
    return sum(averages, Decimal(0)) / len(averages), complete


def group_mean(
    cells: Mapping[str, Decimal], columns: Sequence[Column], group: str, weights: Mapping[str, int] | None = None
) -> Decimal | None:
    """Average the shown cells of one group to two decimals; None without cells."""
    values = [(cells[c.name], (weights or {}).get(c.name, 1)) for c in columns if c.group == group and c.name in cells]
    return _mean(values).quantize(_CENT, ROUND_HALF_UP) if values else None


def _mean(values: Sequence[tuple[Decimal, int]]) -> Decimal:
    return sum((value * weight for value, weight in values), Decimal(0)) / sum(weight for _, weight in values)

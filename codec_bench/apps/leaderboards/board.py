"""What a leaderboard is made of, and its arithmetic: columns, rows, means of groups, the average.

Conventions
    The average of a row is computed as the authors of the board did, in decimal arithmetic: an error rate counts as 100
    minus the rate, a mean opinion score as 20 times the score, and a rating by its column's factor. Columns of one
    group count together as one, or every sample counts as one if the board says so. A missing cell does not count, and
    the average is then marked as incomplete. A board whose authors print no average has none. A published row keeps
    what its authors printed for a group or for the average beside what follows from its cells.
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
from codec_bench.apps.leaderboards.raters import Rater, bridges, published_rater, published_words
from codec_bench.errors import first_of
from codec_bench.stats.correlation import Coefficient, Pair

Counting = Literal["score", "error", "mos", "rating"]
AVERAGE = "average"
"""The column of a published table that holds what its authors printed as the average."""
_CENT = Decimal("0.01")
_MOST_NAMED = 8


@checked_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Column:
    """One column of a board, as its definition gives it.

    Args:
        name: as published. benchmark, metric: where the value of a run comes from.
        counts: how it enters the average: `score` and `rating` as they are shown, `error` as 100 minus it, `mos` 20
            times.
        group: columns of one group enter the average as one value, their mean. A column without one is a group by
            itself.
        family: the kind of task that it is about, where the groups do not say it. Ranks are computed without each
            family too.
        subset: the part of the benchmark that it is about, as `COLUMN=VALUE`; None for all of it.
        factor: from the metric's unit to the column's; None takes 100 for per cent and 10 for ratings.
        scale: what the column's numbers are, such as `of 10`; None for the usual words.
        chance: what a guess among the options reaches, in per cent; None if there are no options.
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
        """A value of a run in the unit of the column (percent, or points of BLEU or of a scale), rounded half up to
        0.01.
        """
        return (Decimal(repr(value)) * self._factor).quantize(_CENT, ROUND_HALF_UP)

    @property
    def _factor(self) -> int:
        usual = 100 if self.unit == "%" else 10 if self.counts == "rating" else 1
        return usual if self.factor is None else self.factor

    @property
    def points_of_unit(self) -> int:
        """By how many points of the average's scale a column changes when the value of a run grows by 1."""
        return self._factor * {"score": 1, "rating": 1, "error": -1, "mos": 20}[self.counts]

    @property
    def unit(self) -> str:
        """The unit of its cells."""
        usual = {"mos": "MOS", "rating": "of 100"}.get(self.counts, "BLEU" if self.metric.startswith("bleu") else "%")
        return self.scale or usual

    def points(self, shown: Decimal) -> Decimal:
        """What a cell contributes to the average."""
        return {"score": shown, "rating": shown, "error": 100 - shown, "mos": 20 * shown}[self.counts]


@checked_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Variant:
    """Another way to run what a board shows. It gives rows of its own.

    Args:
        name: stands behind the name of the model.
        metric: in place of the columns' metrics, or None.
        suffix: behind the names of the columns' benchmarks.
        benchmark: one benchmark that holds all columns, in place of theirs; `by` is the kind of its subsets that the
            columns are named by.
    """

    name: str
    metric: str | None = None
    suffix: str = ""
    benchmark: str | None = None
    by: str | None = None

    def of(self, column: Column) -> tuple[str, str, str | None]:
        """The benchmark, the metric and the subset that give the value of a column."""
        subset = f"{self.by}={column.name}" if self.by is not None else column.subset
        return self.benchmark or column.benchmark + self.suffix, self.metric or column.metric, subset


@dataclass(frozen=True, slots=True)
class View:
    """A mean over some columns in their own unit, such as the mean word error rate; it decides no rank.

    Args:
        name: what it is called. columns: the names of its columns, all of one unit.
    """

    name: str
    columns: tuple[str, ...]

    def value(self, row: Row) -> Decimal | None:
        """The mean of a row's cells to two decimals; None if one of them is missing, because it would be another mean."""
        if any(name not in row.cells for name in self.columns):
            return None
        return _mean([(row.cells[name], 1) for name in self.columns]).quantize(_CENT, ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the value of a cell comes from: the folder of the run, and the system, the metric and the protocol there."""

    folder: str
    system: str
    metric: str
    protocol: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row: a published one, or one from own runs.

    Args:
        name: of the model or codec. cells: value by column, as shown. average: None if there is no cell, or the board
            has none.
        complete: whether every group of the board has a value, and for an own row every column. published: whether it
            is from the authors of the board.
        folders: the own runs that it rests on. limited: whether one of them took only a part of its benchmark, as was
            asked for.
        short: whether one of them holds another number of questions than its benchmark has, although no limit was asked
            for.
        parts: by column how many questions such a row rests on, such as `4 of 896 questions`.
        apart: in what its benchmarks are not those of the columns, such as `other data` or `other prompt`; it is in no
            rank.
        rerouted: whether a service said that another model answered than the one that was asked for.
        states: what services called the models that answered, each with the state that it named.
        judged: ratings by another judge or wording than the published one, by column, by group and as `average`, each
            with the judge and the rubric.
        raters: by column, the judge of an own value.
        means: the mean of each group whose mean the board shows, in the unit of its columns.
        printed: what the authors printed for groups and as `average`; it stands in the place of what follows from the
            cells.
        note: what to know of the row, or "".
        policies: where failures change a cell, the value with failures `left_out`, `as_wrong`, and by the rule of the
            benchmark's toolkit (`official`).
        unfinished: whether one of the runs is not finished.
        doubled: by column, the other values that an earlier run of the same system has, which the table does not show.
        worded: by column, how far the wordings of the prompt lie apart: `mean`, `worst`, `best` and `sd`, failures as
            wrong, and the number of wordings as `n`.
        sources: by column, where the value of an own row comes from, ratings included.
        missing: the columns that an own row has no value for, ratings included.
        intervals: by column the two ends of the 95 % interval of an own value, where it has one.
        beyond: by column, what an own value has beyond that of the same model to the text alone, more being better, in
            the unit of the column, and the two ends of its 95 % interval (None where there is none).
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
    apart: tuple[str, ...] = ()
    rerouted: bool = False
    states: tuple[str, ...] = ()
    unfinished: bool = False
    doubled: Mapping[str, str] = field(default_factory=dict)
    judged: Mapping[str, str] = field(default_factory=dict)
    raters: Mapping[str, Rater] = field(default_factory=dict)
    means: Mapping[str, Decimal] = field(default_factory=dict)
    printed: Mapping[str, Decimal] = field(default_factory=dict)
    note: str = ""
    policies: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    worded: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    intervals: Mapping[str, tuple[Decimal, Decimal]] = field(default_factory=dict)
    beyond: Mapping[str, tuple[Decimal, tuple[Decimal, Decimal] | None]] = field(default_factory=dict)

    @property
    def beyond_the_text(self) -> str:
        """What the row has beyond the text alone: one value with its interval, or the mean over the columns where it is
        known.
        """
        if not self.beyond:
            return ""
        if len(self.beyond) == 1 and len(self.cells) == 1:
            ((value, ends),) = self.beyond.values()
            return f"{value:+}" + ("" if ends is None else f" [{ends[0]}, {ends[1]}]")
        mean = _mean([(value, 1) for value, _ in self.beyond.values()]).quantize(_CENT, ROUND_HALF_UP)
        return f"{mean:+} (mean of {len(self.beyond)} of {len(self.cells)} columns)"

    @property
    def compared(self) -> bool:
        """Whether its values are compared with those of other rows: they are of whole benchmarks, and of the columns'
        own.
        """
        return not (self.limited or self.short or self.apart or self.unfinished)

    @property
    def parts_text(self) -> str:
        """How many questions each column rests on, where these are not all; "" if they are."""
        return "; ".join(
            f"{column} is {'' if share.startswith('limited') else 'over '}{share}"
            for column, share in self.parts.items()
        )

    @property
    def shown_average(self) -> Decimal | None:
        """The average as the table shows it: as printed, else as it follows from the cells."""
        return self.printed.get(AVERAGE, self.average)

    def shown_mean(self, group: str) -> Decimal | None:
        """The mean of a group as the table shows it: as printed, else as it follows from the cells."""
        return self.printed.get(group, self.means.get(group))


@dataclass(frozen=True, slots=True)
class Trust:
    """What is known of the ranks of a board, each field by row in the board's order.

    Args:
        robustness: the ranks under other rules.
        rank_intervals: the ranks that hold the middle 95 % of the draws; None for a row without items.
        shares: by rank, the share of draws in which a row with items has it; ranks that it never has are missing.
        above: by the number of another row, the share of draws in which a row is above it, where one of the two has
            items.
        tied: the names of the rows that a row cannot be told from.
        notes: why a row has no rank interval; None if it has one.
        dispensable: the names of the columns in the order in which they could be left out with the ranking kept, each
            with Kendall's tau between the full ranking and the one without it and those before it.
    """

    robustness: tuple[Robustness, ...]
    rank_intervals: tuple[tuple[int, int] | None, ...]
    shares: tuple[Mapping[int, float], ...]
    above: tuple[Mapping[int, float], ...]
    tied: tuple[tuple[str, ...], ...]
    notes: tuple[str | None, ...]
    dispensable: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike the columns of a board order its rows.

    Args:
        columns: their names. pairs: the correlations of every two, by their numbers.
        order: the names in an order in which columns that are alike stand side by side.
    """

    columns: tuple[str, ...]
    pairs: tuple[Pair, ...]
    order: tuple[str, ...]

    def value(self, first: str, second: str) -> Coefficient | None:
        """Spearman's rho of two columns by name; None of a column with itself."""
        columns = {self.columns.index(first), self.columns.index(second)}
        return next((pair.spearman for pair in self.pairs if {pair.first, pair.second} == columns), None)


@dataclass(frozen=True, slots=True)
class Board:
    """A leaderboard: its columns, and its rows from the best average down, incomplete and limited rows last.

    Args:
        ignored: run folders without a value for this board.
        means: the groups whose means are shown.
        averages: whether there is an average over the groups.
        by_sample: whether every sample counts as one in the average, in place of every group.
        views: means over some of the columns.
        trust: how much the ranks can be trusted; None if that was not asked for.
        likeness: how alike the columns are; None if that was not asked for.
    """

    name: str
    summary: str
    source: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    ignored: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    averages: bool = True
    by_sample: bool = False
    views: tuple[View, ...] = ()
    trust: Trust | None = None
    likeness: Likeness | None = None

    @property
    def mixed(self) -> list[str]:
        """What cannot be compared or is not one thing, a sentence each: columns of several protocols, and rows of
        several states of a model.
        """
        texts = []
        for column in self.columns:
            of: dict[str, list[str]] = {}
            for row in self.rows:
                if column.name in row.cells and column.name in row.sources:
                    of.setdefault(row.sources[column.name].protocol, []).append(row.name)
            if len(of) > 1:
                sides = "; ".join(f"{', '.join(names)} by {protocol}" for protocol, names in of.items())
                texts.append(
                    f"{column.name} was measured by {len(of)} protocols, whose values cannot be compared: {sides}"
                )
        return texts + [
            f"{row.name} rests on {len(row.states)} states of its model, as its service named them: {'; '.join(row.states)}"
            for row in self.rows
            if len(row.states) > 1
        ]

    @property
    def judges(self) -> list[str]:
        """By whom published values were marked, and what is known between the judges of one column: a sentence each."""
        published = {
            c.name: c.metric for c in self.columns if any(r.published and c.name in r.cells for r in self.rows)
        }
        marked = {name: rater for name, metric in published.items() if (rater := published_rater(metric)) is not None}
        raters = {
            c.name: [*([marked[c.name]] if c.name in marked else []), *_raters(self.rows, c.name)] for c in self.columns
        }
        return [*published_words(published), *bridges(raters, {c.name: c._factor for c in self.columns})]

    def lacking(self, row: Row) -> str:
        """Which columns an own row has no value for: by group, where the board shows means of groups; "" if it has all."""
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

    def is_part(self, row: Row, group: str) -> bool:
        """Whether the mean of a group is over fewer columns in an own row."""
        return any(column.group == group and column.name in row.missing for column in self.columns)


def _raters(rows: Sequence[Row], column: str) -> list[Rater]:
    """The judges of the own values of a column, each once."""
    return list({row.raters[column].key: row.raters[column] for row in rows if column in row.raters}.values())


@dataclass(frozen=True, slots=True)
class Rules:
    """How the rows of a board are computed: its columns, the groups with a mean, and whether samples or groups count as
    one.
    """

    columns: tuple[Column, ...]
    means: tuple[str, ...]
    averages: bool
    by_sample: bool

    def row(
        self,
        name: str,
        cells: Mapping[str, Decimal],
        printed: Mapping[str, Decimal],
        counts: Mapping[str, int],
        missing: tuple[str, ...] = (),
        **more: Any,
    ) -> Row:
        """A row from its cells, what was printed of it, how many samples each cell rests on, and the columns that an
        own row lacks.
        """
        weights = counts if self.by_sample else None
        mean, complete = average(cells, self.columns, printed, weights)
        means = {
            group: value
            for group in self.means
            if (value := group_mean(cells, self.columns, group, weights)) is not None
        }
        shown = mean if self.averages else None
        return Row(name, cells, shown, complete and not missing, means=means, printed=printed, missing=missing, **more)


def average(
    cells: Mapping[str, Decimal],
    columns: Sequence[Column],
    printed: Mapping[str, Decimal] | None = None,
    weights: Mapping[str, int] | None = None,
) -> tuple[Decimal | None, bool]:
    """The average of a row to two decimals, and whether every group has a value; arguments as `exact_average`."""
    value, complete = exact_average(cells, columns, printed, weights)
    return None if value is None else value.quantize(_CENT, ROUND_HALF_UP), complete


def exact_average(
    cells: Mapping[str, Decimal],
    columns: Sequence[Column],
    printed: Mapping[str, Decimal] | None = None,
    weights: Mapping[str, int] | None = None,
) -> tuple[Decimal | None, bool]:
    """The average of a row, and whether every group has a value.

    It is the mean over groups of the mean of their cells. A group without a cell counts with what was `printed` of it.
    With `weights`, how many samples each cell rests on, it is the mean over all samples.
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
    """The mean of the cells of one group as they are shown, to two decimals; None if there is no cell."""
    values = [(cells[c.name], (weights or {}).get(c.name, 1)) for c in columns if c.group == group and c.name in cells]
    return _mean(values).quantize(_CENT, ROUND_HALF_UP) if values else None


def _mean(values: Sequence[tuple[Decimal, int]]) -> Decimal:
    """The mean of numbers with weights."""
    return sum((value * weight for value, weight in values), Decimal(0)) / sum(weight for _, weight in values)

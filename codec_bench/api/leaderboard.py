"""Published leaderboards, with one's own runs placed among their rows.

Conventions
    The average of a row is computed as the authors of the board did, in decimal arithmetic: an error rate counts as 100
    minus the rate, a mean opinion score as 20 times the score, and a rating from 1 to 10 as 10 times the rating. Columns
    of one group count together as one. A missing cell does not count, and the average is then marked as incomplete.
    A rating depends on the judge and on the wording of its question, and ours is not the published one. So a rating of an own
    run is shown with its judge and its wording, and enters neither the column of published ratings nor the average.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from codec_bench.store.record import Run

Counting = Literal["score", "error", "mos", "rating"]
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a board.

    Args:
        name: as published. benchmark, metric: where the value of a run comes from.
        counts: how it enters the average: `score` as it is, `error` as 100 minus it, `mos` 20 times, `rating` 10 times.
        group: columns of one group enter the average as one value, their mean.
    """

    name: str
    benchmark: str
    metric: str
    counts: Counting
    group: str

    def shown(self, value: float) -> Decimal:
        """A value of a run in the unit of the column (percent, or points of BLEU or of a scale), rounded half up to 0.01."""
        exact = Decimal(repr(value)) * (100 if self.unit == "%" else 10 if self.counts == "rating" else 1)
        return exact.quantize(_CENT, ROUND_HALF_UP)

    @property
    def unit(self) -> str:
        """The unit of its cells."""
        of_scale = {"mos": "MOS", "rating": "of 100"}
        return of_scale.get(self.counts, "BLEU" if self.metric.startswith("bleu") else "%")

    def points(self, shown: Decimal) -> Decimal:
        """What a cell contributes to the average."""
        return {"score": shown, "rating": shown, "error": 100 - shown, "mos": 20 * shown}[self.counts]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: a published one, or one from own runs.

    Args:
        name: of the model or codec. cells: value by column, as shown. average: None if there is no cell.
        complete: whether every group of the board has a cell. published: whether it is from the authors of the board.
        folders: the own runs that it rests on. limited: whether one of them took only a part of its benchmark.
        rerouted: whether a service said that another model answered than the one that was asked for.
        judged: ratings by another judge or wording than the published one, by column, each with the judge and the rubric.
    """

    name: str
    cells: Mapping[str, Decimal]
    average: Decimal | None
    complete: bool
    published: bool
    folders: tuple[str, ...] = ()
    limited: bool = False
    rerouted: bool = False
    judged: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Board:
    """A leaderboard: its columns, and its rows from the best average down, incomplete and limited rows last.

    Args:
        ignored: run folders without a value for this board.
    """

    name: str
    summary: str
    source: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    ignored: tuple[str, ...] = ()


def board_names() -> list[str]:
    """The names of all leaderboards."""
    from codec_bench.config import config_names

    return config_names("leaderboard")


def leaderboard(name: str, runs: Iterable[str | os.PathLike[str]] = ()) -> Board:
    """A published leaderboard, with one's own runs placed among its rows.

    Args:
        name: such as `ultraeval-understanding`.
        runs: run folders, or folders that hold run folders at any depth.

    Raises:
        UnknownName: there is no such leaderboard.
        UserError: a folder holds no run.
    """
    from codec_bench.config import read_config

    document = read_config("leaderboard", name)
    columns = tuple(Column(**{"group": entry["name"], **entry}) for entry in document["columns"])
    own, ignored = _own(runs, columns)
    rows = [*_published(document["published"], columns), *own]
    rows.sort(
        key=lambda row: (not row.complete or row.limited, -(row.average if row.average is not None else -1), row.name)
    )
    return Board(name, document["summary"], document["source"], columns, tuple(rows), tuple(ignored))


def average(cells: Mapping[str, Decimal], columns: Sequence[Column]) -> tuple[Decimal | None, bool]:
    """The mean over groups of the mean of their cells, to two decimals, and whether every group has a cell."""
    groups: dict[str, list[Decimal]] = {column.group: [] for column in columns}
    for column in columns:
        if column.name in cells:
            groups[column.group].append(column.points(cells[column.name]))
    means = [sum(points, Decimal(0)) / len(points) for points in groups.values() if points]
    if not means:
        return None, False
    return (sum(means, Decimal(0)) / len(means)).quantize(_CENT, ROUND_HALF_UP), len(means) == len(groups)


def _row(name: str, cells: Mapping[str, Decimal], columns: Sequence[Column], **more: Any) -> Row:
    mean, complete = average(cells, columns)
    return Row(name, cells, mean, complete, **more)


def _published(file: str, columns: Sequence[Column]) -> list[Row]:
    text = (files("codec_bench") / "configs" / "leaderboard" / file).read_bytes().decode("utf-8")
    return [
        _row(
            next(iter(line.values())),
            {c.name: Decimal(line[c.name]) for c in columns if line[c.name]},
            columns,
            published=True,
        )
        for line in csv.DictReader(io.StringIO(text, newline=""))
    ]


def _own(runs: Iterable[str | os.PathLike[str]], columns: Sequence[Column]) -> tuple[list[Row], list[str]]:
    """Rows from runs, and the folders of runs without a value for this board.

    There is a row for every system with a value for at least one column. A later run replaces the values of an earlier one.
    """
    from codec_bench.stats.breakdown import answers_of
    from codec_bench.store.folders import run_folders
    from codec_bench.store.record import open_run

    cells: dict[str, dict[str, Decimal]] = {}
    folders: dict[str, list[str]] = {}
    judged: dict[str, dict[str, str]] = {}
    limited: set[str] = set()
    rerouted: set[str] = set()
    ignored: list[str] = []
    for place in (found for folder in runs for found in run_folders(folder)):
        run = open_run(place)
        run.check()  # a damaged run of another benchmark is told too
        values = list(_values(run, columns))
        ignored += [] if values else [str(place)]
        for system, column, value in values:
            own = cells.setdefault(system, {})
            if column.counts == "rating":
                judged.setdefault(system, {})[column.name] = f"{column.shown(value)} by {_judge_of(run, column.metric)}"
            else:
                own[column.name] = column.shown(value)
            folders.setdefault(system, []).append(str(place))
            if (run.meta.get("config") or {}).get("limit") is not None:
                limited.add(system)
            if any(one["other"] for one in (answers_of(run) or {}).get("served", ())):
                rerouted.add(system)
    rows = [
        _row(
            system,
            row,
            columns,
            published=False,
            folders=tuple(dict.fromkeys(folders[system])),
            limited=system in limited,
            rerouted=system in rerouted,
            judged=judged.get(system, {}),
        )
        for system, row in cells.items()
    ]
    return rows, ignored


def _judge_of(run: Run, metric: str) -> str:
    """Who gave a rating, and by which wording: the judge and the rubric with its hash, as far as the record says."""
    kind, _, rest = str(run.metrics[metric].get("protocol", "")).partition("/")
    rubric, _, judge = rest.partition("/")
    if kind == "rating" and judge:
        return f"{judge} ({rubric})"
    return (run.meta.get("config") or {}).get("judge") or "an unknown judge"


def _values(run: Run, columns: Sequence[Column]) -> Iterable[tuple[str, Column, float]]:
    from codec_bench.stats.summary import summarise

    benchmark = (run.meta.get("benchmark") or {}).get("name")
    wanted = [column for column in columns if column.benchmark == benchmark]
    if not wanted:
        return
    for system, entry in summarise(run)["systems"].items():
        for column in wanted:
            value = entry["metrics"].get(column.metric, {}).get("value")
            if value is not None:
                yield system, column, value

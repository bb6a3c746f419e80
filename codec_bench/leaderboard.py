"""Published leaderboards with our own runs between their rows.

Conventions
    A board's average is computed as its authors did, in decimal arithmetic: an error rate counts as 100 minus it, a mean
    opinion score as 20 times it, a rating from 1 to 10 as 10 times it, and columns of one group count together as one.
    A cell that is not there does not count; an average over fewer cells than the board has says so.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
        name: as published. benchmark, metric: whose value of ours stands there.
        counts: how it enters the average: `score` as it is, `error` as 100 minus it, `mos` 20 times, `rating` 10 times.
        group: columns of one group enter the average together as their mean.
    """

    name: str
    benchmark: str
    metric: str
    counts: Counting
    group: str

    def shown(self, value: float) -> Decimal:
        """Our value in the column's unit: percent, points of BLEU, or of a scale; to two decimals, half up."""
        percent = self.counts == "error" or (self.counts == "score" and not self.metric.startswith("bleu"))
        exact = Decimal(repr(value)) * (100 if percent else 10 if self.counts == "rating" else 1)
        return exact.quantize(_CENT, ROUND_HALF_UP)

    def points(self, shown: Decimal) -> Decimal:
        """What a cell adds to the average."""
        return {"score": shown, "rating": shown, "error": 100 - shown, "mos": 20 * shown}[self.counts]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: a published one, or one of our runs.

    Args:
        name: of the model or codec. cells: value by column, as shown. average: None where no cell is there.
        complete: whether every group of the board has a cell. published: whether it is the authors'.
        folders: our runs that it rests on. limited: whether any of them took only a part of its benchmark.
    """

    name: str
    cells: Mapping[str, Decimal]
    average: Decimal | None
    complete: bool
    published: bool
    folders: tuple[str, ...] = ()
    limited: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """A leaderboard: its columns, and rows from the best average down; incomplete and limited ones last.

    Args:
        ignored: run folders that have no cell of this board.
    """

    name: str
    summary: str
    source: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    ignored: tuple[str, ...] = ()


def board_names() -> list[str]:
    """Every leaderboard that can be shown."""
    from codec_bench.config import config_names

    return config_names("leaderboard")


def leaderboard(name: str, runs: Iterable[str | os.PathLike[str]] = ()) -> Board:
    """A published board, with our runs between its rows.

    Args:
        name: such as `ultraeval-understanding`.
        runs: run folders, or folders that hold run folders at any depth.

    Raises:
        UnknownName: there is no such board. UserError: a folder holds no run.
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
    """(the mean over groups of the mean of their cells, to two decimals; whether every group has a cell)."""
    groups: dict[str, list[Decimal]] = {column.group: [] for column in columns}
    for column in columns:
        if column.name in cells:
            groups[column.group].append(column.points(cells[column.name]))
    means = [sum(points) / len(points) for points in groups.values() if points]
    if not means:
        return None, False
    return (sum(means) / len(means)).quantize(_CENT, ROUND_HALF_UP), len(means) == len(groups)


def _row(name: str, cells: Mapping[str, Decimal], columns: Sequence[Column], **more: Any) -> Row:
    mean, complete = average(cells, columns)
    return Row(name, cells, mean, complete, **more)


def _published(file: str, columns: Sequence[Column]) -> list[Row]:
    with (files("codec_bench") / "configs" / "leaderboard" / file).open(encoding="utf-8", newline="") as table:
        return [
            _row(
                next(iter(line.values())),
                {c.name: Decimal(line[c.name]) for c in columns if line[c.name]},
                columns,
                published=True,
            )
            for line in csv.DictReader(table)
        ]


def _own(runs: Iterable[str | os.PathLike[str]], columns: Sequence[Column]) -> tuple[list[Row], list[str]]:
    """(a row for every system that has a value for some column, later runs in place of earlier ones; runs without any)."""
    from codec_bench.store.record import open_run, run_folders

    cells: dict[str, dict[str, Decimal]] = {}
    folders: dict[str, list[str]] = {}
    limited: set[str] = set()
    ignored: list[str] = []
    for place in (found for folder in runs for found in run_folders(folder)):
        run = open_run(place)
        values = list(_values(run, columns))
        ignored += [] if values else [str(place)]
        for system, column, value in values:
            cells.setdefault(system, {})[column.name] = column.shown(value)
            folders.setdefault(system, []).append(str(place))
            if (run.meta.get("config") or {}).get("limit") is not None:
                limited.add(system)
    rows = [
        _row(
            system,
            row,
            columns,
            published=False,
            folders=tuple(dict.fromkeys(folders[system])),
            limited=system in limited,
        )
        for system, row in cells.items()
    ]
    return rows, ignored


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

"""Which items of a board's benchmarks tell one's own systems apart (see `discrimination.py`)."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import numpy as np

from codec_bench.apps.leaderboards.board import Board, Column, Row
from codec_bench.apps.leaderboards.discrimination import FEWEST_SYSTEMS, item_discrimination
from codec_bench.report.opened import open_run

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Items:
    """What the items of one column say of one's own systems.

    Args:
        column: its name. systems: how many. items: those that all of them have a value for.
        discrimination: of each item by its id; None for an item that tells no systems apart.
        note: why there is nothing; None if there is something.
    """

    column: str
    systems: int
    items: int
    discrimination: dict[str, float | None]
    note: str | None = None

    @property
    def alike(self) -> int:
        """How many items tell no systems apart."""
        return sum(value is None for value in self.discrimination.values())

    @property
    def against(self) -> list[str]:
        """The items that order the systems the other way round than the rest, the worst first."""
        below = [(value, item) for item, value in self.discrimination.items() if value is not None and value < 0]
        return [item for _, item in sorted(below)]

    @property
    def mean(self) -> float | None:
        """The mean discrimination of the items that have one."""
        known = [value for value in self.discrimination.values() if value is not None]
        return float(np.mean(known)) if known else None


def board_items(board: Board) -> list[Items]:
    """What the items of each column say, over the own rows of a board; columns without own values are left out."""
    found = []
    for column in board.columns:
        values = {row.name: held for row in board.rows if (held := _values(row, column))}
        if not values:
            continue
        shared = sorted(set.intersection(*(set(held) for held in values.values())))
        few = len(values) < FEWEST_SYSTEMS
        if few or not shared:
            why = (
                f"own systems with a value: {len(values)}; at least {FEWEST_SYSTEMS} are needed"
                if few
                else "the systems share no item"
            )
            found.append(Items(column.name, len(values), len(shared), {}, why))
            continue
        points = np.asarray([[held[item] for held in values.values()] for item in shared])
        said = item_discrimination(points * np.sign(column.points_of_unit))
        known = {item: None if np.isnan(value) else float(value) for item, value in zip(shared, said, strict=True)}
        found.append(Items(column.name, len(values), len(shared), known))
    return found


def _values(row: Row, column: Column) -> dict[str, float]:
    """The value of each item, by its id; nothing if the row has no value of the column, or one of a part of a benchmark."""
    source = row.sources.get(column.name)
    if source is None or column.subset is not None:
        return {}
    with closing(open_run(source.folder)) as run:
        return {score.id: score.value for score in run.scores(source.system, source.metric) if score.value is not None}

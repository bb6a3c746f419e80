"""Which items of a board's benchmarks tell one's own systems apart: the correlation of each with the rest of the test,
over the systems.

Conventions
    An item's discrimination is Pearson's correlation, over the systems, between the points of the item and the mean of
    the points of all other items (the corrected item-total correlation). Near 1 the item orders the systems as the rest
    does; below 0 it orders them the other way round, which hints at a wrong key or at noise. With few systems it is
    noisy itself. An item that every system gets alike tells none of them apart, and has no discrimination.

Reference: Lord and Novick 1968, "Statistical Theories of Mental Test Scores", chapter 15.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import numpy as np

from codec_bench.apps.leaderboards.board import Board, Column, Row
from codec_bench.report.open_run import open_run

SHOWN = 5
FEWEST_SYSTEMS = 3
_SAME = 1e-9


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
    tables = []
    for column in board.columns:
        values = {row.name: held for row in board.rows if row.compared and (held := _values(row, column))}
        if not values:
            continue
        shared = sorted(set.intersection(*(set(held) for held in values.values())))
        is_small = len(values) < FEWEST_SYSTEMS
        if is_small or not shared:
            why = (
                f"own systems with a value: {len(values)}; at least {FEWEST_SYSTEMS} are needed"
                if is_small
                else "the systems share no item"
            )
            tables.append(Items(column.name, len(values), len(shared), {}, why))
            continue
        points = np.asarray([[held[item] for held in values.values()] for item in shared])
        result = item_discrimination(points * np.sign(column.points_of_unit))
        known = {item: None if np.isnan(value) else float(value) for item, value in zip(shared, result, strict=True)}
        tables.append(Items(column.name, len(values), len(shared), known))
    return tables


def _values(row: Row, column: Column) -> dict[str, float]:
    """The value of each item, by its id; nothing if the row has no value of the column, or one of a part of a
    benchmark.
    """
    source = row.sources.get(column.name)
    if source is None or column.subset is not None:
        return {}
    with closing(open_run(source.folder)) as run:
        return {score.id: score.value for score in run.scores(source.system, source.metric) if score.value is not None}


def item_discrimination(points: np.ndarray) -> np.ndarray:
    """The discrimination of every item, float64 `(items,)`; NaN for an item that tells no systems apart.

    Args:
        points: more is better, float64 `(items, systems)`, without NaN, of at least `FEWEST_SYSTEMS` systems.

    Raises:
        ValueError: there are fewer systems.
    """
    items, systems = points.shape
    if systems < FEWEST_SYSTEMS:
        raise ValueError(f"{systems} systems are too few to tell items apart; expected {FEWEST_SYSTEMS}")
    rest = (points.sum(axis=0) - points) / max(1, items - 1)
    centred = points - points.mean(axis=1, keepdims=True)
    other = rest - rest.mean(axis=1, keepdims=True)
    below = np.sqrt(np.square(centred).sum(axis=1) * np.square(other).sum(axis=1))
    scale = _SAME * max(1.0, float(np.abs(points).max(initial=0.0))) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > scale, (centred * other).sum(axis=1) / below, np.nan)

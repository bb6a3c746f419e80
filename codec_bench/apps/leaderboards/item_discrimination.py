"""Discrimination of a board's items over the user's systems.

It is the corrected item-total correlation: Pearson's, over systems, of an item's points with the mean of all other
items. Below 0 the item reverses the order, which hints at a wrong key or noise; with few systems it is noisy itself.
Items that all systems get alike have none. Reference: Lord and Novick 1968, "Statistical Theories of Mental Test
Scores", chapter 15.
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
    """The discrimination of one column's items over the user's systems.

    Args:
        items: number with values of all systems.
        discrimination: by item id; None for an item that separates no systems.
        note: why there is nothing.
    """

    column: str
    systems: int
    items: int
    discrimination: dict[str, float | None]
    note: str | None = None

    @property
    def alike(self) -> int:
        """How many items separate no systems."""
        return sum(value is None for value in self.discrimination.values())

    @property
    def against(self) -> list[str]:
        """The items that reverse the order, the worst first."""
        below = [(value, item) for item, value in self.discrimination.items() if value is not None and value < 0]
        return [item for _, item in sorted(below)]

    @property
    def mean(self) -> float | None:
        """The mean discrimination of the items that have one."""
        known = [value for value in self.discrimination.values() if value is not None]
        return float(np.mean(known)) if known else None


def board_items(board: Board) -> list[Items]:
    """Compute the items of each column with own values."""
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
    """Return the value of each item by id; empty for a partial benchmark."""
    source = row.sources.get(column.name)
    if source is None or column.subset is not None:
        return {}
    with closing(open_run(source.folder)) as run:
        return {score.id: score.value for score in run.scores(source.system, source.metric) if score.value is not None}


def item_discrimination(points: np.ndarray) -> np.ndarray:
    """Compute the discrimination of every item, float64 `(items,)`; NaN for none.

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

"""A leaderboard as JSON values, with the discrimination of its items.

Discrimination of a board's items over the user's systems.
It is the corrected item-total correlation: Pearson's, over systems, of an item's points with the mean of all other
items. Below 0 the item reverses the order, which hints at a wrong key or noise; with few systems it is noisy itself.
Items that all systems get alike have none. Reference: Lord and Novick 1968, "Statistical Theories of Mental Test
Scores", chapter 15.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.apps.leaderboards.board import Board, BoardRow, Column
from codec_bench.messages import Diagnostic, to_json
from codec_bench.report.open_run import open_run

if TYPE_CHECKING:
    from codec_bench.apps.leaderboards.board import Board, Likeness, Trust

SHOWN = 5
FEWEST_SYSTEMS = 3
_SAME = 1e-9


def plain_board(board: Board) -> dict[str, Any]:
    """Convert a board to JSON values, with trust and likeness if computed."""
    numbers = lambda values: {name: float(value) for name, value in values.items()}  # noqa: E731
    rows = [
        {
            "name": row.name, "published": row.published,
            "complete": row.complete and not (row.limited or row.short or row.unfinished), "limited": row.limited,
            "short": row.short, "parts": dict(row.parts), "apart": list(row.deviations), "rerouted": row.rerouted,
            "states": list(row.states), "unfinished": row.unfinished, "doubled": dict(row.earlier_values),
            "folders": list(row.folders), "missing": list(row.missing), "judged": dict(row.judged),
            "raters": {column: {"judge": one.judge, "served": list(one.served), "rubric": one.rubric,
                "in_place_of": one.named} for column, one in row.raters.items()},
            "average": float(row.average) if row.average is not None else None,
            "cells": numbers(row.cells), "means": numbers(row.means), "printed": numbers(row.printed), "note": row.note,
            "views": numbers({v.name: value for v in board.views if (value := v.value(row)) is not None}),
            "intervals": {column: [float(end) for end in ends] for column, ends in row.intervals.items()},
            "beyond_the_text": {
                column: {"value": float(value), "ci95": None if ends is None else [float(end) for end in ends]}
                for column, (value, ends) in row.gains_over_text.items()
            },
            "policies": {column: numbers(values) for column, values in row.policies.items()},
            **to_json({"failures": row.failures}),
            "worded": {column: numbers(values) for column, values in row.wording_spreads.items()},
            "sources": {column: asdict(source) for column, source in row.sources.items()},
        }
        for row in board.rows
    ]  # fmt: skip
    if board.trust is not None:
        for row, trust_values in zip(rows, _trust_values(board, board.trust), strict=True):
            row.update(trust_values)
    columns = [{"name": c.name, "group": c.group, "unit": c.unit, "chance": c.chance} for c in board.columns]
    facts = {"name": board.name, "summary": board.summary, "source": board.source, "columns": columns}
    more: dict[str, Any] = {}
    if board.trust is not None:
        more["dispensable"] = [{"column": c, "tau": tau} for c, tau in board.trust.dispensable]
    if board.likeness is not None:
        more["correlations"] = _likeness_values(board.likeness)
    notes = to_json({"mixed": board.mixed})
    return {**facts, "rows": rows, "ignored": list(board.ignored), **notes, "judges": board.judge_notes, **more}


def _likeness_values(likeness: Likeness) -> dict[str, Any]:
    """Convert correlations of columns to JSON values."""
    pairs = [
        {
            "columns": [likeness.columns[pair.first], likeness.columns[pair.second]], "rows": pair.rows,
            "spearman": pair.spearman.as_dict(), "kendall": pair.kendall.as_dict(),
        }
        for pair in likeness.pairs
    ]  # fmt: skip
    return {"order": list(likeness.order), "pairs": pairs}


def _trust_values(board: Board, trust: Trust) -> list[dict[str, Any]]:
    """Convert a board's rank uncertainty to JSON values, by row."""
    pair = lambda span: None if span is None else list(span)  # noqa: E731
    return [
        {
            "rank": one.rank,
            "robustness": {**{rule: pair(span) for rule, span in one.spans.items()}, **to_json({"notes": one.notes})},
            "rank_interval": pair(trust.rank_intervals[row]), **to_json({"rank_note": trust.notes[row]}),
            "tied": list(trust.tied[row]),
            "rank_shares": {str(rank): share for rank, share in trust.shares[row].items()},
            "above": [
                {"name": board.rows[other].name, "published": board.rows[other].published, "share": share}
                for other, share in trust.above[row].items()
            ],
        }
        for row, one in enumerate(trust.robustness)
    ]  # fmt: skip


def plain_items(one: Items) -> dict[str, Any]:
    """Convert the items of a column."""
    return {
        "column": one.column, "systems": one.systems, "items": one.items, "alike": one.alike, "mean": one.mean,
        **to_json({"note": one.note}), "discrimination": one.discrimination,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Items:
    """The discrimination of one column's items over the user's systems.

    Args:
        items: number with values of all systems.
        discrimination: by item id; None for an item that separates no systems.
    """

    column: str
    systems: int
    items: int
    discrimination: dict[str, float | None]
    note: Diagnostic | None = None

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
    """Compute each item's discrimination, for columns with values of the user's runs."""
    tables = []
    for column in board.columns:
        values = {row.name: held for row in board.rows if row.compared and (held := _values(row, column))}
        if not values:
            continue
        shared = sorted(set.intersection(*(set(held) for held in values.values())))
        is_small = len(values) < FEWEST_SYSTEMS
        if is_small or not shared:
            why = Diagnostic("no_item_of_all_systems")
            if is_small:
                why = Diagnostic("few_own_systems", systems=len(values), needed=FEWEST_SYSTEMS)
            tables.append(Items(column.name, len(values), len(shared), {}, why))
            continue
        points = np.asarray([[held[item] for held in values.values()] for item in shared])
        result = item_discrimination(points * np.sign(column.points_of_unit))
        known = {item: None if np.isnan(value) else float(value) for item, value in zip(shared, result, strict=True)}
        tables.append(Items(column.name, len(values), len(shared), known))
    return tables


def _values(row: BoardRow, column: Column) -> dict[str, float]:
    """Return the run's value of each item, by id; empty for a subset of a benchmark."""
    source = row.sources.get(column.name)
    if source is None or column.subset is not None:
        return {}
    with closing(open_run(source.folder)) as run:
        return {score.id: score.value for score in run.scores(source.system, source.metric) if score.value is not None}


def item_discrimination(points: np.ndarray) -> np.ndarray:
    """Correlate each item's points with the systems' means over the other items.

    Args:
        points: more is better, float64 `(items, systems)`, without NaN, of at least `FEWEST_SYSTEMS` systems.

    Returns:
        Item-rest correlations, float64 `(items,)`; NaN if all systems have the same points.

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

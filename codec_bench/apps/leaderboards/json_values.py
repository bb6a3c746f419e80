"""A leaderboard as JSON values."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codec_bench.apps.leaderboards.board import Board, Likeness, Trust
    from codec_bench.apps.leaderboards.item_discrimination import Items


def plain_board(board: Board) -> dict[str, Any]:
    """Convert a board's columns and rows, with trust and likeness."""
    numbers = lambda values: {name: float(value) for name, value in values.items()}  # noqa: E731
    rows = [
        {
            "name": row.name, "published": row.published,
            "complete": row.complete and not (row.limited or row.short or row.unfinished), "limited": row.limited,
            "short": row.short, "parts": dict(row.parts), "apart": list(row.apart), "rerouted": row.rerouted,
            "states": list(row.states), "unfinished": row.unfinished, "doubled": dict(row.doubled),
            "folders": list(row.folders), "missing": list(row.missing), "judged": dict(row.judged),
            "raters": {column: {"judge": one.judge, "served": list(one.served), "rubric": one.rubric,
                "in_place_of": one.named} for column, one in row.raters.items()},
            "average": float(row.average) if row.average is not None else None,
            "cells": numbers(row.cells), "means": numbers(row.means), "printed": numbers(row.printed), "note": row.note,
            "views": numbers({v.name: value for v in board.views if (value := v.value(row)) is not None}),
            "intervals": {column: [float(end) for end in ends] for column, ends in row.intervals.items()},
            "beyond_the_text": {
                column: {"value": float(value), "ci95": None if ends is None else [float(end) for end in ends]}
                for column, (value, ends) in row.beyond.items()
            },
            "policies": {column: numbers(values) for column, values in row.policies.items()},
            "worded": {column: numbers(values) for column, values in row.worded.items()},
            "sources": {column: asdict(source) for column, source in row.sources.items()},
        }
        for row in board.rows
    ]  # fmt: skip
    if board.trust is not None:
        for row, trust_values in zip(rows, _plain_trust(board, board.trust), strict=True):
            row.update(trust_values)
    columns = [{"name": c.name, "group": c.group, "unit": c.unit, "chance": c.chance} for c in board.columns]
    facts = {"name": board.name, "summary": board.summary, "source": board.source, "columns": columns}
    more: dict[str, Any] = (
        {}
        if board.trust is None
        else {"dispensable": [{"column": c, "tau": tau} for c, tau in board.trust.dispensable]}
    )
    if board.likeness is not None:
        more["correlations"] = _plain_likeness(board.likeness)
    return {**facts, "rows": rows, "ignored": list(board.ignored), "mixed": board.mixed, "judges": board.judges, **more}


def _plain_likeness(likeness: Likeness) -> dict[str, Any]:
    pairs = [
        {
            "columns": [likeness.columns[pair.first], likeness.columns[pair.second]], "rows": pair.rows,
            "spearman": pair.spearman.as_dict(), "kendall": pair.kendall.as_dict(),
        }
        for pair in likeness.pairs
    ]  # fmt: skip
    return {"order": list(likeness.order), "pairs": pairs}


def _plain_trust(board: Board, trust: Trust) -> list[dict[str, Any]]:
    pair = lambda span: None if span is None else list(span)  # noqa: E731
    return [
        {
            "rank": one.rank,
            "robustness": {**{rule: pair(span) for rule, span in one.spans.items()}, "notes": list(one.notes)},
            "rank_interval": pair(trust.rank_intervals[row]), "rank_note": trust.notes[row],
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
        "note": one.note, "discrimination": one.discrimination,
    }  # fmt: skip

"""A published leaderboard with the runs of a site among its rows, and how much to trust its ranks, as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from codec_bench.report.board import Board, Row


def published_board(board: Board, keys: Mapping[Path, str]) -> dict[str, Any]:
    """The data file of a published leaderboard.

    Args:
        board: as `leaderboard` gives it, with `trust` and `likeness` where they are known.
        keys: the keys of the site's runs, by their folders.
    """
    trust, like = board.trust, board.likeness
    rows = []
    for n, row in enumerate(board.rows):
        found = _row(row, board, keys)
        if trust is not None:
            rank = trust.robustness[n]
            found |= {
                "rank": rank.rank,
                "ranks": [rank.leave_one_benchmark_out, rank.leave_one_group_out, rank.other_normalisations],
                "interval": trust.rank_intervals[n],
                "tied": list(trust.tied[n]),
                "why": [*rank.notes, *([trust.notes[n]] if trust.notes[n] else [])],
            }
        rows.append(found)
    return {
        "name": board.name,
        "summary": board.summary,
        "source": board.source,
        "averages": board.averages,
        "columns": [{"name": column.name, "unit": column.unit, "benchmark": column.benchmark} for column in board.columns],
        "means": list(board.means),
        "views": [{"name": view.name, "columns": list(view.columns)} for view in board.views],
        "rows": rows,
        "trusted": trust is not None,
        "dispensable": [] if trust is None else [[name, round(tau, 4)] for name, tau in trust.dispensable],
        "like": None if like is None else {
            "order": list(like.order),
            "pairs": [
                [like.columns[pair.first], like.columns[pair.second], pair.spearman.value, pair.spearman.low, pair.spearman.high]
                for pair in like.pairs
            ],
        },
    }  # fmt: skip


def _row(row: Row, board: Board, keys: Mapping[Path, str]) -> dict[str, Any]:
    cells = [str(row.cells[c.name]) if c.name in row.cells else row.judged.get(c.name) for c in board.columns]
    return {
        "name": row.name,
        "cells": cells,
        "means": {group: _text(row.shown_mean(group)) for group in board.means},
        "views": [_text(view.value(row)) for view in board.views],
        "average": _text(row.shown_average),
        "complete": row.complete,
        "limited": row.limited,
        "unfinished": row.unfinished,
        "doubled": dict(row.doubled),
        "published": row.published,
        "note": row.note,
        "runs": [key for folder in row.folders if (key := keys.get(Path(folder).resolve())) is not None],
    }


def _text(value: Decimal | None) -> str | None:
    return None if value is None else str(value)

"""Published leaderboards with the site's runs, and codecs, as JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from codec_bench.apps.leaderboards.board import Board, BoardRow, Column
from codec_bench.apps.leaderboards.codecs import CodecBoard, CodecTable
from codec_bench.apps.leaderboards.ranking import OTHER_RULES
from codec_bench.report.page.column_heads import head_of
from codec_bench.stats.summary_types import Estimate

_KBPS = {"unit": "bps", "higher_is_better": False, "summary": "The bitrate."}


def published_board(board: Board, keys: Mapping[Path, str]) -> dict[str, Any]:
    """Build the content of a published leaderboard's data file.

    Args:
        keys: the keys of the site's runs, by their folders.
    """
    trust, like = board.trust, board.likeness
    rows = []
    for n, row in enumerate(board.rows):
        cells = _row_values(row, board, keys)
        if trust is not None:
            rank = trust.robustness[n]
            cells |= {
                "rank": rank.rank,
                "ranks": list(rank.spans.values()),
                "interval": trust.rank_intervals[n],
                "shares": [[rank, round(share, 4)] for rank, share in trust.shares[n].items()],
                "tied": list(trust.tied[n]),
                "why": [*rank.notes, *([trust.notes[n]] if trust.notes[n] else [])],
            }
        rows.append(cells)
    return {
        "name": board.name, "summary": board.summary, "source": board.source, "averages": board.averages,
        "columns": [{"name": column.name, "unit": column.unit,
            "higher": column.counts != "error"} for column in board.columns],
        "means": list(board.means),
        "views": [{"name": view.name, "columns": list(view.columns)} for view in board.views], "rows": rows,
        "mixed": [*board.mixed, *board.judge_notes], "trusted": trust is not None,
        "rules": [head.capitalize() for head in OTHER_RULES.values()],
        "dispensable": [] if trust is None else [[name, round(tau, 4)] for name, tau in trust.dispensable],
        "like": None if like is None else {
            "order": list(like.order),
            "pairs": [
                [like.columns[pair.first], like.columns[pair.second], pair.spearman.value, pair.spearman.low,
                    pair.spearman.high]
                for pair in like.pairs
            ],
        },
    }  # fmt: skip


def _row_values(row: BoardRow, board: Board, keys: Mapping[Path, str]) -> dict[str, Any]:
    """Convert a board's row to the JSON values of the page."""
    cells = [str(row.cells[c.name]) if c.name in row.cells else row.judged.get(c.name) for c in board.columns]
    return {
        "name": row.name,
        "cells": cells,
        "means": {group: _mean(row, board, group) for group in board.means},
        "views": [_text(view.value(row)) for view in board.views],
        "average": _text(row.shown_average),
        "complete": row.complete,
        "lacking": board.lacking(row),
        "limited": row.limited or row.short,
        "unfinished": row.unfinished,
        "doubled": dict(row.earlier_values),
        "failures": list(row.failures),
        "published": row.published,
        "note": row.note,
        "links": [_link(row, column, keys) for column in board.columns] if row.sources else [],
    }


def _mean(row: BoardRow, board: Board, group: str) -> str | None:
    mean = _text(row.shown_mean(group))
    return f"{mean} (part)" if mean is not None and board.is_part(row, group) else mean


def _link(row: BoardRow, column: Column, keys: Mapping[Path, str]) -> list[str] | None:
    """Return [run, system, metric] behind a cell; None if no run of the site has it."""
    source = row.sources.get(column.name)
    key = None if source is None else keys.get(Path(source.folder).resolve())
    return None if source is None or key is None else [key, source.system, source.metric]


def published_codecs(board: CodecBoard) -> dict[str, Any]:
    """Build the content of the data file of published codecs: a board for each source."""
    groups: dict[tuple[str, str], list[CodecTable]] = {}
    for table in board.tables:
        groups.setdefault((table.source, table.data), []).append(table)
    return {
        "name": "codecs",
        "summary": "Codecs that others measured, by their own protocols: quality against bitrate.",
        "tables": [_codec_table(source, data, tables) for (source, data), tables in groups.items()],
    }


def _codec_table(source: str, data: str, tables: Sequence[CodecTable]) -> dict[str, Any]:
    """Build a table of codecs; `front` lists a row's columns on the Pareto front."""
    points = {point.name: point for table in tables for point in table.points}
    of = [{point.name: point for point in table.points} for table in tables]
    heads = [head_of("bitrate", "", _KBPS, [Estimate(point.costs["bitrate"]) for point in points.values()])]
    for table in tables:
        facts = {"unit": table.unit, "higher_is_better": table.higher_is_better}
        heads.append(head_of(table.metric, table.protocol, facts, [Estimate(point.value) for point in table.points]))
    rows = [
        {
            "system": name,
            "family": point.family,
            "cells": [[point.costs["bitrate"]], *([held[name].value] if name in held else None for held in of)],
            "front": [c for c, held in enumerate(of, 1) if name in held and held[name].on_front],
        }
        for name, point in points.items()
    ]
    return {"source": source, "data": data, "columns": heads, "rows": rows}


def _text(value: Decimal | None) -> str | None:
    return None if value is None else str(value)

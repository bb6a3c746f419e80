"""The section of the page with results by the values of a column: a table for each column and metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codec_bench.report import numbers
from codec_bench.report.breakdown.rows import break_down, columns_of, subsets_of
from codec_bench.stats.summary_types import BITRATE, MetricSummary


def breakdown_tables(
    heads: Sequence[Mapping[str, Any]], entries: Sequence[Sequence[MetricSummary | None]]
) -> list[dict[str, Any]]:
    """The tables, by column and then by metric: `column`, `head`, `systems` (their places), `table` and `shown`.

    The first table of a metric that is not the bitrate is `shown` first.

    Args:
        heads: of the page.
        entries: of the summaries, by system and by head.
    """
    tables: list[dict[str, Any]] = []
    for column in columns_of([entry for row in entries for entry in row]):
        for c, head in enumerate(heads):
            places = [s for s, row in enumerate(entries) if column in subsets_of(row[c])]
            if places:
                table = break_down(column, [entries[s][c] for s in places], head["factor"])
                tables.append(
                    {"column": numbers.plain(column), "head": c, "systems": places, "table": table, "shown": False}
                )
    chosen = next((table for table in tables if heads[table["head"]]["name"] != BITRATE), tables[0] if tables else None)
    if chosen is not None:
        chosen["shown"] = True
    return tables

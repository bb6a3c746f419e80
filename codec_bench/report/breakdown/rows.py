"""Results by the values of a column: tables on the page and in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codec_bench.messages.errors import first_of
from codec_bench.report import numbers
from codec_bench.report.chance_level import chance_text
from codec_bench.stats.summary_types import BITRATE, MetricSummary, Subset, Summary

MOST_ROWS = 60
"""The most values of a column in tables; `summary.json` holds all."""
WITHOUT = "no value"
"""The name of the group without a value in a column."""
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class BreakdownCell:
    """One system's result over the samples of one value."""

    value: str
    spread: str
    n: int
    failed: int
    note: str
    chance: str = ""


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """The results over the samples of one value; a system without results has no cell."""

    name: str
    samples: int
    cells: Sequence[BreakdownCell | None]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The results of one metric by the values of one column, `MOST_ROWS` at most."""

    rows: Sequence[BreakdownRow]
    hidden_rows: int
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of texts, with a title above and notes below."""

    title: str
    heads: list[str]
    rows: list[list[str]]
    notes: list[str]


def columns_of(entries: Sequence[MetricSummary | None]) -> list[str]:
    """Return the columns by which the results of some systems are broken down."""
    return list(dict.fromkeys(column for entry in entries for column in subsets_of(entry)))


def subsets_of(entry: MetricSummary | None) -> Mapping[str, Mapping[str, Subset]]:
    """Return a system's results by column and value; empty without the metric."""
    return {} if entry is None else entry.subsets or {}


def break_down(column: str, entries: Sequence[MetricSummary | None], factor: float) -> Breakdown:
    """Break down a metric by the values of a column, in the unit scaled by `factor`."""
    of_systems = [subsets_of(entry).get(column, {}) for entry in entries]
    names = list(dict.fromkeys(name for of_system in of_systems for name in of_system))
    places = numbers.decimals([row for of_system in of_systems for row in of_system.values()], factor)
    rows = []
    for name in names[:MOST_ROWS]:
        cells = [None if name not in of_system else _cell(of_system[name], places, factor) for of_system in of_systems]
        samples = max(cell.n + cell.failed for cell in cells if cell is not None)
        rows.append(BreakdownRow(shown_name(name), samples, cells))
    return Breakdown(rows, len(names) - len(rows), _notes(rows))


def shown_name(name: str) -> str:
    """Return the name of a value, safe to print."""
    return numbers.plain(name) if name else WITHOUT


def _cell(entry: Subset, places: int, factor: float) -> BreakdownCell:
    value = None if entry.value is None else factor * entry.value
    spread = numbers.spread(entry, places, factor) if value is not None else ""
    return BreakdownCell(
        numbers.number(value, places), spread, entry.n, entry.failed, entry.note or "", chance_text(entry)
    )


def _notes(rows: Sequence[BreakdownRow]) -> list[str]:
    """Notes on missing or weak intervals, each with the rows that it concerns."""
    names_by_note: dict[tuple[bool, str], dict[str, None]] = {}
    for row in rows:
        for cell in row.cells:
            if cell is not None and cell.note and cell.n:
                names_by_note.setdefault((not cell.spread, cell.note), {})[row.name] = None
    sentences = []
    for (without, note), names in names_by_note.items():
        about = "" if len(names) == len(rows) else f" ({first_of(list(names), _MOST_NAMED)})"
        sentences.append(f"interval missing{about}: {note}" if without else f"* interval{about}: {note}")
    return sentences


def page_tables(
    heads: Sequence[Mapping[str, Any]], entries: Sequence[Sequence[MetricSummary | None]]
) -> list[dict[str, Any]]:
    """Return the page's tables by column and metric, as mappings.

    Keys: `column`, `head`, `systems` (positions), `table`, and `shown` for the first one of a metric other than
    bitrate.

    Args:
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


def terminal_tables(summary: Summary) -> Iterator[TextTable]:
    """Yield a table per breakdown column and metric."""
    systems = summary.systems
    metrics = dict.fromkeys(metric for _, metric, _ in summary.entries)
    entries = {name: [system.metrics.get(name) for system in systems.values()] for name in metrics}
    for column in columns_of([entry for of_metric in entries.values() for entry in of_metric]):
        for metric, of_metric in entries.items():
            facts = next(entry for entry in of_metric if entry is not None)
            factor, unit = numbers.shown_unit(facts.unit)
            title = " ".join(filter(None, (metric, unit and f"({unit})", numbers.ARROWS[facts.higher_is_better])))
            breakdown = break_down(column, of_metric, factor)
            hidden = breakdown.hidden_rows
            more = [f"{hidden:,} more values of this column are in summary.json"] if hidden else []
            shown = [numbers.plain(numbers.marked(name, held)) for name, held in systems.items()]
            yield TextTable(
                title=numbers.plain(f"{title} by {column}"),
                heads=[numbers.plain(column), "samples", *shown],
                rows=[[row.name, f"{row.samples:,}", *map(_written, row.cells)] for row in breakdown.rows],
                notes=[*breakdown.notes, *more],
            )


def _written(cell: BreakdownCell | None) -> str:
    if cell is None or not cell.n:
        return "–"
    about = (cell.chance and f"({cell.chance})", f"(n = {cell.n:,})" if cell.failed else "")
    return " ".join(filter(None, (cell.value, cell.spread, *about)))

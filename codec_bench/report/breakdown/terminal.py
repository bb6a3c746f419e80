"""Results by the values of a column as tables of texts, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codec_bench.report import numbers
from codec_bench.report.breakdown.rows import Cell, break_down, columns_of
from codec_bench.stats.summary_types import Summary


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of texts: what stands above it, its heads and rows, and the sentences below it."""

    title: str
    heads: list[str]
    rows: list[list[str]]
    notes: list[str]


def breakdown_tables(summary: Summary) -> Iterator[TextTable]:
    """A table for each column that a summary is broken down by and each metric; nothing without such columns."""
    systems = summary.systems
    metrics = dict.fromkeys(metric for _, metric, _ in summary.entries)
    entries = {name: [system.metrics.get(name) for system in systems.values()] for name in metrics}
    for column in columns_of([entry for of_metric in entries.values() for entry in of_metric]):
        for metric, of_metric in entries.items():
            facts = next(entry for entry in of_metric if entry is not None)
            factor, unit = numbers.shown_unit(facts.unit)
            title = " ".join(filter(None, (metric, unit and f"({unit})", numbers.ARROWS[facts.higher_is_better])))
            found = break_down(column, of_metric, factor)
            more = [f"{found.left_out:,} more values of this column are in summary.json"] if found.left_out else []
            yield TextTable(
                title=numbers.plain(f"{title} by {column}"),
                heads=[numbers.plain(found.column), "samples", *map(numbers.plain, systems)],
                rows=[[row.name, f"{row.samples:,}", *map(_written, row.cells)] for row in found.rows],
                notes=[*found.notes, *more],
            )


def _written(cell: Cell | None) -> str:
    if cell is None or not cell.n:
        return "–"
    about = (cell.chance and f"({cell.chance})", f"(n = {cell.n:,})" if cell.failed else "")
    return " ".join(filter(None, (cell.value, cell.spread, *about)))

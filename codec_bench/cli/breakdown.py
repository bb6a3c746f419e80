"""Prints results by the values of a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codec_bench.cli.output import console
from codec_bench.report import numbers
from codec_bench.report.breakdown import Breakdown, Cell, break_down, columns_of


def print_breakdowns(summary: Mapping[str, Any]) -> None:
    """Prints a table for each column that a summary is broken down by and each metric; nothing without such columns."""
    systems = summary["systems"]
    metrics = dict.fromkeys(name for system in systems.values() for name in system["metrics"])
    entries = {name: [system["metrics"].get(name) for system in systems.values()] for name in metrics}
    for column in columns_of([entry for of_metric in entries.values() for entry in of_metric]):
        for metric, of_metric in entries.items():
            facts = next(entry for entry in of_metric if entry is not None)
            factor, unit = numbers.shown_unit(facts["unit"])
            title = " ".join(filter(None, (metric, unit and f"({unit})", numbers.ARROWS[facts["higher_is_better"]])))
            _print(numbers.plain(f"{title} by {column}"), list(systems), break_down(column, of_metric, factor))


def _print(title: str, systems: list[str], found: Breakdown) -> None:
    from rich.text import Text

    from codec_bench.report.table import wide_table

    out = console()
    heads = [numbers.plain(found.column), "samples", *map(numbers.plain, systems)]
    rows = [(row.name, f"{row.samples:,}", *map(_written, row.cells)) for row in found.rows]
    out.print(Text(f"\n{title}", style="bold"))
    out.print(wide_table(heads, rows, out.width))
    for note in found.notes:
        out.print(Text(note))
    if found.left_out:
        out.print(f"{found.left_out:,} more values of this column are in summary.json")


def _written(cell: Cell | None) -> str:
    if cell is None or not cell.n:
        return "–"
    return " ".join(
        filter(
            None,
            (cell.value, cell.spread, cell.chance and f"({cell.chance})", f"(n = {cell.n:,})" if cell.failed else ""),
        )
    )

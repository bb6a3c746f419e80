"""Results by the values of a column, as the rows of tables: one table for each column and metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codec_bench.report import numbers
from codec_bench.report.chance_level import chance_text
from codec_bench.stats.summary_types import MetricSummary, Subset

MOST_ROWS = 60
"""The most values of a column that tables show; `summary.json` holds all."""
WITHOUT = "no value"
"""What the group of the samples that have no value in a column is called."""
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Cell:
    """One system's result over the samples of one value.

    Args:
        value, spread: as they are written. n, failed: samples with and without a score. note: of the interval, or "".
        chance: the chance level as it is written, or "".
    """

    value: str
    spread: str
    n: int
    failed: int
    note: str
    chance: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The results over the samples of one value; `samples` counts them, and a system without results has no cell."""

    name: str
    samples: int
    cells: Sequence[Cell | None]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The results of one metric by the values of one column.

    Args:
        column: its name.
        rows: one for each value, `MOST_ROWS` at most. left_out: how many values have no row.
        notes: what to know of the intervals; one sentence each.
    """

    column: str
    rows: Sequence[Row]
    left_out: int
    notes: Sequence[str]


def columns_of(entries: Sequence[MetricSummary | None]) -> list[str]:
    """The columns by which the results of some systems are broken down."""
    return list(dict.fromkeys(column for entry in entries for column in subsets_of(entry)))


def subsets_of(entry: MetricSummary | None) -> Mapping[str, Mapping[str, Subset]]:
    """The results of a system by column and value; nothing for a system without the metric."""
    return {} if entry is None else entry.subsets or {}


def break_down(column: str, entries: Sequence[MetricSummary | None], factor: float) -> Breakdown:
    """The results of one metric by the values of a column.

    Args:
        column: one that `columns_of` gives.
        entries: of the summary, one for each system; None for a system without the metric.
        factor: to the unit in which values are shown.
    """
    found = [subsets_of(entry).get(column, {}) for entry in entries]
    names = list(dict.fromkeys(name for of_system in found for name in of_system))
    places = numbers.decimals([row for of_system in found for row in of_system.values()], factor)
    rows = []
    for name in names[:MOST_ROWS]:
        cells = [None if name not in of_system else _cell(of_system[name], places, factor) for of_system in found]
        samples = max(cell.n + cell.failed for cell in cells if cell is not None)
        rows.append(Row(shown_name(name), samples, cells))
    return Breakdown(column, rows, len(names) - len(rows), _notes(rows))


def shown_name(name: str) -> str:
    """The name of a value, safe to print."""
    return numbers.plain(name) if name else WITHOUT


def _cell(entry: Subset, places: int, factor: float) -> Cell:
    value = None if entry.value is None else factor * entry.value
    spread = numbers.spread(entry, places, factor) if value is not None else ""
    return Cell(numbers.number(value, places), spread, entry.n, entry.failed, entry.note or "", chance_text(entry))


def _notes(rows: Sequence[Row]) -> list[str]:
    told: dict[tuple[bool, str], dict[str, None]] = {}
    for row in rows:
        for cell in row.cells:
            if cell is not None and cell.note and cell.n:
                told.setdefault((not cell.spread, cell.note), {})[row.name] = None
    sentences = []
    for (without, note), names in told.items():
        listed = ", ".join(list(names)[:_MOST_NAMED]) + (
            f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        )
        about = "" if len(names) == len(rows) else f" ({listed})"
        sentences.append(f"no interval{about}: {note}" if without else f"* interval{about}: {note}")
    return sentences

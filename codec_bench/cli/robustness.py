"""Prints what the wordings of a prompt and the order of options do to the scores and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codec_bench.cli.output import console
from codec_bench.report.robustness import Cell, choice_notes, robustness_of

_TEXT = 60
"""Characters of a wording that are shown; the page and `summary.json` have all."""


def print_robustness(title: str, metrics: Mapping[str, Mapping[str, Any]], answers: Mapping[str, Any] | None) -> None:
    """Prints a table of the wordings if every question was asked in all of them, and what it says in words; else the words alone.

    Args:
        title: what the table is about. metrics, answers: as for `report.robustness.robustness_of`.
    """
    from rich.text import Text

    from codec_bench.report.table import wide_table

    found = robustness_of(metrics, answers)
    if found is None:
        return
    out = console()
    if found.same:
        heads = ["wording", "", *found.metrics, "no answers", "text"]
        rows = [
            (row.name, "!" if row.stands_out else "", *map(_written, row.cells), row.none or "–", _shortened(row.text))
            for row in found.rows
        ]
        out.print(Text(f"\n{title} by wording (! stands out)", style="bold"))
        out.print(wide_table(heads, rows, out.width))
    for sentence in found.sentences:
        out.print(Text(f"{title}: {sentence}"))


def print_choices(title: str, choices: Mapping[str, Any] | None) -> None:
    """Prints what the order of the options does to the answers; nothing if it was that of the data.

    Args:
        title: what it is about. choices: the entry `choices` of the summary's `answers`.
    """
    for note in choice_notes(choices):
        console().print(f"{title}: {note}", markup=False)


def _written(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    return " ".join(filter(None, (cell.value, cell.spread, f"({cell.failed:,} failed)" if cell.failed else "")))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT else f"{line[: _TEXT - 1]}…"

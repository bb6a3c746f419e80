"""What wordings of a prompt do to scores, as a table of texts for the terminal."""

from __future__ import annotations

from codec_bench.report.robustness.rows import Cell, Wordings

_TEXT = 60
"""Characters of a wording that are shown; the page and `summary.json` have all."""


def wording_heads(found: Wordings) -> list[str]:
    """The heads of the table."""
    return ["wording", "", *found.metrics, "no answers", "text"]


def wording_rows(found: Wordings) -> list[list[str]]:
    """A row of texts for each wording; an exclamation mark stands beside one that stands out."""
    return [
        [row.name, "!" if row.stands_out else "", *map(_written, row.cells), row.none or "–", _shortened(row.text)]
        for row in found.rows
    ]


def _written(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    return " ".join(filter(None, (cell.value, cell.spread, f"({cell.failed:,} failed)" if cell.failed else "")))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT else f"{line[: _TEXT - 1]}…"

"""A run's summary as a table in CSV, Markdown, LaTeX and HTML.

Systems are rows and metrics columns; the CSV has a row for each pair. Numbers are formatted as in `report.numbers`; the
best are bold (`stats.verdict`). Suspect systems are marked, with findings below.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from codec_bench.messages.errors import count_of
from codec_bench.report import numbers
from codec_bench.report.chance_level import chance_text, value_notes
from codec_bench.report.controls.rows import control_notes
from codec_bench.report.result_columns import CSV_COLUMNS, columns_in
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import MetricSummary, Summary
from codec_bench.store.export import Target, check_format, opened, write_csv
from codec_bench.store.record import Run

COLUMNS = tuple(column.name for column in CSV_COLUMNS)
FORMATS = ("csv", "markdown", "latex")
_MARKDOWN = re.compile(r"([\\`*_\[\]<>&|~#$])")
_LATEX = {
    **{letter: f"\\{letter}" for letter in "_%&#${}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\symbol{34}",
    # At the start of a row these would belong to the command before.
    "[": "{[}", "*": "{*}",
    "−": "$-$", "–": r"\textendash{}", "±": r"$\pm$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "…": r"\ldots{}",
    "≈": r"$\approx$", "�": "?",
}  # fmt: skip


_LONGEST_NOTE = 4_000
"""Characters."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A value, its interval, and its number of items if the row does not state it."""

    value: str
    spread: str = ""
    items: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class _PaperTable:
    heads: Sequence[str]
    rows: Sequence[tuple[Sequence[str], Sequence[_Cell]]]
    """The name of a system, its extra columns and a cell for each metric."""
    notes: Sequence[str]
    protocols: str

    @property
    def notes_with_protocols(self) -> list[str]:
        """The notes; the last one ends with the protocols."""
        return [*self.notes[:-1], f"{self.notes[-1]} {self.protocols}"]


def export_summary(run: Run, form: str, out: Target) -> None:
    """Write the summary of a run to a file, or to standard output.

    Args:
        form: `csv`, `markdown` or `latex`.

    Raises:
        UserError: the format is unknown or does not fit the other arguments, or the file cannot be written.
    """
    check_format(form, FORMATS, "without --summary: csv, jsonl or parquet")
    summary = summarise(run)
    with opened(out) as file:
        if form == "csv":
            write_csv(file, COLUMNS, summary_rows(summary))
        else:
            render = summary_markdown if form == "markdown" else summary_latex
            file.write(render(summary, _unfinished_note(run)))


def _unfinished_note(run: Run) -> list[str]:
    """A note on a run that has not finished; [] for a finished one."""
    if run.meta.get("state") in (None, "finished"):
        return []
    counts = run.counts()
    so_far = f"{counts['finished']:,} of {counts['items']:,} items so far"
    return [f"the run is not finished: {so_far}; all values are from these"]


def summary_rows(summary: Summary) -> list[list[Any]]:
    """Return a row for each system and metric, in the columns of `COLUMNS`."""
    return [
        [column.read(name, metric, _finite(entry), held) for column in CSV_COLUMNS]
        for name, held in summary.systems.items()
        for metric, entry in held.metrics.items()
    ]


def summary_markdown(summary: Summary, first: Sequence[str] = ()) -> str:
    """Return the summary in Markdown with notes below, those in `first` first."""

    def shown(cell: _Cell) -> str:
        value = f"**{_markdown(cell.value)}**" if cell.best else _markdown(cell.value)
        return " ".join(filter(None, (value, _markdown(cell.spread), cell.items)))

    table = _table(summary)
    heads = list(map(_markdown, (*_extra_heads(summary), *table.heads)))
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)]]
    lines += [[*map(_markdown, extra_cells), *map(shown, cells)] for extra_cells, cells in table.rows]
    notes = "".join(f"\n- {_markdown(note)}" for note in (*first, *table.notes_with_protocols))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n{notes}\n"


def summary_latex(summary: Summary, first: Sequence[str] = ()) -> str:
    """Return the summary in LaTeX (booktabs) with notes below, those in `first` first."""

    def shown(cell: _Cell) -> str:
        value = rf"\textbf{{{latex_text(cell.value)}}}" if cell.best else latex_text(cell.value)
        return " ".join(filter(None, (value, latex_text(cell.spread), latex_text(cell.items))))

    table = _table(summary)
    lines = [[*map(latex_text, extra_cells), *map(shown, cells)] for extra_cells, cells in table.rows]
    heads = list(map(latex_text, (*_extra_heads(summary), *table.heads)))
    comment = f"% {numbers.plain(table.protocols, _LONGEST_NOTE)}\n"
    return comment + latex_table(f"l{'r' * (len(heads) - 1)}", heads, lines, (*first, *table.notes))


def latex_table(aligned: str, heads: Sequence[str], lines: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Return a LaTeX table (booktabs) with notes below.

    Args:
        aligned: a letter for each column.
        heads, lines: cells in LaTeX.
        notes: plain texts.
    """
    cells = [" & ".join(line) + r" \\" for line in lines]
    body = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{aligned}}}", r"\toprule"]
    body += [" & ".join(heads) + r" \\", r"\midrule", *cells, r"\bottomrule", r"\end{tabular}", r"\par\smallskip"]
    body += [r"\begin{minipage}{\linewidth}\footnotesize\raggedright", *(latex_text(note) + r"\par" for note in notes)]
    text = "\n".join([*body, r"\end{minipage}", r"\end{table}"]) + "\n"
    needs = "% Needs \\usepackage[T1]{fontenc} and \\usepackage{booktabs}.\n"
    if any(ord(letter) > 255 for letter in text):
        needs += (
            "% Some names have letters that pdfLaTeX does not know: use LuaLaTeX or XeLaTeX and a font that has them.\n"
        )
    return needs + text


def summary_html(summary: Summary) -> str:
    """Return the summary in HTML with notes below, without scripts and links."""

    def shown(cell: _Cell) -> str:
        value = f"<b>{_html(cell.value)}</b>" if cell.best else _html(cell.value)
        more = " ".join(filter(None, (cell.spread, cell.items)))
        return f"<td>{value} <small>{_html(more)}</small></td>" if more else f"<td>{value}</td>"

    table = _table(summary)
    heads = "".join(f"<th>{_html(head)}</th>" for head in (*_extra_heads(summary), *table.heads))
    rows = "".join(
        f'<tr><th style="text-align: left">{_html(system)}</th>'
        f"{''.join(f'<td>{_html(text)}</td>' for text in extra_cells)}{''.join(map(shown, cells))}</tr>"
        for (system, *extra_cells), cells in table.rows
    )
    notes = "".join(f"<li><small>{_html(note)}</small></li>" for note in table.notes_with_protocols)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table><ul>{notes}</ul>"


def _extra_heads(summary: Summary) -> list[str]:
    return ["system", *(column.name for column in columns_in("paper", summary.systems.values()))]


def _table(summary: Summary) -> _PaperTable:
    """The results as a table for a paper: heads, rows, notes and protocols."""
    systems = {
        name: {metric: _finite(entry) for metric, entry in held.metrics.items()}
        for name, held in summary.systems.items()
    }
    count = {name: max((entry.n for entry in held.values()), default=0) for name, held in systems.items()}
    columns = [_column(systems, metric, count) for metric in summary.metrics]
    extra_columns = columns_in("paper", summary.systems.values())
    rows = [
        (
            [numbers.marked(name, held), *(column.cell(held) for column in extra_columns)],
            [cells[name] for _, cells in columns],
        )
        for name, held in summary.systems.items()
    ]
    heads = [head for head, _ in columns]
    fewer = any(cell.items for _, cells in columns for cell in cells.values())
    protocols = {metric: entry.protocol for held in systems.values() for metric, entry in held.items()}
    text = f"Protocols: {'; '.join(f'{metric} is {protocol}' for metric, protocol in protocols.items())}."
    return _PaperTable(heads, rows, _notes(summary, systems, heads, fewer), text)


def _column(
    systems: Mapping[str, Mapping[str, MetricSummary]], metric: str, count: Mapping[str, int]
) -> tuple[str, dict[str, _Cell]]:
    """Head and cells of one metric's column, for every system."""
    entries = {name: held[metric] for name, held in systems.items() if metric in held}
    facts = next(iter(entries.values()))
    factor, unit = numbers.shown_unit(facts.unit)
    places = numbers.decimals(entries.values(), factor)
    cells = dict.fromkeys(systems, _Cell("–"))
    for name, entry in entries.items():
        if entry.value is not None:
            items = f"(n = {entry.n:,})" if entry.n < count[name] else ""
            value = ("≈" if numbers.is_alike(entry) else "") + numbers.number(factor * entry.value, places)
            cells[name] = _Cell(value, numbers.spread(entry, places, factor), items, numbers.is_best(entry))
    head = (metric, f"({unit})" if unit else "", numbers.ARROWS[facts.higher_is_better])
    return " ".join(filter(None, head)), cells


def _notes(
    summary: Summary, systems: Mapping[str, Mapping[str, MetricSummary]], heads: Sequence[str], fewer: bool
) -> list[str]:
    """The notes below the table: arrows, interval methods, failures, chance levels."""
    entries = [(name, metric, entry) for name, held in systems.items() for metric, entry in held.items()]
    arrows = [
        words for arrow, words in (("↑", "↑ higher is better"), ("↓", "↓ lower is better")) if arrow in "".join(heads)
    ]
    methods = [numbers.METHODS.get(method, method) for method in numbers.methods_of(entries)]
    legend = [", ".join(arrows), f"95 % intervals: {', '.join(methods)}" if methods else ""]
    legend += [numbers.BOLD] if any(numbers.is_best(entry) for _, _, entry in entries) else []
    rows = ["n is the number of items of a row" + (", unless a cell says otherwise" if fewer else "")]
    rows += [
        f"{name}: {count_of(failed_items, 'item')} failed"
        for name, held in summary.systems.items()
        if (failed_items := held.without_estimate)
    ]
    rows += _chances(entries)
    more = [
        *control_notes(summary),
        *numbers.rows_notes(summary.rows, summary.other_data or ()),
        *numbers.system_notes(summary.systems),
        *value_notes(entries),
    ]
    return [f"{'. '.join(filter(None, sentence))}." for sentence in (legend, [*more, *rows]) if any(sentence)]


def _chances(entries: Sequence[tuple[str, str, MetricSummary]]) -> list[str]:
    guesses = {(metric, text) for _, metric, entry in entries if (text := chance_text(entry))}
    return [f"{metric}: {text} (a guess among the options)" for metric, text in sorted(guesses)]


def _finite(entry: MetricSummary) -> MetricSummary:
    value, ends = entry.value, entry.ci95
    if value is None or not math.isfinite(value):
        return replace(entry, value=None, ci95=None)
    return replace(entry, ci95=ends if ends and all(map(math.isfinite, ends)) else None)


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", numbers.plain(text, _LONGEST_NOTE))


def latex_text(text: str) -> str:
    """Escape a text for LaTeX."""
    escaped = "".join(_LATEX.get(letter, letter) for letter in numbers.plain(text, _LONGEST_NOTE))
    return re.sub(r"-(?=-)", "-{}", escaped)  # two hyphens would become one dash


def _html(text: str) -> str:
    return html.escape(numbers.plain(text, _LONGEST_NOTE))

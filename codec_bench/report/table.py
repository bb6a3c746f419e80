"""Tables for the terminal: summary, failures, and comparison of two systems.

Functions return rich renderables and print nothing. Text from data is never markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich import box, get_console
from rich.table import Table
from rich.text import Text

from codec_bench.report import numbers
from codec_bench.report.chance_level import chance_text, value_notes
from codec_bench.report.controls.rows import control_notes
from codec_bench.report.narrow import listed, room_for, whole_words
from codec_bench.report.result_columns import columns_in
from codec_bench.stats.paired import Comparison
from codec_bench.stats.summary_types import Estimate, FailureReason, MetricSummary, Summary, SystemSummary
from codec_bench.store.statuses import FAILURES, NOT_APPLICABLE, UNDEFINED

_GAP = 2
_NAME = 120
"""The most characters of a name or an id."""
_LEAST_NAME = 8
"""The fewest terminal columns of names that are broken for want of width."""


@dataclass(frozen=True, slots=True)
class _TableColumn:
    head: Text
    cells: list[Text]

    @property
    def width(self) -> int:
        return max(line.cell_len for text in (self.head, *self.cells) for line in text.split("\n"))


def summary_table(summary: Summary, *, width: int | None = None) -> Table:
    """Return a table of systems (rows) and metrics, each value with its 95 % interval.

    A too wide table is transposed if that fits, else split into blocks. Failed items are below a system's name; a
    second line counts further missing values. Arrows show the better direction; the best values are bold (see
    `stats.verdict`).

    Args:
        width: columns of the terminal; None detects it.
    """
    width = width or get_console().width
    names = summary.metrics
    systems = _TableColumn(Text("system"), [_system_cell(name, entry) for name, entry in summary.systems.items()])
    columns = [*_extra_columns(summary), *(_metric_column(summary, name) for name in names)]
    if sum(column.width + _GAP for column in columns) > width - systems.width - 1:
        turned = _transpose(summary, names)
        if sum(column.width + _GAP for column in turned) - 1 <= width:
            return _table(turned)
    return _stack_tables(systems, columns, width)


def summary_notes(summary: Summary, most: int | None = numbers.MOST_NOTES) -> list[str]:
    """Return notes on the numbers of `summary_table`; at most so many, None for all."""
    entries = summary.entries
    notes = [
        *numbers.legend(entries),
        *control_notes(summary),
        *numbers.rows_notes(summary.rows, summary.other_data or ()),
        *numbers.system_notes(summary.systems),
        *value_notes(entries),
    ]
    return notes if most is None else numbers.shortened(notes, most)


def wide_table(heads: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> Table:
    """Return a table of names and numbers, split into blocks if it is too wide.

    Args:
        heads: of the columns, with line feeds. The first column is repeated in every block.
        rows: the cells; None is empty. Texts are never markup; a `Text` keeps its style.
        width: columns of the terminal.
    """
    cells = [[_text(value) for value in column] for column in zip(*rows)]
    columns = [_TableColumn(Text(head), cells[position] if cells else []) for position, head in enumerate(heads)]
    return _stack_tables(columns[0], columns[1:], width)


def _text(value: Any) -> Text:
    return value if isinstance(value, Text) else Text("" if value is None else numbers.plain(str(value)))


def _stack_tables(first: _TableColumn, columns: Sequence[_TableColumn], width: int) -> Table:
    """Return one table, or several below each other that repeat the first column."""
    widths = [column.width + _GAP for column in columns]
    # A long name is broken before a number is cut.
    wide = first.width
    if wide + max(widths, default=0) + 1 > width:
        wide = max(_LEAST_NAME, min(wide, width // 2, width - max(widths, default=0) - 1))
    room = width - wide - 1
    count = len(blocks(widths, room))
    # The columns are spread evenly over the blocks.
    even = next((narrow for narrow in range(room + 1) if len(blocks(widths, narrow)) == count), room)
    tables = [_table([first, *(columns[position] for position in block)], wide) for block in blocks(widths, even)]
    if len(tables) == 1:
        return tables[0]
    stack = Table.grid()
    for table in tables:
        stack.add_row(table)
    return stack


def blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    """Return the indices of columns in as few blocks as fit, each with at least one."""
    groups: list[list[int]] = [[]]
    used = 0
    for position, width in enumerate(widths):
        if groups[-1] and used + width > room:
            groups.append([])
            used = 0
        groups[-1].append(position)
        used += width
    return groups


def _system_cell(name: str, entry: SystemSummary) -> Text:
    cell = Text(numbers.plain(name, _NAME))
    for remark in numbers.remarks(entry):
        cell.append(f"\n{remark}", style="yellow not bold")
    return cell


def _extra_columns(summary: Summary) -> list[_TableColumn]:
    return [
        _TableColumn(Text(column.name), [Text(column.cell(system)) for system in summary.systems.values()])
        for column in columns_in("terminal", summary.systems.values())
    ]


def _metric_column(summary: Summary, metric: str) -> _TableColumn:
    """A metric's column: its head, and a cell for each system."""
    measured = numbers.entries(summary, metric)
    factor, unit = numbers.shown_unit(next((e.unit for e in measured), ""))
    places = numbers.decimals(measured, factor)
    cells = []
    for system in summary.systems.values():
        entry = system.metrics.get(metric)
        cells.append(_cell(entry, places, factor, system.without_estimate) if entry else Text("–", style="dim"))
    return _TableColumn(_head(metric, unit, measured), cells)


def _head(metric: str, unit: str, measured: Sequence[MetricSummary]) -> Text:
    """A metric's name and direction, with its variant and unit below."""
    name, variant = numbers.split_name(numbers.plain(metric))
    direction = next((e.higher_is_better for e in measured), None)
    head = Text(f"{name} {numbers.ARROWS[direction]}".rstrip())
    below = " ".join(filter(None, (variant, unit)))
    if below:
        head.append(f"\n{below}", style="dim")
    return head


def _cell(entry: MetricSummary, places: int, factor: float, without_estimate: int) -> Text:
    """Value and interval of a metric, with counts if scores failed."""
    value = entry.value
    cell = Text(
        ("≈" if numbers.is_alike(entry) else "") + numbers.number(value, places, factor),
        style="bold" if numbers.is_best(entry) else "" if value is not None else "dim",
    )
    spread = numbers.spread(entry, places, factor)
    if spread:
        cell.append(f" {spread}", style="dim not bold")
    if entry.failed > without_estimate and entry.n:
        cell.append(f"\n{entry.n:,} of {entry.n + entry.failed:,}", style="yellow not bold")
    elif entry.failed > without_estimate:
        cell.append("\n" + " ".join(entry.missing).replace("_", " "), style="dim not bold")
    if chance := chance_text(entry):
        cell.append(f"\n{chance}", style="dim not bold")
    return cell


def _transpose(summary: Summary, names: Sequence[str]) -> list[_TableColumn]:
    """Return the transposed table: a row per metric and extra column."""
    extra_columns = _extra_columns(summary)
    heads = [column.head for column in extra_columns]
    for metric in names:
        measured = numbers.entries(summary, metric)
        unit = numbers.shown_unit(next((e.unit for e in measured), ""))[1]
        direction = next((e.higher_is_better for e in measured), None)
        label = " ".join(filter(None, (numbers.plain(metric), unit, numbers.ARROWS[direction])))
        heads.append(Text(label))
    by_metric = [column.cells for column in (*extra_columns, *(_metric_column(summary, metric) for metric in names))]
    columns = [_TableColumn(Text("metric"), heads)]
    for position, (name, system) in enumerate(summary.systems.items()):
        head = _system_cell(name, system)
        columns.append(_TableColumn(head, [cells[position] for cells in by_metric]))
    return columns


def _table(columns: Sequence[_TableColumn], first: int | None = None) -> Table:
    """Return columns side by side; `first` limits the first one's width."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, padding=(0, 1), header_style="bold")
    for position, column in enumerate(columns):
        narrow = first is not None and not position and first < column.width
        table.add_column(
            column.head, justify="right" if position else "left", no_wrap=not narrow, vertical="top",
            overflow="fold", width=first if narrow else None, min_width=None if narrow else column.width,
        )  # fmt: skip
    for row in zip(*(column.cells for column in columns)):
        table.add_row(*row)
    return table


def failures_table(reasons: Sequence[FailureReason], systems: int, *, width: int | None = None) -> Table:
    """Return a table of missing and flagged values with reasons, complete items first.

    Args:
        systems: how many the summary has.
        width: columns of the terminal; None detects it. Without room for words, each reason is a block of lines.
    """
    styles = ((FAILURES, "red"), ((*UNDEFINED, "flagged"), "yellow"), (NOT_APPLICABLE, "dim"))
    colours = {status: style for group, style in styles for status in group}
    rows = []
    for row in numbers.grouped_reasons(reason.as_dict() for reason in reasons):
        everyone = len(row["systems"]) == systems > 1
        cells = (
            Text(numbers.plain(row["metric"])) if row["metric"] else Text("whole item", style="dim"),
            Text(row["status"].replace("_", " "), style=colours.get(row["status"], "")),
            Text(f"{row['count']:,}"),
            Text(numbers.plain(row["reason"])),
            Text("all" if everyone else numbers.plain(", ".join(row["systems"]))),
            Text(numbers.plain(row["example"], _NAME), style="dim"),
        )
        rows.append(cells)
    heads = ("metric", "status", "items", "reason", "systems", "for example")
    columns = [[head, *(cells[position].plain for cells in rows)] for position, head in enumerate(heads)]
    widths = whole_words(columns, room_for(width or get_console().width, len(heads)), unbroken=(0, 1, 2))
    if widths is None:
        return listed(heads, rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for head, wide in zip(heads, widths):
        table.add_column(head, justify="right" if head == "items" else "left", overflow="fold", width=wide)
    for cells in rows:
        table.add_row(*cells)
    return table


def comparison_table(comparisons: Sequence[Comparison], *, adjusted: bool = False, width: int | None = None) -> Table:
    """Return a comparison of two systems, metric by metric, over their common samples.

    The difference is A minus B, with its interval; bold if that excludes 0. `better` counts the samples on which A is
    better. A barred comparison has neither. `min. detectable` is the minimum detectable effect, at a power of 0.8.

    Args:
        adjusted: whether to show p adjusted for all comparisons of the call (Holm).
        width: columns of the terminal; None detects it. A wider table is split into blocks.
    """
    rows = [_comparison(c, adjusted) for c in comparisons]
    heads = ["metric", "A", "B", "difference", "95 % interval", "p"]
    heads += [*(["p (Holm)"] if adjusted else []), "min. detectable", "better : worse : same", "pairs", "units"]
    columns = [_TableColumn(Text(head), [row[position] for row in rows]) for position, head in enumerate(heads)]
    return _stack_tables(columns[0], columns[1:], width or get_console().width)


def _comparison(c: Comparison, adjusted: bool) -> list[Text]:
    """The cells of one compared metric; `adjusted` adds the Holm-adjusted p."""
    test = c.test
    factor, unit = numbers.shown_unit(c.unit)
    ci = None if test.low is None or test.high is None else [test.low, test.high]
    places = numbers.decimals([Estimate(test.difference, ci), Estimate(c.value_a)], factor)
    clear = ci is not None and (ci[0] > 0 or ci[1] < 0)
    scaled = lambda value: numbers.number(value, places, factor)  # noqa: E731
    signed = lambda value: numbers.number(value, places, factor, sign=True)  # noqa: E731
    cells_text = [
        " ".join(filter(None, (numbers.plain(c.metric), unit))),
        scaled(c.value_a),
        scaled(c.value_b),
        signed(test.difference),
        " to ".join(map(signed, ci)) if ci else "–",
        numbers.probability(test.p) + ("*" if test.p is not None and test.note else ""),
        *([numbers.probability(c.p_holm)] if adjusted else []),
        scaled(test.detectable),
        f"{c.wins:,} : {c.losses:,} : {c.ties:,}" if c.pairs and not c.barred else "–",
        f"{c.pairs:,}" + (f"\n{c.dropped:,} excluded" if c.dropped else ""),
        f"{test.units:,}",
    ]
    cells = list(map(Text, cells_text))
    cells[3].stylize("bold" if clear and not c.barred else "")
    return cells


def comparison_notes(comparisons: Sequence[Comparison]) -> list[str]:
    """Return notes on the numbers of a comparison, with their metrics."""
    names_by_note: dict[tuple[str, str], list[str]] = {}
    for c in comparisons:
        if c.test.note:
            names_by_note.setdefault(("*" if c.test.p is not None else "–", c.test.note), []).append(
                numbers.plain(c.metric)
            )
    return [
        f"{mark} {note}" if len(names) == len(comparisons) else f"{mark} {note} ({', '.join(names)})"
        for (mark, note), names in names_by_note.items()
    ]

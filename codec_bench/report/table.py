"""Tables for the terminal: a summary of systems and metrics, the failures, and the comparison of two systems.

Conventions
    Functions return rich renderables and print nothing. Text from data is added as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich import box, get_console
from rich.table import Table
from rich.text import Text

from codec_bench.report import numbers
from codec_bench.report.chance_level import chance_text, metric_notes
from codec_bench.report.controls.rows import control_notes
from codec_bench.report.narrow import listed, room_for, whole_words
from codec_bench.report.result_columns import columns_in
from codec_bench.stats.paired import Comparison
from codec_bench.stats.summary_types import Estimate, FailureReason, MetricSummary, Summary, SystemSummary
from codec_bench.store.statuses import FAILURES, NOT_APPLICABLE, UNDEFINED

_GAP = 2
_NAME = 120
"""Characters of a name or an id that are shown at most."""
_LEAST_NAME = 8
"""Columns of the terminal that names have at least, where they are broken for want of width."""


@dataclass(frozen=True, slots=True)
class _Column:
    head: Text
    cells: list[Text]

    @property
    def width(self) -> int:
        return max(line.cell_len for text in (self.head, *self.cells) for line in text.split("\n"))


def summary_table(summary: Summary, *, width: int | None = None) -> Table:
    """Systems and metrics, each value with its 95 % interval: half its width, or its two ends if it is not symmetric.

    Systems are rows. If that is too wide and there are few systems, they become columns; otherwise the metrics are
    spread over several blocks. Below the name of a system is the number of its items that failed and are missing from
    all its numbers. If a metric lacks further values, a second line says on how many of how many items the number
    rests. An arrow says which direction is better. The best values of a column are bold, and `stats.verdict` says which
    they are.

    Args:
        summary: of a run.
        width: columns of the terminal; None asks it.
    """
    width = width or get_console().width
    names = summary.metrics
    systems = _Column(Text("system"), [_system_cell(name, entry) for name, entry in summary.systems.items()])
    columns = [*_extra_columns(summary), *(_metric_column(summary, name) for name in names)]
    if sum(column.width + _GAP for column in columns) > width - systems.width - 1:
        turned = _turned(summary, names)
        if sum(column.width + _GAP for column in turned) - 1 <= width:
            return _table(turned)
    return _stacked(systems, columns, width)


def summary_notes(summary: Summary, most: int | None = numbers.MOST_NOTES) -> list[str]:
    """What to know of the numbers of `summary_table`, one sentence each; at most so many, None for all."""
    entries = summary.entries
    notes = [
        *numbers.legend(entries),
        *control_notes(summary),
        *numbers.rows_notes(summary.rows, summary.other_data or ()),
        *numbers.system_notes(summary.systems),
        *metric_notes(entries),
        *numbers.draw_notes(entries),
        *numbers.best_notes(entries),
        *numbers.missing_notes(entries),
        *numbers.interval_notes(entries),
    ]
    return notes if most is None else numbers.shortened(notes, most)


def wide_table(heads: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> Table:
    """A table of names and numbers, spread over several blocks if it is too wide. Nothing in it is broken.

    Args:
        heads: of the columns; a line feed in a head is a line break. The first column is repeated in every block.
        rows: the cells; None is an empty cell. Texts are added as texts, never as markup; a `Text` keeps its style.
        width: columns of the terminal.
    """
    cells = [[_text(value) for value in column] for column in zip(*rows)]
    columns = [_Column(Text(head), cells[position] if cells else []) for position, head in enumerate(heads)]
    return _stacked(columns[0], columns[1:], width)


def _text(value: Any) -> Text:
    return value if isinstance(value, Text) else Text("" if value is None else numbers.plain(str(value)))


def _stacked(first: _Column, columns: Sequence[_Column], width: int) -> Table:
    """One table, or if that is too wide several below each other, each of which begins with the first column."""
    widths = [column.width + _GAP for column in columns]
    # A long name is broken before a number is cut.
    wide = first.width
    if wide + max(widths, default=0) + 1 > width:
        wide = max(_LEAST_NAME, min(wide, width // 2, width - max(widths, default=0) - 1))
    room = width - wide - 1
    count = len(blocks(widths, room))
    # The columns are spread evenly over the blocks, so that the last one is not much narrower than the others.
    even = next((narrow for narrow in range(room + 1) if len(blocks(widths, narrow)) == count), room)
    tables = [_table([first, *(columns[position] for position in block)], wide) for block in blocks(widths, even)]
    if len(tables) == 1:
        return tables[0]
    stack = Table.grid()
    for table in tables:
        stack.add_row(table)
    return stack


def blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    """The places of columns of these widths, in as few blocks as fit the room, with at least one column in each."""
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
    """The name of a system; below it what `numbers.remarks` says."""
    cell = Text(numbers.plain(name, _NAME))
    for remark in numbers.remarks(entry):
        cell.append(f"\n{remark}", style="yellow not bold")
    return cell


def _extra_columns(summary: Summary) -> list[_Column]:
    """The columns that are no metrics."""
    return [
        _Column(Text(column.name), [Text(column.cell(system)) for system in summary.systems.values()])
        for column in columns_in("terminal", summary.systems.values())
    ]


def _metric_column(summary: Summary, metric: str) -> _Column:
    measured = numbers.entries(summary, metric)
    factor, unit = numbers.shown_unit(next((e.unit for e in measured), ""))
    places = numbers.decimals(measured, factor)
    cells = []
    for system in summary.systems.values():
        entry = system.metrics.get(metric)
        cells.append(_cell(entry, places, factor, system.without_estimate) if entry else Text("–", style="dim"))
    return _Column(_head(metric, unit, measured), cells)


def _head(metric: str, unit: str, measured: Sequence[MetricSummary]) -> Text:
    name, variant = numbers.split_name(numbers.plain(metric))
    direction = next((e.higher_is_better for e in measured), None)
    head = Text(f"{name} {numbers.ARROWS[direction]}".rstrip())
    below = " ".join(filter(None, (variant, unit)))
    if below:
        head.append(f"\n{below}", style="dim")
    return head


def _cell(entry: MetricSummary, places: int, factor: float, without_estimate: int) -> Text:
    value = entry.value
    cell = Text(
        ("≈" if numbers.is_alike(entry) else "") + numbers.number(None if value is None else factor * value, places),
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


def _turned(summary: Summary, names: Sequence[str]) -> list[_Column]:
    """The same table with a row for each metric, and for each column beside the metrics, and a column for each system."""
    extra_columns = _extra_columns(summary)
    heads = [column.head for column in extra_columns]
    for metric in names:
        measured = numbers.entries(summary, metric)
        unit = numbers.shown_unit(next((e.unit for e in measured), ""))[1]
        direction = next((e.higher_is_better for e in measured), None)
        label = " ".join(filter(None, (numbers.plain(metric), unit, numbers.ARROWS[direction])))
        heads.append(Text(label))
    by_metric = [column.cells for column in (*extra_columns, *(_metric_column(summary, metric) for metric in names))]
    columns = [_Column(Text("metric"), heads)]
    for position, (name, system) in enumerate(summary.systems.items()):
        head = _system_cell(name, system)
        columns.append(_Column(head, [cells[position] for cells in by_metric]))
    return columns


def _table(columns: Sequence[_Column], first: int | None = None) -> Table:
    """Columns beside each other, the first one so wide; None gives it the room that it takes."""
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
    """What has no value and why, and what was flagged: one row for each reason, with whole items first.

    Args:
        reasons: of a summary. systems: how many it has.
        width: columns of the terminal; None asks it. Where words have no room in it, each reason is a block of lines.
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


def comparison_table(
    comparisons: Sequence[Comparison],
    *,
    adjusted: bool = False,
    width: int | None = None,
) -> Table:
    """Two systems compared metric by metric, over the samples for which both have a number.

    The difference is A minus B, with its interval. It is bold if the interval does not contain 0. `better` counts the
    samples on which A is better. Where a comparison is barred, nothing is bold, and `better` counts nothing.
    `min. detectable` is the minimum detectable effect: the difference that the test finds in four of five such studies.

    Args:
        comparisons: as `codec_bench.stats.paired.compare_items` gives them.
        adjusted: whether to show p adjusted for all comparisons of the call (Holm).
        width: columns of the terminal; None asks it. A table that is wider is spread over several blocks.
    """
    rows = [_comparison(c, adjusted) for c in comparisons]
    heads = ["metric", "A", "B", "difference", "95 % interval", "p"]
    heads += [*(["p (Holm)"] if adjusted else []), "min. detectable", "better : worse : same", "pairs", "units"]
    columns = [_Column(Text(head), [row[position] for row in rows]) for position, head in enumerate(heads)]
    return _stacked(columns[0], columns[1:], width or get_console().width)


def _comparison(c: Comparison, adjusted: bool) -> list[Text]:
    test = c.test
    factor, unit = numbers.shown_unit(c.unit)
    ci = None if test.low is None or test.high is None else [test.low, test.high]
    places = numbers.decimals([Estimate(test.difference, ci), Estimate(c.value_a)], factor)
    clear = ci is not None and (ci[0] > 0 or ci[1] < 0)
    scaled = lambda value: numbers.number(None if value is None else factor * value, places)  # noqa: E731
    signed = lambda value: numbers.number(None if value is None else factor * value, places, sign=True)  # noqa: E731
    cells_text = [
        " ".join(filter(None, (numbers.plain(c.metric), unit))),
        scaled(c.value_a),
        scaled(c.value_b),
        signed(test.difference),
        " to ".join(map(signed, ci)) if ci else "–",
        _probability(test.p) + ("*" if test.p is not None and test.note else ""),
        *([_probability(c.p_holm)] if adjusted else []),
        scaled(test.detectable),
        f"{c.wins:,} : {c.losses:,} : {c.ties:,}" if c.pairs and not c.barred else "–",
        f"{c.pairs:,}" + (f"\n{c.dropped:,} left out" if c.dropped else ""),
        f"{test.units:,}",
    ]
    cells = list(map(Text, cells_text))
    cells[3].stylize("bold" if clear and not c.barred else "")
    return cells


def comparison_notes(comparisons: Sequence[Comparison]) -> list[str]:
    """What to know beside the numbers of a comparison, one sentence each, with the metrics that it is about."""
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


def _probability(p: float | None) -> str:
    if p is None:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"

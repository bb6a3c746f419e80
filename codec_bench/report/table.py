"""Tables for the terminal: a summary of systems and metrics, the failures, and the comparison of two systems.

Conventions
    Functions return rich renderables and print nothing. Text from data is added as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box, get_console
from rich.table import Table
from rich.text import Text

from codec_bench.report import numbers
from codec_bench.stats.paired import Comparison

_GAP = 2


@dataclass(frozen=True, slots=True)
class _Column:
    head: Text
    cells: list[Text]

    @property
    def width(self) -> int:
        return max(line.cell_len for text in (self.head, *self.cells) for line in text.split("\n"))


def summary_table(summary: Mapping[str, Any], *, width: int | None = None) -> Table:
    """Systems and metrics, each value with its 95 % interval: half its width, or its two ends if it is not symmetric.

    Systems are rows. If that is too wide and there are few systems, they become columns; otherwise the metrics are spread
    over several blocks. Below the name of a system is the number of its items that failed and are missing from all its
    numbers. If a metric lacks further values, a second line says on how many of how many items the number rests. An arrow
    says which direction is better. The best value of a column is bold, except of bitrates and the unprocessed
    audio. The best is found over the samples for which all systems have a value.

    Args:
        summary: as `codec_bench.stats.summary.summarise` gives it.
        width: columns of the terminal; None asks it.
    """
    width = width or get_console().width
    names = list(dict.fromkeys(name for system in summary["systems"].values() for name in system["metrics"]))
    names.sort(key=lambda name: name != "bitrate")
    systems = _Column(Text("system"), [_system_cell(name, entry) for name, entry in summary["systems"].items()])
    columns = [_metric_column(summary, name) for name in names]
    room = width - systems.width - 1
    if sum(column.width + _GAP for column in columns) > room:
        turned = _turned(summary, names)
        if sum(column.width + _GAP for column in turned) - 1 <= width:
            return _table(turned)
    blocks = _blocks(columns, room)
    # The columns are spread evenly over the blocks, so that the last one is not much narrower than the others.
    even = next(narrow for narrow in range(room + 1) if len(_blocks(columns, narrow)) == len(blocks))
    blocks = _blocks(columns, even)
    if len(blocks) == 1:
        return _table([systems, *blocks[0]])
    stack = Table.grid()
    for block in blocks:
        stack.add_row(_table([systems, *block]))
    return stack


def _blocks(columns: Sequence[_Column], room: int) -> list[list[_Column]]:
    """The columns in as few blocks as fit the room, with at least one column in each."""
    blocks: list[list[_Column]] = [[]]
    used = 0
    for column in columns:
        if blocks[-1] and used + column.width + _GAP > room:
            blocks.append([])
            used = 0
        blocks[-1].append(column)
        used += column.width + _GAP
    return blocks


def _system_cell(name: str, entry: Mapping[str, Any]) -> Text:
    """The name of a system; below it how many items have no estimate and so no value at all, and how many are silent."""
    cell = Text(numbers.plain(name))
    for count, what in ((numbers.without_estimate(entry), "failed"), (entry.get("silent", 0), "silent")):
        if count:
            cell.append(f"\n{count:,} {what}", style="yellow not bold")
    return cell


def _metric_column(summary: Mapping[str, Any], metric: str) -> _Column:
    found = numbers.entries(summary, metric)
    factor, unit = numbers.shown_unit(next((e["unit"] for e in found), ""))
    places = numbers.decimals(found, factor)
    values = {
        name: numbers.compared(system["metrics"][metric])
        for name, system in summary["systems"].items()
        if metric in system["metrics"] and name != numbers.UNPROCESSED and metric != "bitrate"
    }
    best = numbers.best(values, next((e["higher_is_better"] for e in found), None))
    cells = []
    for name, system in summary["systems"].items():
        entry = system["metrics"].get(metric)
        lost = numbers.without_estimate(system)
        cells.append(_cell(entry, places, factor, name in best, lost) if entry else Text("–", style="dim"))
    return _Column(_head(metric, unit, found), cells)


def _head(metric: str, unit: str, found: Sequence[Mapping[str, Any]]) -> Text:
    name, variant = numbers.split_name(numbers.plain(metric))
    direction = next((e["higher_is_better"] for e in found), None)
    head = Text(f"{name} {numbers.ARROWS[direction]}".rstrip())
    below = " ".join(filter(None, (variant, unit)))
    if below:
        head.append(f"\n{below}", style="dim")
    return head


def _cell(entry: Mapping[str, Any], places: int, factor: float, best: bool, lost: int) -> Text:
    value = entry["value"]
    cell = Text(
        numbers.number(None if value is None else factor * value, places),
        style="bold" if best else "" if value is not None else "dim",
    )
    spread = numbers.spread(entry, places, factor)
    if spread:
        cell.append(f" {spread}", style="dim not bold")
    if entry["failed"] > lost and entry["n"]:
        cell.append(f"\n{entry['n']:,} of {entry['n'] + entry['failed']:,}", style="yellow not bold")
    elif entry["failed"] > lost:
        cell.append("\n" + " ".join(entry["missing"]).replace("_", " "), style="dim not bold")
    return cell


def _turned(summary: Mapping[str, Any], names: Sequence[str]) -> list[_Column]:
    """The same table with a row for each metric and a column for each system."""
    heads = []
    for metric in names:
        found = numbers.entries(summary, metric)
        unit = numbers.shown_unit(next((e["unit"] for e in found), ""))[1]
        direction = next((e["higher_is_better"] for e in found), None)
        label = " ".join(filter(None, (numbers.plain(metric), unit, numbers.ARROWS[direction])))
        heads.append(Text(label))
    by_metric = [_metric_column(summary, metric).cells for metric in names]
    columns = [_Column(Text("metric"), heads)]
    for position, system in enumerate(summary["systems"]):
        head = _system_cell(system, summary["systems"][system])
        columns.append(_Column(head, [cells[position] for cells in by_metric]))
    return columns


def _table(columns: Sequence[_Column]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, padding=(0, 1), header_style="bold")
    for position, column in enumerate(columns):
        table.add_column(
            column.head, justify="right" if position else "left", no_wrap=True, min_width=column.width, vertical="top"
        )
    for row in zip(*(column.cells for column in columns)):
        table.add_row(*row)
    return table


def failures_table(summary: Mapping[str, Any]) -> Table:
    """What has no value and why, and what was flagged: one row for each reason, with whole items first."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in ("metric", "status"):
        table.add_column(name, no_wrap=True)
    table.add_column("items", justify="right", no_wrap=True)
    table.add_column("reason", ratio=3, overflow="fold")
    table.add_column("systems", ratio=2, overflow="fold")
    table.add_column("for example", overflow="fold", max_width=24)
    colours = {
        "failed": "red",
        "unparsed": "red",
        "not_scored": "red",
        "undefined": "yellow",
        "refused": "dim",
        "flagged": "yellow",
    }
    for row in numbers.grouped_reasons(summary["failures"]["reasons"]):
        everyone = len(row["systems"]) == len(summary["systems"]) > 1
        table.add_row(
            Text(numbers.plain(row["metric"])) if row["metric"] else Text("whole item", style="dim"),
            Text(row["status"].replace("_", " "), style=colours.get(row["status"], "")),
            f"{row['count']:,}",
            Text(numbers.plain(row["reason"])),
            Text("all" if everyone else numbers.plain(", ".join(row["systems"]))),
            Text(numbers.plain(row["example"]), style="dim"),
        )
    return table


def comparison_table(
    comparisons: Sequence[Comparison], *, name_a: str = "A", name_b: str = "B", adjusted: bool = False
) -> Table:
    """Two systems compared metric by metric, over the samples for which both have a number.

    The difference is A minus B, with its interval. It is bold if the interval does not contain 0. `better` counts the
    samples on which A is better. `could show` is the smallest difference that such data show in four of five studies.

    Args:
        comparisons: as `codec_bench.stats.paired.compare_items` gives them.
        name_a, name_b: what to call the two.
        adjusted: whether to show p adjusted for all comparisons of the call (Holm).
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("metric", no_wrap=True)
    for name in (name_a, name_b):
        table.add_column(Text(numbers.plain(name)), justify="right", overflow="fold")
    heads = ["difference", "95 % interval", "p", "p (Holm)", "could show", "better : worse : same", "pairs", "units"]
    for name in heads if adjusted else [head for head in heads if head != "p (Holm)"]:
        table.add_column(name, justify="right", no_wrap=name not in ("better : worse : same", "95 % interval"))
    for c in comparisons:
        table.add_row(*_comparison(c, adjusted))
    return table


def _comparison(c: Comparison, adjusted: bool) -> list[str | Text]:
    test = c.test
    factor, unit = numbers.shown_unit(c.unit)
    ci = None if test.low is None or test.high is None else [test.low, test.high]
    places = numbers.decimals([{"value": test.difference, "ci95": ci}, {"value": c.value_a, "ci95": None}], factor)
    clear = ci is not None and (ci[0] > 0 or ci[1] < 0)
    scaled = lambda value: None if value is None else factor * value  # noqa: E731
    told = [
        numbers.number(scaled(test.difference), places, sign=True),
        " to ".join(numbers.number(factor * bound, places, sign=True) for bound in ci) if ci else "–",
        _probability(test.p) if test.note is None or test.p is None else f"{_probability(test.p)}*",
        *([_probability(c.p_holm)] if adjusted else []),
        numbers.number(scaled(test.detectable), places),
        f"{c.wins:,} : {c.losses:,} : {c.ties:,}",
        f"{c.pairs:,}" + (f"\n{c.dropped:,} left out" if c.dropped else ""),
        f"{test.units:,}",
    ]
    return [
        Text(" ".join(filter(None, (numbers.plain(c.metric), unit)))),
        numbers.number(scaled(c.value_a), places),
        numbers.number(scaled(c.value_b), places),
        Text(told[0], style="bold" if clear else ""),
        *told[1:],
    ]


def comparison_notes(comparisons: Sequence[Comparison]) -> list[str]:
    """What to know beside the numbers of a comparison, one sentence each, with the metrics that it is about."""
    told: dict[str, list[str]] = {}
    for c in comparisons:
        if c.test.note:
            told.setdefault(c.test.note, []).append(numbers.plain(c.metric))
    everyone = len(comparisons)
    return [note if len(names) == everyone else f"{', '.join(names)}: {note}" for note, names in told.items()]


def _probability(p: float | None) -> str:
    if p is None:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"

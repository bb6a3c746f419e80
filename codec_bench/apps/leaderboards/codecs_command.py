"""`codec-bench leaderboard codecs`: codecs in tables and pictures of fronts."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codec_bench.apps.leaderboards.codecs import AXES, DIMENSIONS, CodecBoard, CodecPoint, CodecTable
from codec_bench.messages import to_json
from codec_bench.messages.errors import UserError
from codec_bench.report import numbers
from codec_bench.report.figures.draw import SOFT, Drawing, colour_of, log_axis, mark, shape_of, stroke_of, wrapped
from codec_bench.report.figures.plots import FileStems, PlotPoint
from codec_bench.report.numbers import ARROWS
from codec_bench.report.result_columns import NOT_DISCRETE
from codec_bench.terminal.output import console, print_json, print_wide, talk

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from codec_bench.apps.leaderboards.codecs import DeltaRate

SURE = 0.975
"""The share of draws that makes a front point certain."""
HEADS = (
    "source", "data", "metric", "protocol", "codec", "family", "run", *AXES, "value", "ci95_low", "ci95_high", "n",
    "failed", "on_front", "front_share", "doubt",
)  # fmt: skip
_WIDE, _HIGH, _APART = 2.6, 2.3, 0.75
"""Inches of a panel, and between two."""
_LEGEND_ROWS = 18


def print_codecs(
    runs: Sequence[Path], *, axis: str, metrics: Sequence[str], anchor: str | None, seed: int, figures: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Print codecs of runs and publications as tables or JSON.

    Args:
        figures: a folder to draw them into; None draws nothing.
    """
    from codec_bench.apps.leaderboards.codecs import codec_board

    board = codec_board(runs, axis=axis, metrics=metrics, anchor=anchor, seed=seed)
    if as_json:
        print_json(_board_values(board))
    else:
        _print_board(board)
    for note in board.notes:
        talk(note)
    if figures is not None:
        for path in write_fronts(board, figures):
            talk(f"written: {path}")


def _board_values(board: CodecBoard) -> dict[str, Any]:
    """Convert a board to JSON values."""
    return {
        "axis": board.axis, "anchor": board.anchor, **to_json({"notes": board.notes}),
        "tables": [
            {
                "source": table.source, "data": table.data, "metric": table.metric, "dimension": table.dimension,
                "unit": table.unit,
                "higher_is_better": table.higher_is_better, "protocol": table.protocol, "imported": table.imported,
                "points": [_point_values(point) for point in table.points],
                "bd_rates": [_plain_rate(rate) for rate in table.delta_rates],
            }
            for table in board.tables
        ],
    }  # fmt: skip


def _point_values(point: CodecPoint) -> dict[str, Any]:
    """Convert a point to JSON values."""
    return {
        "codec": point.name, "family": point.family, "run": point.run or None, "costs": dict(point.costs),
        "value": point.value,
        "ci95": list(point.ci95) if point.ci95 else None, "n": point.n, "failed": point.failed,
        "on_front": point.on_front, "front_share": point.share, "doubt": point.suspicion,
        "continuous": point.continuous, "bits_per_token": point.bits_per_token,
    }  # fmt: skip


def _plain_rate(rate: DeltaRate) -> dict[str, Any]:
    ends = rate.interval.ends if rate.interval else None
    return {"family": rate.family, "value": rate.value, "ci95": ends, **to_json({"reason": rate.reason})}


def _print_board(board: CodecBoard) -> None:
    """Print a table per source and data, then the delta rates."""
    groups: dict[tuple[str, str], list[CodecTable]] = {}
    for table in board.tables:
        groups.setdefault((table.source, table.data), []).append(table)
    if not groups:
        raise UserError("no_codec_to_show")
    for (source, data), tables in groups.items():
        sys.stdout.write(f"{data} ({source})\n")
        _print_group(board.axis, tables)
        for table in tables:
            talk(f"{_named(table)}: protocol {table.protocol}")
        doubts = {(point.name, point.suspicion): None for table in tables for point in table.points if point.suspicion}
        for codec, suspicion in doubts:
            talk(f"{codec} is not compared, and on no front: {suspicion}")
    if any(point.continuous for table in board.tables for point in table.points):
        talk("codecs with latents are not discrete: they have no bitrate, and a separate front along every other axis")
    talk(
        "* is on the Pareto front: no other codec is as good at the same cost or less; (80 %) is on it in 80 % of the "
        "draws of other items. Numbers of different tables are not comparable."
    )
    _print_rates(board)


def _print_group(axis: str, tables: Sequence[CodecTable]) -> None:
    """Print one table of codecs: cost, tokens, and a column per metric."""
    called, unit, factor = AXES[axis]
    names = list(dict.fromkeys((point.name, point.run) for table in tables for point in table.points))
    held = [{(point.name, point.run): point for point in table.points} for table in tables]
    rows: list[tuple[str, ...]] = []
    for name in names:
        points = [points.get(name) for points in held]
        costs = next(point.costs for point in points if point is not None)
        shown = "" if axis not in costs else f"{factor * costs[axis]:.4g}"
        called_so = f"{name[0]} (latents)" if any(point and point.continuous for point in points) else name[0]
        doubtful = any(point is not None and point.suspicion for point in points)
        rows.append(
            (
                f"{called_so} (not compared)" if doubtful else called_so,
                shown,
                *_tokens(next(point for point in points if point is not None)),
                *("" if point is None else _cell(point) for point in points),
            )
        )
    heads = ["", f"{called}\n{unit}".strip(), "tokens/s", "bits/token", *map(_head, tables)]
    if not any(row[2] for row in rows):  # no codec declares tokens
        heads, rows = [*heads[:2], *heads[4:]], [(*row[:2], *row[4:]) for row in rows]
    print_wide(heads, rows)


def _tokens(point: CodecPoint) -> tuple[str, str]:
    """Return declared tokens per second and bits per token; empty for packets."""
    if point.continuous:
        return NOT_DISCRETE, NOT_DISCRETE
    per_s, bits = point.costs.get("tokens"), point.bits_per_token
    return "" if per_s is None else f"{per_s:,.6g}", "" if bits is None else f"{bits:.4g}"


def _named(table: CodecTable) -> str:
    return f"{table.metric} (imported)" if table.imported else table.metric


def _head(table: CodecTable) -> str:
    return f"{_named(table)}\n" + " ".join(filter(None, (ARROWS[table.higher_is_better], table.unit)))


def _cell(point: CodecPoint) -> str:
    """Format a value ± half its interval; `*` and a share of draws mark the front."""
    text = f"{point.value:.4g}"
    if point.ci95 is not None:
        text += f" ±{(point.ci95[1] - point.ci95[0]) / 2:.2g}"
    if point.on_front:
        text += " *"
    unsure = point.share is not None and 1 - SURE < point.share < SURE
    return f"{text} ({100 * point.share:.0f} %)" if unsure and point.share is not None else text


def _print_rates(board: CodecBoard) -> None:
    """Print the table of delta rates; nothing without an anchor."""
    from codec_bench.terminal.output import table

    if board.anchor is None:
        return
    rows = [
        (f"{one.data} ({one.source})", _named(one), rate.family, *_rate(rate))
        for one in board.tables
        for rate in one.delta_rates
    ]
    heads = ("", "metric", "family", f"bitrate against {board.anchor}", "95 % interval", "why not")
    console().print(table(heads, rows))


def _rate(rate: DeltaRate) -> tuple[str, str, str]:
    """Format a delta rate as (value, interval, reason why there is none)."""
    if rate.value is None:
        return "", "", rate.reason or ""
    ends = rate.interval.ends if rate.interval else None
    interval = "" if ends is None else f"{100 * ends[0]:+.1f} to {100 * ends[1]:+.1f} %"
    return f"{100 * rate.value:+.1f} %", interval, ""


def write_fronts(board: CodecBoard, folder: Path) -> list[Path]:
    """Write a board's tables as SVG, PDF and CSV; returns the files.

    Each source and data has `front-...` with a panel per metric, and `sides-...` for words, voice and sound if at least
    two exist. The grey line is the Pareto front; codecs that are not compared are hollow.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: the folder cannot be written.
    """
    drawing, stems = Drawing(), FileStems()
    files: list[Path] = []
    groups: dict[tuple[str, str], list[CodecTable]] = {}
    for table in board.tables:
        if table.higher_is_better is not None and any(board.axis in point.costs for point in table.points):
            groups.setdefault((table.source, table.data), []).append(table)
    for (source, data), tables in groups.items():
        sides = [plot for name in DIMENSIONS if (plot := _dimension_table(tables, name)) is not None]
        for plot_kind, shown in (("front", tables), ("sides", sides if len(sides) > 1 else [])):
            if shown:
                stem = stems.of(plot_kind, source.partition(",")[0], data.partition(",")[0])
                rows = [row for table in shown for row in _csv_rows(table)]
                files += drawing.write(partial(_figure, shown, board.axis), folder, stem, HEADS, rows)
    return files


def _dimension_table(tables: Sequence[CodecTable], name: str) -> CodecTable | None:
    """Select the table of dimension `name` whose metric is first in `DIMENSIONS`."""
    of = [table for table in tables if table.dimension == name]
    position = lambda table: DIMENSIONS[name].index(numbers.split_name(table.metric)[0])  # noqa: E731
    return min(of, key=position, default=None)


def _csv_rows(table: CodecTable) -> list[list[Any]]:
    """List the rows of a table's CSV, one for each point."""
    return [
        [
            table.source, table.data, table.metric, table.protocol, point.name, point.family, point.run or None,
            *(point.costs.get(axis) for axis in AXES), point.value, *(point.ci95 or (None, None)), point.n,
            point.failed, point.on_front, point.share, point.suspicion,
        ]
        for point in table.points
    ]  # fmt: skip


def _figure(tables: Sequence[CodecTable], axis: str) -> Figure:
    """Draw a panel for each table, three in a row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across, down = min(3, len(tables)), -(-len(tables) // 3)
    size = (across * (_WIDE + _APART), down * (_HIGH + _APART))
    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    families = {name: n for n, name in enumerate(dict.fromkeys(p.family for t in tables for p in t.points))}
    for number, table in enumerate(tables):
        left, top = number % 3 * (_WIDE + _APART), number // 3 * (_HIGH + _APART)
        box = (left / size[0], 1 - (top + _HIGH) / size[1], _WIDE / size[0], _HIGH / size[1])
        axes = figure.add_axes(box)
        _panel(axes, table, axis, families)
        if number == across - 1:
            _legend(axes, families, any(point.suspicion for table in tables for point in table.points))
    return figure


def _panel(axes: Axes, table: CodecTable, axis: str, families: dict[str, int]) -> None:
    """Draw one metric over the cost: a line per family by its number, and the front."""
    called, unit, factor = AXES[axis]
    priced = sorted((p for p in table.points if axis in p.costs), key=lambda point: point.costs[axis])
    cost = lambda point: factor * point.costs[axis]  # noqa: E731
    for name, number in families.items():
        members = [point for point in priced if point.family == name]
        sound = [point for point in members if not point.suspicion]
        line = {"color": colour_of(number), "linestyle": stroke_of(number), "linewidth": 0.8, "alpha": 0.7}
        axes.plot([cost(p) for p in sound], [p.value for p in sound], **line)
        for point in members:
            mark(axes, _as_point(point, number), (cost(point), point.value), hollow=bool(point.suspicion))
    front = [point for point in priced if point.on_front]
    if front:
        # The front is a staircase.
        ends = [*((cost(p), p.value) for p in front), (cost(priced[-1]), front[-1].value)]
        axes.step(*zip(*ends, strict=True), where="post", color=SOFT, linewidth=0.8, zorder=0)
    if all(cost(point) > 0 for point in priced):
        axes.set_xscale("log")
        log_axis(axes, [cost(point) for point in priced])
    axes.margins(y=0.1)
    axes.grid(axis="y")
    axes.set_xlabel(f"{called} ({unit})" if unit else called)
    better = "higher is better" if table.higher_is_better else "lower is better"
    metric = f"{table.metric} ({table.unit})" if table.unit else table.metric
    axes.set_ylabel(wrapped(numbers.plain(f"{metric}{' (imported)' if table.imported else ''}, {better}")))
    axes.set_title(wrapped(numbers.plain(table.data)), fontsize=7)


def _as_point(point: CodecPoint, number: int) -> PlotPoint:
    return PlotPoint(point.name, (point.family, number), None, point.value, point.ci95, "", point.n or 0)


def _legend(axes: Axes, families: dict[str, int], doubtful: bool) -> None:
    """Draw the legend of families; `doubtful` adds hollow marks."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], color=colour_of(number), marker=shape_of(number), linestyle=stroke_of(number), markersize=5,
            linewidth=1, markeredgecolor=colour_of(number), markeredgewidth=0.5, label=wrapped(numbers.plain(name)),
        )
        for name, number in families.items()
    ]  # fmt: skip
    handles.append(Line2D([], [], color=SOFT, linewidth=0.8, label="Pareto front"))
    if doubtful:
        look = {"markerfacecolor": "white", "markeredgecolor": SOFT}
        handles.append(Line2D([], [], marker="o", linestyle="none", markersize=5, label="not compared: see the CSV"))
        handles[-1].set(**look)
    axes.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1.02), fontsize=7, handlelength=2.2, labelspacing=0.35,
        ncols=math.ceil(len(handles) / _LEGEND_ROWS),
    )  # fmt: skip

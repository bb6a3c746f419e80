"""Pictures of codecs: Pareto fronts, and their three sides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codec_bench.apps.leaderboards.codecs import AXES, DIMENSIONS, CodecBoard, CodecPoint, CodecTable
from codec_bench.report import numbers
from codec_bench.report.figures.draw import SOFT, Drawing, colour_of, log_axis, mark, shape_of, stroke_of, wrapped
from codec_bench.report.figures.plots import Point, Stems

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADS = (
    "source", "data", "metric", "protocol", "codec", "family", "run", *AXES, "value", "ci95_low", "ci95_high", "n",
    "on_front", "front_share", "doubt",
)  # fmt: skip
_WIDE, _HIGH, _APART = 2.6, 2.3, 0.75
"""Inches of a panel, and between two."""
_LEGEND_ROWS = 18


def write_fronts(board: CodecBoard, folder: Path) -> list[Path]:
    """Write a board's tables as SVG, PDF and CSV; returns the files.

    Each source and data has `front-...` with a panel per metric, and `sides-...` for words, voice and sound if at least
    two exist. The grey line is the Pareto front; codecs that are not compared are hollow.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: the folder cannot be written.
    """
    drawing, stems = Drawing(), Stems()
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
                rows = [row for table in shown for row in _rows(table)]
                files += drawing.write(partial(_figure, shown, board.axis), folder, stem, HEADS, rows)
    return files


def _dimension_table(tables: Sequence[CodecTable], name: str) -> CodecTable | None:
    """Return the table of one side with the preferred metric in `DIMENSIONS`."""
    of = [table for table in tables if table.dimension == name]
    position = lambda table: DIMENSIONS[name].index(numbers.split_name(table.metric)[0])  # noqa: E731
    return min(of, key=position, default=None)


def _rows(table: CodecTable) -> list[list[Any]]:
    return [
        [
            table.source, table.data, table.metric, table.protocol, point.name, point.family, point.run or None,
            *(point.costs.get(axis) for axis in AXES), point.value, *(point.ci95 or (None, None)), point.n,
            point.on_front, point.share, point.suspicion,
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


def _as_point(point: CodecPoint, number: int) -> Point:
    return Point(point.name, (point.family, number), None, point.value, point.ci95, "", point.n or 0)


def _legend(axes: Axes, families: dict[str, int], doubtful: bool) -> None:
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

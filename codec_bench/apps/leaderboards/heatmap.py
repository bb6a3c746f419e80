"""The rank correlations of a leaderboard's columns as a heat map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from codec_bench.apps.leaderboards.board import Likeness
from codec_bench.report.figures.draw import COLOURS, INK, Drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADS = ("first", "second", "rows", "spearman", "low", "high", "kendall", "note")
_SQUARE = 0.3
"""Inches of a square."""
_PALE = 0.85
"""Numbers are dark up to this correlation."""


def write_heatmap(likeness: Likeness, folder: Path, stem: str) -> list[Path]:
    """Write the correlations as SVG, PDF and CSV; returns the files.

    Blue is positive and orange negative, which suits all kinds of colour blindness; squares hold their number.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: the folder cannot be written.
    """
    return Drawing().write(lambda: _figure(likeness), folder, stem, HEADS, _rows(likeness))


def _rows(likeness: Likeness) -> list[tuple[object, ...]]:
    return [
        (
            likeness.columns[p.first], likeness.columns[p.second], p.rows, p.spearman.value, p.spearman.low,
            p.spearman.high, p.kendall.value, p.spearman.note,
        )
        for p in likeness.pairs
    ]  # fmt: skip


def _figure(likeness: Likeness) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    names = likeness.order
    size = _SQUARE * len(names)
    figure = Figure(figsize=(size, size))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    colours = LinearSegmentedColormap.from_list("rho", [COLOURS[1], "white", COLOURS[0]])
    for row, first in enumerate(names):
        for column, second in enumerate(names[:row]):
            correlation = likeness.value(first, second)
            value = None if correlation is None else correlation.value
            if value is None:
                axes.text(column, row, "–", ha="center", va="center", color=INK)
                continue
            axes.fill_between(
                [column - 0.48, column + 0.48], row - 0.48, row + 0.48, color=colours((value + 1) / 2), linewidth=0
            )
            ink = INK if abs(value) < _PALE else "white"
            axes.text(column, row, f"{value:.2f}".replace("0.", ".", 1), ha="center", va="center", color=ink, size=6)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel("Spearman's rho of every two columns over the rows of the board; more is better in every column")
    return figure

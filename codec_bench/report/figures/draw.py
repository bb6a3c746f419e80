"""Draws plots with matplotlib.

A codec family has a colour and a shape, each distinct among eight, in the page's colours for colour-blind readers. SVG
text is outlines, PDF text embedded TrueType. Files are reproducible. A label without free space moves to the legend.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codec_bench.messages.errors import MissingExtra, UserError, first_of
from codec_bench.report.figures.labels import name_points, shortened
from codec_bench.report.figures.plots import Plot, PlotPoint
from codec_bench.store.export import write_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _page_colours() -> dict[str, str]:
    """Return the colours of the page's light scheme, by name in its style sheet."""
    style = (Path(__file__).parents[1] / "page" / "style.css").read_text("utf-8")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", style.partition("@media")[0]))


_PAGE = _page_colours()
COLOURS = tuple(_PAGE[f"c{number}"] for number in range(8))
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "*")
THIN = ("P", "X", "*")
"""Shapes that a white edge would hide."""
STROKES = ("-", "-.", ":")
INK, SOFT, LINE = _PAGE["ink"], _PAGE["soft"], _PAGE["line-strong"]
_OTHER_FONTS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Zen Hei", "Arial Unicode MS")
_STYLE: dict[str, Any] = {
    "font.size": 8, "axes.edgecolor": SOFT, "axes.labelcolor": INK, "axes.linewidth": 0.6, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.formatter.useoffset": False, "text.color": INK,
    "xtick.color": SOFT, "ytick.color": SOFT, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "grid.color": LINE, "grid.linewidth": 0.5,
    "legend.frameon": False,
    # A name with two dollar signs is no formula.
    "text.parse_math": False, "axes.unicode_minus": True,
    "pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "codec-bench",
}  # fmt: skip
_LEGEND_ROWS = 24


class Drawing:
    """Draws and writes plots; MissingExtra without matplotlib.

    Attributes:
        notes: problems that did not stop it, one sentence each.
    """

    def __init__(self) -> None:
        try:
            import matplotlib
            from matplotlib import font_manager
        except ModuleNotFoundError as error:
            if error.name != "matplotlib":
                raise
            raise MissingExtra("figure", "matplotlib", "figures") from error
        self._matplotlib = matplotlib
        there = set(font_manager.get_font_names())
        self._style: Any = {
            # A local matplotlibrc has no effect. The backend stays, since nothing is shown.
            **{name: value for name, value in matplotlib.rcParamsDefault.items() if name != "backend"},
            **_STYLE,
            "font.family": ["DejaVu Sans", *(name for name in _OTHER_FONTS if name in there)],
        }
        self.notes: list[str] = []

    def styled(self) -> AbstractContextManager[None]:
        """Return a context with the plots' matplotlib settings."""
        settings: AbstractContextManager[None] = self._matplotlib.rc_context(self._style)
        return settings

    def write(
        self,
        draw_figure: Callable[[], Figure],
        folder: Path,
        stem: str,
        heads: Sequence[str],
        rows: Iterable[Sequence[Any]],
    ) -> list[Path]:
        """Write a styled figure as SVG and PDF, and its data as CSV.

        Args:
            folder: created if missing.
            stem: of the file names.
            heads, rows: of the CSV.

        Raises:
            UserError: the folder cannot be written.
        """
        svg, pdf, table = files = [folder / f"{stem}.{form}" for form in ("svg", "pdf", "csv")]
        with _report_unwritable(folder), self.styled(), warnings.catch_warnings(record=True) as font_warnings:
            warnings.simplefilter("always")
            folder.mkdir(parents=True, exist_ok=True)
            figure = draw_figure()
            for file, undated in ((svg, {"Date": None}), (pdf, {"CreationDate": None})):
                figure.savefig(file, format=file.suffix[1:], metadata=undated, bbox_inches="tight", pad_inches=0.04)
            with table.open("w", newline="", encoding="utf-8") as out:
                write_csv(out, heads, rows)
        if any("missing from font" in str(warning.message) for warning in font_warnings):
            note = "some letters are in no font here, and are drawn as boxes; install one such as Noto Sans CJK"
            self.notes = [note]
        return files


@contextmanager
def _report_unwritable(folder: Path) -> Iterator[None]:
    """Raise UserError for an operating system error of the block."""
    try:
        yield
    except OSError as error:
        raise UserError(
            "file_not_writable",
            path=error.filename or folder,
            cause=error.strerror or error,
            hint="name another folder",
        ) from error


def figure_of(plot: Plot) -> Figure:
    """Return a plot as a matplotlib figure, sized in inches of a page."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = len(plot.points) + len({point.group for point in plot.points}) * (plot.kind == "groups")
    figure = Figure(figsize=(5.2, 3.6) if plot.kind == "rate" else (4.2, 0.45 + 0.19 * max(rows, 2)))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    {"rate": _draw_rates, "systems": _draw_rows, "groups": _draw_rows, "time": _draw_shares}[plot.kind](axes, plot)
    return figure


def _draw_rows(axes: Axes, plot: Plot) -> None:
    """Draw a row per value, under the name of its group if there are groups."""
    at, ticks, names = 0, [], []
    for index, point in enumerate(plot.points):
        if point.group and (not index or point.group != plot.points[index - 1].group):
            across: dict[str, Any] = {
                "transform": axes.get_yaxis_transform(),
                "ha": "right",
                "va": "center",
                "weight": "bold",
            }
            axes.text(-0.02, at, point.group, **across)
            at += 1
        mark(axes, point, (point.value, at), sideways=True)
        ticks.append(at)
        names.append(shortened(point.label) + ("*" if point.note and point.ends is not None else ""))
        at += 1
    axes.set_yticks(ticks, names)
    axes.set_ylim(at - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.margins(x=0.06)
    axes.set_xlabel(plot.measure + (f"\nby {plot.column}" if plot.column else ""))
    _footnote(axes, plot)


def _draw_shares(axes: Axes, plot: Plot) -> None:
    """Draw horizontal bars of shares in percent; idle time is hatched."""
    for at, point in enumerate(plot.points):
        idle = point.label == "idle workers"
        face, edge = ("white", SOFT) if idle else (COLOURS[0], COLOURS[0])
        axes.barh(at, point.value, 0.62, color=face, edgecolor=edge, linewidth=0.6, hatch="////" if idle else None)
        style: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "va": "center", "fontsize": 7}
        axes.annotate(f"{point.value:.1f}", (point.value, at), **style)
    axes.set_yticks(range(len(plot.points)), [shortened(point.label) for point in plot.points])
    axes.set_ylim(len(plot.points) - 0.4, -0.6)
    axes.set_xlim(0, 1.1 * max(point.value for point in plot.points) or 1)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(plot.measure)


def _draw_rates(axes: Axes, plot: Plot) -> None:
    """Draw values against bitrate: families as lines, unrated systems dashed."""
    rated = [point for point in plot.points if point.rate_kbps is not None]
    level = [point for point in plot.points if point.rate_kbps is None]
    axes.set_xscale("log")
    for point in level:
        if point.ends is not None:
            axes.axhspan(*point.ends, color=SOFT, alpha=0.1, linewidth=0)
        axes.axhline(point.value, color=SOFT, linewidth=0.9, linestyle=(0, (5, 3)))
    by_family: dict[tuple[str, int], list[PlotPoint]] = {
        family: [] for family in sorted({point.family for point in rated}, key=lambda family: family[1])
    }
    for point in sorted(rated, key=lambda point: point.at_kbps):
        by_family[point.family].append(point)
    for (_, number), members in by_family.items():
        rates, values = [p.at_kbps for p in members], [p.value for p in members]
        axes.plot(rates, values, color=colour_of(number), linestyle=stroke_of(number), linewidth=1, alpha=0.7)
        for point in members:
            mark(axes, point, (point.at_kbps, point.value))
    log_axis(axes, [point.at_kbps for point in rated])
    axes.margins(y=0.08)
    axes.set_xlabel("measured bitrate (kbps), log scale")
    axes.grid(axis="y")
    axes.set_ylabel(plot.measure)
    _footnote(axes, plot)
    _legend(axes, by_family, name_points(axes, rated, level))


def log_axis(axes: Axes, rates: Sequence[float]) -> None:
    """Set ticks at 1, 2 and 5 times powers of ten, or at the powers for wide ranges."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = min(rates) / 1.3, max(rates) * 1.4
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 3000 else (1,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def mark(
    axes: Axes, point: PlotPoint, at: tuple[float, float], *, sideways: bool = False, hollow: bool = False
) -> None:
    """Draw a point's marker and interval at `(x, y)`; hollow also without a family."""
    colour = colour_of(point.family[1])
    if point.ends is not None:
        reach: Any = [[max(0.0, point.value - point.ends[0])], [max(0.0, point.ends[1] - point.value)]]
        axes.errorbar(
            *at, **{"xerr" if sideways else "yerr": reach}, color=colour, linewidth=0.9, capsize=2, capthick=0.9
        )
    hollow = hollow or point.family[1] < 0
    edge = colour if hollow or shape_of(point.family[1]) in THIN else "white"
    axes.plot(
        [at[0]], [at[1]], linestyle="none", marker=shape_of(point.family[1]), markersize=5,
        markerfacecolor="white" if hollow else colour, markeredgecolor=edge, markeredgewidth=0.9 if hollow else 0.5,
    )  # fmt: skip


def colour_of(family: int) -> str:
    """Return the colour of a family; -1 is none."""
    return SOFT if family < 0 else COLOURS[family % len(COLOURS)]


def shape_of(family: int) -> str:
    """Return the shape of a family, shifted after eight to differ with the colour."""
    return SHAPES[0] if family < 0 else SHAPES[(family + family // len(COLOURS)) % len(SHAPES)]


def stroke_of(family: int) -> Any:
    """Return the line style of a family, which changes every eight families."""
    return STROKES[family // len(COLOURS) % len(STROKES)]


def _footnote(axes: Axes, plot: Plot) -> None:
    below = -(32 + 10 * axes.get_xlabel().count("\n"))
    axes.annotate(
        "\n".join(_footnotes(plot)), (0, 0), xycoords="axes fraction", xytext=(0, below),
        textcoords="offset points", ha="left", va="top", fontsize=6, color=SOFT,
    )  # fmt: skip


def _footnotes(plot: Plot) -> Iterator[str]:
    """Yield the small print: sample counts, interval notes, warnings, rows not drawn."""
    counts = [point.n for point in plot.points]
    sizes = f"{min(counts):,}" if min(counts) == max(counts) else f"{min(counts):,} to {max(counts):,}"
    drawn = [point for point in plot.points if point.ends is not None]
    yield f"Bars: 95 % intervals. n = {sizes} samples." if drawn else f"n = {sizes} samples; the intervals are unknown."
    for note in dict.fromkeys(point.note for point in drawn if point.note):
        about = [shortened(point.label) for point in drawn if point.note == note]
        named = "All intervals" if len(about) == len(drawn) else f"Interval of {first_of(about, 3)}"
        yield f"{named if plot.kind == 'rate' else '* interval'} {note}"
    if 0 < len(drawn) < len(plot.points):
        yield f"No bar: {next(point.note for point in plot.points if point.ends is None)}"
    elif not drawn:
        yield plot.points[0].note
    for remark in plot.doubts:
        yield wrapped(remark, 110)
    if plot.excluded:
        yield f"{plot.excluded:,} more rows are in {plot.stem}.csv."


def _legend(axes: Axes, by_family: dict[tuple[str, int], list[PlotPoint]], unnamed: Sequence[PlotPoint]) -> None:
    """Add a legend of codec families, and of points without a label next to them."""
    from matplotlib.lines import Line2D

    handles = []
    for (name, number), members in by_family.items():
        text = name
        if any(point in unnamed for point in members):
            points = [point.label.removeprefix(name).lstrip("-_@") or point.label for point in members]
            text = members[0].label if len(members) == 1 else f"{name}: {', '.join(points)}"
        style: dict[str, Any] = {
            "color": colour_of(number),
            "markeredgecolor": colour_of(number),
            "linestyle": stroke_of(number),
        }
        style |= {"marker": shape_of(number), "markersize": 5, "markeredgewidth": 0.5, "linewidth": 1}
        handles.append(Line2D([], [], **style, label=wrapped(text)))
    for point in unnamed:
        if point.rate_kbps is None:
            text = wrapped(f"{point.label}: {point.value:.4g}")
            handles.append(Line2D([], [], color=SOFT, linewidth=0.9, linestyle=(0, (5, 3)), label=text))
    if len(handles) > 1 or unnamed:
        axes.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.02), fontsize=7, handlelength=2.2,
            labelspacing=0.35, ncols=math.ceil(len(handles) / _LEGEND_ROWS),
        )  # fmt: skip


def wrapped(text: str, letters: int = 40) -> str:
    """Wrap a text in lines of at most so many letters."""
    import textwrap

    return "\n".join(textwrap.wrap(text, letters)) or text

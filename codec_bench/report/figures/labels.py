"""Places the names of points in a plot, free of points, lines and other names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from codec_bench.report.figures.plots import PlotPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_NAME = 48
_SIDES = {1: ("left", "bottom"), 0: ("center", "center"), -1: ("right", "top")}
_OFFSETS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
_ALONG = tuple((share, direction) for share in (0.01, 0.99, 0.3, 0.6) for direction in (1, -1))


def shortened(name: str) -> str:
    """Return a long name without its middle; ends of neighbouring names often differ."""
    half = LONGEST_NAME // 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}…{name[-half:]}"


def name_points(axes: Axes, rated: Sequence[PlotPoint], level: Sequence[PlotPoint]) -> list[PlotPoint]:
    """Write names next to points and dashed lines; return points without room."""
    from matplotlib.transforms import Bbox

    figure: Any = axes.figure
    figure.draw_without_rendering()
    renderer, room, half = figure.canvas.get_renderer(), axes.get_window_extent(), 4 * figure.dpi / 72
    dots = axes.transData.transform([(point.at_kbps, point.value) for point in rated])
    occupied = [Bbox.from_extents(x - half, y - half, x + half, y + half) for x, y in dots]
    # A bar is a collection of one line.
    curves: list[tuple[Any, Any]] = [(line, line.get_path()) for line in axes.lines]
    curves += [(bar, path) for bar in axes.collections for path in bar.get_paths()]
    paths = [artist.get_transform().transform_path(path) for artist, path in curves]

    def has_room(label: Any) -> bool:
        """Keep a label that covers nothing and is inside the axes, else remove it."""
        box = label.get_window_extent(renderer)
        inside = room.x0 <= box.x0 and box.x1 <= room.x1 and room.y0 <= box.y0 and box.y1 <= room.y1
        crossed = any(p.intersects_bbox(box, filled=False) for p in paths)
        free = inside and not box.count_overlaps(occupied) and not crossed
        if free:
            occupied.append(box)
        else:
            label.remove()
        return free

    candidates = [
        *((point, _along(axes, point)) for point in level),
        *((point, _label_positions(axes, point)) for point in rated),
    ]
    return [point for point, labels in candidates if not any(map(has_room, labels))]


def _label_positions(axes: Axes, point: PlotPoint) -> Iterator[Any]:
    for x, y in _OFFSETS:
        yield axes.annotate(
            shortened(point.label), (point.at_kbps, point.value), xytext=(5 * x, 5 * y), textcoords="offset points",
            ha=_SIDES[x][0], va=_SIDES[y][1], fontsize=7,
        )  # fmt: skip


def _along(axes: Axes, point: PlotPoint) -> Iterator[Any]:
    for share, y in _ALONG:
        yield axes.annotate(
            shortened(point.label), (share, point.value), xycoords=axes.get_yaxis_transform(), xytext=(0, 2 * y),
            textcoords="offset points", ha="left" if share < 0.9 else "right", va=_SIDES[y][1], fontsize=7,
        )  # fmt: skip

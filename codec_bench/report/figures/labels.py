"""Where the names of points stand in a plot: beside them, where they hide nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from codec_bench.report.figures.plots import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_NAME = 48
Box = tuple[float, float, float, float]


def shortened(name: str) -> str:
    """A long name without its middle; the ends of names that stand together often differ."""
    half = LONGEST_NAME // 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}…{name[-half:]}"


@dataclass
class Labels:
    """Puts the names of points beside them, where they hide no point, no bar, no line and no other name."""

    axes: Axes
    rated: Sequence[Point]
    level: Sequence[Point]

    def place(self) -> list[Point]:
        """Adds the labels; returns the points for whose labels there is no room."""
        figure: Any = self.axes.figure
        figure.draw_without_rendering()
        self._renderer = figure.canvas.get_renderer()
        self._scale = figure.dpi / 72
        self._room = self.axes.get_window_extent(self._renderer)
        self._taken = list(self._obstacles())
        unnamed = [point for point in self.level if not self._along(point)]
        return unnamed + [point for point in self.rated if not self._beside(point)]

    def _at(self, rate: float, value: float) -> tuple[float, float]:
        x, y = self.axes.transData.transform((rate, value))
        return float(x), float(y)

    def _obstacles(self) -> Iterator[Box]:
        """Boxes around markers, bars, dashed lines, and short pieces of the lines between points, in pixels."""
        half = 4 * self._scale
        lines: dict[tuple[str, int], list[tuple[float, float]]] = {}
        for point in sorted(self.rated, key=lambda p: p.at_kbps):
            x, y = self._at(point.at_kbps, point.value)
            lines.setdefault(point.family, []).append((x, y))
            yield x - half, y - half, x + half, y + half
            if point.ends is not None:
                yield x - half / 2, self._at(1.0, point.ends[0])[1], x + half / 2, self._at(1.0, point.ends[1])[1]
        for corners in lines.values():
            for (x0, y0), (x1, y1) in pairwise(corners):
                pieces = max(1, math.ceil(math.hypot(x1 - x0, y1 - y0) / 4))
                for k in range(pieces + 1):
                    x, y = x0 + (x1 - x0) * k / pieces, y0 + (y1 - y0) * k / pieces
                    yield x - 1, y - 1, x + 1, y + 1
        for point in self.level:
            _, y = self._at(1.0, point.value)
            yield self._room.x0, y - 1, self._room.x1, y + 1

    def _beside(self, point: Point) -> bool:
        x, y = self._at(point.at_kbps, point.value)
        gap = 5 * self._scale
        spots = (
            (gap, 0, "left", "center"), (-gap, 0, "right", "center"), (0, gap, "center", "bottom"), (0, -gap, "center", "top"),
            (gap, gap, "left", "bottom"), (gap, -gap, "left", "top"), (-gap, gap, "right", "bottom"), (-gap, -gap, "right", "top"),
        )  # fmt: skip
        return any(self._put(shortened(point.label), x + dx, y + dy, ha, va) for dx, dy, ha, va in spots)

    def _along(self, point: Point) -> bool:
        _, y = self._at(1.0, point.value)
        gap, width = 2 * self._scale, self._room.width
        spots = [(share, side) for share in (0.01, 0.99, 0.3, 0.6) for side in (1, -1)]
        return any(
            self._put(
                shortened(point.label), self._room.x0 + share * width, y + side * gap, "left" if share < 0.9 else "right",
                "bottom" if side > 0 else "top",
            )
            for share, side in spots
        )  # fmt: skip

    def _put(self, text: str, x: float, y: float, ha: str, va: str) -> bool:
        """Puts a text at a place in pixels if it is free there."""
        label = self.axes.annotate(
            text,
            tuple(self.axes.transData.inverted().transform((x, y))),
            ha=ha,
            va=va,
            fontsize=7,
            annotation_clip=False,
        )
        box = label.get_window_extent(self._renderer)
        inside = (
            box.x0 >= self._room.x0 and box.x1 <= self._room.x1 and box.y0 >= self._room.y0 and box.y1 <= self._room.y1
        )
        if inside and not any(t[0] < box.x1 and t[2] > box.x0 and t[1] < box.y1 and t[3] > box.y0 for t in self._taken):
            self._taken.append((box.x0, box.y0, box.x1, box.y1))
            return True
        label.remove()
        return False

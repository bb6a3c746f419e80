"""Strengths of systems by pairwise preferences, as rows of a table."""

from __future__ import annotations

from codec_bench.report.numbers import number
from codec_bench.stats.pairwise_preferences import Strengths

_HEADS: tuple[str, ...] = ("system", "strength, points", "95 %", "comparisons")


def strength_rows(result: Strengths) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and rows of a table of strengths, the strongest system first."""
    rows: list[tuple[str, ...]] = [
        (
            one.system,
            number(one.points, 0, sign=True),
            "–" if one.low is None or one.high is None else f"[{number(one.low, 0)}, {number(one.high, 0)}]",
            f"{one.duels:,}",
        )
        for one in result.systems
    ]
    return _HEADS, rows

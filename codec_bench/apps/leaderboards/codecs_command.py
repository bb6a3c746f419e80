"""`codec-bench leaderboard codecs`: codecs of runs and of publications."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codec_bench.errors import UserError
from codec_bench.report.numbers import ARROWS
from codec_bench.report.result_columns import NOT_DISCRETE
from codec_bench.terminal.output import console, talk

if TYPE_CHECKING:
    from codec_bench.apps.leaderboards.codecs import CodecBoard, CodecPoint, CodecTable, DeltaRate

SURE = 0.975
"""The share of draws that makes a front point certain."""


def print_codecs(
    runs: Sequence[Path], *, axis: str, metrics: Sequence[str], anchor: str | None, seed: int, figures: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Print codecs of runs and publications, and draw them into `figures` if given."""
    from codec_bench.apps.leaderboards.codecs import codec_board

    board = codec_board(runs, axis=axis, metrics=metrics, anchor=anchor, seed=seed)
    if as_json:
        sys.stdout.write(json.dumps(_plain(board), ensure_ascii=False) + "\n")
    else:
        _print_board(board)
    for note in board.notes:
        talk(note)
    if figures is not None:
        from codec_bench.apps.leaderboards.fronts import write_fronts

        for path in write_fronts(board, figures):
            talk(f"written: {path}")


def _plain(board: CodecBoard) -> dict[str, Any]:
    return {
        "axis": board.axis, "anchor": board.anchor, "notes": list(board.notes),
        "tables": [
            {
                "source": table.source, "data": table.data, "metric": table.metric, "dimension": table.dimension,
                "unit": table.unit,
                "higher_is_better": table.higher_is_better, "protocol": table.protocol, "imported": table.imported,
                "points": [_plain_point(point) for point in table.points],
                "bd_rates": [_plain_rate(rate) for rate in table.delta_rates],
            }
            for table in board.tables
        ],
    }  # fmt: skip


def _plain_point(point: CodecPoint) -> dict[str, Any]:
    return {
        "codec": point.name, "family": point.family, "run": point.run or None, "costs": dict(point.costs),
        "value": point.value,
        "ci95": list(point.ci95) if point.ci95 else None, "n": point.n, "on_front": point.on_front,
        "front_share": point.share, "doubt": point.suspicion,
        "continuous": point.continuous, "bits_per_token": point.bits_per_token,
    }  # fmt: skip


def _plain_rate(rate: DeltaRate) -> dict[str, Any]:
    return {
        "family": rate.family,
        "value": rate.value,
        "ci95": rate.interval.ends if rate.interval else None,
        "reason": rate.reason,
    }


def _print_board(board: CodecBoard) -> None:
    """Print a table per source and data, then the delta rates."""
    groups: dict[tuple[str, str], list[CodecTable]] = {}
    for table in board.tables:
        groups.setdefault((table.source, table.data), []).append(table)
    if not groups:
        raise UserError("there is no codec to show")
    for (source, data), tables in groups.items():
        sys.stdout.write(f"{data} ({source})\n")
        _print_group(board.axis, tables)
        for table in tables:
            talk(f"{_named(table)}: protocol {table.protocol}")
        doubts = {(point.name, point.suspicion): None for table in tables for point in table.points if point.suspicion}
        for codec, suspicion in doubts:
            talk(f"{codec} is not compared, and on no front: {suspicion}")
    if any(point.continuous for table in board.tables for point in table.points):
        talk(
            "codecs with latents are not discrete: they have no bitrate, and a front of their own along every other "
            "axis"
        )
    talk(
        "* is on the Pareto front: no other codec is as good at the same cost or less; (80 %) is on it in 80 % of the "
        "draws of other items. Numbers of different tables are not comparable."
    )
    _print_rates(board)


def _print_group(axis: str, tables: Sequence[CodecTable]) -> None:
    from codec_bench.apps.leaderboards.codecs import AXES
    from codec_bench.report.table import wide_table

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
    out = console()
    heads = ["", f"{called}\n{unit}".strip(), "tokens/s", "bits/token", *map(_head, tables)]
    if not any(row[2] for row in rows):  # no codec declares tokens
        heads, rows = [*heads[:2], *heads[4:]], [(*row[:2], *row[4:]) for row in rows]
    out.print(wide_table(heads, rows, out.width))


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
    text = f"{point.value:.4g}"
    if point.ci95 is not None:
        text += f" ±{(point.ci95[1] - point.ci95[0]) / 2:.2g}"
    if point.on_front:
        text += " *"
    unsure = point.share is not None and 1 - SURE < point.share < SURE
    return f"{text} ({100 * point.share:.0f} %)" if unsure and point.share is not None else text


def _print_rates(board: CodecBoard) -> None:
    from codec_bench.terminal.output import table

    if board.anchor is None:
        return
    rows = [
        (f"{one.data} ({one.source})", _named(one), rate.family, *_rate(rate))
        for one in board.tables
        for rate in one.delta_rates
    ]
    heads = ("", "metric", "family", f"bitrate beside {board.anchor}", "95 % interval", "why not")
    console().print(table(heads, rows))


def _rate(rate: DeltaRate) -> tuple[str, str, str]:
    if rate.value is None:
        return "", "", rate.reason or ""
    ends = rate.interval.ends if rate.interval else None
    interval = "" if ends is None else f"{100 * ends[0]:+.1f} to {100 * ends[1]:+.1f} %"
    return f"{100 * rate.value:+.1f} %", interval, ""

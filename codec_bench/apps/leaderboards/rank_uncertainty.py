"""The certainty of a leaderboard's ranks: under other rules, and with other items.

Columns that are parts of one benchmark are excluded one by one. Only own rows have items; published rows stay in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from codec_bench.apps.leaderboards.board import Board, BoardRow, Likeness, Trust
from codec_bench.apps.leaderboards.ranking import (
    Changes,
    Points,
    RankDraws,
    UnitEffects,
    changes_of,
    combine,
    rank_draws,
    redundancy,
    robustness,
)
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.report.open_run import open_run
from codec_bench.stats.correlation import correlations, order_by_similarity


def trust(board: Board, seed: int = 0) -> Trust:
    """Compute how certain ranks are: under other rules, and with items drawn anew.

    Args:
        seed: of the draws.

    Raises:
        UserError: the board has no average, or its average weights samples equally.
    """
    if not board.averages:
        raise UserError("board_without_average", board=board.name, hint="choose a board with an average")
    if board.by_sample:
        raise UserError("board_counts_samples", board=board.name, hint="choose the board that counts benchmarks")
    points = points_of(board)
    orders = robustness(points)
    ranked = [n for n, one in enumerate(orders) if one.rank is not None]
    parts, unknown = _without_each_row(board, points, ranked)
    drawn = rank_draws(points.averages()[ranked], parts, seed=seed) if ranked else None
    dispensable = tuple((board.columns[column].name, tau) for column, tau in redundancy(points))
    return Trust(tuple(orders), dispensable=dispensable, **_by_row(board, ranked, drawn, unknown))


def likeness(board: Board) -> Likeness:
    """Compute rank correlations of all columns, and an order by similarity.

    Raises:
        UserError: the board has one column.
    """
    if len(board.columns) < 2:
        raise UserError("board_of_one_column", board=board.name)
    pairs = correlations(points_of(board, printed=False).values)
    names = tuple(board.columns[n].name for n in order_by_similarity(pairs, len(board.columns)))
    return Likeness(tuple(column.name for column in board.columns), tuple(pairs), names)


def points_of(board: Board, *, printed: bool = True) -> Points:
    """Convert the cells of a board to a matrix of points, higher being better.

    Ratings by the user's judges are no cells, and rows that are not compared are NaN.

    Args:
        printed: a group without cells takes the authors' printed mean in each of its columns, and a row from own runs
            that lacks a column of a group is NaN in the whole group.
    """
    values = np.full((len(board.rows), len(board.columns)), np.nan)
    for n, row in enumerate(board.rows):
        if not row.compared:
            continue
        with_cells = {column.group for column in board.columns if column.name in row.cells}
        for c, column in enumerate(board.columns):
            cell = row.cells.get(column.name)
            if printed and column.group not in with_cells:
                cell = row.printed.get(column.group)
            if cell is not None and not (printed and board.is_part(row, column.group)):
                values[n, c] = float(column.points(cell))
    held = Counter(column.benchmark for column in board.columns if column.subset is not None)
    benchmarks = [
        f"{column.benchmark} {column.subset}" if held[column.benchmark] > 1 else column.benchmark
        for column in board.columns
    ]
    families = [column.family or column.group for column in board.columns]
    weight_groups, names = [c.group for c in board.columns], [c.name for c in board.columns]
    return Points(values, benchmarks, families, weight_groups, names)


def _by_row(
    board: Board, ranked: Sequence[int], drawn: RankDraws | None, unknown: Mapping[int, Diagnostic]
) -> dict[str, Any]:
    """Expand results on ranked rows to all rows, as fields of `Trust` by name.

    Args:
        ranked: positions of the ranked rows.
        unknown: by number among them, the reason why the interval is unknown.
    """
    intervals: list[tuple[int, int] | None] = [None] * len(board.rows)
    shares: list[dict[int, float]] = [{} for _ in board.rows]
    above: list[dict[int, float]] = [{} for _ in board.rows]
    tied: list[tuple[str, ...]] = [()] * len(board.rows)
    notes: list[Diagnostic | None] = [Diagnostic("row_without_rank")] * len(board.rows)
    if drawn is not None:
        for index, row in enumerate(ranked):
            intervals[row], notes[row] = drawn.intervals[index], drawn.notes[index]
            tied[row] = tuple(board.rows[ranked[other]].name for other in drawn.tied[index])
            if index in unknown:
                intervals[row], notes[row] = None, unknown[index]
        moving = [index for index, row in enumerate(ranked) if intervals[row] is not None]
        for index, row in enumerate(ranked):
            others = [other for other in range(len(ranked)) if other != index and (index in moving or other in moving)]
            above[row] = {ranked[other]: float(drawn.above[index, other]) for other in others}
            if index in moving:
                shares[row] = {rank: float(share) for rank, share in enumerate(drawn.shares[index], 1) if share}
    return {
        "rank_intervals": tuple(intervals), "shares": tuple(shares), "above": tuple(above), "tied": tuple(tied),
        "notes": tuple(notes),
    }  # fmt: skip


def _without_each_row(
    board: Board, points: Points, ranked: Sequence[int]
) -> tuple[list[UnitEffects], dict[int, Diagnostic]]:
    """Compute how leaving out each unit changes the averages of rows from own runs.

    Args:
        ranked: positions of the ranked rows; results count within these.

    Returns:
        The effects of each benchmark, and by row the reason why its interval is unknown.
    """
    of_benchmark: dict[str, dict[int, Changes]] = {}
    unknown: dict[int, Diagnostic] = {}
    for index, number in enumerate(ranked):
        row = board.rows[number]
        if row.published:
            continue
        weights = dict(zip((column.name for column in board.columns), points.weights(number), strict=True))
        by_benchmark, missing = _changes(board, row, {name: weight for name, weight in weights.items() if weight})
        if missing:
            unknown[index] = Diagnostic("items_not_separable", columns=missing)
        for benchmark, changes in by_benchmark.items():
            of_benchmark.setdefault(benchmark, {})[index] = changes
    return [combine(rows) for rows in of_benchmark.values()], unknown


def _changes(board: Board, row: BoardRow, weights: Mapping[str, float]) -> tuple[dict[str, Changes], list[str]]:
    """Return the change of a row's average without each unit, by benchmark.

    Args:
        weights: of the columns in the average.

    Returns:
        The changes, and the columns whose units cannot be excluded one by one.
    """
    by_column: dict[str, Changes] = {}
    missing: list[str] = []
    for column in (column for column in board.columns if column.name in weights):
        source = row.sources[column.name]
        with closing(open_run(source.folder)) as run:
            benchmark = str((run.meta.get("benchmark") or {}).get("name"))
            # Partial benchmarks have no items here.
            overall = changes_of(run, source.system, source.metric) if column.subset is None else {}
        if not overall:
            missing.append(column.name)
        changes = by_column.setdefault(benchmark, {})
        for unit, change in overall.items():
            points = weights[column.name] * change * column.points_of_unit
            changes[unit] = changes.get(unit, 0.0) + points
    return {benchmark: changes for benchmark, changes in by_column.items() if changes}, missing

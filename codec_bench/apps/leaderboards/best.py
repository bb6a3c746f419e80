"""Which rows of a leaderboard are the best in each column.

How it is decided
    Own rows are compared with one another over the questions that they share, as `stats.verdict` does everywhere. A
    published row has no questions here. What was printed is taken as it is: it can be told from an own value if it lies
    outside of that value's interval; an own value without one is compared with no published value. A column about a
    part of a benchmark has no questions of its own either, and there intervals that overlap tell no rows apart. Rows
    that are not compared, such as those over fewer questions, are never the best. A codec whose checks found something
    is left out of the comparison, and so is a system whose sound holds no speech. Where the own row with the best value
    has values for too few questions, nobody is the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal

from codec_bench.apps.leaderboards.board import Board, Column, Row
from codec_bench.report.open_run import open_run
from codec_bench.stats.breakdown import Parts, parts_of
from codec_bench.stats.recorded import Recorded
from codec_bench.stats.verdict import speechless, verdict

Ends = tuple[Decimal, Decimal] | None


def best_rows(board: Board, column: Column) -> set[int]:
    """The numbers of the rows that are the best in a column; none if fewer than two rows have a value, or nothing tells
    them apart.
    """
    sign = -1 if column.counts == "error" else 1
    values = {
        n: sign * row.cells[column.name]
        for n, row in enumerate(board.rows)
        if row.compared and column.name in row.cells and not _out(row, column)
    }
    if len(values) < 2:
        return set()
    own = [n for n in values if not board.rows[n].published]
    top = max(values, key=lambda n: values[n])
    if top in own and len(own) < len(values) and _ends(board.rows[top], column) is None:
        return set()  # nothing tells it from what was printed
    fit = set(values)
    told: set[int] | None = None
    if len(own) > 1 and column.subset is None:
        found = verdict(_parts([board.rows[n] for n in own], column), (), sign > 0)
        fit -= {own[k] for k in found.barred}
        told = None if found.reason else {own[k] for k in found.best}
        if top in own and (told is None or top not in told):
            return set()
    alike = {n for n in fit if n == top or _overlap(board.rows[n], board.rows[top], column)}
    # An own row that can be told from a better own one is not the best, and one that cannot be needs no interval.
    best = alike if told is None else (alike - set(own)) | (told if top in own else told & alike)
    beaten = max((values[n] for n in values if n not in best), default=None)
    return {n for n in best if beaten is None or values[n] >= beaten}


def _out(row: Row, column: Column) -> bool:
    """Whether the run of an own value says that the checks of its system found something, or that what was scored holds
    no speech.
    """
    if row.published:
        return False
    source = row.sources[column.name]
    with closing(open_run(source.folder)) as run:
        recorded = Recorded(run)
        if source.system in recorded.suspects:
            return True
        scores = recorded.scores(source.system, source.metric)
        return speechless(scores.speechless, len(scores.numbers)) is not None


def _ends(row: Row, column: Column) -> Ends:
    """The ends of a value's interval; those of a published value are the value itself."""
    value = row.cells[column.name]
    return (value, value) if row.published else row.intervals.get(column.name)


def _overlap(one: Row, other: Row, column: Column) -> bool:
    """Whether two values have intervals that do not tell them apart."""
    a, b = _ends(one, column), _ends(other, column)
    return a is not None and b is not None and a[0] <= b[1] and b[0] <= a[1]


def _parts(rows: Sequence[Row], column: Column) -> dict[int, Parts]:
    """What the questions add to the values of own rows, with numbers that mean the same question in all of them."""
    numbers: dict[str, int] = {}
    found = {}
    for place, row in enumerate(rows):
        source = row.sources[column.name]
        with closing(open_run(source.folder)) as run:
            ids = dict(run.query("SELECT number, id FROM samples"))
            parts = parts_of(Recorded(run), source.system, source.metric)
        found[place] = replace(parts, numbers=[numbers.setdefault(ids[n], len(numbers)) for n in parts.numbers])
    return found

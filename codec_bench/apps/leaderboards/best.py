"""Which rows of a leaderboard are the best in each column, and which are not distinguishable from it.

The best is the best value of a column, among the rows that can be compared. Rows over fewer questions, codecs whose
checks found something and systems whose output holds no speech are no candidates. Where the row with the best value has
values for too few of the questions that the own rows share, nobody is the best. `stats.verdict` decides between own
rows; published rows have no items for a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from codec_bench.apps.leaderboards.board import Board, Column, Row
from codec_bench.report.open_run import open_run
from codec_bench.stats.breakdown import Parts, parts_of
from codec_bench.stats.recorded import Recorded
from codec_bench.stats.verdict import speechless, verdict


def best_rows(board: Board, column: Column) -> tuple[set[int], set[int]]:
    """The numbers of the rows with the best value of a column, and of those not distinguishable from it.

    Both are empty if fewer than two rows have a value.
    """
    sign = -1 if column.counts == "error" else 1
    values = {
        n: sign * row.cells[column.name]
        for n, row in enumerate(board.rows)
        if row.compared and column.name in row.cells and not _out(row, column)
    }
    if len(values) < 2:
        return set(), set()
    run_rows = [n for n in values if not board.rows[n].published]
    best = {n for n in values if values[n] == max(values.values())}
    if len(run_rows) > 1 and column.subset is None:
        outcome = verdict(_parts([board.rows[n] for n in run_rows], column), (), sign > 0)
        if best & {run_rows[k] for k in outcome.barred}:
            return set(), set()
        if best & {run_rows[k] for k in outcome.best}:
            return best, {run_rows[k] for k in outcome.alike} - best
    return best, set()


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


def _parts(rows: Sequence[Row], column: Column) -> dict[int, Parts]:
    """What the questions add to the values of own rows, with numbers that mean the same question in all of them."""
    numbers: dict[str, int] = {}
    scores = {}
    for index, row in enumerate(rows):
        source = row.sources[column.name]
        with closing(open_run(source.folder)) as run:
            ids = dict(run.query("SELECT number, id FROM samples"))
            parts = parts_of(Recorded(run), source.system, source.metric)
        scores[index] = replace(parts, numbers=[numbers.setdefault(ids[n], len(numbers)) for n in parts.numbers])
    return scores

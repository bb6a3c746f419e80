"""The best rows in each column, and those not distinguishable from them.

Candidates are comparable rows: full questions, codecs without findings, output with speech. If the best row has too few
values of the shared questions, nobody is the best. `stats.verdict` compares own rows; published rows have no items for
a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from codec_bench.apps.leaderboards.board import Board, Column, Row
from codec_bench.report.open_run import open_run
from codec_bench.stats.breakdown import MetricParts, parts_of
from codec_bench.stats.recorded import RecordedRun
from codec_bench.stats.verdict import speechless, verdict


def best_rows(board: Board, column: Column) -> tuple[set[int], set[int]]:
    """Return the best rows of a column, and those alike; empty below two values."""
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
    """Whether the run reports findings of the system, or output without speech."""
    if row.published:
        return False
    source = row.sources[column.name]
    with closing(open_run(source.folder)) as run:
        recorded = RecordedRun(run)
        if source.system in recorded.suspects:
            return True
        scores = recorded.scores(source.system, source.metric)
        return speechless(scores.speechless, len(scores.numbers)) is not None


def _parts(rows: Sequence[Row], column: Column) -> dict[int, MetricParts]:
    """Return the questions' contributions to own values, with common question numbers."""
    numbers: dict[str, int] = {}
    scores = {}
    for index, row in enumerate(rows):
        source = row.sources[column.name]
        with closing(open_run(source.folder)) as run:
            ids = dict(run.query("SELECT number, id FROM samples"))
            parts = parts_of(RecordedRun(run), source.system, source.metric)
        scores[index] = replace(parts, numbers=[numbers.setdefault(ids[n], len(numbers)) for n in parts.numbers])
    return scores

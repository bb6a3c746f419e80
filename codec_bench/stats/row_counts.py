"""The number of a benchmark's questions in a run, and in its definition."""

from __future__ import annotations

import json

from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import RowCount
from codec_bench.store.answers import digest_of, draws_of, has_answers
from codec_bench.store.identity import identity_of
from codec_bench.store.record import Run


def count_rows(run: Run, size: int | None = None) -> RowCount:
    """Number of a run's questions, the benchmark's size, and why fewer; or `UNSET`.

    Args:
        size: of the benchmark; None takes the recorded one. Without either the result is `UNSET`.
    """
    meta = run.meta
    size = size or (meta.get("benchmark") or {}).get("size")
    if size is None:
        return UNSET
    if has_answers(run):
        drawn = (
            "SELECT COUNT(DISTINCT COALESCE(q.draw_of, p.id)) FROM questions q JOIN samples p ON p.number = q.number"
        )
        n = int(run.query(drawn)[0][0])
    else:
        n = run.counts()["samples"]
    config = meta.get("config") or {}
    limit = config.get("limit")
    reasons = {
        "shard": config.get("shard") is not None,
        "limit": limit is not None and n >= min(limit, size),
        "unfinished": meta.get("state") not in (None, "answered", "finished"),
        "data": True,
    }
    return RowCount(n, size, limit, None if n == size else next(why for why, holds in reasons.items() if holds))


def other_data(run: Run) -> list[str]:
    """Differences of a run's questions from the definition's, in words."""
    of = run.meta.get("benchmark") or {}
    differences = list(of.get("other_columns") or ())
    pinned = of.get("rows_digest")
    rows = count_rows(run)
    # Of a part, of several draws, and of options in another order, the texts are others than those of the whole.
    if pinned is None or not rows or rows.why is not None or draws_of(run) or identity_of(run).rows is None:
        return differences
    questions = run.query("SELECT fields, expected FROM questions")
    digest = digest_of((json.loads(fields), json.loads(expected)) for fields, expected in questions)
    return differences if digest == pinned else [*differences, "other questions than those that the definition pins"]

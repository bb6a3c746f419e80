"""How many questions of its benchmark a run holds, beside how many the definition says that there are."""

from __future__ import annotations

import json

from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import RowCount
from codec_bench.store.answers import digest_of, draws_of, has_answers
from codec_bench.store.identity import identity_of
from codec_bench.store.record import Run


def count_rows(run: Run, size: int | None = None) -> RowCount:
    """The questions of a run beside `size` or the recorded number; `UNSET` if no number is known."""
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
    why = (
        None
        if n == size
        else "shard"
        if config.get("shard") is not None
        else "limit"
        if limit is not None and n >= min(limit, size)
        else "unfinished"
        if meta.get("state") not in (None, "answered", "finished")
        else "data"
    )
    return RowCount(n, size, limit, why)


def other_data(run: Run) -> list[str]:
    """In what the questions of a run are not those of the definition, in words; empty if nothing says so."""
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

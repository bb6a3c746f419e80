"""What a judge did for the numbers of one metric: on how many answers it gave no verdict, and what its calls cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from codec_bench.store.answers import CALLS
from codec_bench.store.record import Run

MOST_FAILED = 0.05
"""The share of answers without a verdict above which a result says so."""


def judging_of(run: Run, system: str, metric: str) -> dict[str, Any] | None:
    """What the judge of a metric did; None if the metric has no judge, or the record is of a version that did not say.

    Returns:
        `judge` and `rubric`; `asked` (answers that it was asked about), `failed` (how many of them got no verdict: the call
        failed, or the reply could not be read), `share` (failed over asked); `calls` and how many of them were `cached`;
        `usage` (sums of what was reported for the others, such as `output_tokens`), `cost_usd` (None if the price of a call
        is not known), and `served` (what the service called the models that replied).
    """
    facts = run.metrics[metric]
    if "judge" not in facts:
        return None
    asked = failed = 0
    sums, usage, served = Counter[str](), Counter[str](), set()
    for status, text in run.query(
        f"SELECT c.status, json_extract(c.detail, '$.{CALLS}') FROM scores c JOIN systems s ON s.number = c.system "
        f"JOIN metrics m ON m.number = c.metric WHERE s.name = ? AND m.name = ? AND c.detail LIKE '%\"{CALLS}\"%'",
        (system, metric),
    ):
        calls = run.json(text, f"the detail of a score of {metric}") if text is not None else None
        if not isinstance(calls, Mapping):
            continue
        asked += 1
        failed += status != "ok"
        sums.update({name: calls.get(name, 0) for name in ("n", "cached", "unpriced")})
        usage.update(calls.get("usage", {}))
        served.update(calls.get("served", ()))
    cost = usage.pop("cost_usd", 0.0)
    return {
        "judge": facts["judge"], "rubric": facts.get("rubric"), "asked": asked, "failed": failed,
        "share": failed / asked if asked else 0.0, "calls": sums["n"], "cached": sums["cached"], "usage": dict(usage),
        "cost_usd": None if sums["unpriced"] else cost, "served": sorted(served),
    }  # fmt: skip


def failing(judging: Mapping[str, Any] | None) -> str | None:
    """A sentence on a judge that gave no verdict on more than 5 % of the answers; None if it gave enough."""
    if judging is None or judging["share"] <= MOST_FAILED:
        return None
    return (
        f"the judge gave no verdict on {judging['failed']:,} of {judging['asked']:,} answers ({100 * judging['share']:.1f} %), "
        "more than 5 %"
    )

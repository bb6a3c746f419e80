"""What a judge did for the numbers of one metric: on how many answers it gave no verdict, and what its calls cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from codec_bench.stats.recorded import Scores
from codec_bench.stats.summary_types import Judging
from codec_bench.store.answers import CALLS

MOST_FAILED = 0.05
"""The share of answers without a verdict above which a result says so."""


def judging_of(scores: Scores, facts: Mapping[str, Any]) -> Judging | None:
    """What the judge of a metric did; None if the metric has no judge.

    Args:
        scores: of the metric. facts: of the metric.
    """
    if "judge" not in facts:
        return None
    asked = failed = 0
    sums, usage, served = Counter[str](), Counter[str](), set()
    lost = {number for number, _, _ in scores.lost}
    for number, held in scores.details.items():
        calls = held.get(CALLS)
        if not isinstance(calls, Mapping):
            continue
        asked += 1
        failed += number in lost
        sums.update({name: calls.get(name, 0) for name in ("n", "cached", "unpriced")})
        usage.update(calls.get("usage", {}))
        served.update(calls.get("served", ()))
    cost = usage.pop("cost_usd", 0.0)
    return Judging(
        judge=facts["judge"], rubric=facts.get("rubric"), asked=asked, failed=failed, share=failed / asked if asked else 0.0,
        calls=sums["n"], cached=sums["cached"], usage=dict(usage), cost_usd=None if sums["unpriced"] else cost, served=sorted(served),
    )  # fmt: skip


def failing(judging: Judging | None) -> str | None:
    """A sentence on a judge that gave no verdict on more than 5 % of the answers; None if it gave enough."""
    if not judging or judging.share <= MOST_FAILED:
        return None
    return (
        f"the judge gave no verdict on {judging.failed:,} of {judging.asked:,} answers ({100 * judging.share:.1f} %), "
        "more than 5 %"
    )

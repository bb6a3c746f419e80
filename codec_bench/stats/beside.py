"""What stands beside the value of a metric of answers: the chance level, what was read, how the answers do beside the references.

Conventions
    A guess is right with the probability that the question's choices give it. The chance level of a set is the mean over its
    scored questions, so that it is about the same questions as the value.
    `official` is the value by the rule for failures of the toolkit that the benchmark is from, if its definition says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

import numpy as np

from codec_bench.stats.breakdown import Parts, Subsets
from codec_bench.stats.intervals import folded, interval_of, ratios, unit_codes
from codec_bench.store.record import Run

_NAMES = ("chance", "stage", "of_reference", "won", "tied", "first_minus_second")
STAGES = ("exact", "aligned", "neither")
"""By what an option was read: by a rule, by the judge, or by neither."""


def beside(
    run: Run,
    system: str,
    metric: str,
    parts: Parts,
    subsets: Subsets,
    entries: Mapping[str, Mapping[str, dict[str, Any]]],
) -> dict[str, Any]:
    """What the summary says of a metric of answers beside its value; what the record does not hold is left out.

    Args:
        run, system, metric: whose scores. parts: their parts.
        subsets: the numbers of the samples by column and value. entries: the results of these subsets, which get their own `chance`.

    Returns:
        `chance`; `read`: how many answers were read by `exact` rule, `aligned` by the judge, and by `neither`, with the
        `exact_share` and the `share` of both; `compared`: `win_rate` and `position_bias` (of the first place over the second),
        each with `value`, `ci95`, `note` and `n`, beside `ties` (a share) and the mean rating of the `reference`.
    """
    rows = _details(run, system, metric)
    scored = {row[0]: dict(zip(_NAMES, row[2:])) for row in rows if row[1]}
    found: dict[str, Any] = {}
    chances = {number: held["chance"] for number, held in scored.items() if held["chance"] is not None}
    if chances:
        found["chance"] = fmean(chances.values())
        for column, values in entries.items():
            for name, entry in values.items():
                entry["chance"] = _mean(chances[number] for number in subsets[column][name] if number in chances)
    stages = [row[2 + _NAMES.index("stage")] for row in rows]
    counts = {stage: stages.count(stage) for stage in STAGES}
    if total := sum(counts.values()):
        exact, aligned = counts["exact"], counts["aligned"]
        found["read"] = {**counts, "exact_share": exact / total, "share": (exact + aligned) / total}
    if any(held["won"] is not None for held in scored.values()):
        found["compared"] = {
            "win_rate": _over(parts, scored, "won", share=True),
            "ties": _mean(held["tied"] for held in scored.values()),
            "reference": _mean(held["of_reference"] for held in scored.values()),
            "position_bias": _over(parts, scored, "first_minus_second"),
        }
    return found


def policies(value: float | None, counting: Mapping[str, Any], failures: Mapping[str, str]) -> dict[str, Any]:
    """The value by each rule for failures: `left_out`, `as_wrong`, and `official`, which is that of the benchmark's toolkit.

    Args:
        value: with failures left out. counting: with failures as wrong (`Parts.counting_failures`).
        failures: the toolkit and how it counts them, as the definition says it.
    """
    as_wrong = counting["value"]
    official = as_wrong if failures["counts"] == "as-wrong" else value
    return {"left_out": value, "as_wrong": as_wrong, "official": {**failures, "value": official}}


def _details(run: Run, system: str, metric: str) -> list[tuple[Any, ...]]:
    """The number of each sample whose score has details, whether it has a value, and `_NAMES` of the details."""
    held = " OR ".join(f"c.detail LIKE '%\"{name}\":%'" for name in ("chance", "stage", "won"))
    found = ", ".join(f"json_extract(c.detail, '$.{name}')" for name in _NAMES)
    return run.query(
        f"SELECT c.sample, c.status = 'ok', {found} FROM scores c JOIN systems s ON s.number = c.system "
        f"JOIN metrics m ON m.number = c.metric WHERE s.name = ? AND m.name = ? AND ({held}) ORDER BY c.sample",
        (system, metric),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _over(parts: Parts, scored: Mapping[int, Mapping[str, Any]], name: str, *, share: bool = False) -> dict[str, Any]:
    """The mean of one entry of the details, with its interval over the same units as that of the value."""
    known = [
        (scored[number][name], unit)
        for number, unit in zip(parts.numbers, parts.units)
        if number in scored and scored[number][name] is not None
    ]
    sums = np.asarray([(value, 1.0) for value, _ in known], np.float64).reshape(-1, 2)
    codes = unit_codes([unit or None for _, unit in known], len(known))
    within = interval_of(ratios, sums, codes, share=share)
    return {"value": folded(ratios, sums), "ci95": within.ends, "note": within.note, "n": len(known)}

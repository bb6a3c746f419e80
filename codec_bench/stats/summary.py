"""The summary of a run: what `summary.json` holds.

Conventions
    For every system and metric, `n + failed` is the number of finished items; in a finished run, of samples. Nothing is
    left out silently: `missing` says per status where the others went.
    A value is the sum of the numerators over the sum of the denominators of the scores that are ok, so a plain mean and
    a corpus ratio are the same arithmetic. Its 95 % interval is a bootstrap over speakers where they are known; samples
    of an unknown speaker stand for themselves, and so do all where there is only one speaker.
"""

from __future__ import annotations

import re
from typing import Any

from codec_bench.stats.breakdown import answers_of, parts_of, subsets_of
from codec_bench.store.answers import has_answers
from codec_bench.store.record import Run

SCHEMA = 1
MAX_REASONS = 500
MAX_REASON_CHARACTERS = 500
_SLOT = re.compile(r"'[^']*'|\"[^\"]*\"|[-+]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?")
_BROKEN = ("failed", "unparsed", "not_scored")
_ORDER = {"failed": 0, "unparsed": 1, "no_estimate": 2, "not_scored": 3, "undefined": 4, "refused": 5, "flagged": 6}


def summarise(run: Run) -> dict[str, Any]:
    """Folds a run's scores into one number per system and metric.

    Args:
        run: a finished run, or one in progress; then the numbers rest on what is finished.

    Returns:
        `{"schema", "systems", "failures"}`. A system holds `metrics` (by name: `value` or None, `ci95` as `[low, high]`
        or None, `n`, `failed`, `missing` by status, `unit`, `higher_is_better`, `protocol`), `bitrate_bps` (the entry of
        the metric `bitrate` once more, where the run has it) and `timing` (where the run recorded it).
        In a benchmark's run a metric also holds `counting_failures` (`value` where failures count as wrong, `n`, and how
        many are `uncounted` because the metric knows no worst) and `subsets` (by column and value: `value`, `ci95`, `n`,
        `failed`).
        `missing` may hold, beside the statuses of scores, `no_estimate` (the system gave nothing to score) and
        `not_scored` (the record holds no score).
        `failures` holds `items` (without an estimate), `scores` (of the other items, that broke or could not be read;
        one that is undefined or refused did not) and `reasons` of everything without a value: `system`, `metric` (None for a whole item), `status`, `reason`, `count` and an `example` sample.
        A benchmark's run also holds `answers` (see `stats.breakdown.answers_of`).
        A reason of status `flagged` is of scores that do have a value, and should be looked at.
        Reasons that differ in numbers and quoted words only are one reason with `…` in their place.
    """
    meta, metrics = run.meta, run.metrics
    seed = int((meta.get("config") or {}).get("seed") or 0)
    timings = (meta.get("timings") or {}).get("systems") or {}
    reasons = _Reasons()
    systems: dict[str, Any] = {}
    failed_items = failed_scores = 0
    answers, subsets = has_answers(run), subsets_of(run)
    for system in run.systems:
        finished, without = 0, set()
        for item in run.items(system):
            finished += 1
            if item.status != "ok":
                without.add(item.id)
                reasons.add(system, None, item.status, item.reason, item.id)
        failed_items += len(without)
        entry: dict[str, Any] = {"metrics": {}}
        for metric, facts in metrics.items():
            folded = _fold(run, system, metric, facts, seed, finished, without, reasons, answers, subsets)
            entry["metrics"][metric] = folded
            failed_scores += sum(folded["missing"].get(status, 0) for status in _BROKEN)
            if metric == "bitrate":
                entry["bitrate_bps"] = folded
        if system in timings:
            entry["timing"] = timings[system]
        systems[system] = entry
    summary = {
        "schema": SCHEMA,
        "systems": systems,
        "failures": {"items": failed_items, "scores": failed_scores, "reasons": reasons.rows()},
    }
    asked = answers_of(run)
    return summary if asked is None else {**summary, "answers": asked}


def _fold(
    run: Run,
    system: str,
    metric: str,
    facts: dict[str, Any],
    seed: int,
    finished: int,
    without: set[str],
    reasons: _Reasons,
    answers: bool,
    subsets: dict[str, dict[str, list[int]]],
) -> dict[str, Any]:
    parts = parts_of(run, system, metric, facts.get("aggregate", "mean"))
    missing = dict(parts.missing)
    if missing:
        missing = {}
        for score in run.scores(system, metric, without_value=True):
            status = "no_estimate" if score.id in without else score.status
            missing[status] = missing.get(status, 0) + 1
            if status != "no_estimate":
                reasons.add(system, metric, score.status, score.reason, score.id)
    for flag, count, example in run.flags(system, metric):
        reasons.add(system, metric, "flagged", flag, example, count)
    scored = len(parts.numbers)
    unrecorded = finished - scored - sum(missing.values())
    if unrecorded:
        no_estimate = min(unrecorded, len(without) - missing.get("no_estimate", 0))
        if no_estimate:
            missing["no_estimate"] = missing.get("no_estimate", 0) + no_estimate
        if unrecorded > no_estimate:
            missing["not_scored"] = unrecorded - no_estimate
            reasons.add(system, metric, "not_scored", "the record holds no score", "", unrecorded - no_estimate)
    value = parts.value
    interval = parts.interval(seed) if value is not None else None
    entry = {
        "value": value,
        "ci95": [interval.low, interval.high] if interval else None,
        "n": scored,
        "failed": finished - scored,
        "missing": dict(sorted(missing.items(), key=lambda kv: _ORDER.get(kv[0], 9))),
        "unit": facts.get("unit", ""),
        "higher_is_better": facts.get("higher_is_better"),
        "protocol": facts.get("protocol", ""),
    }
    if answers:
        entry["counting_failures"] = parts.counting_failures()
        entry["subsets"] = parts.by_subset(subsets, seed)
    return entry


class _Reasons:
    """Groups reasons that say the same about different items."""

    def __init__(self) -> None:
        self._groups: dict[tuple[Any, ...], dict[str, Any]] = {}

    def add(
        self, system: str, metric: str | None, status: str, reason: str | None, example: str, count: int = 1
    ) -> None:
        text = " ".join((reason or "no reason was recorded").replace("\0", "�").split())[:MAX_REASON_CHARACTERS]
        slots = _SLOT.findall(text)
        key = (system, metric, status, _SLOT.sub("\0", text))
        group = self._groups.get(key)
        if group is None:
            self._groups[key] = {"slots": slots, "count": count, "example": example}
            return
        group["count"] += count
        group["slots"] = [a if a == b else "…" for a, b in zip(group["slots"], slots)]

    def rows(self) -> list[dict[str, Any]]:
        rows = []
        for (system, metric, status, skeleton), group in self._groups.items():
            slots = iter(group["slots"])
            reason = re.sub("\0", lambda _, slots=slots: next(slots), skeleton)
            rows.append(
                {
                    "system": system,
                    "metric": metric,
                    "status": status,
                    "reason": reason,
                    "count": group["count"],
                    "example": group["example"],
                }
            )
        # Whole items first, then what broke, then what does not apply; the most frequent first within each.
        rows.sort(key=lambda r: (r["metric"] is not None, _ORDER.get(r["status"], 9), -r["count"]))
        if len(rows) <= MAX_REASONS:
            return rows
        kept, rest = rows[:MAX_REASONS], rows[MAX_REASONS:]
        others: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in rest:
            other = others.setdefault(
                (row["system"], row["metric"], row["status"]), {**row, "reason": "other reasons", "count": 0}
            )
            other["count"] += row["count"]
        return kept + list(others.values())

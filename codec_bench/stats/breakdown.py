"""One metric of one system seen closer: by subset, and with failures counted as wrong.

Conventions
    Scores that are ok add numerators and denominators; a metric of a corpus (BLEU) adds sums that its fold turns into a
    value. What a failure would add if it counted as wrong was recorded with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.stats.bootstrap import (
    Interval,
    cluster_codes,
    cluster_sums,
    percentile_interval,
    ratios,
    resampled_parts,
)
from codec_bench.stats.corpus import FOLDS
from codec_bench.store.record import Run

RESAMPLES = 1000
LEVEL = 0.95
MAX_SUBSETS = 500

Fold = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What the items add to one metric.

    Args:
        numbers: of the samples with a score, ordered by sample id. sums: float64 `(items, k)`. speakers: "" where unknown.
        wrong: what items without a score would add, by sample number. fold: sums `(..., k)` to values.
        missing: how many items have no score, by status.
    """

    numbers: Sequence[int]
    sums: np.ndarray
    speakers: Sequence[str]
    wrong: Mapping[int, np.ndarray]
    fold: Fold
    missing: Mapping[str, int]

    @property
    def value(self) -> float | None:
        """The corpus value, or None where nothing entered it."""
        return folded(self.fold, self.sums)

    def interval(self, seed: int) -> Interval | None:
        """Its 95 % interval, over speakers where they are known."""
        return interval(self.fold, self.sums, self.speakers, seed)

    def counting_failures(self) -> dict[str, Any]:
        """The value where failures count as wrong: `value`, `n` (scores and counted failures), `uncounted` failures."""
        wrong = list(self.wrong.values())
        both = np.concatenate([self.sums, np.stack(wrong)]) if wrong else self.sums
        missing = sum(self.missing.values())
        return {
            "value": folded(self.fold, both), "n": len(both), "uncounted": missing - len(wrong),
        }  # fmt: skip

    def by_subset(self, subsets: Mapping[str, Mapping[str, Sequence[int]]], seed: int) -> dict[str, dict[str, Any]]:
        """`{column: {value: {"value", "ci95", "n", "failed"}}}` for sample numbers by column and value."""
        at = {number: place for place, number in enumerate(self.numbers)}
        out: dict[str, dict[str, Any]] = {}
        for column, values in subsets.items():
            rows = out[column] = {}
            for name, numbers in values.items():
                places = sorted(at[n] for n in numbers if n in at)
                sums, speakers = self.sums[places], [self.speakers[p] for p in places]
                within = interval(self.fold, sums, speakers, seed)
                rows[name] = {
                    "value": folded(self.fold, sums), "ci95": [within.low, within.high] if within else None,
                    "n": len(places), "failed": len(numbers) - len(places),
                }  # fmt: skip
        return out


def parts_of(run: Run, system: str, metric: str, aggregate: str) -> Parts:
    """What the items of a run add to one metric.

    Args:
        aggregate: of the metric: `mean`, `ratio`, or the name of a fold.
    """
    numbers, numerators, denominators, speakers, missing = run.columns(system, metric)
    wrong = {number: np.asarray(parts, np.float64) for number, parts in run.wrong_parts(system, metric)}
    if aggregate in FOLDS:
        counted = dict(run.counted_parts(system, metric))
        width = len(next(iter(counted.values()), next(iter(wrong.values()), ())))
        sums = np.asarray([counted[n] for n in numbers], np.float64).reshape(len(numbers), width)
        return Parts(numbers, sums, speakers, wrong, FOLDS[aggregate], missing)
    sums = np.stack([np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)], axis=1)
    return Parts(numbers, sums, speakers, wrong, ratios, missing)


def folded(fold: Fold, sums: np.ndarray) -> float | None:
    """The value of items together; None for none, or where it is not defined."""
    if not len(sums):
        return None
    # Exact sums, so that the order of the items does not matter.
    value = float(fold(np.asarray([[math.fsum(column) for column in sums.T]]))[0])
    return value if np.isfinite(value) else None


def interval(fold: Fold, sums: np.ndarray, speakers: Sequence[str], seed: int) -> Interval | None:
    """A bootstrap interval; equal seeds draw equal units for every pair of columns."""
    if len(sums) < 2:
        return None
    units = cluster_sums(sums, cluster_codes([speaker or None for speaker in speakers]))
    if len(units) < 2:
        return None
    return percentile_interval(fold(resampled_parts(units, RESAMPLES, seed)), LEVEL, len(units))


def subsets_of(run: Run) -> dict[str, dict[str, list[int]]]:
    """Sample numbers by column and value: the benchmark's subsets, and the language where there are several."""
    from codec_bench.store.answers import has_answers

    if not has_answers(run):
        return {}
    columns: dict[str, dict[str, list[int]]] = {}
    for number, column, value in run.query(
        "SELECT q.number, j.key, j.value FROM questions q, json_each(q.subsets) j ORDER BY j.key, j.value, q.number"
    ):
        columns.setdefault(column, {}).setdefault(str(value), []).append(number)
    for number, language in run.query(
        "SELECT number, language FROM samples WHERE language IS NOT NULL ORDER BY language"
    ):
        columns.setdefault("language", {}).setdefault(language, []).append(number)
    # One value says nothing that the whole does not, and a column with a value an item is no subset.
    return {name: values for name, values in columns.items() if 1 < len(values) <= MAX_SUBSETS}


def answers_of(run: Run) -> dict[str, Any] | None:
    """What answering took, or None for a run that asked nothing.

    Returns:
        `asked`, `failed` (by status), `cached`, `cut` (answers whose audio the model did not hear whole: `n`, `share`, `s`),
        `usage` (sums of what was reported, such as `output_tokens`), `cost_usd` (of the answers that were not cached; None
        where the price of any is not known), `latency_s` and `first_s` (`p50`, `p95` of the answers that were not cached).
    """
    from codec_bench.store.answers import has_answers

    if not has_answers(run):
        return None
    status = dict(run.query("SELECT status, COUNT(*) FROM answers GROUP BY status"))
    asked = sum(status.values())
    cached, cut, cut_s = run.query("SELECT TOTAL(cached), TOTAL(cut_s > 0), TOTAL(cut_s) FROM answers")[0]
    usage = run.query(
        "SELECT j.key, SUM(j.value) FROM answers a, json_each(a.usage) j WHERE j.key != 'cost_usd' GROUP BY j.key ORDER BY j.key"
    )
    spent, unpriced = run.query(
        "SELECT TOTAL(json_extract(usage, '$.cost_usd')), TOTAL(json_extract(usage, '$.cost_usd') IS NULL) FROM answers "
        "WHERE status = 'ok' AND NOT cached"
    )[0]
    return {
        "asked": asked,
        "failed": {name: count for name, count in sorted(status.items()) if name != "ok"},
        "cached": int(cached),
        "cut": {"n": int(cut), "share": cut / asked if asked else 0.0, "s": cut_s},
        "usage": dict(usage),
        # A sum over some answers is not the cost of all.
        "cost_usd": spent if not unpriced else None,
        "latency_s": _spread(run, "latency_s"),
        "first_s": _spread(run, "first_s"),
    }


def _spread(run: Run, column: str) -> dict[str, float] | None:
    seconds = [s for (s,) in run.query(f"SELECT {column} FROM answers WHERE {column} IS NOT NULL AND NOT cached")]
    if not seconds:
        return None
    p50, p95 = np.quantile(seconds, [0.5, 0.95])
    return {"p50": float(p50), "p95": float(p95)}

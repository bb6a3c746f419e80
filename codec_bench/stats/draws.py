"""Several answers per question: spread of draws, questions passed by a rule.

The value of a metric is over all answers; the question (or its speaker) is the unit of intervals. A question has a
result by a rule only if each of its draws has a value. Counting failures, a failed draw does not pass.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from codec_bench.stats.breakdown import MetricParts
from codec_bench.stats.intervals import folded, interval_of, is_share, ratios, unit_codes
from codec_bench.stats.summary_types import CountingFailures, DrawsSummary, PassingShare

RULES = ("all", "any", "majority")
_NEEDED = {"all": lambda draws: draws, "any": lambda draws: 1, "majority": lambda draws: draws // 2 + 1}


def draw_statistics(
    parts: MetricParts,
    draws: Mapping[int, tuple[str, int]],
    rules: Sequence[str] = RULES,
    at: float | None = None,
    higher_is_better: bool | None = True,
    counts: Mapping[str, int] | None = None,
) -> DrawsSummary:
    """Value of each draw, their spread, and shares of questions passed by rule.

    Args:
        parts: of all answers.
        draws: question and draw by the number of each finished answer.
        rules: `all`, `any`, `majority`.
        counts: answers per question, where their number differs.
        at: passing value of an answer; None for 1 among values of 0 and 1, and without rules for others.
    """
    count = 1 + max((draw for _, draw in draws.values()), default=0)
    position = np.asarray([draws[number][1] for number in parts.numbers], np.int64)
    values = [folded(parts.fold, parts.sums[position == draw]) for draw in range(count)]
    known = [value for value in values if value is not None]
    passed = _mark_passing(parts, at, higher_is_better)
    each = counts or dict.fromkeys((question for question, _ in draws.values()), count)
    return DrawsSummary(
        n=count,
        fewest=min(each.values(), default=count),
        questions=len({question for question, _ in draws.values()}),
        values=values,
        spread=float(np.std(known, ddof=1)) if len(known) == count > 1 else None,
        passes_at=1.0 if at is None else at,
        passes={} if passed is None else {rule: _passing_share(rule, parts, draws, passed, each) for rule in rules},
    )


def _mark_passing(parts: MetricParts, at: float | None, higher_is_better: bool | None) -> np.ndarray | None:
    """Mark the answers that pass, bool `(items,)`; None if that is undefined."""
    if parts.fold is not ratios or not len(parts.sums):
        return None
    if at is None:
        return parts.sums[:, 0] == 1 if parts.share and is_share(parts.sums) else None
    values = ratios(parts.sums)
    # An answer without a value, such as errors among no words, is NaN and does not pass.
    return np.asarray(values <= at if higher_is_better is False else values >= at)


def _passing_share(
    rule: str, parts: MetricParts, draws: Mapping[int, tuple[str, int]], passed: np.ndarray, counts: Mapping[str, int]
) -> PassingShare:
    """Compute the share of questions whose draws pass by a rule, with its interval."""
    needed = {question: _NEEDED[rule](count) for question, count in counts.items()}
    scored: Counter[str] = Counter()
    right: Counter[str] = Counter()
    units: dict[str, str] = {}
    for number, unit, passes in zip(parts.numbers, parts.units, passed.tolist()):
        question = draws[number][0]
        scored[question] += 1
        right[question] += passes
        units.setdefault(question, unit)
    every = {question for question, _ in draws.values()}
    complete = sorted(question for question in every if scored[question] == counts[question])
    table = np.asarray([[right[question] >= needed[question], 1.0] for question in complete], np.float64).reshape(-1, 2)
    codes = unit_codes([units[question] for question in complete], len(complete))
    within = interval_of(ratios, table, codes, share=True)
    wrong = Counter(draws[number][0] for number in parts.wrong if number in draws)
    counted = [right[q] >= needed[q] for q in every if scored[q] + wrong[q] == counts[q]]
    return PassingShare(
        folded(ratios, table), within.ends, within.note, within.units, len(complete), len(every) - len(complete),
        CountingFailures(math.fsum(counted) / len(counted) if counted else None, len(counted)),
    )  # fmt: skip

"""Dependence of a score on the wording of the prompt.

If every question was sent in all wordings, values differ by the wording and by chance; else also by the questions.
Intervals are those of `stats.intervals` over questions (or speakers). `sd_by_chance` is the expected standard deviation
if the answers of each question were assigned to the wordings at random (a permutation test's null).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codec_bench.stats.breakdown import MetricParts
from codec_bench.stats.intervals import Fold, Interval, folded, interval_of, ratios, unit_codes
from codec_bench.stats.summary_types import Extreme, OfWording, RobustnessSummary, WordingSpread

Groups = Mapping[str, Sequence[int]]
"""Numbers of the finished samples by wording."""


def robustness(
    parts: MetricParts, groups: Groups, questions: Mapping[int, tuple[str, int]], higher_is_better: bool | None
) -> RobustnessSummary | None:
    """Measure how a metric depends on the prompt's wording; None below two wordings.

    Args:
        questions: question and draw by the number of each answer; empty without several draws.
    """
    completed = _with_failures(parts, questions)
    at = {number: position for position, number in enumerate(completed.numbers)}
    places = {name: [at[n] for n in numbers if n in at] for name, numbers in groups.items()}
    scored = set(parts.numbers)
    wordings = {
        name: replace(completed.at(held).as_entry(OfWording, failed=len(groups[name]) - n), n=n)
        for name, held in places.items()
        for n in [sum(number in scored for number in groups[name])]
    }
    valued = [name for name, one in wordings.items() if one.value is not None]
    if len(valued) < 2:
        return None
    same = bool(questions) and len({frozenset(questions[n][0] for n in held) for held in groups.values()}) == 1
    held = [places[name] for name in valued]
    table = _by_unit(completed, held)
    fields: dict[str, Any] = {}
    within: Interval | None = None
    for name, statistic, bounds in (
        ("mean", lambda values: values.mean(axis=-1), completed.bounds or (-np.inf, np.inf)),
        ("sd", lambda values: values.std(axis=-1, ddof=1), (0.0, None)),
        ("range", lambda values: np.ptp(values, axis=-1), (0.0, None)),
    ):
        fold = _over_wordings(completed.fold, len(held), statistic)
        interval = interval_of(fold, table, None)
        within = within or interval
        # A spread whose interval has no width is not known.
        ends = interval.ends if name == "mean" or interval.low != interval.high else None
        fields[name] = WordingSpread(folded(fold, table), ends and np.clip(ends, *bounds).tolist())
    assert within is not None
    if higher_is_better is not None:
        sign = 1 if higher_is_better else -1
        ranked = sorted(valued, key=lambda name: (sign * (wordings[name].value or 0.0), name))
        for name, chosen in (("worst", ranked[0]), ("best", ranked[-1])):
            fields[name] = Extreme(wordings[chosen].value, wordings[chosen].ci95, chosen)
    return RobustnessSummary(
        n=len(valued),
        without_value=[name for name in groups if name not in valued],
        same_questions=same,
        wordings=wordings,
        sd_by_chance=_by_chance(completed, held, questions if same else {}),
        units=within.units,
        note=within.note,
        **fields,
    )


def _over_wordings(fold: Fold, wordings: int, statistic: Fold) -> Fold:
    """A statistic of the values of all wordings, from sums `(..., wordings x k)`."""
    return lambda sums: statistic(fold(sums.reshape(*sums.shape[:-1], wordings, -1)))


def _by_unit(parts: MetricParts, places: Sequence[Sequence[int]]) -> np.ndarray:
    """Sums of each unit in each wording, `(units, wordings x k)`."""
    every = [position for held in places for position in held]
    codes = unit_codes([parts.units[position] or None for position in every], len(every))
    assert codes is not None  # there are labels
    units, width = int(codes.max()) + 1, parts.sums.shape[1]
    table, begin = np.zeros((units, len(places), width)), 0
    for w, held in enumerate(places):
        of = codes[begin : begin + len(held)]
        for k in range(width):
            table[:, w, k] = np.bincount(of, parts.sums[held, k], units)
        begin += len(held)
    return table.reshape(units, len(places) * width)


def _by_chance(
    parts: MetricParts, places: Sequence[Sequence[int]], questions: Mapping[int, tuple[str, int]]
) -> float | None:
    """The standard deviation of the values by chance, if the wording has no effect."""
    if parts.fold is not ratios:
        return None
    every = parts.sums[[position for held in places for position in held]]
    total = folded(ratios, every)
    below = [float(parts.sums[held, 1].sum()) for held in places]
    if total is None or min(below) <= 0:
        return None
    residuals = parts.sums[:, 0] - total * parts.sums[:, 1]
    if not questions:
        at = [position for held in places for position in held]
        spread = float(np.var(residuals[at], ddof=1)) if len(at) > 1 else 0.0
        return math.sqrt(spread * math.fsum(len(held) / under**2 for held, under in zip(places, below)) / len(places))
    rows: dict[str, list[float]] = {}
    for held in places:
        for position in held:
            rows.setdefault(questions[parts.numbers[position]][0], []).append(float(residuals[position]))
    complete = [row for row in rows.values() if len(row) == len(places)]
    if not complete:
        return None
    # Some questions have no value in some wording; the others replace them.
    share = len(complete) / len(rows)
    return math.sqrt(float(np.var(np.asarray(complete), axis=1, ddof=1).sum()) / share) / (sum(below) / len(below))


def _with_failures(parts: MetricParts, questions: Mapping[int, tuple[str, int]]) -> MetricParts:
    """The parts with failures as wrong; without a worst value failures stay out."""
    if not parts.wrong:
        return parts
    unit_of = {questions[n][0]: unit for n, unit in zip(parts.numbers, parts.units)} if questions else {}
    failed = [questions[n][0] if n in questions else "" for n in parts.wrong]
    sums = np.concatenate([parts.sums, np.stack(list(parts.wrong.values()))])
    units = [*parts.units, *(unit_of.get(question, question) for question in failed)]
    return MetricParts([*parts.numbers, *parts.wrong], sums, units, {}, parts.fold, {}, parts.share)

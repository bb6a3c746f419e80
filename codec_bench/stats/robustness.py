"""How far a score depends on the wording of the prompt.

Where every question was asked in all wordings, values differ by the wording and by chance; else also by the questions.
Intervals are those of `stats.intervals` with the question (or its speaker) as the unit. `sd_by_chance` is the standard
deviation expected if the answers of each question were dealt out to the wordings at random (a permutation test's null).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from codec_bench.stats.breakdown import Parts
from codec_bench.stats.intervals import Interval, folded, interval_of, ratios, unit_codes
from codec_bench.stats.summary_types import Extreme, OfWording, Robustness, Spread

Groups = Mapping[str, Sequence[int]]
"""The numbers of the finished samples by wording."""


def robustness(
    parts: Parts, groups: Groups, questions: Mapping[int, tuple[str, int]], higher_is_better: bool | None
) -> Robustness | None:
    """How far the value of one metric depends on the wording; None if fewer than two wordings have a value.

    Args:
        parts: the parts of all answers. groups: at least two wordings.
        questions: by the number of each answer its question and draw; empty where each question was asked once.
    """
    completed = _with_failures(parts, questions)
    at = {number: position for position, number in enumerate(completed.numbers)}
    places = {name: [at[n] for n in numbers if n in at] for name, numbers in groups.items()}
    scored = set(parts.numbers)
    wordings = {
        name: _of_wording(completed, held, sum(n in scored for n in groups[name]), len(groups[name]))
        for name, held in places.items()
    }
    valued = [name for name, one in wordings.items() if one.value is not None]
    if len(valued) < 2:
        return None
    same = bool(questions) and len({frozenset(questions[n][0] for n in held) for held in groups.values()}) == 1
    held = [places[name] for name in valued]
    table = _by_unit(completed, held)
    mean, within = _spread(completed, held, table, lambda values: values.mean(axis=-1))
    sd, _ = _spread(completed, held, table, lambda values: values.std(axis=-1, ddof=1))
    between, _ = _spread(completed, held, table, lambda values: np.ptp(values, axis=-1))
    worst, best = (_extreme(wordings, valued, higher_is_better, best=best) for best in (False, True))
    return Robustness(
        n=len(valued),
        without_value=[name for name in groups if name not in valued],
        same_questions=same,
        wordings=wordings,
        sd_by_chance=_by_chance(completed, held, questions if same else {}),
        mean=_within(mean, completed.bounds or (None, None)),
        units=within.units,
        note=within.note,
        sd=_never_below_0(sd),
        range=_never_below_0(between),
        worst=worst,
        best=best,
    )


def _spread(
    parts: Parts, places: Sequence[Sequence[int]], table: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray]
) -> tuple[Spread, Interval]:
    """One number over all wordings, with its interval."""

    def fold(sums: np.ndarray) -> np.ndarray:
        return statistic(parts.fold(sums.reshape(*sums.shape[:-1], len(places), -1)))

    within = interval_of(fold, table, None)
    return Spread(folded(fold, table), within.ends), within


def _never_below_0(spread: Spread) -> Spread:
    """A spread whose interval does not reach below 0; none where it has no width."""
    ends = spread.ci95
    return _within(Spread(spread.value, None if ends is None or ends[0] == ends[1] else ends), (0.0, None))


def _within(spread: Spread, bounds: tuple[float | None, float | None]) -> Spread:
    """A number whose interval does not reach beyond what it can be."""
    low, high = (infinite if end is None else end for end, infinite in zip(bounds, (-math.inf, math.inf)))
    return Spread(spread.value, None if spread.ci95 is None else [min(max(end, low), high) for end in spread.ci95])


def _extreme(
    wordings: Mapping[str, OfWording], valued: Sequence[str], higher_is_better: bool | None, *, best: bool
) -> Extreme | None:
    """The worst or the best of the wordings with a value; None for a metric without a direction."""
    if higher_is_better is None:
        return None
    sign = 1 if higher_is_better else -1
    ranked = sorted(valued, key=lambda name: (sign * (wordings[name].value or 0.0), name))
    chosen = ranked[-1 if best else 0]
    return Extreme(chosen, wordings[chosen].value, wordings[chosen].ci95)


def _by_unit(parts: Parts, places: Sequence[Sequence[int]]) -> np.ndarray:
    """What each unit adds to each wording, `(units, wordings x k)`."""
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


def _by_chance(parts: Parts, places: Sequence[Sequence[int]], questions: Mapping[int, tuple[str, int]]) -> float | None:
    """The standard deviation of the values that is expected if the wording made no difference."""
    if parts.fold is not ratios:
        return None
    every = parts.sums[[position for held in places for position in held]]
    total = folded(ratios, every)
    below = [float(parts.sums[held, 1].sum()) for held in places]
    if total is None or min(below) <= 0:
        return None
    beyond = parts.sums[:, 0] - total * parts.sums[:, 1]
    if not questions:
        at = [position for held in places for position in held]
        spread = float(np.var(beyond[at], ddof=1)) if len(at) > 1 else 0.0
        return math.sqrt(spread * math.fsum(len(held) / under**2 for held, under in zip(places, below)) / len(places))
    rows: dict[str, list[float]] = {}
    for held in places:
        for position in held:
            rows.setdefault(questions[parts.numbers[position]][0], []).append(float(beyond[position]))
    complete = [row for row in rows.values() if len(row) == len(places)]
    if not complete:
        return None
    # Some questions have no value in some wording; the others stand for them.
    share = len(complete) / len(rows)
    return math.sqrt(float(np.var(np.asarray(complete), axis=1, ddof=1).sum()) / share) / (sum(below) / len(below))


def _with_failures(parts: Parts, questions: Mapping[int, tuple[str, int]]) -> Parts:
    """The parts with those of failures, which count as wrong. A metric without a worst value leaves failures out."""
    if not parts.wrong:
        return parts
    unit_of = {questions[n][0]: unit for n, unit in zip(parts.numbers, parts.units)} if questions else {}
    failed = [questions[n][0] if n in questions else "" for n in parts.wrong]
    sums = np.concatenate([parts.sums, np.stack(list(parts.wrong.values()))])
    units = [*parts.units, *(unit_of.get(question, question) for question in failed)]
    return Parts([*parts.numbers, *parts.wrong], sums, units, {}, parts.fold, {}, parts.share)


def _of_wording(parts: Parts, held: Sequence[int], n: int, finished: int) -> OfWording:
    """The value of one wording with its interval; `n` of its finished answers have a score."""
    chosen = parts.at(held)
    value = chosen.value
    within = chosen.interval if value is not None else None
    return OfWording(value, within.ends if within else None, within.note if within else None, n, finished - n)

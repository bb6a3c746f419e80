"""How far a score depends on the wording of the prompt, and in which wordings a model gives no answers at all.

Conventions
    Where every question was asked in all wordings, these are over the same questions, and their values differ by the wording and
    by chance. Else each wording has questions of its own, and its value differs by these too.
    Intervals take the question (or its speaker) as the unit: leaving one out leaves out its answers in all wordings. They are made
    as all others are (`stats.intervals`).
    Values of several wordings lie apart by chance alone. `sd_by_chance` is the standard deviation that is expected if the wording
    made no difference: under all ways to deal the answers of each question (or all answers, where each question was asked once)
    out to the wordings, which is the null hypothesis of a permutation test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from codec_bench.stats.breakdown import Parts
from codec_bench.stats.intervals import folded, interval_of, ratios, unit_codes
from codec_bench.store.record import Run
from codec_bench.store.rows import NO_ANSWER

Groups = Mapping[str, Sequence[int]]
"""The numbers of the finished samples by wording."""
_NOTES = "SELECT i.sample, n.value FROM items i JOIN systems s ON s.number = i.system, json_each(COALESCE(i.notes, '[]')) n WHERE s.name = ?"


def robustness(
    parts: Parts, groups: Groups, questions: Mapping[int, tuple[str, int]], higher_is_better: bool | None
) -> dict[str, Any] | None:
    """How far the value of one metric depends on the wording. Failures count as wrong.

    Args:
        parts: the parts of all answers.
        groups: at least two wordings.
        questions: by the number of each answer its question and which draw it is; empty where each question was asked once.
        higher_is_better: direction of the metric.

    Returns:
        `n` (wordings with a value), `without_value` (the others), `same_questions`, `wordings` (of each `value`, `ci95`, `note`,
        how many answers have a score as `n`, and how many have `failed`), over the wordings with a value `mean`, `sd` and `range`
        (each `value` and `ci95`; the standard deviation has n - 1 below it), `sd_by_chance` (None where it is not known), `worst`
        and `best` (`wording`, `value`, `ci95`; None for a metric without a direction), `units` and `note`. None if fewer than two
        wordings have a value.
    """
    whole = _with_failures(parts, questions)
    at = {number: place for place, number in enumerate(whole.numbers)}
    places = {name: [at[n] for n in numbers if n in at] for name, numbers in groups.items()}
    wordings = {name: _of_wording(whole, held) for name, held in places.items()}
    scored = set(parts.numbers)
    for name, numbers in groups.items():
        count = sum(n in scored for n in numbers)
        wordings[name] |= {"n": count, "failed": len(numbers) - count}
    valued = [name for name, one in wordings.items() if one["value"] is not None]
    if len(valued) < 2:
        return None
    same = (
        len({frozenset(questions[n][0] for n in numbers) for numbers in groups.values()}) == 1 if questions else False
    )
    held = [places[name] for name in valued]
    table = _by_unit(whole, held)
    found: dict[str, Any] = {
        "n": len(valued), "without_value": [name for name in groups if name not in valued], "same_questions": same,
        "wordings": wordings, "sd_by_chance": _by_chance(whole, held, questions if same else {}),
    }  # fmt: skip
    for name, over in (("mean", _mean), ("sd", _sd), ("range", _range)):
        fold = _over(whole, len(valued), over)
        within = interval_of(fold, table, None)
        ends = within.ends
        if name != "mean" and ends is not None:
            # A spread is never below 0. Where leaving out any unit changes nothing (all right, or all wrong), nothing is known of it.
            ends = None if ends[0] == ends[1] else [max(0.0, end) for end in ends]
        found[name] = {"value": folded(fold, table), "ci95": ends}
        if name == "mean":
            found |= {"units": within.units, "note": within.note}
    if higher_is_better is None:
        return found | {"worst": None, "best": None}
    sign = 1 if higher_is_better else -1
    ranked = sorted(valued, key=lambda name: (sign * wordings[name]["value"], name))
    ends_of = lambda name: {"wording": name, "value": wordings[name]["value"], "ci95": wordings[name]["ci95"]}  # noqa: E731
    return found | {"worst": ends_of(ranked[0]), "best": ends_of(ranked[-1])}


def ways_by_wording(run: Run, system: str, groups: Groups, texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """By wording: its `text` (None if the record does not hold it), how many answers it has (`n`), how many of them are none
    (`no_answer`), and in which ways (`ways`; an answer may be none in several ways).

    Args:
        run: the run. system: the model. groups: the wordings. texts: the wordings in their order.
    """
    noted = _noted(run, system)
    return {
        name: {
            "text": texts[int(name) - 1] if name.isdecimal() and 0 < int(name) <= len(texts) else None,
            "n": len(numbers),
            **_ways([noted[n] for n in numbers if n in noted]),
        }
        for name, numbers in groups.items()
    }


def no_answers(run: Run, system: str) -> dict[str, Any]:
    """How many answers of a run are none (`no_answer`), and in which ways (`ways`)."""
    return _ways(list(_noted(run, system).values()))


def wordings_of(meta: Mapping[str, Any]) -> list[str]:
    """The wordings of a run's prompt in their order; empty if it has one wording."""
    prompt = ((meta.get("fingerprint") or {}).get("asked") or {}).get("prompt") or {}
    parts = [part for turn in prompt.get("messages") or () for part in turn.get("content") or ()]
    return next((list(part["wordings"]) for part in parts if isinstance(part, Mapping) and part.get("wordings")), [])


def _noted(run: Run, system: str) -> dict[int, set[str]]:
    """The ways in which answers are none, by their numbers."""
    way = {note: name for name, note in NO_ANSWER.items()}
    noted: dict[int, set[str]] = {}
    for number, note in run.query(_NOTES, (system,)):
        if note in way:
            noted.setdefault(number, set()).add(way[note])
    return noted


def _ways(noted: Sequence[set[str]]) -> dict[str, Any]:
    counts = {way: sum(way in one for one in noted) for way in NO_ANSWER}
    return {"no_answer": len(noted), "ways": {way: count for way, count in counts.items() if count}}


def _by_unit(parts: Parts, places: Sequence[Sequence[int]]) -> np.ndarray:
    """What each unit adds to each wording, `(units, wordings x k)`."""
    every = [place for held in places for place in held]
    codes = unit_codes([parts.units[place] or None for place in every], len(every))
    assert codes is not None  # there are labels
    units, width = int(codes.max()) + 1, parts.sums.shape[1]
    table, begin = np.zeros((units, len(places), width)), 0
    for w, held in enumerate(places):
        of = codes[begin : begin + len(held)]
        for k in range(width):
            table[:, w, k] = np.bincount(of, parts.sums[held, k], units)
        begin += len(held)
    return table.reshape(units, len(places) * width)


def _over(
    parts: Parts, wordings: int, statistic: Callable[[np.ndarray], np.ndarray]
) -> Callable[[np.ndarray], np.ndarray]:
    """A fold that makes one number of the values of all wordings."""

    def fold(sums: np.ndarray) -> np.ndarray:
        return statistic(parts.fold(sums.reshape(*sums.shape[:-1], wordings, -1)))

    return fold


def _mean(values: np.ndarray) -> np.ndarray:
    return values.mean(axis=-1)


def _sd(values: np.ndarray) -> np.ndarray:
    return values.std(axis=-1, ddof=1)


def _range(values: np.ndarray) -> np.ndarray:
    return values.max(axis=-1) - values.min(axis=-1)


def _by_chance(parts: Parts, places: Sequence[Sequence[int]], questions: Mapping[int, tuple[str, int]]) -> float | None:
    """The standard deviation of the values that is expected if the wording made no difference."""
    if parts.fold is not ratios:
        return None
    every = parts.sums[[place for held in places for place in held]]
    total = folded(ratios, every)
    below = [float(parts.sums[held, 1].sum()) for held in places]
    if total is None or min(below) <= 0:
        return None
    beyond = parts.sums[:, 0] - total * parts.sums[:, 1]
    if not questions:
        spread = float(np.var(beyond[[place for held in places for place in held]], ddof=1)) if len(every) > 1 else 0.0
        return math.sqrt(spread * math.fsum(len(held) / under**2 for held, under in zip(places, below)) / len(places))
    rows: dict[str, list[float]] = {}
    for held in places:
        for place in held:
            rows.setdefault(questions[parts.numbers[place]][0], []).append(float(beyond[place]))
    whole = [row for row in rows.values() if len(row) == len(places)]
    if not whole:
        return None
    # Some questions have no value in some wording; the others stand for them.
    part = len(whole) / len(rows)
    return math.sqrt(float(np.var(np.asarray(whole), axis=1, ddof=1).sum()) / part) / (sum(below) / len(below))


def _with_failures(parts: Parts, questions: Mapping[int, tuple[str, int]]) -> Parts:
    """The parts with those of failures, which count as wrong. A metric without a worst value leaves failures out."""
    if not parts.wrong:
        return parts
    unit_of = {questions[n][0]: unit for n, unit in zip(parts.numbers, parts.units)} if questions else {}
    lost = [questions[n][0] if n in questions else "" for n in parts.wrong]
    return Parts(
        [*parts.numbers, *parts.wrong],
        np.concatenate([parts.sums, np.stack(list(parts.wrong.values()))]),
        [*parts.units, *(unit_of.get(question, question) for question in lost)],
        {},
        parts.fold,
        {},
        parts.share,
    )


def _of_wording(parts: Parts, held: Sequence[int]) -> dict[str, Any]:
    """The value of one wording with its interval."""
    sums = parts.sums[held]
    one = Parts([parts.numbers[p] for p in held], sums, [parts.units[p] for p in held], {}, parts.fold, {}, parts.share)
    value = one.value
    within = one.interval if value is not None else None
    return {"value": value, "ci95": within.ends if within else None, "note": within.note if within else None}


__all__ = ["no_answers", "robustness", "ways_by_wording", "wordings_of"]

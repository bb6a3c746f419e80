"""One metric of one system in detail: its value, its interval, by subset, and with failures counted as wrong.

Conventions
    Each score that is ok adds its parts to the corpus value: a numerator and a denominator, or for a metric of a corpus
    (BLEU) the counts that its fold turns into a value. The record of a failed score holds the parts that count if
    failures are wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from codec_bench.stats.blocks import SetValue
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.intervals import Fold, Interval, folded, interval_of, ratios, unit_codes
from codec_bench.stats.sets import SETS, Statistic, pairs_of, sides_of
from codec_bench.store.answers import TOO_LONG, draws_of, has_answers, says_how_long, says_who_answered
from codec_bench.store.columns import grouped
from codec_bench.store.record import Run

_FINISHED = "SELECT i.sample FROM items i JOIN systems s ON s.number = i.system WHERE s.name = ?"
MAX_SUBSETS = 500
NO_FAILURE = ("undefined", "refused")
"""The statuses that are no failures, unless the record of a score says what it counts as one."""

Subsets = Mapping[str, Mapping[str, Sequence[int]]]
"""Sample numbers by column and value."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The parts that the items add to one metric.

    Args:
        numbers: the numbers of the samples with a score, ordered by sample id.
        sums: their parts, float64 `(items, k)`.
        units: their independent units (see `Run.columns`), "" for an item that is one by itself.
        wrong: by sample number, the parts of items without a score if failures count as wrong.
        fold: turns summed parts `(..., k)` into values.
        missing: how many items have no score, by status.
        failures: how many of these are failures of the system; None for all but the undefined and the refused.
        share: whether the metric judges answers, so that values of 0 and 1 are wrong and right ones.
        draws: how many answers were drawn to each question.
    """

    numbers: Sequence[int]
    sums: np.ndarray
    units: Sequence[str]
    wrong: Mapping[int, np.ndarray]
    fold: Fold
    missing: Mapping[str, int]
    share: bool = False
    failures: int | None = None
    draws: int = 1

    @property
    def value(self) -> float | None:
        """The corpus value, or None if no item has a score."""
        return folded(self.fold, self.sums)

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the corpus value, over speakers if they are known, or over questions."""
        # An item without a unit is a unit of its own.
        codes, items = (
            unit_codes([unit or None for unit in self.units], len(self.sums)),
            -(-len(self.sums) // self.draws),
        )
        return interval_of(self.fold, self.sums, codes, share=self.share, items=items)

    @property
    def further(self) -> dict[str, Any]:
        """What the summary says beside the value and its interval; nothing but for values of sets."""
        return {}

    def at(self, places: Sequence[int] | np.ndarray) -> Parts:
        """The parts of the items at some places."""
        chosen = np.asarray(places, np.int64)
        numbers, units = ([held[p] for p in chosen.tolist()] for held in (self.numbers, self.units))
        return replace(self, numbers=numbers, sums=self.sums[chosen], units=units)

    def among(self, numbers: np.ndarray) -> dict[str, Any]:
        """The result over these samples alone, all of which have a score: `value`, `ci95`, `note` and `n`."""
        chosen = self.at(np.flatnonzero(np.isin(np.asarray(self.numbers, np.int64), numbers)))
        within = chosen.interval
        return {"value": chosen.value, "ci95": within.ends, "note": within.note, "n": len(chosen.numbers)}

    def counting_failures(self) -> dict[str, Any]:
        """The result if failures count as wrong: `value`, `n` (scores and counted failures), and `uncounted` failures.

        Scores that are undefined or refused are no failures, unless the record says so: an estimate that is silent where
        its reference is not, or an answer that declines. A failure is uncounted if the metric has no worst value.
        """
        wrong = list(self.wrong.values())
        both = np.concatenate([self.sums, np.stack(wrong)]) if wrong else self.sums
        failures = _failures(self.missing) if self.failures is None else self.failures
        value = folded(self.fold, both) if wrong else self.value
        return {"value": value, "n": len(both), "uncounted": max(0, failures - len(wrong))}

    def by_subset(self, subsets: Subsets) -> dict[str, dict[str, Any]]:
        """The results by subset: `{column: {value: {"value", "ci95", "note", "n", "failed"}}}`.

        Args:
            subsets: numbers of finished samples by column and value.
        """
        at = {number: place for place, number in enumerate(self.numbers)}
        out: dict[str, dict[str, Any]] = {}
        for column, values in subsets.items():
            rows = out[column] = {}
            for name, numbers in values.items():
                chosen = self.at(sorted(at[n] for n in numbers if n in at))
                within, count = chosen.interval, len(chosen.numbers)
                rows[name] = {
                    "value": chosen.value, "ci95": within.ends, "note": within.note,
                    "n": count, "failed": len(numbers) - count,
                }  # fmt: skip
        return out


@dataclass(frozen=True, eq=False)
class SetParts(Parts):
    """The parts of a value that is made of all items at once, such as a Fréchet distance of sets of embeddings.

    Args:
        statistic: makes the value. The sums of an item are its embeddings, one after the other.
        sides: how many embeddings an item has.
    """

    statistic: Statistic = SETS["frechet"]
    sides: int = 2

    @cached_property
    def found(self) -> SetValue:
        """The value with all that is known of it."""
        names = [f"item {number}" for number in self.numbers]
        units = [unit or name for unit, name in zip(self.units, names, strict=True)]
        return self.statistic(self.sums.reshape(len(names), self.sides, -1), names, units)

    @property
    def value(self) -> float | None:
        """The value of the set, or None if it has none."""
        return self.found.value if len(self.sums) else None

    @property
    def interval(self) -> Interval:
        """The 95 % interval over blocks of units, with what is to be known of the value as its note."""
        found = self.found
        notes = (found.note, found.interval.note if found.interval.note != found.note else None)
        return replace(found.interval, note="; ".join(filter(None, notes)) or None)

    @property
    def further(self) -> dict[str, Any]:
        """What the value tends to for sets of any size: `extrapolated`."""
        return {"extrapolated": self.found.extrapolated if len(self.sums) else None}


def parts_of(run: Run, system: str, metric: str, aggregate: str, *, share: bool = False, draws: int = 1) -> Parts:
    """The parts that the items of a run add to one metric.

    Args:
        run: the run's record.
        system, metric: their names.
        aggregate: of the metric: `mean`, `ratio`, or the name of a fold or of a statistic of sets.
        share: whether the metric judges answers.
        draws: how many answers were drawn to each question.
    """
    numbers, numerators, denominators, units, missing = run.columns(system, metric)
    failed = list(run.wrong_parts(system, metric))
    wrong = {number: np.asarray(parts, np.float64) for number, _, parts in failed if parts}
    failures = _failures(missing) + sum(status in NO_FAILURE for _, status, _ in failed)
    if aggregate in FOLDS:
        counted = dict(run.counted_parts(system, metric))
        width = len(next(iter(counted.values()), next(iter(wrong.values()), ())))
        sums = np.asarray([counted[n] for n in numbers], np.float64).reshape(len(numbers), width)
        return Parts(numbers, sums, units, wrong, FOLDS[aggregate], missing, failures=failures, draws=draws)
    if aggregate in SETS:
        sides = sides_of(aggregate)
        pairs = pairs_of(run, system, metric, sides)
        rows = np.asarray([pairs[n].reshape(-1) for n in numbers], np.float32)
        return SetParts(
            numbers, rows, units, {}, ratios, missing, failures=failures, statistic=SETS[aggregate], sides=sides
        )
    sums = np.stack([np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)], axis=1)
    return Parts(numbers, sums, units, wrong, ratios, missing, share, failures, draws)


def _failures(missing: Mapping[str, int]) -> int:
    """How many items without a score are failures by their status alone."""
    return sum(count for status, count in missing.items() if status not in NO_FAILURE)


def subsets_of(run: Run, by: str | Sequence[str] | None = None) -> dict[str, dict[str, list[int]]]:
    """Sample numbers by column and value.

    Args:
        run: the run. A benchmark's has the subsets of its questions, and the language if there are several.
        by: further columns (see `data.columns`); None takes those that the run was asked for.

    Raises:
        UserError: the record holds no such column, or one with too many values.
    """
    if by is None:
        by = run.meta.get("by") or ()
    return {**_own_subsets(run), **grouped(run, by)}


def finished_numbers(run: Run, system: str) -> set[int]:
    """The numbers of the samples that a system has finished."""
    return {n for (n,) in run.query(_FINISHED, (system,))}


def finished_only(run: Run, system: str, subsets: Subsets) -> Subsets:
    """The subsets without the samples that a system has not finished, which count nowhere yet."""
    finished = finished_numbers(run, system)
    return {
        column: {value: [n for n in numbers if n in finished] for value, numbers in values.items()}
        for column, values in subsets.items()
    }


def _own_subsets(run: Run) -> dict[str, dict[str, list[int]]]:
    """The subsets of a benchmark's questions, and the language if there are several."""
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
    # A column with one value is the whole set, and a column with a value for every item does not form subsets.
    return {name: values for name, values in columns.items() if 1 < len(values) <= MAX_SUBSETS}


def answers_of(run: Run) -> dict[str, Any] | None:
    """Counts, costs and times of a run's answers, or None for a run that asked nothing.

    Returns:
        `asked`, `draws` (answers to each question), `failed` (by status), `cached`, `at_limit` (answers that ended at a limit:
        `n`, `share`), `choices` (what is known where the options were put into other orders, see
        `benchmark.scoring.options.choice_facts`; else None), `decoding` (the parameters that were `asked` for, and by name why one was `untold`; None in records of
        earlier versions), `judging` (by name why the judge could not be told a parameter: `untold`; None if it was told all),
        `served` (how many answers each model gave, as the service called it, whether it is `other` than the one `asked_for`,
        and in which subsets if there were several), `canary` (of how many questions asked again the answer was the `same`, and
        the comparisons that `changed`), `cut` (answers to questions whose audio was cut for the model: `n`, `share`, `s`;
        and `unheard`, the share of all sound that was cut off, None if the record does not say how long all sound is),
        `too_long` (questions that were not asked, because their audio is longer than the model takes: `n`, `share`), `usage`
        (sums of what was reported, such as `output_tokens`), `cost_usd` (of the answers that were not cached; None if the price
        of any of them is not known), `latency_s` and `first_s` (`p50` and `p95` of the answers that were not cached).
    """
    if not has_answers(run):
        return None
    status = dict(run.query("SELECT status, COUNT(*) FROM answers GROUP BY status"))
    asked = sum(status.values())
    cached, cut, cut_s, at_limit, too_long = run.query(
        "SELECT TOTAL(cached), TOTAL(cut_s > 0), TOTAL(cut_s), TOTAL(finish = 'length'), TOTAL(finish = ?) FROM answers",
        (TOO_LONG,),
    )[0]
    known = "SELECT TOTAL(cut_s), TOTAL(sound_s) FROM answers WHERE sound_s IS NOT NULL"
    unheard_s, sound_s = run.query(known)[0] if says_how_long(run) else (0.0, 0.0)
    usage = run.query(
        "SELECT j.key, SUM(j.value) FROM answers a, json_each(a.usage) j WHERE j.key != 'cost_usd' GROUP BY j.key ORDER BY j.key"
    )
    spent, unpriced = run.query(
        "SELECT TOTAL(json_extract(usage, '$.cost_usd')), TOTAL(json_extract(usage, '$.cost_usd') IS NULL) FROM answers "
        "WHERE status = 'ok' AND NOT cached"
    )[0]
    return {
        "asked": asked,
        "draws": 1 + max((draw for _, draw in draws_of(run).values()), default=0),
        "failed": {name: count for name, count in sorted(status.items()) if name != "ok"},
        "cached": int(cached),
        "at_limit": {"n": int(at_limit), "share": at_limit / asked if asked else 0.0},
        "decoding": run.meta.get("decoding"),
        "asked_for": _asked_for(run),
        "served": _served(run),
        "judging": run.meta.get("judging"),
        "choices": run.meta.get("choices"),
        "canary": _canary(run),
        "cut": {
            "n": int(cut),
            "share": cut / asked if asked else 0.0,
            "s": cut_s,
            "unheard": unheard_s / sound_s if sound_s else None,
        },
        "too_long": {"n": int(too_long), "share": too_long / asked if asked else 0.0},
        "usage": dict(usage),
        # If the price of one answer is not known, the sum of the others is not the cost of all.
        "cost_usd": spent if not unpriced else None,
        "latency_s": _spread(run, "latency_s"),
        "first_s": _spread(run, "first_s"),
    }


def _served(run: Run) -> list[dict[str, Any]]:
    """How many answers each model gave, by what the service called it and its state, in the order of their first answers."""
    if not says_who_answered(run):
        return []
    rows = run.query(
        "SELECT json_extract(served, '$.model') AS m, json_extract(served, '$.revision') AS r, COUNT(*) FROM answers "
        "WHERE served IS NOT NULL AND (m IS NOT NULL OR r IS NOT NULL) GROUP BY m, r ORDER BY MIN(number)"
    )
    asked = _asked_for(run)
    found = [
        {"model": model, "revision": revision, "n": n, "other": is_other_model(asked, model)}
        for model, revision, n in rows
    ]
    if len(found) > 1:
        for one in found:
            one["subsets"] = _subsets_by(run, one["model"], one["revision"])
    return found


def _subsets_by(run: Run, model: str | None, revision: str | None) -> dict[str, dict[str, int]]:
    """How many answers one model gave in each subset."""
    rows = run.query(
        "SELECT j.key, j.value, COUNT(*) FROM answers a JOIN questions q ON q.number = a.number, json_each(q.subsets) j "
        "WHERE json_extract(a.served, '$.model') IS ? AND json_extract(a.served, '$.revision') IS ? GROUP BY 1, 2 ORDER BY 1, 2",
        (model, revision),
    )
    out: dict[str, dict[str, int]] = {}
    for column, value, n in rows:
        out.setdefault(column, {})[value] = n
    return out


def _asked_for(run: Run) -> str | None:
    """The name of the model that the service was asked for; None if no service was asked."""
    facts = next(iter(run.systems.values()), {})
    name = facts.get("model")
    return name if isinstance(name, str) and name else None


def is_other_model(asked: str | None, answered: str | None) -> bool:
    """Whether a service named another model than it was asked for.

    A dated name for an alias (`gpt-audio-2025-08-28` for `gpt-audio`), a name with its revision (`NAME@main`), and a name with
    or without its owner or folder, are the same model.
    """
    if not asked or not answered:
        return False
    ours, theirs = (name.lower().rstrip("/").removeprefix("models/") for name in (asked, answered))
    last, their_last = ours.rpartition("/")[2], theirs.rpartition("/")[2]
    return not (
        their_last == last or re.fullmatch(rf"{re.escape(last)}(?:@.+|-(?:\d[\d-]*|latest|preview[\d-]*))", their_last)
    )


def _canary(run: Run) -> dict[str, Any] | None:
    """Of how many questions that were asked again the answer was the same, and the comparisons in which one was not.

    Such a comparison holds how many `answers` were given since the one before, and how many of them in which `subsets`: these
    may be from either of two models. None if no question was asked again.
    """
    noted = run.meta.get("canary")
    if not isinstance(noted, list) or not noted:
        return None
    counts = {name: sum(int(one[name]) for one in noted) for name in ("asked", "same")}
    return {**counts, "changed": [one for one in noted if one["same"] < one["asked"]]}


def _spread(run: Run, column: str) -> dict[str, float] | None:
    seconds = [s for (s,) in run.query(f"SELECT {column} FROM answers WHERE {column} IS NOT NULL AND NOT cached")]
    if not seconds:
        return None
    p50, p95 = np.quantile(seconds, [0.5, 0.95])
    return {"p50": float(p50), "p95": float(p95)}

"""One metric of one system: value, interval, subsets, failures as wrong.

Each ok score adds its parts to the corpus value: a numerator and a denominator, or the counts of a fold such as BLEU.
The record of a failed score holds the parts that count if failures are wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from codec_bench.messages import together
from codec_bench.stats.blocks import SetValue
from codec_bench.stats.bounds import Bounds, declared_bounds, is_rate, within_bounds
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.intervals import Fold, Interval, folded, interval_of, ratios, unit_codes
from codec_bench.stats.recorded import JUDGED, RecordedRun, Scores
from codec_bench.stats.sets import SETS, Statistic, pairs_of, statistic_of
from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import Below50, Counted, CountingFailures, Subset
from codec_bench.stats.ttsds import SIDES
from codec_bench.store.answers import has_answers
from codec_bench.store.columns import grouped
from codec_bench.store.record import Run
from codec_bench.store.statuses import NO_FAILURE

MAX_SUBSETS = 500
FAILED_ABOVE = 0.5
"""Error rate of an item above which seed-tts-eval and sglang-omni exclude it."""

C = TypeVar("C", bound=Counted)
Subsets = Mapping[str, Mapping[str, Sequence[int]]]
"""Sample numbers by column and value."""


@dataclass(frozen=True, eq=False)
class MetricParts:
    """The parts that the items add to one metric.

    Args:
        numbers: of the scored samples, ordered by sample id.
        sums: their parts, float64 `(items, k)`.
        units: their independent units, "" for an item by itself.
        fold: turns summed parts into values.
        wrong: by sample number, the parts of unscored items if failures count as wrong.
        failures: sample numbers of these that are failures of the system; None counts them by status.
        share: whether values are wrong (0) and right (1) answers.
        speechless: scores of estimates without speech.
    """

    numbers: Sequence[int]
    sums: np.ndarray
    units: Sequence[str]
    wrong: Mapping[int, np.ndarray]
    fold: Fold
    missing: Mapping[str, int]
    share: bool = False
    failures: frozenset[int] | None = None
    draws: int = 1
    bounds: Bounds | None = None
    speechless: int = 0

    @cached_property
    def value(self) -> float | None:
        """The corpus value, or None if no item has a score."""
        return folded(self.fold, self.sums)

    @cached_property
    def interval(self) -> Interval:
        """The 95 % confidence interval of the corpus value, clustered by unit."""
        # An item without a unit is a separate unit.
        codes = unit_codes([unit or None for unit in self.units], len(self.sums))
        return interval_of(self.fold, self.sums, codes, share=self.share, bounds=self.bounds)

    @property
    def extrapolated(self) -> float | None:
        """The limit of the value for infinite sets; `UNSET` but for values of sets."""
        return UNSET

    @property
    def below_50(self) -> Below50:
        """An error rate without the items above 50 %; `UNSET` if there are none."""
        if not is_rate(self.bounds):
            return UNSET
        below = self.sums[:, 0] <= FAILED_ABOVE * self.sums[:, 1]
        if below.all():
            return UNSET
        rest = self.at(np.flatnonzero(below)).as_entry(Below50, above=int(np.count_nonzero(~below)))
        return replace(rest, ci95=rest.ci95 and [min(end, FAILED_ABOVE) for end in rest.ci95])

    def as_entry(self, kind: type[C], **fields: Any) -> C:
        """Build an entry of class `kind`: value, interval, note, sample count, `fields`."""
        within = self.interval
        return kind(self.value, within.ends, within.note, len(self.numbers), **fields)

    def at(self, positions: Sequence[int] | np.ndarray) -> MetricParts:
        """The parts of the items at these positions."""
        chosen = np.asarray(positions, np.int64)
        numbers, units = ([held[p] for p in chosen.tolist()] for held in (self.numbers, self.units))
        return replace(self, numbers=numbers, sums=self.sums[chosen], units=units)

    def among(self, numbers: np.ndarray) -> Counted | None:
        """Compute the result over the samples of these numbers.

        Returns:
            None if these are all samples with a value; a result without a value if one of them lacks it.
        """
        held = np.isin(np.asarray(self.numbers, np.int64), numbers)
        if np.count_nonzero(held) < len(numbers):
            return Counted(n=int(np.count_nonzero(held))) if len(held) else None
        return None if held.all() else self.at(np.flatnonzero(held)).as_entry(Counted)

    def counting_failures(self) -> CountingFailures:
        """The result if failures count as wrong; `n` counts scores and counted failures.

        Undefined and refused scores are no failures, unless recorded as such. A failure is uncounted if the metric has
        no worst value.
        """
        wrong = list(self.wrong.values())
        both = np.concatenate([self.sums, np.stack(wrong)]) if wrong else self.sums
        failures = _failures(self.missing) if self.failures is None else len(self.failures)
        value = folded(self.fold, both) if wrong else self.value
        return CountingFailures(value, len(both), max(0, failures - len(wrong)))

    def by_subset(self, subsets: Subsets) -> dict[str, dict[str, Subset]]:
        """The results by column and value, from the numbers of finished samples."""
        at = {number: position for position, number in enumerate(self.numbers)}

        def of_subset(numbers: Sequence[int]) -> Subset:
            places = sorted(at[n] for n in numbers if n in at)
            failures = (self.failures or frozenset()).intersection(numbers)
            wrong = {number: self.wrong[number] for number in numbers if number in self.wrong}
            parts = replace(self.at(places), wrong=wrong, failures=failures)
            counting = parts.counting_failures() if failures else UNSET
            return parts.as_entry(Subset, failed=len(numbers) - len(places), counting_failures=counting)

        return {
            column: {name: of_subset(numbers) for name, numbers in values.items()} for column, values in subsets.items()
        }


@dataclass(frozen=True, eq=False)
class SetParts(MetricParts):
    """The parts of a value of a whole set, such as a Fréchet distance of embeddings.

    Args:
        statistic: computes the value; the sums of an item are its concatenated embeddings.
    """

    statistic: Statistic = SETS["frechet"]
    sides: int = 2
    limits: Bounds | None = None

    @cached_property
    def estimate(self) -> SetValue:
        """The value with its interval and notes."""
        names = [f"item {number}" for number in self.numbers]
        units = [unit or name for unit, name in zip(self.units, names, strict=True)]
        return self.statistic(self.sums.reshape(len(names), self.sides, -1), names, units)

    @cached_property
    def value(self) -> float | None:
        """The value of the set, or None if it has none."""
        return self.estimate.value if len(self.sums) else None

    @cached_property
    def interval(self) -> Interval:
        """The jackknife interval (95 %) over blocks of units, cut at the bounds."""
        estimate, within = self.estimate, self.estimate.interval
        if within.low is not None and within.high is not None:
            low, high = within_bounds(within.low, within.high, np.asarray([estimate.value]), self.limits)
            within = replace(within, low=low, high=high)
        return replace(within, note=together(estimate.note, within.note if within.note != estimate.note else None))

    @property
    def extrapolated(self) -> float | None:
        """The limit of the value for infinite sets, or None."""
        return self.estimate.extrapolated if len(self.sums) else None


def parts_of(recorded: RecordedRun, system: str, metric: str, *, draws: int = 1) -> MetricParts:
    """Collect the parts that each scored item adds to a metric of a system."""
    return parts_in(recorded, system, metric, recorded.scores(system, metric), draws=draws)


def parts_in(recorded: RecordedRun, system: str, metric: str, scores: Scores, *, draws: int = 1) -> MetricParts:
    """As `parts_of`, from scores that have been read; `draws`: answers per question."""
    return replace(_parts(recorded, system, metric, scores, draws), speechless=scores.speechless)


def _parts(recorded: RecordedRun, system: str, metric: str, scores: Scores, draws: int) -> MetricParts:
    """Collect a metric's per-item values, failures and fold for one system."""
    facts = recorded.metrics[metric]
    aggregate, share = facts.get("aggregate", "mean"), facts.get("kind") in JUDGED
    missing = Counter(status for _, status, _ in scores.unscored)
    wrong_parts = {
        n: (status, held["wrong"]) for n, status, _ in scores.unscored if "wrong" in (held := scores.details.get(n, {}))
    }
    wrong = {number: np.asarray(parts, np.float64) for number, (_, parts) in wrong_parts.items() if parts}
    failures = frozenset(n for n, status, _ in scores.unscored if status not in NO_FAILURE or n in wrong_parts)
    numbers, units = scores.numbers, scores.units
    if aggregate in FOLDS:
        rows = [scores.details[n]["counts"] for n in numbers]
        width = len(next(iter(rows or wrong.values()), ()))
        sums = np.asarray(rows, np.float64).reshape(len(numbers), width)
        return MetricParts(numbers, sums, units, wrong, FOLDS[aggregate], missing, failures=failures, draws=draws)
    if aggregate in SETS:
        sides = len(SIDES) if aggregate == "ttsds" else 2
        pairs = pairs_of(recorded.run, system, metric, sides)
        embeddings = np.asarray([pairs[n].reshape(-1) for n in numbers], np.float32)
        statistic = statistic_of(recorded.run, system, metric, aggregate)
        return SetParts(
            numbers, embeddings, units, {}, ratios, missing, failures=failures, statistic=statistic, sides=sides,
            limits=facts.get("range"),
        )  # fmt: skip
    return MetricParts(
        numbers, scores.sums, units, wrong, ratios, missing, share, failures, draws, declared_bounds(facts)
    )


def _failures(missing: Mapping[str, int]) -> int:
    """Number of unscored items that are failures by their status."""
    return sum(count for status, count in missing.items() if status not in NO_FAILURE)


def subsets_of(run: Run, by: str | Sequence[str] | None = None) -> dict[str, dict[str, list[int]]]:
    """Sample numbers by column and value, of a benchmark's and further columns.

    Args:
        by: columns (see `data.columns`); None takes the run's own.
    """
    if by is None:
        by = run.meta.get("by") or ()
    return {**_own_subsets(run), **grouped(run, by)}


def finished_only(subsets: Subsets, finished: Collection[int]) -> dict[str, dict[str, list[int]]]:
    """The subsets without the samples that a system has not finished."""
    return {
        column: {value: [n for n in numbers if n in finished] for value, numbers in values.items()}
        for column, values in subsets.items()
    }


def _own_subsets(run: Run) -> dict[str, dict[str, list[int]]]:
    """Return question numbers by column and value, for a benchmark's own subsets."""
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

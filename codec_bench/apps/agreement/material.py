"""Comparable content of runs: ratings by item, scales, systems, units and subsets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from codec_bench.apps.agreement.panel import Panel, Rater
from codec_bench.apps.agreement.raters import (
    RatedItem,
    RatingColumn,
    Scale,
    columns_of,
    is_called,
    judges_by_metric,
    name_of,
    ratings_in,
)
from codec_bench.apps.agreement.ratings import Kind, Problems
from codec_bench.messages.errors import UnknownName
from codec_bench.stats.breakdown import subsets_of
from codec_bench.store.record import Run

JUDGED_TWICE = "judged in several runs, differently"
NOT_IN_RUN = "not in the runs"


@dataclass(slots=True)
class RatedRuns:
    """The comparable content of runs.

    Args:
        ratings: by rater and item, a rating or the status of a score without one.
        roles, scales, signs: by rater, whether it is a judge, its scale by benchmark, and -1 if lower ratings are
            better.
        units, systems, groups: by benchmark, the independent unit of each id, the systems, and the ids by column and
            value.
    """

    runs: Sequence[Run]
    problems: Problems = field(default_factory=Problems)
    ratings: dict[str, dict[RatedItem, float | str]] = field(default_factory=lambda: defaultdict(dict))
    roles: dict[str, bool] = field(default_factory=dict)
    scales: dict[str, dict[str, Scale | None]] = field(default_factory=lambda: defaultdict(dict))
    signs: dict[str, float] = field(default_factory=dict)
    units: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    systems: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    groups: dict[str, dict[str, dict[str, set[str]]]] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def of(
        cls,
        runs: Sequence[Run],
        kind: Kind | None,
        judges: Sequence[str],
        metrics: Sequence[str],
        by: str | Sequence[str] | None,
    ) -> RatedRuns:
        """Read units, subsets and ratings of runs; raises UnknownName for judge or metric.

        Args:
            kind: with `option`, no ratings are read.
            judges, metrics: only these; empty for all judges, and for the rubric of the primary metric.
            by: columns to break the results down by, next to the benchmarks' own subsets.
        """
        material = cls(runs)
        _check_known(runs, judges, metrics)
        for run in runs:
            material._add(run, [] if kind == "option" else columns_of(run, judges, metrics), by)
        material.roles = {name: material.roles[name] for name in _in_order(material.roles, judges)}
        return material

    def _add(self, run: Run, columns: Sequence[RatingColumn], by: str | Sequence[str] | None) -> None:
        """Add the units, subsets, systems and ratings of one run."""
        benchmark = name_of(run)
        self.units[benchmark] |= {id: unit or id for id, unit in run.units().items()}
        ids = dict(run.query("SELECT number, id FROM samples"))
        for group, values in subsets_of(run, by).items():
            groups = self.groups[benchmark].setdefault(group, {})
            for value, numbers in values.items():
                groups.setdefault(value, set()).update(ids[number] for number in numbers)
        for system in run.systems:
            if system not in self.systems[benchmark]:
                self.systems[benchmark].append(system)
            for column in columns:
                self.roles[column.rater] = column.is_judge
                self.signs[column.rater] = column.sign
                self.scales[column.rater][benchmark] = column.scale
                self._take(column.rater, benchmark, system, ratings_in(run, system, column.metric))

    def _take(self, rater: str, benchmark: str, system: str, readings: Iterator[tuple[str, float | None, str]]) -> None:
        """Add ratings of a run; a second, different rating is noted as a problem."""
        mine = self.ratings[rater]
        for id, value, status in readings:
            item, rating = RatedItem(benchmark, system, id), status if value is None else float(value)
            before = mine.get(item)
            if isinstance(before, float) and isinstance(rating, float) and before != rating:
                self.problems.add(
                    JUDGED_TWICE, f"{benchmark} {system} {id}: {before:g} and {rating:g}; the first counts", rater=rater
                )
            if not isinstance(before, float):
                mine[item] = rating

    @property
    def scale(self) -> Scale | None:
        """The common scale of all judges, or None."""
        scales = {scale for name, is_judge in self.roles.items() if is_judge for scale in self.scales[name].values()}
        return next(iter(scales)) if len(scales) == 1 else None

    def raters(self, items: Sequence[RatedItem]) -> list[Rater]:
        """Return judges and metrics as raters; their values are in the order of `items`."""
        all_raters = []
        for name, is_judge in self.roles.items():
            held = [self.ratings[name].get(item, NOT_IN_RUN) for item in items]
            values = np.array([one if isinstance(one, float) else np.nan for one in held], np.float64)
            missing = Counter(one for one in held if isinstance(one, str))
            all_raters.append(Rater(name, "judge" if is_judge else "metric", values, self.scales[name], dict(missing)))
        return all_raters

    def panel(
        self, kind: str, items: Sequence[RatedItem], raters: list[Rater], subsets: Mapping[str, Mapping[str, list[int]]]
    ) -> Panel:
        """Build a panel of items, with the subsets of runs and ratings file."""
        units = [f"{item.benchmark}\0{self.units[item.benchmark].get(item.id, item.id)}" for item in items]
        return Panel(kind, items, units, raters, {**self._subsets(items), **subsets})

    def describe_judge_tests(self, judges: Sequence[str], metrics: Sequence[str]) -> list[str]:
        """Describe each judge's test; `judges` and `metrics` as for `columns_of`."""
        texts = (
            f"{column.metric}: {run.judge(column.metric)}"
            for run in self.runs
            for column in columns_of(run, judges, metrics)
            if column.is_judge
        )
        return list(dict.fromkeys(texts))

    def _subsets(self, items: Sequence[RatedItem]) -> dict[str, dict[str, list[int]]]:
        """Map column and value to positions of items; columns of one value are omitted."""
        subsets: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        of_id: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for benchmark, columns in self.groups.items():
            for column, values in columns.items():
                for value, ids in values.items():
                    for id in ids:
                        of_id[benchmark, id].append((column, value))
        for index, item in enumerate(items):
            subsets["benchmark"][item.benchmark].append(index)
            subsets["pair" if item.other else "system"][
                f"{item.system} | {item.other}" if item.other else item.system
            ].append(index)
            for column, value in of_id.get((item.benchmark, item.id), ()):
                subsets[column][value].append(index)
        return {column: dict(sorted(values.items())) for column, values in subsets.items() if len(values) > 1}


def _check_known(runs: Sequence[Run], judges: Sequence[str], metrics: Sequence[str]) -> None:
    """Raise UnknownName for a named judge or metric that no run has."""
    judged = [judges_by_metric(run) for run in runs]
    known = {judge for by_item in judged for _, judge in by_item.values()}
    for name in judges:
        if not any(is_called(judge, name) for judge in known):
            raise UnknownName("judge_of_runs", name, known)
    there = {name for run in runs for name in run.metrics}
    there |= {f"rating[{rubric}]" for by_item in judged for rubric, _ in by_item.values()}
    for name in metrics:
        if name not in there:
            raise UnknownName("metric_of_runs", name, there)


def _in_order(known: Mapping[str, bool], requested: Sequence[str]) -> list[str]:
    """Order the raters: requested ones first, then the order of the runs."""

    def position(name: str) -> int:
        return next((n for n, one in enumerate(requested) if is_called(name, one)), len(requested))

    return sorted(known, key=position)

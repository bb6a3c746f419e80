"""The values of all metrics over the items of runs, one file-backed column each.

Items of several runs match by benchmark (or data), system and id; the first value counts. A cell is finite for a value,
infinite for a score without one (failed, refused, ...), and NaN if the metric was not requested. The columns' temporary
file keeps memory to the ones in use.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.apps.agreement.raters import name_of
from codec_bench.errors import UnknownName, UserError
from codec_bench.stats.summary import summarise
from codec_bench.store.record import Run

WITHOUT = np.inf
_ROWS = np.dtype([("sample", np.int64), ("value", np.float64)])
_SCORES = (
    "SELECT c.sample, CASE WHEN c.status = 'ok' THEN c.value END FROM scores c JOIN systems s ON s.number = c.system "
    "JOIN metrics m ON m.number = c.metric WHERE s.name = ? AND m.name = ? ORDER BY c.sample"
)
_FAILED = (
    "SELECT i.sample, NULL FROM items i JOIN systems s ON s.number = i.system WHERE s.name = ? AND i.status != 'ok'"
)


@dataclass(slots=True)
class Scored:
    """The columns of runs.

    Args:
        better: whether higher is better by column; None for neither.
        samples: the number of each sample by (benchmark, id).
        values: float64 `(columns, systems, samples)`, see above.
        units: the number of the independent unit (speaker, or sample) of each sample, int64 `(samples,)`.
        of_systems: summary values; NaN if there is none, float64 `(systems, columns)`.
    """

    names: list[str]
    better: list[bool | None]
    systems: list[str]
    samples: dict[tuple[str, str], int]
    values: np.ndarray
    units: np.ndarray
    of_systems: np.ndarray

    def column(self, index: int) -> np.ndarray:
        """Load one column with more as better, float64 `(items,)`."""
        values = np.array(self.values[index], np.float64).ravel()
        return -values if self.better[index] is False else values

    def systems_of(self, index: int) -> np.ndarray:
        """Return the systems' values with more as better, float64 `(systems,)`."""
        values = self.of_systems[:, index]
        return -values if self.better[index] is False else values

    @property
    def item_units(self) -> np.ndarray:
        """The unit of each item in the order of `column`, shared by all systems."""
        return np.tile(self.units, len(self.systems))

    @property
    def benchmarks(self) -> list[str]:
        """The names of the benchmarks, or of the data."""
        return list(dict.fromkeys(benchmark for benchmark, _ in self.samples))


def scored(runs: Sequence[Run], metrics: Sequence[str] = (), extra: Mapping[str, bool | None] | None = None) -> Scored:
    """Read the columns of runs.

    Args:
        metrics: only these, in this order; empty for all that have a value for some item.
        extra: the names of further columns and their direction, to be filled by others; NaN.

    Raises:
        UnknownName: no run has such a metric. UserError: two runs measured a metric by different protocols.
    """
    facts = _facts(runs)
    for name in metrics:
        if name not in facts:
            raise UnknownName("metric in these runs", name, facts)
    chosen = {name: facts[name].get("higher_is_better") for name in (metrics or facts)} | dict(extra or {})
    systems = list(dict.fromkeys(system for run in runs for system in run.systems))
    samples, units = _samples(runs)
    shape = (len(chosen), len(systems), len(samples))
    with tempfile.TemporaryFile() as file:  # the mapping keeps the file until it is gone itself
        values = np.memmap(file, np.float64, "w+", shape=shape) if np.prod(shape) else np.empty(shape)
    for column in values:
        column[:] = np.nan
    of_systems = np.full((len(systems), len(chosen)), np.nan)
    scores = Scored(list(chosen), list(chosen.values()), systems, samples, values, units, of_systems)
    for run in runs:
        _read(run, scores)
    return scores


def _facts(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Collect metric facts; raises UserError where protocols differ between runs."""
    facts: dict[str, dict[str, Any]] = {}
    for run in runs:
        for name, about in run.metrics.items():
            before = facts.setdefault(name, about)
            if before.get("protocol") != about.get("protocol"):
                raise UserError(
                    f"'{name}' is '{about.get('protocol')}' in the run '{run.folder}' and '{before.get('protocol')}' "
                    "in another one, so that its values make no column",
                    hint="name fewer runs, or with --metrics only metrics that they measured alike",
                )
    return facts


def _samples(runs: Sequence[Run]) -> tuple[dict[tuple[str, str], int], np.ndarray]:
    """Number the samples, and their units."""
    samples: dict[tuple[str, str], int] = {}
    units: dict[tuple[str, str, bool], int] = {}
    of: list[int] = []
    for run in runs:
        benchmark = name_of(run)
        for id, unit in run.units().items():
            if (benchmark, id) not in samples:
                samples[benchmark, id] = len(samples)
                # A speaker and a sample may have one name.
                of.append(units.setdefault((benchmark, unit or id, unit is None), len(units)))
    return samples, np.asarray(of, np.int64)


def _read(run: Run, scores: Scored) -> None:
    benchmark, summary = name_of(run), summarise(run).systems
    ((last,),) = run.query("SELECT COALESCE(MAX(number), 0) FROM samples")
    numbers = np.zeros(last + 1, np.int64)
    for number, id in run.query_lazily("SELECT number, id FROM samples"):
        numbers[number] = scores.samples[benchmark, id]
    for system in run.systems:
        row = scores.systems.index(system)
        failed = numbers[_rows(run, _FAILED, (system,))["sample"]]
        for index, name in enumerate(scores.names):
            if name not in run.metrics:
                continue
            rows = _rows(run, _SCORES, (system, name))
            column = scores.values[index, row]
            _take(column, numbers[rows["sample"]], rows["value"])
            _take(column, failed, np.full(len(failed), WITHOUT))
            entry = summary[system].metrics.get(name)
            value = None if entry is None else entry.value
            if value is not None and np.isnan(scores.of_systems[row, index]):
                scores.of_systems[row, index] = value


def _rows(run: Run, sql: str, of: Sequence[str]) -> np.ndarray:
    """Return sample numbers and values of a query; infinity for no value."""
    rows = ((number, WITHOUT if value is None else value) for number, value in run.query_lazily(sql, of))
    return np.fromiter(rows, _ROWS)


def _take(column: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """Fill empty cells; failures and other values never replace a value."""
    open_ = ~np.isfinite(column[places])
    column[places[open_]] = values[open_]

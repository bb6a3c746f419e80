"""A run's record for statistics: each table once, scores by system and metric."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.data_warnings import Tally
from codec_bench.stats.paired import ItemParts
from codec_bench.store.answers import CALLS, draws_of, has_answers
from codec_bench.store.draws import draw_counts
from codec_bench.store.record import Run
from codec_bench.store.rows import NO_ANSWER, counted_from

JUDGED = ("answer", "rating")
"""The kinds of the metrics of answers."""
ANSWER_DETAILS = ("chance", "stage", "of_reference", "won", "tied", "first_minus_second", "changed")
"""Entries of the detail of an answer's score besides the value (see `stats.chance_level`)."""
_MARKS = ("chance", "stage", "won")
"""Every detail with any of `ANSWER_DETAILS` has one of these."""
_WAYS = {note.code: kind for kind, note in NO_ANSWER.items()}


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples by number: rank in the order of ids, unit ("" for none), channels."""

    rank: np.ndarray
    units: Sequence[str]
    several: Mapping[int, tuple[int, float | None]]


@dataclass(frozen=True, slots=True)
class SystemItems:
    """The finished items of one system, by the numbers of their samples.

    Args:
        unscored: those without an estimate, with status and reason.
        silent, partial, dissimilar, clipped, same: as in `SystemSummary`.
        several: channel count, seconds and bits of items with several channels.
        noted: kinds of missing answers.
    """

    finished: Sequence[int]
    unscored: Mapping[int, tuple[str, Diagnostic | None]]
    silent: int
    partial: int
    dissimilar: int
    clipped: int
    same: int
    several: Sequence[tuple[int, float, float]]
    noted: Mapping[int, set[str]]
    tally: Tally


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one system and metric.

    Args:
        numbers: of the samples with a value, ordered by sample id.
        sums: numerators, denominators, float64 `(items, 2)`.
        unscored: number, status and reason of the others.
        flags: count and first sample by flag.
        details: by number, the entries that statistics read.
    """

    numbers: Sequence[int]
    sums: np.ndarray
    units: Sequence[str]
    unscored: Sequence[tuple[int, str, Diagnostic | None]]
    flags: Mapping[Diagnostic, tuple[int, int]]
    details: Mapping[int, Mapping[str, Any]]

    @property
    def speechless(self) -> int:
        """Number of values of estimates or answers without the expected speech."""
        return sum(count for flag, (count, _) in self.flags.items() if flag.severity == "error")


class RecordedRun:
    """A run's record for statistics."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.meta, self.systems, self.metrics = run.meta, run.systems, run.metrics
        self.has_answers = has_answers(run)
        self._numbers = {
            table: dict(run.query(f"SELECT name, number FROM {table}")) for table in ("systems", "metrics")
        }

    @cached_property
    def suspects(self) -> set[str]:
        """The systems with findings of checks."""
        return {name for name, findings in (self.meta.get("checks") or {}).items() if (findings or {}).get("findings")}

    @cached_property
    def draws(self) -> dict[int, tuple[str, int]]:
        """Question id and draw by the number of each answer; empty without several draws."""
        return draws_of(self.run)

    @cached_property
    def draw_counts(self) -> dict[str, int] | None:
        """Answers per question, where the number differs (`store.draws.draw_counts`)."""
        return draw_counts(self.run)

    @cached_property
    def samples(self) -> Samples:
        """The samples."""
        numbers = array("q")
        units: list[str] = []
        several: dict[int, tuple[int, float | None]] = {}
        known: dict[str, str] = {}
        for number, unit, channels, seconds in self.run.sample_units():
            numbers.append(number)
            units.append(known.setdefault(unit, unit))
            if channels is not None and channels > 1:
                several[number] = (channels, seconds)
        size = 1 + max(numbers, default=-1)
        rank, of = np.zeros(size, np.int64), [""] * size
        rank[np.asarray(numbers, np.int64)] = np.arange(len(numbers))
        for number, unit in zip(numbers, units):
            of[number] = unit
        return Samples(rank, of, several)

    def ids(self, numbers: Iterable[int]) -> dict[int, str]:
        """The ids of some samples by their numbers."""
        chosen = "SELECT number, id FROM samples WHERE number IN (SELECT value FROM json_each(?))"
        return dict(self.run.query(chosen, (json.dumps(list(numbers)),)))

    def items(self, system: str) -> SystemItems:
        """The finished items of one system, in the order of the samples."""
        finished, silent, partial, dissimilar, clipped, same = array("q"), 0, 0, 0, 0, 0
        is_generated = (self.meta.get("config") or {}).get("command") == "score"
        unscored, noted, tally = {}, {}, Tally(is_generated)
        several: list[tuple[int, float, float]] = []
        for number, status, reason, bits, text in self.run.query_lazily(
            "SELECT sample, status, reason, bits, notes FROM items WHERE system = ? ORDER BY sample",
            (self._number("systems", "system", system),),
        ):
            finished.append(number)
            if status != "ok":
                unscored[number] = (status, self.run.diagnostic(reason, str(number)))
            if text:
                notes = self.run.json(text, f"the notes of sample {number}")
                codes = {note["code"] for note in notes}
                silent += "silent" in codes
                partial += "partial" in codes or "lacking" in codes
                dissimilar += "unlike" in codes
                clipped += "clipped" in codes or (is_generated and "flat_peaks" in codes)
                same += "same_as_reference" in codes
                tally.add(notes)
                if ways := {_WAYS[code] for code in codes & _WAYS.keys()}:
                    noted[number] = ways
            channels, seconds = self.samples.several.get(number, (None, None))
            if channels and seconds and bits is not None:
                several.append((channels, seconds, bits))
        return SystemItems(finished, unscored, silent, partial, dissimilar, clipped, same, several, noted, tally)

    def scores(self, system: str, metric: str) -> Scores:
        """The scores of one system and metric."""
        names = self._detail_names(metric)
        needed = [name for name in names if name not in ANSWER_DETAILS or name in _MARKS]
        marked = " OR ".join(f"detail LIKE '%\"{name}\"%'" for name in needed)
        rows = self.run.query(
            f"SELECT sample, status, numerator, denominator, reason, CASE WHEN {marked} THEN detail END FROM scores "
            "WHERE system = ? AND metric = ? ORDER BY sample",
            (self._number("systems", "system", system), self._number("metrics", "metric", metric)),
        )
        is_scored = [row[1] == "ok" for row in rows]
        unscored = [(row[0], row[1], self.run.diagnostic(row[4], str(row[0]))) for row in rows if row[1] != "ok"]
        details: dict[int, dict[str, Any]] = {}
        flags: dict[str, tuple[int, int]] = {}
        required: dict[str, float] = {}
        known: dict[str, Diagnostic] = {}
        rank = self.samples.rank
        for number, status, *_, text in rows:
            if text is None:
                continue
            held = self.run.json(text, f"the detail of sample {number}")
            if not isinstance(held, Mapping):
                continue
            details[number] = {name: held[name] for name in names if held.get(name) is not None}
            if status == "ok" and held.get("flag") is not None:
                flag = json.dumps(held["flag"], sort_keys=True)
                count, first = flags.get(flag, (0, number))
                flags[flag] = (count + 1, min(first, number, key=lambda one: rank[one]))
                required[flag] = counted_from(held)
                if flag not in known:
                    known[flag] = self.run.diagnostic_of(held["flag"], str(number))
        scored = sum(is_scored)
        counted = {known[flag]: flags[flag] for flag in sorted(flags) if flags[flag][0] > required[flag] * scored}
        numbers = np.fromiter((row[0] for row in compress(rows, is_scored)), np.int64)
        sums = np.asarray([row[2:4] for row in compress(rows, is_scored)], np.float64).reshape(-1, 2)
        order = np.argsort(rank[numbers])
        by_id = array("q", numbers[order].tobytes())
        units = self.samples.units
        return Scores(by_id, sums[order], [units[n] for n in by_id], unscored, counted, details)

    def _detail_names(self, metric: str) -> list[str]:
        """List the keys of a score's detail that the statistics of a metric read."""
        facts = self.metrics.get(metric) or {}
        names = ["flag", "wrong", *(["counts"] if facts.get("aggregate") in FOLDS else [])]
        return [
            *names,
            *(ANSWER_DETAILS if facts.get("kind") in JUDGED else []),
            *([CALLS] if "judge" in facts else []),
        ]

    def _number(self, table: str, room: str, name: str) -> int:
        if name not in self._numbers[table]:
            raise UnknownName(room, name, list(self._numbers[table]))
        return self._numbers[table][name]


def items_of(run: Run, system: str, metric: str) -> Iterator[ItemParts]:
    """Parts of each sample of a run in a metric of a system."""
    units = run.units()
    for s in run.scores(system, metric):
        parts = None if s.numerator is None or s.denominator is None else (s.numerator, s.denominator)
        yield ItemParts(s.id, s.value, s.detail.get("counts", parts), units[s.id])

"""The systems and the columns of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from codec_bench.report import numbers
from codec_bench.stats.row_counts import count_rows
from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import MetricSummary, Summary, SystemSummary
from codec_bench.store.answers import has_answers
from codec_bench.store.identity import Identity, identity_of
from codec_bench.store.record import Run


@dataclass(slots=True)
class PageSystem:
    """A system of a run: one row of the page's tables."""

    run: int
    name: str
    label: str
    facts: Mapping[str, Any]


class PageColumn(NamedTuple):
    """The identity of a column: metric, protocol, and data if the runs have several.

    The protocol of a judge's metric includes the judge's state, where there are several.
    """

    metric: str
    protocol: str
    data: str


@dataclass(frozen=True, slots=True)
class Tables:
    """The data of tables and plots of runs side by side.

    Args:
        protocols: of the metrics of each run, as in the columns.
        systems, columns: the rows of the tables, and their columns with the facts of the metrics.
        entries: of the summaries, by system and column; None if not measured, or with other protocol or data.
    """

    runs: Sequence[Run]
    names: Sequence[str]
    summaries: Sequence[Summary]
    sets: Sequence[str]
    protocols: Sequence[Mapping[str, str]]
    systems: Sequence[PageSystem]
    columns: Mapping[PageColumn, Mapping[str, Any]]
    entries: Sequence[Sequence[MetricSummary | None]]
    heads: Sequence[Mapping[str, Any]] = ()

    def families(self) -> list[tuple[str, int]]:
        """Return name and index of each system's family; ("", -1) for unprocessed audio."""
        of = families(self.systems, self.names)
        shown = list(dict.fromkeys(name for name in of if name is not None))
        return [("", -1) if name is None else (name, shown.index(name)) for name in of]


def side_by_side(runs: Sequence[Run], summaries: Sequence[Summary]) -> Tables:
    """Return the systems and columns of some runs with their results, without heads."""
    names, sets = run_names(runs), data_sets(runs)
    protocols = protocols_apart(runs, summaries)
    systems, columns = systems_of(runs, names), columns_of(runs, sets, protocols)
    entries = []
    for system in systems:
        system.label = numbers.marked(system.label, summaries[system.run].systems.get(system.name, SystemSummary()))
        held = metrics_of(summaries, system)
        run = system.run
        known = {PageColumn(name, protocols[run][name], sets[run]): entry for name, entry in held.items()}
        entries.append([known.get(column) for column in columns])
    return Tables(runs, names, summaries, sets, protocols, systems, columns, entries)


def protocols_apart(runs: Sequence[Run], summaries: Sequence[Summary]) -> list[dict[str, str]]:
    """Return each run's protocols by metric, with differing states of judges."""
    plain = [{name: facts.get("protocol", "") for name, facts in run.metrics.items()} for run in runs]
    states = [states_of(run, summary) for run, summary in zip(runs, summaries)]
    held: dict[tuple[str, str], set[str]] = {}
    for protocols, of in zip(plain, states):
        for name, protocol in protocols.items():
            held.setdefault((name, protocol), set()).add(of[name])
    return [
        {
            name: f"{protocol} ({of[name] or 'a state that is not known'})"
            if len(held[name, protocol]) > 1
            else protocol
            for name, protocol in protocols.items()
        }
        for protocols, of in zip(plain, states)
    ]


def states_of(run: Run, summary: Summary) -> dict[str, str]:
    """Return the served models of each metric's judge; empty if unknown."""
    names = {}
    for name in run.metrics:
        entries = (system.metrics.get(name) for system in summary.systems.values())
        states = sorted({state for one in entries if one is not None and one.judging for state in one.judging.served})
        names[name] = " and ".join(states)
    return names


def metrics_of(summaries: Sequence[Summary], system: PageSystem) -> Mapping[str, MetricSummary]:
    """Return a system's entries in its run's summary, by metric."""
    return summaries[system.run].systems.get(system.name, SystemSummary()).metrics


def run_names(runs: Sequence[Run]) -> list[str]:
    """Return the runs' folders, with as many parents as distinguish them.

    Runs of benchmarks have at least one parent, since the folder has the model's name only.
    """
    paths = [run.folder.resolve().parts for run in runs]
    least = 2 if any(map(has_answers, runs)) else 1
    for depth in range(least, max(map(len, paths)) + 1):
        names = ["/".join(parts[-depth:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({n})" for n, name in enumerate(names, 1)]


def systems_of(runs: Sequence[Run], names: Sequence[str]) -> list[PageSystem]:
    """Return the systems of all runs; ambiguous names get their run's name."""
    systems = [PageSystem(n, name, name, facts) for n, run in enumerate(runs) for name, facts in run.systems.items()]
    count: dict[str, int] = {}
    for system in systems:
        count[system.name] = count.get(system.name, 0) + 1
    for system in systems:
        if count[system.name] > 1:
            # A benchmark's run has one system, the model, and its folder the same name.
            name = names[system.run]
            system.label = name if has_answers(runs[system.run]) else f"{name}/{system.name}"
    return systems


def data_sets(runs: Sequence[Run]) -> list[str]:
    """Return the names of the runs' data where they differ; all empty otherwise.

    Runs of benchmarks have the same data if their benchmark's identity is equal. A name states its difference to the
    first of that name, such as `mine (other prompt)`, and an incomplete number of questions. Other audio under the same
    ids is other data.
    """
    if len(runs) == 1:
        return [""]
    held: list[tuple[tuple[bool, Any], Identity, Run, str]] = []
    identities = [identity_of(run) for run in runs]
    labels = [""] * len(runs)
    for n in sorted(range(len(runs)), key=lambda n: bool(identities[n].control)):  # results before controls
        run, identity = runs[n], identities[n]
        data, has_questions = run.meta.get("data") or {}, has_answers(run)
        benchmark = (run.meta.get("benchmark") or {}).get("name")
        key = (has_questions, benchmark if has_questions else data.get("fingerprint"))
        kin = [(other, sounds, label) for known, other, sounds, label in held if known == key]
        same = (
            label for other, sounds, label in kin if not identity.differences(other) and not run.other_sounds(sounds)[0]
        )
        label = next(same, None)
        if label is None:
            label = (
                numbers.plain(str(benchmark))
                if has_questions
                else f"{_named(data)}, {data.get('samples', 0):,} samples"
            )
            rows = count_rows(run) if has_questions else UNSET
            marks_of_rows = [numbers.rows_text(rows)] if rows and rows.why else []
            first = kin[0][0] if kin else Identity(control="")
            others = (
                identity.differences(first, rows=not marks_of_rows)
                if has_questions
                else ["other sounds"]
                if kin
                else []
            )
            marks = [*others, *marks_of_rows]
            label = marked = f"{label} ({', '.join(marks)})" if marks else label
            count = 1
            while label in [name for *_, name in held]:
                label, count = f"{marked} ({count + 1})", count + 1
            held.append((key, identity, run, label))
        labels[n] = label
    return labels if len(held) > 1 else ["" for _ in runs]


def _named(data: Mapping[str, Any]) -> str:
    return numbers.plain(Path(str(data.get("name", "data"))).name)


def columns_of(
    runs: Sequence[Run], sets: Sequence[str], protocols: Sequence[Mapping[str, str]]
) -> dict[PageColumn, dict[str, Any]]:
    """Return the columns of all runs with the facts of their metrics."""
    columns: dict[PageColumn, dict[str, Any]] = {}
    for run, data, names in zip(runs, sets, protocols):
        for name, facts in run.metrics.items():
            columns.setdefault(PageColumn(name, names[name], data), facts)
    # The bitrate first, since all other numbers depend on it.
    return dict(sorted(columns.items(), key=lambda entry: entry[0].metric != "bitrate"))


def families(systems: Sequence[PageSystem], names: Sequence[str]) -> list[str | None]:
    """Return each system's family, never across runs; None for unprocessed audio."""
    of = [None if system.name == numbers.UNPROCESSED else numbers.family(system.name) for system in systems]
    runs: dict[str | None, set[int]] = {}
    for system, name in zip(systems, of):
        runs.setdefault(name, set()).add(system.run)
    return [
        f"{names[system.run]}/{name}" if name is not None and len(runs[name]) > 1 else name
        for system, name in zip(systems, of)
    ]

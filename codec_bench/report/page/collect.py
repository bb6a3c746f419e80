"""Gathers from the records what the page shows: what the template writes, and the data its script works on.

Conventions
    On the page, systems, columns (metrics) and samples are known by their position. Columns are told apart by name and
    protocol, so that numbers of two protocols never share one. Samples of several runs are one where benchmark, id and
    text agree.
    Values are arrays of (systems, columns, samples), nan where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from codec_bench.report import numbers
from codec_bench.report.page.choose import choose_rows, worth_hearing
from codec_bench.report.page.exchanges import (
    asked_aloud,
    collect_exchanges,
)
from codec_bench.report.page.sound import choose_clips
from codec_bench.report.page.written import reason, reasons, written
from codec_bench.stats.summary import summarise
from codec_bench.store.answers import has_answers
from codec_bench.store.record import Run, SampleRow

_TEXT_CHARACTERS = 4000
_DETAIL_ENTRIES = 16
_HEAD = ("name", "base", "variant", "unit", "factor", "higher", "arrow", "protocol", "what", "places", "single")


@dataclass(slots=True)
class System:
    """One row of the tables: a system of a run."""

    run: int
    name: str
    label: str
    facts: Mapping[str, Any]


@dataclass(slots=True)
class Collected:
    """What a page is made of: the template's variables, the script's data, the sound."""

    page: dict[str, Any]
    data: dict[str, Any]
    sounds: list[Path]


def collect(
    runs: Sequence[Run],
    summaries: Sequence[Mapping[str, Any]] | None,
    *,
    audio_bytes: int,
    max_rows: int,
    folder: Path,
) -> Collected:
    """Reads the runs' records.

    Args:
        runs, summaries: the runs and, where at hand, their summaries.
        audio_bytes: budget of embedded sound in bytes of base64.
        max_rows: budget of per-sample rows.
        folder: where the page will lie, for links to sound that is not embedded.
    """
    summaries = summaries or [summarise(run) for run in runs]
    names = _run_names(runs)
    systems = _systems(runs, names)
    columns = _columns(runs)
    benchmarks = [_benchmark(run) for run in runs]
    samples, places, origins = _samples(runs, benchmarks)
    values = _values(runs, systems, columns, places, len(samples))
    estimates = _estimates(runs, systems, places)
    asked = {place[id] for run, place in zip(runs, places) for id in asked_aloud(run)}

    def sounds(sample: int) -> list[tuple[int, Path]]:
        # A question is worth hearing alone: its answer may be text. A reference is not.
        wanted = sample in estimates or sample in asked
        reference = _reference(runs, places, samples[sample].id, sample) if wanted else None
        return [*([(-1, reference)] if reference else []), *estimates.get(sample, [])]

    clips = choose_clips(worth_hearing(values, columns, len(samples)), sounds, audio_bytes)
    finished, item_trouble = _items(runs, systems, places)
    heard = dict.fromkeys(clip.sample for clip in clips)
    chosen = choose_rows(
        values, columns, summaries, systems, heard, item_trouble, len(samples), max_rows // max(1, len(systems))
    )
    position = {sample: n for n, sample in enumerate(chosen)}
    entries = _entries(systems, columns, summaries)
    heads = _heads(systems, columns, entries, benchmarks)
    data = _data(names, systems, heads, entries, samples, origins, chosen, values, finished)
    data["asked"] = all(map(has_answers, runs))
    lost = {
        (system, position[sample]): [system, position[sample], -1, status, reason]
        for system, sample, status, reason, _ in item_trouble
        if status != "ok" and sample in position
    }
    missing, data["details"] = _scores(runs, systems, columns, places, position)
    data["missing"] = [*lost.values(), *(row for row in missing if (row[0], row[1]) not in lost)]
    data["exchanges"] = collect_exchanges(runs, systems, places, position)
    data["notes"] = [
        [system, position[sample], list(notes)]
        for system, sample, _, _, notes in item_trouble
        if notes and sample in position
    ]
    data["kept"] = [
        [position[sample], system, _link(path, folder)]
        for sample in chosen
        if sample not in heard
        for system, path in sounds(sample)
        if path.is_file()
    ]
    # The unprocessed audio is the reference's own file: it is embedded once.
    files = list(dict.fromkeys(clip.path for clip in clips))
    place = {path: n for n, path in enumerate(files)}
    data["clips"] = [[position[clip.sample], clip.system, place[clip.path]] for clip in clips]
    page = written(runs, names, systems, heads, entries, summaries, samples, len(chosen), clips)
    page["asked"], page["benchmarks"] = data["asked"], len(set(benchmarks))
    page["timed"] = any(sample.duration_s is not None for sample in samples)
    page["reasons"] = [
        reason(row, systems, heads, position.get(places[row["run"]].get(row["example"])))
        for row in reasons(runs, systems, summaries)
    ]
    return Collected(page, data, files)


def _run_names(runs: Sequence[Run]) -> list[str]:
    """Folder names, with as many parents as it takes to tell them apart; a benchmark's lies in its parent's."""
    paths = [run.folder.resolve().parts for run in runs]
    least = 2 if any(map(has_answers, runs)) else 1
    for depth in range(least, max(map(len, paths)) + 1):
        names = ["/".join(parts[-depth:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({n})" for n, name in enumerate(names, 1)]


def _systems(runs: Sequence[Run], names: Sequence[str]) -> list[System]:
    found = [System(n, name, name, facts) for n, run in enumerate(runs) for name, facts in run.systems.items()]
    count: dict[str, int] = {}
    for system in found:
        count[system.name] = count.get(system.name, 0) + 1
    for system in found:
        if count[system.name] > 1:
            # The run of a benchmark is of one model, and its folder is named by it.
            name = names[system.run]
            system.label = name if has_answers(runs[system.run]) else f"{name}/{system.name}"
    return found


def _columns(runs: Sequence[Run]) -> dict[tuple[str, str], dict[str, Any]]:
    columns: dict[tuple[str, str], dict[str, Any]] = {}
    for run in runs:
        for name, facts in run.metrics.items():
            columns.setdefault((name, facts.get("protocol", "")), facts)
    # The bitrate comes first: every other number is bought with it.
    return dict(sorted(columns.items(), key=lambda entry: entry[0][0] != "bitrate"))


def _benchmark(run: Run) -> str | None:
    return (run.meta.get("benchmark") or {}).get("name")


def _samples(
    runs: Sequence[Run], benchmarks: Sequence[str | None]
) -> tuple[list[SampleRow], list[dict[str, int]], list[str]]:
    """The samples of all runs, per run the position of each of its ids, and of each sample the benchmark it is from.

    The benchmark is only told where there are several.
    """
    samples: list[SampleRow] = []
    origins: list[str] = []
    known: dict[tuple[str | None, str, str | None], int] = {}
    places = []
    several = len(set(benchmarks)) > 1
    for run, benchmark in zip(runs, benchmarks):
        places.append({})
        for sample in run.samples():
            place = known.setdefault((benchmark, sample.id, sample.text), len(samples))
            if place == len(samples):
                samples.append(sample)
                origins.append(benchmark or "" if several else "")
            elif samples[place].duration_s is None:
                samples[place] = sample
            places[-1][sample.id] = place
    return samples, places, origins


def _values(
    runs: Sequence[Run],
    systems: Sequence[System],
    columns: Mapping[tuple[str, str], Any],
    places: Sequence[Mapping[str, int]],
    count: int,
) -> np.ndarray:
    values = np.full((len(systems), len(columns), count), np.nan, dtype=np.float32)
    column_of = {key: n for n, key in enumerate(columns)}
    for s, system in enumerate(systems):
        run, place = runs[system.run], places[system.run]
        # Not by counting: a question that was not asked yet is not in the record, and numbers have gaps.
        to_sample = {number: place[id] for number, id in run.query("SELECT number, id FROM samples") if id in place}
        for name, facts in run.metrics.items():
            rows, numerators, denominators, _, _ = run.columns(system.name, name)
            if not rows:
                continue
            below = np.asarray(denominators, dtype=float)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.asarray(numerators, dtype=float) / below
            ratio[~np.isfinite(ratio)] = np.nan
            values[s, column_of[name, facts.get("protocol", "")], [to_sample[row] for row in rows]] = ratio
    return values


def _items(
    runs: Sequence[Run], systems: Sequence[System], places: Sequence[Mapping[str, int]]
) -> tuple[list[set[int]], list[tuple[int, int, str, str | None, Sequence[str]]]]:
    """Per system the samples that are finished, and the items that failed or carry notes."""
    finished: list[set[int]] = []
    trouble = []
    for s, system in enumerate(systems):
        finished.append(set())
        for item in runs[system.run].items(system.name):
            sample = places[system.run][item.id]
            finished[s].add(sample)
            if item.status != "ok" or item.notes:
                trouble.append((s, sample, item.status, item.reason, item.notes))
    return finished, trouble


def _estimates(
    runs: Sequence[Run], systems: Sequence[System], places: Sequence[Mapping[str, int]]
) -> dict[int, list[tuple[int, Path]]]:
    """The estimates that the record says it kept, by sample, as (system, file)."""
    kept: dict[int, list[tuple[int, Path]]] = {}
    for s, system in enumerate(systems):
        for item in runs[system.run].items(system.name):
            if item.audio is not None:
                kept.setdefault(places[system.run][item.id], []).append((s, item.audio))
    return kept


def _reference(runs: Sequence[Run], places: Sequence[Mapping[str, int]], id: str, sample: int) -> Path | None:
    """A sample's reference audio from the first run that has the sample and its audio."""
    found = (run.reference_audio(id) for run, place in zip(runs, places) if place.get(id) == sample)
    return next((path for path in found if path is not None), None)


def _data(
    names: Sequence[str],
    systems: Sequence[System],
    heads: Sequence[Mapping[str, Any]],
    entries: Sequence[Sequence[Mapping[str, Any] | None]],
    samples: Sequence[SampleRow],
    origins: Sequence[str],
    chosen: Sequence[int],
    values: np.ndarray,
    finished: Sequence[set[int]],
) -> dict[str, Any]:
    families = _families(systems, names)
    shown = list(dict.fromkeys(label for label in families if label is not None))
    return {
        "runs": list(names),
        "columns": [{key: head[key] for key in _HEAD} for head in heads],
        "systems": [
            {
                "label": system.label,
                "run": system.run,
                "unprocessed": system.name == numbers.UNPROCESSED,
                # A model that answers in text owes no sound; what is not a model has no such word.
                "speaks": "audio" in (system.facts.get("outputs") or ("audio",)),
                "family": -1 if family is None else shown.index(family),
            }
            for system, family in zip(systems, families)
        ],
        "families": shown,
        "summary": [
            [
                None if entry is None else [_short(entry["value"], 7), *(entry["ci95"] or (None, None)), entry["n"]]
                for entry in row
            ]
            for row in entries
        ],
        "samples": [
            [
                samples[n].id,
                (samples[n].text or "")[:_TEXT_CHARACTERS],
                samples[n].speaker or "",
                samples[n].language or "",
                samples[n].duration_s,
                samples[n].sample_rate_hz,
                origins[n],
            ]
            for n in chosen
        ],
        "values": [
            [[None if np.isnan(v) else _short(float(v), 5) for v in column[chosen]] for column in of_system]
            for of_system in values
        ],
        "finished": [[int(n in done) for n in chosen] for done in finished],
    }


def _families(systems: Sequence[System], names: Sequence[str]) -> list[str | None]:
    """Per system the codec whose points are joined: never over two runs, and None for the unprocessed audio."""
    of = [None if system.name == numbers.UNPROCESSED else numbers.family(system.name) for system in systems]
    runs: dict[str | None, set[int]] = {}
    for system, name in zip(systems, of):
        runs.setdefault(name, set()).add(system.run)
    return [
        f"{names[system.run]}/{name}" if name is not None and len(runs[name]) > 1 else name
        for system, name in zip(systems, of)
    ]


def _short(value: float | None, digits: int) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")


def _entries(
    systems: Sequence[System],
    columns: Mapping[tuple[str, str], Mapping[str, Any]],
    summaries: Sequence[Mapping[str, Any]],
) -> list[list[dict[str, Any] | None]]:
    """Summary entries by system and column; None where a run measured it by another protocol or not at all."""
    rows = []
    for system in systems:
        entries = summaries[system.run]["systems"].get(system.name, {"metrics": {}})["metrics"]
        rows.append(
            [
                entries[name] if name in entries and entries[name]["protocol"] == protocol else None
                for name, protocol in columns
            ]
        )
    return rows


def _scores(
    runs: Sequence[Run],
    systems: Sequence[System],
    columns: Mapping[tuple[str, str], Any],
    places: Sequence[Mapping[str, int]],
    position: Mapping[int, int],
) -> tuple[list[list[Any]], list[list[Any]]]:
    """Of the chosen samples: the scores without a value and why, and what the scores say beside their value."""
    column_of = {key: n for n, key in enumerate(columns)}
    missing: list[list[Any]] = []
    details: list[list[Any]] = []
    for s, system in enumerate(systems):
        for score in runs[system.run].scores(system.name):
            place = position.get(places[system.run][score.id])
            if place is None:
                continue
            column = column_of[score.metric, score.protocol]
            if score.status != "ok":
                missing.append([s, place, column, score.status, score.reason])
            if score.detail:
                details.append([s, place, column, _detail(score.detail)])
    return missing, details


def _detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    """What fits on a page of a score's detail: texts, word lists and numbers."""
    kept: dict[str, Any] = {}
    for key, value in list(detail.items())[:_DETAIL_ENTRIES]:
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            value = " ".join(value)
        if isinstance(value, str):
            kept[str(key)] = value[:_TEXT_CHARACTERS]
        elif isinstance(value, int | float) and np.isfinite(value):
            kept[str(key)] = value if isinstance(value, int) else _short(value, 5)
    return kept


def _link(path: Path, folder: Path) -> str | None:
    path = path.resolve()
    return "./" + quote(path.relative_to(folder).as_posix()) if path.is_relative_to(folder) else None


def _heads(
    systems: Sequence[System],
    columns: Mapping[tuple[str, str], Mapping[str, Any]],
    entries: Sequence[Sequence[Mapping[str, Any] | None]],
    benchmarks: Sequence[str | None],
) -> list[dict[str, Any]]:
    """What each column is, and how its numbers are written."""
    heads = []
    for c, ((name, protocol), facts) in enumerate(columns.items()):
        column = [row[c] for row in entries]
        factor, unit = numbers.shown_unit(facts.get("unit", ""))
        base, variant = numbers.split_name(name)
        higher = facts.get("higher_is_better")
        # Only answers to the same questions compete.
        rivals: dict[str | None, dict[int, float | None]] = {}
        for s, (entry, system) in enumerate(zip(column, systems)):
            if entry and system.name != numbers.UNPROCESSED:
                rivals.setdefault(benchmarks[system.run], {})[s] = entry["value"]
        heads.append(
            {
                "name": name,
                "base": base,
                "variant": variant,
                "unit": unit,
                "factor": factor,
                "protocol": protocol,
                "places": numbers.decimals([entry for entry in column if entry], factor),
                "single": numbers.three_digits([entry["value"] for entry in column if entry], factor),
                "higher": higher,
                "arrow": numbers.ARROWS[higher],
                "direction": {True: "higher is better", False: "lower is better", None: ""}[higher],
                "what": facts.get("summary") or "",
                "range": facts.get("range"),
                "facts": facts,
                "best": set().union(*(numbers.best(values, higher) for values in rivals.values() if name != "bitrate")),
            }
        )
    return heads

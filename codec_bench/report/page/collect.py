"""Gathers from the records what the page shows: what the template writes, and the data its script works on.

Conventions
    On the page, systems, columns (metrics) and samples are known by their position. Columns are told apart by name and
    protocol, so that numbers of two protocols never share one. Samples of several runs are one where benchmark, id and
    text agree.
    Values are arrays of (systems, columns, samples), nan where there is none.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from codec_bench.report import numbers
from codec_bench.report.page.exchanges import (
    asked_aloud,
    collect_exchanges,
    counting_rows,
    published_rows,
    subset_rows,
)
from codec_bench.report.page.sound import Clip, choose_clips
from codec_bench.stats.summary import summarise
from codec_bench.store.answers import has_answers
from codec_bench.store.record import Run, SampleRow

_BROKEN = {"failed", "unparsed", "undefined", "no_estimate", "not_scored"}
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

    clips = choose_clips(_worth_hearing(values, columns, len(samples)), sounds, audio_bytes)
    finished, item_trouble = _items(runs, systems, places)
    heard = dict.fromkeys(clip.sample for clip in clips)
    chosen = _choose_rows(
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
    page = _page(runs, names, systems, heads, entries, summaries, samples, len(chosen), clips)
    page["asked"], page["benchmarks"] = data["asked"], len(set(benchmarks))
    page["timed"] = any(sample.duration_s is not None for sample in samples)
    page["reasons"] = [
        _reason(row, systems, heads, position.get(places[row["run"]].get(row["example"])))
        for row in _reasons(runs, systems, summaries)
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


def _worst_first(values: np.ndarray, columns: Mapping[tuple[str, str], Mapping[str, Any]]) -> Iterator[int]:
    """Samples by how bad they are for some system and metric: every pair's worst, then every pair's second, ..."""
    orders = []
    for c, ((name, _), facts) in enumerate(columns.items()):
        if name == "bitrate" or facts.get("higher_is_better") is None:
            continue
        for of_system in values[:, c]:
            badness = -of_system if facts["higher_is_better"] else of_system
            order = np.argsort(-badness, kind="stable")
            orders.append(order[np.isfinite(of_system[order])])
    for rank in range(max(map(len, orders), default=0)):
        for order in orders:
            if rank < len(order):
                yield int(order[rank])


def _worth_hearing(values: np.ndarray, columns: Mapping[tuple[str, str], Any], count: int) -> Iterator[int]:
    """Worst cases and random samples in turn, each once."""
    spread = list(range(count))
    random.Random(0).shuffle(spread)
    seen: set[int] = set()
    worst = _worst_first(values, columns)
    for drawn in spread:
        for sample in (next((w for w in worst if w not in seen), None), drawn):
            if sample is not None and sample not in seen:
                seen.add(sample)
                yield sample


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


def _choose_rows(
    values: np.ndarray,
    columns: Mapping[tuple[str, str], Mapping[str, Any]],
    summaries: Sequence[Mapping[str, Any]],
    systems: Sequence[System],
    heard: Mapping[int, None],
    item_trouble: Iterable[tuple[int, int, str, str | None, Sequence[str]]],
    count: int,
    limit: int,
) -> list[int]:
    """The samples whose rows the page holds, in the data's order: all, or those with sound, failures, worst, random."""
    if count <= limit:
        return list(range(count))
    chosen = dict(heard)
    broken = [sample for _, sample, status, _, _ in item_trouble if status != "ok"]
    for s, system in enumerate(systems):
        for c, (name, _) in enumerate(columns):
            entry = summaries[system.run]["systems"][system.name]["metrics"].get(name)
            if entry and entry["n"] and _BROKEN & set(entry["missing"]):
                broken += np.flatnonzero(np.isnan(values[s, c])).tolist()
    for share, source in ((0.4, broken), (0.8, _worst_first(values, columns)), (1.0, _shuffled(count))):
        for sample in source:
            if len(chosen) >= max(share * limit, len(heard)):
                break
            chosen.setdefault(sample)
    return sorted(chosen)


def _shuffled(count: int) -> list[int]:
    order = list(range(count))
    random.Random(1).shuffle(order)
    return order


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


def _page(
    runs: Sequence[Run],
    names: Sequence[str],
    systems: Sequence[System],
    heads: Sequence[Mapping[str, Any]],
    entries: Sequence[Sequence[Mapping[str, Any] | None]],
    summaries: Sequence[Mapping[str, Any]],
    samples: Sequence[SampleRow],
    rows: int,
    clips: Sequence[Clip],
) -> dict[str, Any]:
    """What the template writes."""
    return {
        "title": " · ".join(names),
        "runs": [_run(run, name, summary) for run, name, summary in zip(runs, names, summaries)],
        "heads": heads,
        "table": [
            {
                "label": system.label,
                "unprocessed": system.name == numbers.UNPROCESSED,
                "lost": lost,
                "cells": [_shown(entry, head, s, lost) for entry, head in zip(row, heads)],
            }
            for s, (system, row) in enumerate(zip(systems, entries))
            for lost in [numbers.without_estimate(summaries[system.run]["systems"][system.name])]
        ],
        "counting": counting_rows(systems, heads, entries),
        "subsets": subset_rows(systems, heads, entries),
        "published": published_rows(runs),
        "samples": len(samples),
        "shown_samples": rows,
        "heard_samples": len({clip.sample for clip in clips}),
        "sound_mb": sum(path.stat().st_size for path in {clip.path for clip in clips}) * 4 / 3 / 1e6,
    }


def _reasons(
    runs: Sequence[Run], systems: Sequence[System], summaries: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Why there are no values, over all runs: systems by their labels, metrics with their protocol."""
    labels = {(system.run, system.name): system.label for system in systems}
    rows = []
    for r, (run, summary) in enumerate(zip(runs, summaries)):
        metrics = run.metrics
        for row in summary["failures"]["reasons"]:
            protocol = metrics[row["metric"]].get("protocol", "") if row["metric"] else ""
            rows.append({**row, "run": r, "system": labels[r, row["system"]], "protocol": protocol})
    return numbers.grouped_reasons(rows)


def _reason(
    row: Mapping[str, Any], systems: Sequence[System], heads: Sequence[Mapping[str, Any]], example: int | None
) -> dict[str, Any]:
    """One row of the failures, with the filter that shows its rows: a column, and a system where it is one alone.

    `example` is the position among the page's samples of the one that is named, or None where it is not there.
    """
    keys = [(head["name"], head["protocol"]) for head in heads]
    labels = [system.label for system in systems]
    return {
        **row,
        "sample": example,
        "column": keys.index((row["metric"], row["protocol"])) if row["metric"] else -1,
        "place": labels.index(row["systems"][0]) if len(row["systems"]) == 1 else -1,
        "where": f"all {len(systems)}" if len(row["systems"]) == len(systems) > 1 else ", ".join(row["systems"]),
    }


def _shown(entry: Mapping[str, Any] | None, head: Mapping[str, Any], system: int, lost: int) -> dict[str, Any] | None:
    if entry is None:
        return None
    factor, places, value = head["factor"], head["places"], entry["value"]
    return {
        "value": numbers.number(None if value is None else factor * value, places),
        "half": numbers.half_width(entry, places, factor),
        "interval": [numbers.number(factor * bound, places) for bound in entry["ci95"]] if entry["ci95"] else None,
        "n": entry["n"],
        "failed": entry["failed"],
        "flagged": entry["failed"] > lost,
        "missing": ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in entry["missing"].items()),
        "missing_word": " ".join(entry["missing"]).replace("_", " "),
        "harmless": set(entry["missing"]) <= ({"refused"} if entry["n"] else {"refused", "undefined"}),
        "best": system in head["best"],
    }


def _run(run: Run, name: str, summary: Mapping[str, Any]) -> dict[str, Any]:
    meta, counts = run.meta, run.counts()
    timings, config, data = (meta.get(key) or {} for key in ("timings", "config", "data"))
    audio_s = data.get("audio_s")
    if audio_s is None:
        known = [s.duration_s for s in run.samples() if s.duration_s is not None]
        audio_s = sum(known) if known else None
    reasons = summary["failures"]["reasons"]
    undefined = sum(row["count"] for row in reasons if row["metric"] and row["status"] in ("undefined", "refused"))
    stages = [stage for stage in timings.get("stages") or [] if isinstance(stage, Mapping)]
    speeds = {s: t for s, t in (timings.get("systems") or {}).items() if isinstance(t, Mapping)}
    return {
        "name": name,
        "asked": has_answers(run),
        "state": meta.get("state") or "unknown",
        "started": meta.get("started"),
        "finished": meta.get("finished"),
        "wall_s": timings.get("wall_s"),
        "data": str(data.get("name") or config.get("data") or "unknown"),
        "audio_s": audio_s,
        "counts": counts,
        "speakers": len({s.speaker for s in run.samples() if s.speaker}),
        "seed": config.get("seed"),
        "failed_items": summary["failures"]["items"],
        "failed_scores": summary["failures"]["scores"],
        "undefined_scores": undefined,
        "versions": meta.get("versions") or {},
        "machine": meta.get("machine") or {},
        "unmatched": [str(name) for name in data.get("unmatched") or []],
        "how": meta.get("how") or {},
        "config": config,
        "fingerprint": meta.get("fingerprint") or {},
        "systems": run.systems,
        "metrics": run.metrics,
        "machine_line": _machine_line(meta.get("machine") or {}),
        "stages": stages,
        "stage_keys": list(dict.fromkeys(key for stage in sorted(stages, key=len, reverse=True) for key in stage)),
        "speeds": speeds,
        "speed_keys": list(dict.fromkeys(key for speed in speeds.values() for key in speed)),
    }


def _machine_line(machine: Mapping[str, Any]) -> list[str]:
    """The machine in a few words: the GPU where there is one, the processor, its cores."""
    gpu = str(machine.get("gpu") or "")
    named = [str(machine[key]) for key in ("cpu", "machine", "processor") if machine.get(key)][:1]
    cores = [f"{machine['cores']} cores"] if machine.get("cores") else []
    return [*([gpu] if gpu and gpu != "none" else []), *named, *cores] or ["recorded below"]

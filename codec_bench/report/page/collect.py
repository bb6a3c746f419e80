"""Collects the page's contents from records: template variables, script data.

Systems, columns (metrics) and samples are positions. A column is a metric, protocol and data (empty if all runs have
the same; `columns.data_sets`), so numbers of different protocols or data never mix. Samples of several runs are the
same if benchmark, id and text are equal. Values are arrays `(systems, columns, samples)` with nan for missing ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import beginning
from codec_bench.report import numbers
from codec_bench.report.page.chosen_samples import choose_rows, select_examples
from codec_bench.report.page.column_heads import column_heads, stand_together
from codec_bench.report.page.columns import PageColumn, PageSystem, Tables, side_by_side
from codec_bench.report.page.exchanges import collect_exchanges, spoken_questions
from codec_bench.report.page.sound import choose_clips
from codec_bench.report.page.template_values import reason, reasons, written
from codec_bench.stats.embeddings import KEY as EMBEDDINGS
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Summary
from codec_bench.store.answers import has_answers
from codec_bench.store.record import Run
from codec_bench.store.rows import SampleRow

_TEXT_CHARACTERS = 4000
_DETAIL_ENTRIES = 16
_HEAD = ("name", "base", "variant", "unit", "factor", "higher", "arrow", "protocol", "data", "what", "places", "single")


@dataclass(slots=True)
class PageContent:
    """The contents of a page: template variables, script data, and sound files."""

    page: dict[str, Any]
    data: dict[str, Any]
    sounds: list[Path]


@dataclass(frozen=True, slots=True)
class _Grid:
    """Values of all systems and metrics on the page, by position."""

    runs: Sequence[Run]
    systems: Sequence[PageSystem]
    column_of: Mapping[PageColumn, int]
    sets: Sequence[str]
    protocols: Sequence[Mapping[str, str]]
    places: Sequence[Mapping[str, int]]

    def column(self, system: PageSystem, metric: str) -> int:
        """Return the position of a metric's column."""
        return self.column_of[PageColumn(metric, self.protocols[system.run][metric], self.sets[system.run])]

    def values(self, count: int) -> np.ndarray:
        """Return all values `(systems, columns, samples)` over `count` samples."""
        values = np.full((len(self.systems), len(self.column_of), count), np.nan, dtype=np.float32)
        for s, system in enumerate(self.systems):
            run, position_of = self.runs[system.run], self.places[system.run]
            # Numbers have gaps: unasked questions are not in the record.
            to_sample = {
                number: position_of[id]
                for number, id in run.query("SELECT number, id FROM samples")
                if id in position_of
            }
            for name in run.metrics:
                rows, numerators, denominators, _, _ = run.columns(system.name, name)
                if not rows:
                    continue
                below = np.asarray(denominators, dtype=float)
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = np.asarray(numerators, dtype=float) / below
                ratio[~np.isfinite(ratio)] = np.nan
                values[s, self.column(system, name), [to_sample[row] for row in rows]] = ratio
        return values

    def scores(self, position: Mapping[int, int]) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return the chosen samples' missing scores with reasons, and all scores' details."""
        missing: list[list[Any]] = []
        details: list[list[Any]] = []
        for s, system in enumerate(self.systems):
            shown = [id for id, shown_position in self.places[system.run].items() if shown_position in position]
            for score in self.runs[system.run].scores(system.name, samples=shown):
                shown_position = position[self.places[system.run][score.id]]
                column = self.column(system, score.metric)
                if score.status != "ok":
                    missing.append([s, shown_position, column, score.status, score.reason])
                if score.detail:
                    details.append([s, shown_position, column, _detail(score.detail)])
        return missing, details


def collect(
    runs: Sequence[Run], summaries: Sequence[Summary] | None, *, audio_bytes: int, max_rows: int, folder: Path
) -> PageContent:
    """Collect the contents of a page from the runs' records.

    Args:
        summaries: None to compute them.
        audio_bytes: the most base64 bytes of embedded audio.
        max_rows: the most rows of samples.
        folder: of the page, for links to other audio.
    """
    summaries = summaries or [summarise(run) for run in runs]
    tables = side_by_side(runs, summaries)
    systems, sets, columns = tables.systems, tables.sets, tables.columns
    benchmarks = [_benchmark(run) for run in runs]
    samples, places, origins = _samples(runs, benchmarks)
    tables = replace(tables, entries=stand_together(tables, places))
    grid = _Grid(runs, systems, {column: n for n, column in enumerate(columns)}, sets, tables.protocols, places)
    values = grid.values(len(samples))
    estimates = _estimates(runs, systems, places)
    spoken = {index[id] for run, index in zip(runs, places) for id in spoken_questions(run)}

    def sounds(sample: int) -> list[tuple[int, Path]]:
        # A question's audio matters alone, since its answer may be text; a reference alone does not.
        is_needed = sample in estimates or sample in spoken
        reference = _reference(runs, places, samples[sample].id, sample) if is_needed else None
        return [*([(-1, reference)] if reference else []), *estimates.get(sample, [])]

    clips = choose_clips(select_examples(values, columns, len(samples)), sounds, audio_bytes)
    finished, item_trouble, lengths = _items(runs, systems, places)
    played = dict.fromkeys(clip.sample for clip in clips)
    chosen = choose_rows(
        values, columns, summaries, systems, played, item_trouble, len(samples), max_rows // max(1, len(systems))
    )
    position = {sample: n for n, sample in enumerate(chosen)}
    heads = column_heads(columns, tables.entries)
    tables = replace(tables, heads=heads)
    data = _page_data(tables, samples, origins, chosen, values, finished)
    data["has_answers"] = all(map(has_answers, runs))
    data["prompted"] = all((run.meta.get("config") or {}).get("reference") == "prompt" for run in runs)
    data["lengths"] = [[of.get(n) for n in chosen] if (of := lengths[s]) else None for s in range(len(systems))]
    missing, data["details"] = grid.scores(position)
    data |= _problem_rows(item_trouble, missing, position)
    data["exchanges"] = collect_exchanges(runs, systems, places, position)
    linked = [(sample, *sound) for sample in chosen if sample not in played for sound in sounds(sample)]
    data["saved"] = [
        [position[sample], system, _link(path, folder)] for sample, system, path in linked if path.is_file()
    ]
    # The unprocessed audio is the file of the reference, which is embedded only once.
    files = {path: n for n, path in enumerate(dict.fromkeys(clip.path for clip in clips))}
    data["clips"] = [[position[clip.sample], clip.system, files[clip.path]] for clip in clips]
    page = written(tables, samples, len(chosen), clips)
    page["has_answers"], page["benchmarks"] = data["has_answers"], len(set(benchmarks))
    page["sets"] = list(dict.fromkeys(filter(None, sets)))
    page["timed"] = any(sample.duration_s is not None for sample in samples)
    page["reasons"] = [
        reason(row, systems, heads, position.get(places[row["run"]].get(row["example"])))
        for row in reasons(runs, systems, sets, summaries)
    ]
    return PageContent(page, data, list(files))


def _problem_rows(
    items: Sequence[tuple[int, int, str, str | None, Sequence[str]]],
    scores: Sequence[Sequence[Any]],
    position: Mapping[int, int],
) -> dict[str, Any]:
    """Rows of missing scores and of notes, for the samples on the page.

    Args:
        items: those with problems, as from `_items`.
        scores: the missing ones, as from `_Grid.scores`.
        position: the row on the page by sample.

    Returns:
        `missing`: [system, row, column, status, reason], with column -1 for a failed item instead of its scores;
        `notes`: [system, row, notes].
    """
    without_estimate = {
        (system, position[sample]): [system, position[sample], -1, status, reason]
        for system, sample, status, reason, _ in items
        if status != "ok" and sample in position
    }
    notes = [
        [system, position[sample], list(notes)] for system, sample, _, _, notes in items if notes and sample in position
    ]
    return {
        "missing": [*without_estimate.values(), *(row for row in scores if (row[0], row[1]) not in without_estimate)],
        "notes": notes,
    }


def _benchmark(run: Run) -> str | None:
    return (run.meta.get("benchmark") or {}).get("name")


def _samples(
    runs: Sequence[Run], benchmarks: Sequence[str | None]
) -> tuple[list[SampleRow], list[dict[str, int]], list[str]]:
    """Return all samples, their positions by run and id, and their benchmarks.

    The benchmark is empty if there is only one.
    """
    samples: list[SampleRow] = []
    origins: list[str] = []
    known: dict[tuple[str | None, str, str | None], int] = {}
    places: list[dict[str, int]] = []
    several = len(set(benchmarks)) > 1
    for run, benchmark in zip(runs, benchmarks):
        places.append({})
        for sample in run.samples():
            position = known.setdefault((benchmark, sample.id, sample.text), len(samples))
            if position == len(samples):
                samples.append(sample)
                origins.append(benchmark or "" if several else "")
            elif samples[position].duration_s is None:
                samples[position] = sample
            places[-1][sample.id] = position
    return samples, places, origins


def _items(
    runs: Sequence[Run], systems: Sequence[PageSystem], places: Sequence[Mapping[str, int]]
) -> tuple[
    list[set[int]],
    list[tuple[int, int, str, Diagnostic | None, Sequence[Diagnostic]]],
    list[dict[int, float | None]],
]:
    """Return finished samples, items with problems, generated durations.

    Args:
        places: of each run, the position of a sample by its id.

    Returns:
        By system, the positions of samples with an item, also a failed one; (system, position, status, reason, notes)
        of each item that failed or has notes; by system, durations by position, empty unless the run is of `score`.
    """
    finished: list[set[int]] = []
    trouble = []
    lengths: list[dict[int, float | None]] = []
    for s, system in enumerate(systems):
        finished.append(set())
        lengths.append({})
        is_generated = (runs[system.run].meta.get("config") or {}).get("command") == "score"
        for item in runs[system.run].items(system.name):
            sample = places[system.run][item.id]
            finished[s].add(sample)
            if is_generated:
                lengths[s][sample] = item.duration_s
            if item.status != "ok" or item.notes:
                trouble.append((s, sample, item.status, item.reason, item.notes))
    return finished, trouble, lengths


def _estimates(
    runs: Sequence[Run], systems: Sequence[PageSystem], places: Sequence[Mapping[str, int]]
) -> dict[int, list[tuple[int, Path]]]:
    """Collect the saved audio by position of the sample: system and file."""
    estimates: dict[int, list[tuple[int, Path]]] = {}
    for s, system in enumerate(systems):
        for item in runs[system.run].items(system.name):
            if item.audio is not None:
                estimates.setdefault(places[system.run][item.id], []).append((s, item.audio))
    return estimates


def _reference(runs: Sequence[Run], places: Sequence[Mapping[str, int]], id: str, sample: int) -> Path | None:
    references = (run.reference_audio(id) for run, position_of in zip(runs, places) if position_of.get(id) == sample)
    return next((path for path in references if path is not None), None)


def _page_data(
    tables: Tables,
    samples: Sequence[SampleRow],
    origins: Sequence[str],
    chosen: Sequence[int],
    values: np.ndarray,
    finished: Sequence[set[int]],
) -> dict[str, Any]:
    """Build the JSON of the page: systems, columns, samples and their values."""
    families = tables.families()
    return {
        "runs": list(tables.names),
        "columns": [{key: head[key] for key in _HEAD} for head in tables.heads],
        "systems": [
            {
                "label": system.label,
                "run": system.run,
                "data": tables.sets[system.run],
                "unprocessed": system.name == numbers.UNPROCESSED,
                # A model that answers in text has no sound. Codecs do not declare outputs: theirs is always sound.
                "speaks": "audio" in (system.facts.get("outputs") or ("audio",)),
                "family": family,
            }
            for system, (_, family) in zip(tables.systems, families)
        ],
        "families": list(dict.fromkeys(name for name, rank in families if rank >= 0)),
        "summary": [
            [
                # Value and interval are rounded alike: an interval of no width stays at its value.
                None
                if entry is None
                else [*(_short(v, 7) for v in (entry.value, *(entry.ci95 or (None, None)))), entry.n]
                for entry in row
            ]
            for row in tables.entries
        ],
        "samples": [
            [
                samples[n].id,
                beginning(samples[n].text or "", _TEXT_CHARACTERS),
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


def _short(value: float | None, digits: int) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")


def _detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Shorten a score's detail for the page: texts, digits, number of entries."""
    shortened: dict[str, Any] = {}
    entries = [entry for entry in detail.items() if entry[0] != EMBEDDINGS]
    for key, value in entries[:_DETAIL_ENTRIES]:
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            value = " ".join(value)
        if isinstance(value, str):
            shortened[str(key)] = beginning(value, _TEXT_CHARACTERS)
        elif isinstance(value, int | float) and np.isfinite(value):
            shortened[str(key)] = value if isinstance(value, int) else _short(value, 5)
    if len(entries) > _DETAIL_ENTRIES:
        shortened["further entries in the record"] = len(entries) - _DETAIL_ENTRIES
    return shortened


def _link(path: Path, folder: Path) -> str | None:
    path = path.resolve()
    return "./" + quote(path.relative_to(folder).as_posix()) if path.is_relative_to(folder) else None

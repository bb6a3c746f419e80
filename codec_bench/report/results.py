"""Writes `summary.json`, `run.json` and `report.html` next to a finished record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codec_bench.messages.errors import UserError
from codec_bench.report.page import write_page
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Summary
from codec_bench.store.files import read_json, write_json, write_text
from codec_bench.store.integrity import GENERATION, PAGE, RUN_JSON, STATE_OF_RECORD, SUMMARY_JSON, state_in, state_of
from codec_bench.store.record import Run
from codec_bench.store.tables import IDENTITY

MANIFEST = "manifest.jsonl"
"""Next to saved audio: `codec-bench score --generated` matches the files by their samples' ids."""


def write_results(run: Run, *, page: bool = True) -> Summary:
    """Write the files, each atomically; return the summary."""
    summary = summarise(run)
    write_summary(run, summary)
    _write_audio_manifests(run)
    if page:
        write_page([run], run.folder / PAGE, summaries=[summary])
    write_json(run.folder / RUN_JSON, run.meta)  # last: it says that the others are complete
    return summary


def write_summary(run: Run, summary: Summary) -> None:
    """Write `summary.json`, with the state of the record."""
    write_json(run.folder / SUMMARY_JSON, {**summary.as_dict(), STATE_OF_RECORD: state_of(run.meta)})


def _write_audio_manifests(run: Run) -> None:
    """Write a manifest with sample ids into each folder of saved output audio."""
    lines: dict[Path, list[str]] = {}
    for sample, path in run.saved_audio():
        lines.setdefault(path.parent, []).append(json.dumps({"id": sample, "audio": path.name}, ensure_ascii=False))
    for folder, entries in lines.items():
        if folder.is_dir():
            write_text(folder / MANIFEST, "\n".join(entries) + "\n")


def results_stand(run: Run, *, page: bool = True) -> bool:
    """Whether summary and page next to a record are up to date with it.

    A command that computes something first writes `run.json` with another state.
    """
    names = (SUMMARY_JSON, *([PAGE] if page else []))
    try:
        written_meta, meta = read_json(run.folder / RUN_JSON), run.meta
    except UserError:
        return False
    if written_meta.get("state") != "finished" or _lasting(written_meta) != _lasting(meta):
        return False
    # Nothing has changed between the two generations, and the others are of one of them.
    first, last = (_generation(one) for one in (written_meta, meta))
    states_of_files = [state_in(run.folder / name) for name in names]
    return all(one.get(IDENTITY) == meta.get(IDENTITY) and first <= _generation(one) <= last for one in states_of_files)


def _generation(state: Mapping[str, Any]) -> int:
    held = state.get(GENERATION)
    return held if isinstance(held, int) else -1


def _lasting(meta: dict[str, Any]) -> dict[str, Any]:
    """Drop start and end of the last command, and its arguments."""
    return {name: value for name, value in meta.items() if name not in ("started", "finished", "arguments", GENERATION)}

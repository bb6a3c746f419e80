"""Writes the files beside the record of a finished run: `summary.json`, `run.json` and `report.html`."""

from __future__ import annotations

from typing import Any

from codec_bench.report.page import write_page
from codec_bench.stats.summary import summarise
from codec_bench.store.files import write_json
from codec_bench.store.record import Run

SUMMARY = "summary.json"
"""The file of a run's summary, in its folder."""


def write_results(run: Run, *, page: bool = True) -> dict[str, Any]:
    """Writes `summary.json`, `run.json` and, if `page`, `report.html`, each whole or not at all; returns the summary."""
    summary = summarise(run)
    write_json(run.folder / SUMMARY, summary)
    write_json(run.folder / "run.json", run.meta)
    if page:
        write_page([run], run.folder / "report.html", summaries=[summary])
    return summary

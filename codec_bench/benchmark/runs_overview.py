"""Write `summary.json`, which covers all benchmark runs of a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codec_bench.benchmark.asking.benchmarks import Preview
from codec_bench.messages import Diagnostic, to_json
from codec_bench.messages.errors import UserError
from codec_bench.stats.controls import Controlled
from codec_bench.stats.data_warnings import Warned
from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import Answers, FailureCounts, MetricSummary, RowCount
from codec_bench.store.files import read_json, write_json
from codec_bench.store.folders import run_folders
from codec_bench.store.record import Run
from codec_bench.store.statuses import FAILURES


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of a command that ran benchmarks.

    Args:
        folder: holds a run folder for each benchmark and model, and `summary.json`.
        runs: the runs, by benchmark and model.
        excluded: (benchmark, model, reason) for every pair that could not run.
        previews: with `dry_run`, the requests for each model, without a folder and runs.
        controls: the control runs, by benchmark, model and replacement, such as `text alone`.
    """

    folder: Path
    runs: Mapping[tuple[str, str], Run]
    excluded: tuple[tuple[str, str, Diagnostic], ...] = ()
    previews: tuple[Preview, ...] = ()
    controls: Mapping[tuple[str, str, str], Run] = field(default_factory=dict)


def _failures(reasons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summarise a system's failures: failed items, scores without a value, reasons."""
    item_counts = [reason["count"] for reason in reasons if reason["metric"] is None]
    scores = [reason["count"] for reason in reasons if reason["metric"] is not None and reason["status"] in FAILURES]
    return {"items": sum(item_counts), "scores": sum(scores), "reasons": list(reasons)}


def _row(
    base: Path,
    folder: Path,
    facts: Mapping[str, Any],
    summary: Mapping[str, Any],
    system: str,
    entry: Mapping[str, Any],
) -> dict[str, Any]:
    """The row of one system of a run; its folder is relative to `base`."""
    mine = [reason for reason in summary["failures"]["reasons"] if reason["system"] == system]
    return {
        "benchmark": facts["name"],
        "model": system,
        "folder": os.path.relpath(folder, base),
        "category": facts.get("category"),
        "primary": facts.get("primary"),
        "metrics": entry["metrics"],
        "failures": _failures(mine),
        "warned": entry.get("warned", []),
        "answers": summary.get("answers"),
        "published": facts.get("published", []),
        **{name: summary[name] for name in ("rows", "other_data", "control", "controls") if name in summary},
    }


def write_overview(outcome: RunOutcome) -> None:
    """Write `summary.json` with a row per benchmark and system of all runs.

    Raises:
        UserError: the summary of one of the runs is damaged.
    """
    rows: list[dict[str, Any]] = []
    for folder in run_folders(outcome.folder):
        run = Run(folder)
        facts = run.meta.get("benchmark")
        written = folder / "summary.json"
        if facts is None or not written.is_file():
            continue
        summary = read_json(written)
        try:
            for system, entry in summary["systems"].items():
                row = _row(outcome.folder, folder, facts, summary, system, entry)
                for read in (metrics_of, answers_of, rows_of, warned_of, controls_of, failures_of):
                    read(row)
                rows.append(row)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            problem = Diagnostic("not_a_summary", path=written, type=type(error).__name__, message=error)
            raise UserError(problem, hint="delete it and run its command again") from error
    excluded = [{"benchmark": b, "model": m, "reason": why} for b, m, why in outcome.excluded]
    write_json(outcome.folder / "summary.json", {"schema": 1, "benchmarks": rows, "left_out": to_json(excluded)})


def metrics_of(row: Mapping[str, Any]) -> dict[str, MetricSummary]:
    """The metrics of a row of the overview, by name."""
    return {name: MetricSummary.from_dict(entry) for name, entry in row["metrics"].items()}


def answers_of(row: Mapping[str, Any]) -> Answers:
    """The answers of a row of the overview; `UNSET` for codecs."""
    return UNSET if row["answers"] is None else Answers.from_dict(row["answers"])


def rows_of(row: Mapping[str, Any]) -> RowCount:
    """The number of questions behind a row of the overview; `UNSET` if unknown."""
    return RowCount.from_dict(row["rows"]) if "rows" in row else UNSET


def warned_of(row: Mapping[str, Any]) -> list[Warned]:
    """The data warnings of a row of the overview."""
    return [Warned.from_dict(one) for one in row["warned"]]


def controls_of(row: Mapping[str, Any]) -> list[Controlled]:
    """The control comparisons of a row of the overview."""
    return [Controlled.from_dict(one) for one in row.get("controls", ())]


def failures_of(row: Mapping[str, Any]) -> FailureCounts:
    """The failures of a row of the overview."""
    return FailureCounts.from_dict(row["failures"])

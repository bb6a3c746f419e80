"""A run in the forms of other harnesses: lm-evaluation-harness's and lmms-eval's result JSON, and inspect_ai's
evaluation log.

Conventions
    A file tells of one system, because each of these forms does.
    A standard error is how far the nearer end of the 95 % interval lies, over its quantile of Student's t; where there
    is none, a standard error is missing too. A metric without a value is left out of lm-evaluation-harness's and lmms-eval's files,
    which cannot say why, and named. What a form has no field for (protocol, interval, counts, how much of the data was
    used) stands in its metadata. Sources: `lm_eval.loggers.evaluation_tracker` 0.4.13 and `lmms_eval.evaluator` 0.7.3
    write the first two; the third is version 2 of `inspect_ai.log.EvalLog`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from codec_bench.errors import UserError
from codec_bench.report.export_facts import data_of, facts_of, marked_name, results_of, valued
from codec_bench.stats.cluster_variance import t_quantile
from codec_bench.stats.intervals import LEVEL
from codec_bench.stats.summary_types import MetricSummary
from codec_bench.store.export import Target, opened
from codec_bench.store.record import Run
from codec_bench.store.rows import TableRow

FORMATS = ("lm-eval", "lmms-eval", "inspect")


def export_harness(run: Run, form: str, out: Target, *, system: str | None = None) -> list[str]:
    """Writes the results of one system as another harness does.

    Args:
        run: a finished run. form: `lm-eval`, `lmms-eval` or `inspect`.
        out: the file or stream; None for standard output. inspect_ai reads a log by the end of its name, `.json`.
        system: the system; may be left out where the run has one beside the unprocessed audio.

    Returns:
        The metrics that were left out because they have no value.

    Raises:
        UserError: the run is not finished, has no value, a system must be named, or the file cannot be written.
    """
    chosen, entries = results_of(run, system, form)
    held = valued(entries)
    if not held:
        raise UserError(f"no metric of '{chosen}' has a value, so there is nothing to write")
    if form == "inspect" and isinstance(out, Path) and out.suffix != ".json":
        raise UserError(f"inspect_ai knows a log by the end of its name, and '{out}' does not end with .json")
    content = _inspect(run, chosen, entries) if form == "inspect" else _harness(run, chosen, held, form)
    with opened(out) as file:
        json.dump(content, file, ensure_ascii=False, indent=2, allow_nan=False)
        file.write("\n")
    return [] if form == "inspect" else [name for name in entries if name not in held]


def _error(entry: MetricSummary) -> float | None:
    """The standard error of a value, by the nearer end of its interval: the farther one allows for more than Student's
    t.
    """
    if not entry.ci95 or entry.value is None or entry.units < 2:
        return None
    return float(min(entry.value - entry.ci95[0], entry.ci95[1] - entry.value)) / t_quantile(LEVEL, entry.units - 1)


def _harness(run: Run, system: str, entries: Mapping[str, MetricSummary], form: str) -> dict[str, Any]:
    """The results as lm-evaluation-harness and lmms-eval keep them, which differ in what stands beside them."""
    meta, data, counts = run.meta, data_of(run.meta), run.counts()
    name = marked_name(data.name, run, system)
    values: dict[str, Any] = {"alias": name}
    for metric, entry in entries.items():
        error = _error(entry)
        values[f"{_key(metric)},none"] = entry.value
        values[f"{_key(metric)}_stderr,none"] = "N/A" if error is None else error
    better = {_key(metric): entry.higher_is_better for metric, entry in entries.items()}
    config = {
        "task": name, "dataset_path": data.repository or data.name, "dataset_name": data.configuration, "test_split": data.split,
        "metric_list": [{"metric": _key(metric), "higher_is_better": higher_is_better} for metric, higher_is_better in zip(entries, better.values(), strict=True)],
        "metadata": {"version": 1, "codec_bench": {metric: facts_of(run, system, entry) for metric, entry in entries.items()}},
    }  # fmt: skip
    samples = {"original": counts["samples"], "effective": max(entry.n for entry in entries.values())}
    lm = form == "lm-eval"
    about = {
        "model_source": "codec-bench", "model_name": system, "model_name_sanitized": system.replace("/", "__"),
        "start_time": _seconds(meta.get("started")), "end_time": _seconds(meta.get("finished")),
    }  # fmt: skip
    return {
        "results": {name: values},
        "group_subtasks": {name: []},
        "configs": {name: config},
        "versions": {name: 1},
        "n-shot": {name: 0},
        "higher_is_better": {name: better},
        "n-samples": {name: samples},
        "config": {"model": "codec-bench", "model_args": system, "limit": meta["config"].get("limit"), "random_seed": meta["config"].get("seed")},
        "git_hash": None,
        "date": _seconds(meta.get("finished")) if lm else str(meta.get("finished") or ""),
        **about,
    }  # fmt: skip


def _key(metric: str) -> str:
    """A metric's name where a comma parts it from the name of a filter."""
    return metric.replace(",", ";")


def _seconds(when: Any) -> float | None:
    """A moment as seconds since 1970."""
    return datetime.fromisoformat(when).timestamp() if isinstance(when, str) else None


def _inspect(run: Run, system: str, entries: Mapping[str, MetricSummary]) -> dict[str, Any]:
    """The run as an evaluation log, with every item and its scores."""
    meta, data = run.meta, data_of(run.meta)
    samples = list(_samples(run, system))
    created = str(meta.get("finished") or "1970-01-01T00:00:00+00:00")
    digest = hashlib.sha256(json.dumps([str(run.folder), system, created]).encode()).hexdigest()[:22]
    scores = []
    for metric, entry in entries.items():
        numbers = {"value": entry.value, "stderr": _error(entry)}
        scores.append(
            {
                "name": metric, "scorer": metric, "scored_samples": entry.n, "unscored_samples": entry.failed,
                "metrics": {name: {"name": name, "value": float(value)} for name, value in numbers.items() if value is not None},
                "metadata": facts_of(run, system, entry),
            }
        )  # fmt: skip
    dataset = {
        "name": data.name,
        "location": data.repository,
        "samples": len(samples),
        "sample_ids": [s["id"] for s in samples],
    }
    spec = {
        "eval_id": digest, "run_id": digest, "task_id": digest, "created": str(meta.get("started") or created), "task": marked_name(data.name, run, system),
        "dataset": dataset, "model": f"codec-bench/{system}", "config": {"limit": meta["config"].get("limit")},
        "packages": {name: str(version) for name, version in (meta.get("versions") or {}).items()},
        "metadata": {"judge": meta["config"].get("judge"), "command": meta["config"].get("command")},
    }  # fmt: skip
    stats = {"started_at": str(meta.get("started") or created), "completed_at": created}
    results = {"total_samples": len(samples), "completed_samples": len(samples), "scores": scores}
    return {"version": 2, "status": "success", "eval": spec, "results": results, "stats": stats, "samples": samples}


def _samples(run: Run, system: str) -> Iterator[dict[str, Any]]:
    """The items of a system with their scores, in the order of their ids."""
    rows = sorted((row for row in run.rows() if row.system == system), key=lambda row: row.id)
    for sample, of in groupby(rows, key=lambda row: row.id):
        held = list(of)
        first = held[0]
        yield {
            "id": sample, "epoch": 1, "input": first.text or sample, "target": first.text or "",
            "scores": {row.metric: _score(row) for row in held if row.value is not None},
            "metadata": {
                "speaker": first.speaker, "language": first.language, "duration_s": first.duration_s,
                "without_value": {row.metric: {"status": row.status, "reason": row.reason} for row in held if row.value is None},
            },
        }  # fmt: skip


def _score(row: TableRow) -> dict[str, Any]:
    more = {"protocol": row.protocol, "numerator": row.numerator, "denominator": row.denominator}
    return {"value": row.value, "answer": row.transcript, "metadata": more}

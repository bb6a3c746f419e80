"""A run in the forms of lm-evaluation-harness, lmms-eval and inspect_ai.

A file holds one system. A standard error is the distance to the nearer end of the 95 % interval over Student's t
quantile. The first two cannot hold a metric without a value, which is excluded and reported. Facts without a field are
in the metadata. Sources: `lm_eval.loggers.evaluation_tracker` 0.4.13, `lmms_eval.evaluator` 0.7.3, version 2 of
`inspect_ai.log.EvalLog`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from codec_bench.messages.errors import UserError
from codec_bench.report.export_facts import data_of, facts_of, marked_name, results_of, valued
from codec_bench.stats.cluster_variance import t_quantile
from codec_bench.stats.intervals import LEVEL
from codec_bench.stats.summary_types import MetricSummary
from codec_bench.store.export import Target, opened
from codec_bench.store.record import Run
from codec_bench.store.rows import TableRow

FORMATS = ("lm-eval", "lmms-eval", "inspect")


def export_harness(run: Run, form: str, out: Target, *, system: str | None = None) -> list[str]:
    """Write the results of one system in another harness's form.

    Args:
        run: a finished run.
        form: `lm-eval`, `lmms-eval` or `inspect`.
        out: the file or stream; None for standard output. inspect_ai needs the suffix `.json`.
        system: the system; optional if the run has one besides the unprocessed audio.

    Returns:
        The metrics that were excluded because they have no value.

    Raises:
        UserError: the run is not finished, has no value, a system must be named, or the file cannot be written.
    """
    chosen, entries = results_of(run, system, form)
    held = valued(entries)
    if not held:
        raise UserError("no_value_to_write", system=chosen)
    if form == "inspect" and isinstance(out, Path) and out.suffix != ".json":
        raise UserError("log_name", path=out)
    content = _inspect(run, chosen, entries) if form == "inspect" else _harness(run, chosen, held, form)
    with opened(out) as file:
        json.dump(content, file, ensure_ascii=False, indent=2, allow_nan=False)
        file.write("\n")
    return [] if form == "inspect" else [name for name in entries if name not in held]


def _error(entry: MetricSummary) -> float | None:
    """Return a value's standard error, by the nearer end of its interval."""
    if not entry.ci95 or entry.value is None or entry.units < 2:
        return None
    return float(min(entry.value - entry.ci95[0], entry.ci95[1] - entry.value)) / t_quantile(LEVEL, entry.units - 1)


def _harness(run: Run, system: str, entries: Mapping[str, MetricSummary], form: str) -> dict[str, Any]:
    """The results in the JSON of lm-evaluation-harness or lmms-eval."""
    meta, data, counts = run.meta, data_of(run.meta), run.counts()
    name = marked_name(data.name, run, system)
    values: dict[str, Any] = {"alias": name}
    for metric, entry in entries.items():
        error = _error(entry)
        values[f"{_key(metric)},none"] = entry.value
        values[f"{_key(metric)}_stderr,none"] = "N/A" if error is None else error
    better = {_key(metric): entry.higher_is_better for metric, entry in entries.items()}
    config = {
        "task": name, "dataset_path": data.repository or data.name, "dataset_name": data.configuration,
        "test_split": data.split,
        "metric_list": [{"metric": metric, "higher_is_better": higher} for metric, higher in better.items()],
        "metadata": {"version": 1, "codec_bench": {one: facts_of(run, system, held) for one, held in entries.items()}},
    }  # fmt: skip
    limits = {"limit": meta["config"].get("limit"), "random_seed": meta["config"].get("seed")}
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
        "config": {"model": "codec-bench", "model_args": system, **limits},
        "git_hash": None,
        "date": _seconds(meta.get("finished")) if lm else str(meta.get("finished") or ""),
        **about,
    }  # fmt: skip


def _key(metric: str) -> str:
    """Return a metric's name for a form in which commas precede filters."""
    return metric.replace(",", ";")


def _seconds(when: Any) -> float | None:
    return datetime.fromisoformat(when).timestamp() if isinstance(when, str) else None


def _inspect(run: Run, system: str, entries: Mapping[str, MetricSummary]) -> dict[str, Any]:
    """The results as an evaluation log of Inspect."""
    meta, data = run.meta, data_of(run.meta)
    samples = list(_inspect_samples(run, system))
    created = str(meta.get("finished") or "1970-01-01T00:00:00+00:00")
    digest = hashlib.sha256(json.dumps([str(run.folder), system, created]).encode()).hexdigest()[:22]
    scores = []
    for metric, entry in entries.items():
        values = {"value": entry.value, "stderr": _error(entry)}
        metrics = {name: {"name": name, "value": float(value)} for name, value in values.items() if value is not None}
        counts = {"scored_samples": entry.n, "unscored_samples": entry.failed}
        about = {"name": metric, "scorer": metric, "metadata": facts_of(run, system, entry)}
        scores.append({**about, **counts, "metrics": metrics})
    ids = [sample["id"] for sample in samples]
    dataset = {"name": data.name, "location": data.repository, "samples": len(samples), "sample_ids": ids}
    spec = {
        "eval_id": digest, "run_id": digest, "task_id": digest, "created": str(meta.get("started") or created),
        "task": marked_name(data.name, run, system), "dataset": dataset, "model": f"codec-bench/{system}",
        "config": {"limit": meta["config"].get("limit")},
        "packages": {name: str(version) for name, version in (meta.get("versions") or {}).items()},
        "metadata": {"judge": meta["config"].get("judge"), "command": meta["config"].get("command")},
    }  # fmt: skip
    stats = {"started_at": str(meta.get("started") or created), "completed_at": created}
    results = {"total_samples": len(samples), "completed_samples": len(samples), "scores": scores}
    return {"version": 2, "status": "success", "eval": spec, "results": results, "stats": stats, "samples": samples}


def _inspect_samples(run: Run, system: str) -> Iterator[dict[str, Any]]:
    """Yield a system's samples with scores, in the layout of Inspect's logs."""
    rows = sorted((row for row in run.rows() if row.system == system), key=lambda row: row.id)
    for sample, of in groupby(rows, key=lambda row: row.id):
        held = list(of)
        first, missing = held[0], {row.metric: row for row in held if row.value is None}
        reasons = {name: {"status": row.status, "reason": row.reason} for name, row in missing.items()}
        about = {name: getattr(first, name) for name in ("speaker", "language", "duration_s")}
        yield {
            "id": sample, "epoch": 1, "input": first.text or sample, "target": first.text or "",
            "scores": {row.metric: _score(row) for row in held if row.value is not None},
            "metadata": {**about, "without_value": reasons},
        }  # fmt: skip


def _score(row: TableRow) -> dict[str, Any]:
    more = {"protocol": row.protocol, "numerator": row.numerator, "denominator": row.denominator}
    return {"value": row.value, "answer": row.transcript, "metadata": more}

"""A run in the hub's forms: `.eval_results/*.yaml` and a card's `model-index`.

A file holds one system, for one model's repository. Facts without a field (interval, counts, protocol, share of the
data) are in `notes` or `args`. Source: `huggingface_hub`, whose own classes write both forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.report.export_facts import data_of, facts_of, marked_name, results_of, valued
from codec_bench.stats.summary_types import MetricSummary
from codec_bench.store.export import Target, opened
from codec_bench.store.record import Run

FORMATS = ("hf-eval-results", "model-index")
_KINDS = {"codec": "audio-to-audio", "generation": "text-to-speech"}


def export_hugging_face(
    run: Run, form: str, out: Target, *, system: str | None = None, metric: str | None = None
) -> list[str]:
    """Write the results of one system for a model's repository on the hub.

    Args:
        run: a finished run.
        form: `hf-eval-results` (one value, for a file in `.eval_results/`) or `model-index` (all metrics, for a model
            card).
        out: the file or stream; None for standard output.
        system: the system; optional if the run has one besides the unprocessed audio.
        metric: the only metric to write. Without it, `hf-eval-results` uses the benchmark's primary metric.

    Returns:
        The metrics that were excluded because they have no value.

    Raises:
        UserError: the run is not finished, has no value, or its data are not on the hub; a system or metric must be
            named; the format is unknown; or the file cannot be written.
    """
    import yaml

    if form not in FORMATS:
        raise UserError("no_hub_format", format=form, hint=f"use one of {', '.join(FORMATS)}")
    chosen, entries = results_of(run, system, form)
    if metric is not None:
        if metric not in entries:
            raise UnknownName("metric", metric, list(entries))
        entries = {metric: entries[metric]}
    held = valued(entries)
    if form == "hf-eval-results":
        content: Any = _eval_results(run, chosen, entries, metric)
    elif not held:
        raise UserError("no_value_to_write", system=chosen)
    else:
        content = _model_index(run, chosen, held)
    with opened(out) as file:
        file.write(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    return [] if form == "hf-eval-results" else [name for name in entries if name not in held]


def _eval_results(
    run: Run, system: str, entries: Mapping[str, MetricSummary], metric: str | None
) -> list[dict[str, Any]]:
    """The entries of a file in `.eval_results/`, for one metric."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    meta = run.meta
    data = data_of(meta)
    if data.repository is None:
        raise UserError("not_hub_data", data=data.name, hint="use --format model-index, which takes any name")
    primary = (meta.get("benchmark") or {}).get("primary")
    chosen = metric or primary or (next(iter(entries)) if len(entries) == 1 else None)
    if chosen is None:
        raise UserError(
            "export_one_value", metrics=len(entries), names=", ".join(entries), hint="name one with --metric"
        )
    entry = valued(entries).get(chosen)
    if entry is None:
        hint = "choose another with --metric"
        raise UserError("metric_without_value", metric=chosen, system=system, hint=hint)
    notes = [f"codec-bench {chosen}", *(f"{name} {fact}" for name, fact in facts_of(run, system, entry).items())]
    entry_of_result = EvalResultEntry(
        dataset_id=data.repository, task_id=data.configuration or "default", value=entry.value,
        dataset_revision=data.revision, date=meta.get("finished"), notes="; ".join(notes),
    )  # fmt: skip
    return eval_result_entries_to_yaml([entry_of_result])


def _model_index(run: Run, system: str, entries: Mapping[str, MetricSummary]) -> dict[str, Any]:
    """The `model-index` of a model card, with all metrics."""
    from huggingface_hub import EvalResult
    from huggingface_hub.repocard_data import eval_results_to_model_index

    data, kind = data_of(run.meta), _kind_of_run(run.meta)
    results = [
        EvalResult(
            task_type=kind, dataset_type=data.repository or data.name, dataset_name=data.name,
            dataset_config=data.configuration, dataset_split=data.split, dataset_revision=data.revision,
            metric_type=name.partition("[")[0].partition("@")[0], metric_name=marked_name(name, run, system),
            metric_value=entry.value, metric_args=facts_of(run, system, entry),
        )
        for name, entry in entries.items()
    ]  # fmt: skip
    return {"model-index": eval_results_to_model_index(system, results)}


def _kind_of_run(meta: Mapping[str, Any]) -> str:
    """The hub's task type of a run, from its command and benchmark."""
    benchmark = meta.get("benchmark")
    if not benchmark:
        return "audio-to-audio"
    if benchmark.get("category") == "ASR":
        return "automatic-speech-recognition"
    return _KINDS.get(benchmark.get("kind", ""), "audio-text-to-text")

"""A run in the two forms in which the Hugging Face hub keeps results: `.eval_results/*.yaml` and a model card's `model-index`.

Conventions
    A file tells of one system, because each belongs to the repository of one model.
    What a form has no field for (interval, counts, protocol, how much of the data was used) stands in its `notes` or `args`.
    Source: `huggingface_hub`, whose own classes write both forms.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.errors import UnknownName, UserError
from codec_bench.report import numbers
from codec_bench.stats.summary import summarise
from codec_bench.store.export import opened
from codec_bench.store.record import Run

FORMATS = ("hf-eval-results", "model-index")
_NAMED = re.compile(r"hf:(?P<repository>[^@:]+)(?:@(?P<revision>[^:]+))?(?::(?P<names>.+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_KINDS = {"codec": "audio-to-audio", "generation": "text-to-speech"}


@dataclass(frozen=True, slots=True)
class _Data:
    """The data of a run: its repository on the hub (None if it has none), and what was taken of it."""

    name: str
    repository: str | None
    configuration: str | None = None
    split: str | None = None
    revision: str | None = None


def export_hugging_face(
    run: Run, form: str, out: Path | None, *, system: str | None = None, metric: str | None = None
) -> list[str]:
    """Writes the results of one system for a model's repository on the Hugging Face hub.

    Args:
        run: a finished run.
        form: `hf-eval-results` (one value, for a file in `.eval_results/`) or `model-index` (all metrics, for the top of
            a model card).
        out: the file; None for standard output.
        system: the system; may be left out where the run has one beside the unprocessed audio.
        metric: the only metric to write. Without it, `hf-eval-results` takes the benchmark's primary metric.

    Returns:
        The metrics that were left out because they have no value.

    Raises:
        UserError: the run is not finished, has no value, or its data are not on the hub where the form asks for that; a
            system or metric must be named; the format is unknown; or the file cannot be written.
    """
    import yaml

    if form not in FORMATS:
        raise UserError(f"there is no format '{form}' for the hub", hint=f"use one of {', '.join(FORMATS)}")
    meta = run.meta
    if meta.get("state") != "finished":
        raise UserError(
            f"the run '{run.folder}' is not finished (its state is '{meta.get('state')}'), and {form} has no way to say that",
            hint="give its command again, which finishes it",
        )
    chosen = _system(run, system, form)
    entries = summarise(run)["systems"][chosen]["metrics"]
    if metric is not None:
        if metric not in entries:
            raise UnknownName("metric", metric, list(entries))
        entries = {metric: entries[metric]}
    held = {
        name: entry for name, entry in entries.items() if entry["value"] is not None and math.isfinite(entry["value"])
    }
    if form == "hf-eval-results":
        made: Any = _eval_results(meta, chosen, entries, metric)
    elif not held:
        raise UserError(f"no metric of '{chosen}' has a value, so there is nothing to write")
    else:
        made = _model_index(meta, chosen, held)
    with opened(out) as file:
        file.write(yaml.safe_dump(made, sort_keys=False, allow_unicode=True))
    return [] if form == "hf-eval-results" else [name for name in entries if name not in held]


def _system(run: Run, system: str | None, form: str) -> str:
    names = list(run.systems)
    if system is not None:
        if system not in names:
            raise UnknownName("system", system, names)
        return system
    own = [name for name in names if name != numbers.UNPROCESSED]
    if len(own) != 1:
        raise UserError(
            f"{form} tells of one system, and the run has {len(own)}: {', '.join(own) or 'only the unprocessed audio'}",
            hint="name one with --system",
        )
    return own[0]


def _eval_results(
    meta: Mapping[str, Any], system: str, entries: Mapping[str, Mapping[str, Any]], metric: str | None
) -> list[dict[str, Any]]:
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    data = _data(meta)
    if data.repository is None:
        raise UserError(
            f"the data '{data.name}' are not a data set of the Hugging Face hub, and hf-eval-results files a value under one",
            hint="use --format model-index, which takes any name",
        )
    chosen = (
        metric or (meta.get("benchmark") or {}).get("primary") or (next(iter(entries)) if len(entries) == 1 else None)
    )
    if chosen is None:
        raise UserError(
            f"hf-eval-results holds one value, and the run has {len(entries)} metrics: {', '.join(entries)}",
            hint="name one with --metric",
        )
    entry = entries.get(chosen)
    if entry is None or entry["value"] is None or not math.isfinite(entry["value"]):
        raise UserError(
            f"{chosen} of '{system}' has no value, and hf-eval-results cannot say why",
            hint="choose another with --metric",
        )
    told = EvalResultEntry(
        dataset_id=data.repository, task_id=data.configuration or "default", value=entry["value"],
        dataset_revision=data.revision, date=meta.get("finished"),
        notes="; ".join([f"codec-bench {chosen}", *(f"{name} {said}" for name, said in _facts(meta, entry).items())]),
    )  # fmt: skip
    return eval_result_entries_to_yaml([told])


def _model_index(meta: Mapping[str, Any], system: str, entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    from huggingface_hub import EvalResult
    from huggingface_hub.repocard_data import eval_results_to_model_index

    data, what = _data(meta), _what(meta)
    results = [
        EvalResult(
            task_type=what, dataset_type=data.repository or data.name, dataset_name=data.name,
            dataset_config=data.configuration, dataset_split=data.split, dataset_revision=data.revision,
            metric_type=name.partition("[")[0].partition("@")[0], metric_name=_marked(name, meta),
            metric_value=entry["value"], metric_args=_facts(meta, entry),
        )
        for name, entry in entries.items()
    ]  # fmt: skip
    return {"model-index": eval_results_to_model_index(system, results)}


def _data(meta: Mapping[str, Any]) -> _Data:
    """Where the data come from: what the benchmark's definition says, or the name that was asked for."""
    benchmark = meta.get("benchmark")
    if benchmark:
        asked = ((meta.get("fingerprint") or {}).get("asked") or {}).get("data") or {}
        # Only a pinned commit is one of the hub for certain: a mirror's files may have a hash of their own, or none.
        pinned = None if meta["config"].get("mirror") else asked.get("revision")
        revision = pinned if isinstance(pinned, str) and _COMMIT.fullmatch(pinned) else None
        repository, split = asked.get("repository"), asked.get("split") or "+".join(asked.get("splits") or ()) or None
        return _Data(benchmark["name"], repository, asked.get("config"), split, revision if repository else None)
    name = str(meta["config"].get("data") or "")
    hub = _NAMED.fullmatch(name)
    if hub is None:
        return _Data(Path(name).name or "unnamed", None)
    names = (hub["names"] or "").split(":")
    # A single name is a configuration or a split, and only the data set itself tells which.
    config, split = names if len(names) == 2 else (None, None)
    return _Data(name, hub["repository"], config, split, hub["revision"])


def _what(meta: Mapping[str, Any]) -> str:
    """What the model does, by the hub's list of names."""
    benchmark = meta.get("benchmark")
    if not benchmark:
        return "audio-to-audio"
    if benchmark.get("category") == "ASR":
        return "automatic-speech-recognition"
    return _KINDS.get(benchmark.get("kind", ""), "audio-text-to-text")


def _parts(meta: Mapping[str, Any]) -> list[str]:
    """What says that the run did not use all data."""
    config = meta["config"]
    limited = [] if config.get("limit") is None else [f"limited to {config['limit']} items"]
    return limited + ([] if config.get("shard") is None else [f"shard {config['shard']} only"])


def _marked(name: str, meta: Mapping[str, Any]) -> str:
    parts = _parts(meta)
    return f"{name} ({', '.join(parts)})" if parts else name


def _facts(meta: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """What to know of a value: where it was measured, how sure it is and on what it rests."""
    config, ends = meta["config"], entry["ci95"]
    told = {
        "part": ", ".join(_parts(meta)) or None,
        "protocol": entry["protocol"],
        "unit": entry["unit"] or None,
        "ci95": [float(end) for end in ends] if ends and all(map(math.isfinite, ends)) else None,
        "note": entry["note"],
        "n": entry["n"],
        "failed": entry["failed"],
        "benchmark": (meta.get("benchmark") or {}).get("name"),
        "data": _data(meta).name if not meta.get("benchmark") else None,
        "mirror": "the data were read from a mirror" if config.get("mirror") else None,
        "judge": config.get("judge"),
        "repeats": config.get("repeats"),
        "prompts": config.get("prompts"),
        "choices": config.get("choices"),
        "codec_bench": (meta.get("versions") or {}).get("codec-bench"),
    }
    return {name: said for name, said in told.items() if said is not None}

"""Describe one name (`codec-bench show`)."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codec_bench.api.benchmark_names import describe, is_benchmark_path, is_model_config
from codec_bench.api.metric_names import BETTER, COST
from codec_bench.messages.errors import UnknownName, UserError


def show(
    name: str,
    *,
    model: str | None = None,
    data: str | os.PathLike[str] | None = None,
    data_statistics: bool = False,
    limit: int | None = None,
    miniature: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Describe one name.

    Args:
        name: a codec, metric, benchmark, model, feature, data set, preset, suite or run folder.
        model: show the prompt of a benchmark for this model.
        data: with `model` or `data_statistics`: a folder with the data sets, in place of the hub.
        data_statistics: read the data of a benchmark, and report its questions, hours of sound and faults.
        limit: with `data_statistics`: the largest number of questions to read.
        miniature: a folder for a few invented rows in the layout of a benchmark's data, to try a model with
            `run --data FOLDER`.

    Returns:
        JSON values by name; the first names the kind of thing. With `model` there are `prompt`, its `steps`, the `text`
        sent, and why that is a template (`reason`), or None.

    Raises:
        UnknownName: nothing has this name.
        UserError: the data cannot be found.

    Examples:
        >>> from codec_bench import show
        >>> found = show("g722")
        >>> found["name"], found["nominal_bitrate_bps"]
        ('g722', 64000.0)
    """
    if miniature is not None:
        from codec_bench.benchmark.miniature import write_miniature

        return {"benchmark": name, "folder": str(write_miniature(name, Path(miniature))), "rows": "invented"}
    mirror = None if data is None else os.fspath(data)
    if data_statistics:
        return _statistics(name, mirror, limit)
    return _describe(name) if model is None else _prompt(name, model, mirror)


def _prompt(benchmark: str, model: str, mirror: str | None) -> dict[str, Any]:
    """Render a benchmark's first usable question for a model, or show the template."""
    from codec_bench.benchmark import load_benchmark
    from codec_bench.benchmark.asking.question_loop import format_request
    from codec_bench.models import model_info

    one = load_benchmark(benchmark)
    prompt = one.prompt_for(model_info(model))
    question, reason = None, None
    try:
        question = next((q for q in one.questions(limit=3, mirror=mirror) if q.problem is None), None)
    except UserError as error:
        reason = str(error)
    template = json.dumps(prompt.identity, ensure_ascii=False, indent=2)
    return {
        "benchmark": one.name, "model": model, "prompt": prompt.name, "steps": [*prompt.process, *one.process],
        "text": format_request(prompt.render(question)) if question is not None else template, "reason": reason,
    }  # fmt: skip


def _statistics(benchmark: str, mirror: str | None, limit: int | None) -> dict[str, Any]:
    """Read a benchmark's data, and return its statistics."""
    from codec_bench.benchmark import load_benchmark
    from codec_bench.benchmark.definition.statistics import data_statistics

    one = load_benchmark(benchmark)
    return {"benchmark": one.name, "declared": one.size, **asdict(data_statistics(one, mirror=mirror, limit=limit))}


def _describe(name: str) -> dict[str, Any]:
    """Collect the facts of a run, metric, feature, codec, data set or preset."""
    from codec_bench import codecs, features, metrics
    from codec_bench.benchmark import benchmark_names
    from codec_bench.config import config_names, read_config
    from codec_bench.config.custom_code import is_custom_code
    from codec_bench.config.registry import Spec
    from codec_bench.data import REGISTERED
    from codec_bench.metrics import group_names
    from codec_bench.metrics.groups import group_metrics
    from codec_bench.models import model_names
    from codec_bench.report.open_run import open_run
    from codec_bench.store.record import DATABASE

    if (Path(name) / DATABASE).is_file():
        run = open_run(name)
        return {"run": name, **run.counts(), **{k: v for k, v in run.meta.items() if k not in ("timings", "schema")}}
    base = Spec.parse(name).name
    if base in metrics.GROUPS or base in metrics.REGISTRY.names():
        members = metrics.expand([name])
        facts = [_metric_facts(m) for m in members]
        return facts[0] if len(facts) == 1 else {"group": name, **{f["metric"]: f["protocol"] for f in facts}}
    if base in features.REGISTRY.names():
        return _feature_facts(name)
    if name in group_names():
        return {"group": name, "selects": "those that can be measured here", "metrics": group_metrics(name)}
    if name in REGISTERED:
        return _data_facts(name)
    if name in config_names("preset"):  # a suite may have the same name
        return {**(describe(name) or {}), "preset": name, **read_config("preset", name)}
    is_file = is_benchmark_path(name) or is_model_config(name)
    if not is_file and (is_custom_code(name) or codecs.has_codec(name)):
        return _codec_facts(name)
    facts_of_benchmark = describe(name)
    if facts_of_benchmark is not None:
        return facts_of_benchmark
    known = [*benchmark_names(), *model_names(), *codecs.codec_names(), *metrics.REGISTRY.names(), *metrics.GROUPS]
    known += [*group_names(), *features.REGISTRY.names(), *REGISTERED, *config_names("preset")]
    raise UnknownName("registered_name", name, known)


def _codec_facts(name: str) -> dict[str, Any]:
    """The facts of a codec: rates, tokens, licences and weights."""
    from codec_bench.api.list_names import token_facts, weights_facts
    from codec_bench.codecs import describe_codec

    row = describe_codec(name)
    assert row.info is not None, "only the list leaves out the facts of another package's codec"
    of = {"family": row.family, "kind": row.kind, "from": row.source, "what": row.summary}
    return {"codec": name, **asdict(row.info), **token_facts(row.info), **weights_facts(row), **of}


def _feature_facts(name: str) -> dict[str, Any]:
    """The protocol, rate, device and description of a feature."""
    from codec_bench.features import load_feature

    feature = load_feature(name)
    facts = {"feature": name, "protocol": feature.protocol, "rate_hz": feature.rate_hz, "runs on": feature.where}
    return {**facts, "what": (type(feature).__doc__ or "").strip()}


def _data_facts(name: str) -> dict[str, Any]:
    """The size, hash and folder of an embedded data set."""
    from codec_bench.data import REGISTERED, open_source

    source = open_source(name)
    folder = str(REGISTERED[name])
    return {"data": name, "samples": len(source), "fingerprint": source.fingerprint, "folder": folder}


def _metric_facts(name: str) -> dict[str, Any]:
    """The facts of a metric: protocol, range, features, source, licence and cost."""
    from codec_bench import metrics
    from codec_bench.metrics.costs import cost_of
    from codec_bench.metrics.sensitivity import MEASURE, sensitive_to

    try:
        metric = metrics.build_metric(name)
    except UserError as error:  # a metric that needs a variant; its class is described
        kind = metrics.REGISTRY.resolve(name)
        description, missing = (kind.__doc__ or "").strip(), f"none yet: {error.message}"
        return {"metric": name, "protocol": missing, "hint": error.hint, "what": description}
    moved = sensitive_to(name)
    if moved is None and metric.aggregate in ("mean", "ratio") and metric.estimate_features:
        moved = f"not measured; where the weights are at hand: {MEASURE.format(name)}"
    return {
        "metric": metric.name, "protocol": metric.protocol, "kind": metric.kind,
        "better": BETTER[metric.higher_is_better], "unit": metric.unit or "none", "range": list(metric.range),
        "aggregate": metric.aggregate, "rate_hz": metric.rate_hz,
        "features": [*metric.estimate_features], "paper": metric.paper, "agrees with": metric.source,
        "licence of the weights": ", ".join(metrics.licences_of(name)), COST: cost_of(name),
        "moved by (in spreads over five codecs)": moved, "what": (type(metric).__doc__ or "").strip(),
    }  # fmt: skip

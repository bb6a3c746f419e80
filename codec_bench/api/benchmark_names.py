"""The rows of `list` and `show` about benchmarks, models, prompts and rubrics."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import date
from typing import Any

from codec_bench.config.registry import doc_summary
from codec_bench.messages.errors import UserError

KINDS = ("benchmarks", "models", "suites", "prompts", "rubrics", "steps")


def list_rows(kind: str) -> list[dict[str, Any]]:
    """The rows of a list; `kind` is one of `KINDS`."""
    lists = (_benchmarks, _model_rows, _suites, _prompts, _rubrics, _steps)
    return dict(zip(KINDS, lists, strict=True))[kind]()


def _benchmarks() -> list[dict[str, Any]]:
    """Describe every benchmark in one row."""
    from codec_bench.benchmark import benchmark_names, load_benchmark

    return [
        {
            "name": name, "category": one.category, "kind": one.kind, "language": one.language or "",
            "questions": one.size if one.size is not None else "unknown", "licence": one.licence or "unknown",
            "gives": one.wants, "primary": one.primary,
        }
        for name in benchmark_names()
        for one in [load_benchmark(name)]
    ]  # fmt: skip


def _model_rows() -> list[dict[str, Any]]:
    """List all models as table rows with modalities, service dates and licence."""
    from codec_bench.models import list_models

    rows = []
    for row in list_models():
        info, facts, licence = row.info, dict[str, Any](), ""
        if info is not None:
            facts, licence = {"takes": list(info.inputs), "gives": list(info.outputs)}, info.licence or ""
        state = row.served.words(date.today()) if row.served is not None else ""
        service: dict[str, Any] = {"what": row.summary, "served": state, "weights": licence}
        rows.append({"name": row.name, "reached by": row.kind or "", **facts, **service})
    return rows


def _suites() -> list[dict[str, Any]]:
    """Describe every suite in one row."""
    from codec_bench.benchmark import suite, suite_names
    from codec_bench.config import read_config

    return [
        {"name": n, "benchmarks": len(suite(n)), "what": read_config("suite", n).get("summary", "")}
        for n in suite_names()
    ]


def _prompts() -> list[dict[str, Any]]:
    """Describe every prompt in one row."""
    from codec_bench.benchmark.definition.prompt import load_prompt, prompt_names

    return [
        {"name": n, "variants": ", ".join(p.variants), "wordings": len(p.wordings), "what": p.summary}
        for n in prompt_names()
        for p in [load_prompt(n)]
    ]


def _rubrics() -> list[dict[str, Any]]:
    """Describe every rubric in one row."""
    from codec_bench.benchmark.judge.rubric import load_rubric, rubric_names

    return [
        {"name": n, "range": "{:g} to {:g}".format(*load_rubric(n).range), "what": load_rubric(n).summary}
        for n in rubric_names()
    ]


def _steps() -> list[dict[str, Any]]:
    from codec_bench.benchmark.reading import step_names

    return [{"name": n, "what": summarise_step(n)} for n in step_names()]


def is_benchmark_path(path: str) -> bool:
    """Whether a path is a user's benchmark definition, or the folder of one."""
    return os.path.basename(path) == "benchmark.yaml" or os.path.isfile(os.path.join(path, "benchmark.yaml"))


def is_model_config(path: str) -> bool:
    """Whether a path is a user's YAML file that configures a model (it has a `kind`)."""
    from codec_bench.config import load_yaml
    from codec_bench.models import is_custom_file

    if not is_custom_file(path) or not os.path.isfile(path):
        return False
    document = load_yaml(path)
    return isinstance(document, dict) and "kind" in document  # the file of a codec made of programs has no kind


def describe(name: str) -> dict[str, Any] | None:
    """The facts of a benchmark, suite, model, prompt, rubric or step; None for others."""
    from dataclasses import asdict

    from codec_bench.benchmark import has_benchmark, load_benchmark, suite, suite_names
    from codec_bench.benchmark.definition.prompt import load_prompt, prompt_names
    from codec_bench.benchmark.judge.rubric import load_rubric, rubric_names
    from codec_bench.benchmark.reading import step_names
    from codec_bench.config.registry import Spec
    from codec_bench.models import is_custom_file, model_info, model_names

    if is_benchmark_path(name) or (has_benchmark(name) and not is_model_config(name)):
        one = load_benchmark(name)
        published: dict[str, list[str]] = {}
        for p in one.published:
            published.setdefault(f"published {p.metric}", []).append(f"{p.model} {p.value:g}")
        facts = {key: value for key, value in one.described.items() if key not in ("name", "published")}
        judges, file = _list_judges(one.metrics), one.entry.file
        more = {"prompt": _describe_prompt(one), "postprocess": list(one.process), **judges, "defined in": file}
        return {"benchmark": one.name, **facts, **published, "data": one.data.model_dump(exclude_none=True), **more}
    if name in suite_names():
        return {"suite": name, "benchmarks": list(suite(name))}
    if name in model_names() or is_custom_file(name):
        return {"model": name, **asdict(model_info(name)), **_identify(name), "prices": _describe_prices(name)}
    if name in prompt_names():
        return {"prompt": name, **load_prompt(name).model_dump(exclude_none=True)}
    if name in rubric_names():
        return {"rubric": name, **load_rubric(name).model_dump()}
    if Spec.parse(name).name in step_names():
        return {"step": name, "what": summarise_step(Spec.parse(name).name)}
    return None


def _list_judges(metrics: Iterable[str]) -> dict[str, list[str]]:
    """Describe the published and succeeding judges of metrics.

    Returns:
        {"judges": one phrase per judge}; empty if there are none.
    """
    from codec_bench.benchmark.judge.metric import published_judge, succeeding_judge

    judges = [
        f"{role} {judge[0]} ({name}): {judge[1]}"
        for name in metrics
        for role, find_judge in (("published by", published_judge), ("followed by", succeeding_judge))
        if (judge := find_judge(name)) is not None
    ]
    return {"judges": judges} if judges else {}


def _describe_prompt(one: Any) -> str | None:
    prompt = one.spec.prompt
    return prompt if prompt is None or isinstance(prompt, str) else json.dumps(prompt.model_dump(exclude_none=True))


def _describe_prices(name: str) -> str | None:
    """A model's prices as a phrase; None without prices."""
    from codec_bench.models import model_prices
    from codec_bench.models.endpoints.accounts import Prices

    prices = model_prices(name)
    return None if prices is None else Prices.parse(prices).words


def _identify(name: str) -> dict[str, Any]:
    """Return a model's identity, or what it needs to be loaded."""
    from codec_bench.models import load_model

    try:
        return {"identity": dict(load_model(name).identity)}
    except UserError as error:
        return {"needs": str(error)}


def summarise_step(name: str) -> str:
    """Describe a post-processing step of answers in one line."""
    from codec_bench.benchmark import reading as process

    step = {**process.PLAIN, **process.WITH_ARGUMENT, **process.MAY_HAVE_ARGUMENT}.get(name)
    if step is None:
        return "Replaces a spoken answer by what a recogniser hears; it must be the first step."
    if name.startswith("official/"):
        return "The rule as published, with its mistakes (docs/metrics/answers.md)."
    return doc_summary(step)

"""Benchmarks in YAML: data, prompt, post-processing, metrics, published numbers.

Which file to open
    `definition/`       reads and checks a definition, and builds questions and prompts.
    `run_request.py`    one command's request, run folders, and the identity of records. `identity.py` compares a run
                        with its definition, and `baselines.py` has a judge's other answers.
    `asking/`           sends the questions to a model and records the answers.
    `controls.py`       controls: replacements of a sound, and their records.
    `reading/`          the steps that read an answer; `metrics/` score it; `scoring/` applies both to a record.
    `judge/`            rubrics and readers of a judge's replies; `judging.py` sends the requests to the judges.
    `miniature.py`      writes invented rows in the layout of any benchmark's data.
    `scoring_phase.py`  scores one benchmark's recorded answers; `runs_overview.py` writes `summary.json`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from codec_bench.benchmark.definition.base import Published, Question
from codec_bench.benchmark.definition.benchmark import Benchmark
from codec_bench.benchmark.definition.loader import benchmark_names, find_entry, is_path, resolve
from codec_bench.benchmark.definition.prompt import canonical
from codec_bench.benchmark.definition.questions import QuestionStream
from codec_bench.benchmark.judge.rubric import with_own_rubrics
from codec_bench.messages.errors import UserError


def load_benchmark(name: str, overrides: Mapping[str, Any] | None = None) -> Benchmark:
    """Load a benchmark.

    Args:
        name: its name (ignoring case and `_` or `-`), or the path of a user's own definition.
        overrides: values by dotted field of the definition, such as `data.revision` or `parameters.max_tokens`.

    Raises:
        UnknownName: there is no such benchmark; the message suggests the nearest name.
        UserError: a field of the definition is unknown, missing or wrong; the message names the file and the line.
    """
    entry = find_entry(name)
    folder = os.path.dirname(os.path.abspath(entry.file))
    entry = replace(entry, document=with_own_rubrics(entry.document, folder))
    return Benchmark(entry.name, resolve(entry, with_own_rubrics(overrides, folder)), entry)


def has_benchmark(name: str) -> bool:
    """Whether a name is a project benchmark, or the path of a user's valid definition."""
    if not is_path(name):
        return canonical(name) in benchmark_names()
    try:
        find_entry(name)
    except UserError:
        return False
    return True


def suite_names() -> list[str]:
    """The names of all suites."""
    from codec_bench.config import config_names

    return config_names("suite")


def suite(name: str) -> tuple[str, ...]:
    """The names of the benchmarks of a suite, in its order.

    Raises:
        UnknownName: there is no such suite, or it names a benchmark that does not exist.
    """
    from codec_bench.config import read_config
    from codec_bench.messages.errors import UnknownName

    document = read_config("suite", name)
    known = benchmark_names()
    members = tuple(canonical(str(member)) for member in document.get("benchmarks") or ())
    for member in members:
        if member not in known:
            raise UnknownName("benchmark_of_suite", member, known, within=name)
    return members


__all__ = [
    "Benchmark",
    "Published",
    "Question",
    "QuestionStream",
    "benchmark_names",
    "canonical",
    "has_benchmark",
    "load_benchmark",
    "suite",
    "suite_names",
]

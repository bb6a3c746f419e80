"""Benchmarks: definitions in YAML, read into data, prompt, post-processing, metrics and published numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codec_bench.benchmark.base import Published, Question
from codec_bench.benchmark.definition import Benchmark
from codec_bench.benchmark.loader import benchmark_names, find_entry, is_path, resolve
from codec_bench.benchmark.prompt import canonical
from codec_bench.benchmark.questions import QuestionStream
from codec_bench.errors import UserError


def load_benchmark(name: str, overrides: Mapping[str, Any] | None = None) -> Benchmark:
    """One benchmark by name (`_`, `-` and case do not matter), or somebody's own by the path of its folder.

    Args:
        overrides: values by dotted field of the definition, such as `data.revision` or `parameters.max_tokens`.

    Raises:
        UnknownName: there is none; the message suggests the nearest. UserError: its definition does not fit; the message
            names file and line.
    """
    entry = find_entry(name)
    return Benchmark(entry.name, resolve(entry, overrides), entry)


def has_benchmark(name: str) -> bool:
    """Whether `load_benchmark` knows the name of one of the project's, or the path leads to a definition."""
    if not is_path(name):
        return canonical(name) in benchmark_names()
    try:
        find_entry(name)
    except UserError:
        return False
    return True


def suite_names() -> list[str]:
    """The suites that `suite` knows."""
    from codec_bench.config import config_names

    return config_names("suite")


def suite(name: str) -> tuple[str, ...]:
    """The benchmarks of a suite, in its order.

    Raises:
        UnknownName: there is no such suite, or it names a benchmark that is not there.
    """
    from codec_bench.config import read_config
    from codec_bench.errors import UnknownName

    document = read_config("suite", name)
    known = benchmark_names()
    members = tuple(canonical(str(member)) for member in document.get("benchmarks") or ())
    for member in members:
        if member not in known:
            raise UnknownName(f"benchmark (in the suite '{name}')", member, known)
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

"""Read the arguments of a verb from a file, as `--config` does."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from inspect import signature
from typing import TYPE_CHECKING, Any

from codec_bench.config.option import Of, names, options_of
from codec_bench.config.request import REQUESTS, Command, CommandOptions
from codec_bench.config.request_file import read_request
from codec_bench.config.run_request import RunRequest
from codec_bench.engine.executor import OnRay, read_executor
from codec_bench.engine.running import Running
from codec_bench.messages.errors import UserError
from codec_bench.store.draws import AS_WRITTEN

if TYPE_CHECKING:
    from codec_bench.benchmark.runs_overview import RunOutcome


def read_arguments(path: str | os.PathLike[str], command: Command | None = None) -> dict[str, Any]:
    """The keyword arguments of a verb, such as `evaluate` or `profile`, from a file.

    `evaluate(**read_arguments("run.yaml"))` does what `codec-bench eval --config run.yaml` does.

    Args:
        path: a YAML or JSON file with the options of a command, or the `run.json` of a run.
        command: `eval`, `score`, `run` or `profile`; None for that of the file (key `command`, or a run's record).

    Raises:
        UserError: the file cannot be read, is for another command, or has an unknown option or a value of the wrong
            type; the message names file, line, column, and the expected value.

    Examples:
        >>> from pathlib import Path
        >>> from codec_bench import read_arguments
        >>> written = Path("run.yaml").write_text("codec: g722\\ndata: embedded\\nmetrics: [stoi]\\nlimit: 2\\n")
        >>> read_arguments("run.yaml", "eval")
        {'codec': 'g722', 'data': 'embedded', 'metrics': ['stoi'], 'limit': 2}
    """
    command_name, values = read_request(path, command)
    return select_arguments(REQUESTS[command_name], values)


def select_arguments(schema: type[CommandOptions], values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the options of a command line to arguments of its Python function.

    None and options of the terminal alone are dropped.

    Args:
        schema: declares the options.
        values: the options' values by name.

    Raises:
        UserError: there is no such executor, or options of a Ray cluster are for another.
    """
    options = options_of(schema)

    def select(of: Of) -> dict[str, Any]:
        return {
            options[name].there: value for name, value in values.items() if options[name].of == of and value is not None
        }

    arguments = select("verb") | select("running")
    cluster = {name: value for name, value in select("cluster").items() if value}
    if cluster or arguments.get("executor") is not None:
        arguments["executor"] = _executor(arguments.get("executor", "local"), cluster)
    if terms := select("terms"):
        # Benchmarks are imported for their own commands alone: an evaluation has none, and they take longer than
        # reading its options.
        from codec_bench.benchmark.run_request import Terms

        arguments["terms"] = Terms(**terms)
    if settings := select("settings"):
        arguments["settings"] = {**settings, "seed": values.get("seed", 0)}
    if values.get("suite") is not None:
        from codec_bench.benchmark import suite as read_suite

        arguments["benchmark"] = [*names(arguments.get("benchmark", [])), *read_suite(values["suite"])]
    if schema is REQUESTS["profile"] and str(arguments.get("metrics")).strip() == "none":
        arguments["metrics"] = ()
    return arguments


def _executor(name: str, cluster: Mapping[str, Any]) -> str | OnRay:
    """The value of `Running.executor` for an executor and the fields of `OnRay`."""
    if read_executor(name) is None:
        if cluster:
            raise UserError("ray_options", options=", ".join(cluster), hint="add --executor ray, or leave them out")
        return name
    return OnRay(**cluster)


def pop_running(arguments: dict[str, Any]) -> Running:
    """Remove the fields of `Running` from arguments, and build it."""
    return Running(**{field.name: arguments.pop(field.name) for field in fields(Running) if field.name in arguments})


def resolve_verb(
    request: RunRequest, values: Mapping[str, Any]
) -> tuple[Callable[..., RunOutcome], dict[str, Any], Running]:
    """Resolve a `run` command line to `run_benchmark` or `run_codecs`.

    Returns:
        (the function, its arguments, how to run it).

    Raises:
        UserError: options are missing or do not fit each other.
    """
    from codec_bench.api.run_benchmark import run_benchmark, run_codecs

    arguments = select_arguments(RunRequest, values)
    running = pop_running(arguments)
    benchmarks = list(dict.fromkeys(names(arguments.get("benchmark", ""))))
    if not benchmarks:
        raise UserError("no_benchmark_named", hint="see codec-bench list benchmarks")
    if bool(names(request.model)) == bool(request.codec):
        raise UserError("models_or_codecs", hint="--model NAME (see: list models) or --codec NAME (see: list codecs)")
    named = [*benchmarks, *names(request.model), *names(request.judge or "")]
    arguments |= {"benchmark": benchmarks, "options": group_options(request.set or {}, named)}
    if request.codec:
        if request.repeats != 1:
            raise UserError("option_for", options=["--repeats"], kind="models", requested="codecs", hint="leave it out")
        if request.dry_run:
            raise UserError("option_for", options=["--dry-run"], kind="models", requested="codecs", hint="leave it out")
        if request.controls or request.sound != AS_WRITTEN or request.question != AS_WRITTEN:
            raise UserError(
                "option_for",
                options=["--sound", "--question", "--controls"],
                kind="models",
                requested="codecs",
                hint="leave them out",
            )
        arguments = {name: value for name, value in arguments.items() if name in signature(run_codecs).parameters}
        return run_codecs, arguments, running
    arguments.pop("codec", None)
    return run_benchmark, arguments, running


def group_options(options: dict[str, dict[str, Any]], names: list[str]) -> dict[str, dict[str, Any]]:
    """Group settings by the models, judges and benchmarks (`names`) of a run.

    `gpt-4o.parameters` with `temperature` becomes `gpt-4o` with `parameters.temperature`.
    """
    from codec_bench.benchmark.definition.loader import find_entry, is_path
    from codec_bench.models import own_name

    # An own model can also be named by its file's stem, and an own benchmark by its name.
    name_of = {own_name(name): name for name in names}
    # The first wins: a model's file without a name would take that of its folder, which may be the benchmark's.
    for name in filter(is_path, reversed(names)):
        # A model's file is no benchmark. Loading reports a benchmark that cannot be read.
        with suppress(UserError):
            name_of[find_entry(name).name] = name
    name_of |= {name: name for name in names}
    grouped: dict[str, dict[str, Any]] = {}
    for key, values in options.items():
        known = max((n for n in name_of if key == n or key.startswith(f"{n}.")), key=len, default=key)
        name, head = name_of.get(known, known), key[len(known) + 1 :]
        grouped.setdefault(name, {}).update({f"{head}.{k}" if head else k: value for k, value in values.items()})
    return grouped

"""Reads the arguments of a function of this package from a file: what `--config` is on the command line."""

from __future__ import annotations

import os
from typing import Any

from codec_bench.benchmark import suite as read_suite
from codec_bench.config.request import Command, read_request
from codec_bench.profiling.settings import Settings
from codec_bench.registry import names

_THOROUGHNESS = {"clip_s": "clip_s", "reencodings": "reencodings", "threads": "threads", "time_limit": "time_limit_s"}
_OF_TERMINAL = ("json", "timings", "log")


def read_arguments(path: str | os.PathLike[str], command: Command | None = None) -> dict[str, Any]:
    """The keyword arguments of `evaluate`, `score`, `run_benchmark` or `profile`, from a file.

    `evaluate(**read_arguments("run.yaml"))` does what `codec-bench eval --config run.yaml` does.

    Args:
        path: a YAML or JSON file with the options of a command, or the `run.json` of a run.
        command: `eval`, `score`, `run` or `profile`; None takes it from the file (its key `command`, or a run's record).

    Raises:
        UserError: the file cannot be read, is for another command, or has an option that the command does not have or whose
            value has the wrong type; the message names file, line and column, and says what is expected.
    """
    found, arguments = read_request(path, command)
    for name in _OF_TERMINAL:
        arguments.pop(name, None)
    if "set" in arguments:
        arguments["options"] = arguments.pop("set")
    if found == "run" and "suite" in arguments:
        arguments["benchmark"] = [*names(arguments.get("benchmark", [])), *read_suite(arguments.pop("suite"))]
    if found == "profile":
        thorough = {there: arguments.pop(here) for here, there in _THOROUGHNESS.items() if here in arguments}
        arguments["settings"] = Settings(**thorough, seed=arguments.get("seed", 0))
        if arguments.get("metrics") == "none":
            arguments["metrics"] = ()
    return arguments

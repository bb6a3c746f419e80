"""Check a request of `eval`, `score` or `run` before other machines get it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from codec_bench.api import evaluate, score
from codec_bench.api.read_arguments import resolve_verb, select_arguments
from codec_bench.api.run_benchmark import prepare_codecs, run_benchmark
from codec_bench.codecs import require_codec, require_weights
from codec_bench.config.request import CommandOptions, EvalRequest
from codec_bench.config.run_request import RunRequest
from codec_bench.data import Source
from codec_bench.engine.evaluation import Evaluation
from codec_bench.engine.plan import build_plan
from codec_bench.messages.errors import Note, UserError


def check_request(request: CommandOptions, values: Mapping[str, Any]) -> tuple[Source, ...]:
    """Check a request without running, loading or asking anything, or raise UserError.

    Returns:
        The data sent through systems; empty for questions, which are read when they are sent.
    """
    if isinstance(request, RunRequest):
        verb, arguments, running = resolve_verb(request, values)
        if verb is run_benchmark:
            if request.phase != "scores":  # that phase needs neither the model nor the data
                _check_questions(arguments | {"dry_run": True, "running": running})
            return ()
        evaluations = _call_with(prepare_codecs, arguments)
    else:
        arguments = select_arguments(type(request), values)
        evaluations = [_call_with(evaluate.prepare if isinstance(request, EvalRequest) else score.prepare, arguments)]
    for one in evaluations:
        _check_evaluation(one)
    return tuple(one.source for one in evaluations)


def _call_with(prepare: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call a function with the arguments that it declares, except `out`."""
    return prepare(
        **{name: arguments[name] for name in signature(prepare).parameters if name in arguments and name != "out"}
    )


def _check_questions(arguments: Mapping[str, Any]) -> None:
    """Raise UserError if no benchmark can run; warn of the excluded ones."""
    for benchmark, model, why in run_benchmark(**arguments).excluded:
        warnings.warn(Note("benchmark_excluded", benchmark=benchmark, model=model, cause=why), stacklevel=2)


def _check_evaluation(evaluation: Evaluation) -> None:
    """Check that there are samples, and that codecs and weights are available."""
    if not len(evaluation.source):
        raise UserError(
            "data_without_samples", label=f"'{evaluation.source.name}'", hint="name data that holds at least one"
        )
    plan = build_plan(evaluation.systems, evaluation.metrics, evaluation.options, evaluation.source.languages)
    for system in plan.systems:
        if system.stage is not None and system.codec is not None:
            require_codec(system.codec, system.spec)
            require_weights(system.codec, **system.stage.options)

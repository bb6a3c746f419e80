"""Benchmarks: questions to a model, its answers into a record, scores from the record.

Two phases that can run apart and on different machines: answers need the model and the data, scores need the run folder
alone. Each benchmark and model has a run folder of its own, `OUT/BENCHMARK/MODEL`, like any other run's; asking again
with the same arguments continues where an earlier call was stopped.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.api import Running, execute, names, new_folder
from codec_bench.benchmark import Benchmark, Question, load_benchmark
from codec_bench.benchmarking.asking import ask
from codec_bench.benchmarking.overview import Outcome, write_overview
from codec_bench.benchmarking.request import PHASES, Phase, Request, run_folder, safe
from codec_bench.benchmarking.scoring import finished
from codec_bench.data import open_source
from codec_bench.data.source import with_problem
from codec_bench.errors import UnknownName, UserError
from codec_bench.judges.rating import is_rating
from codec_bench.models import load_model, model_names, own_name
from codec_bench.models.base import ModelInfo
from codec_bench.registry import Spec
from codec_bench.store.record import Run
from codec_bench.types import Sample


def run_benchmark(
    *,
    benchmark: str | Sequence[str],
    model: str | Sequence[str],
    out: str | os.PathLike[str] | None = None,
    phase: Phase = "both",
    data: str | os.PathLike[str] | None = None,
    judge: str | None = None,
    seed: int = 0,
    limit: int | None = None,
    rescore: bool = False,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    running: Running | None = None,
    **how: Any,
) -> Outcome:
    """Runs benchmarks against models.

    Args:
        benchmark: names (`librispeech-test-clean`), folders of one's own, or one string with commas.
        model: names of configs (`qwen2-audio-7b-instruct`), files of one's own, or one string with commas.
        out: the folder; None makes one under `runs/`.
        phase: `both`, `answers` alone, or `scores` from the answers that are there.
        data: a folder that holds the data sets as `OWNER/NAME`, in place of the hub.
        judge: the model that gives verdicts, for benchmarks that are rated.
        seed: of the bootstrap, of the questions that `limit` takes, and of what a model draws.
        limit: how many questions to take.
        rescore: drop the scores that are there and make them again, by today's rules.
        options: arguments by model, benchmark or feature, such as {"openai-chat": {"base_url": "..."}}.
        running: how to run it; its fields may also be given as keyword arguments. `retry_failed` asks failed questions
            again.

    Returns:
        The runs, opened for reading.

    Raises:
        UserError: whatever the caller can mend. Failures of single questions are in the runs, not raised.
    """
    if phase not in PHASES:
        raise UserError(f"the phase is '{phase}'; expected {', '.join(PHASES)}")
    folder = Path(out) if out is not None else new_folder("run")
    given = {name: dict(values) for name, values in (options or {}).items()}
    request = Request(
        phase, os.fspath(data) if data is not None else None, seed, limit, judge, rescore, given, running or Running(**how)
    )  # fmt: skip
    wanted = [load_benchmark(name, given.pop(name, None)) for name in names(benchmark)]
    if not wanted:
        raise UserError("no benchmark was named", hint="see codec-bench list benchmarks")
    models = names(model)
    if not models:
        raise UserError("no model was named", hint="see codec-bench list models")
    rated = [one.name for one in wanted if any(map(is_rating, one.metrics))]
    if rated and judge is None and phase != "answers":
        raise UserError(
            f"'{rated[0]}' is rated by a judge, and none was named",
            hint="--judge NAME (see codec-bench list models), or --phase answers to score later",
        )
    _check_options(given, models, judge)
    runs: dict[tuple[str, str], Run] = {}
    left_out: list[tuple[str, str, UserError]] = []
    for name in models:
        try:
            info = _info(name, request)
        except UserError as error:
            left_out += [(one.name, name, error) for one in wanted]
            continue
        mine, why = _fitting(wanted, info, phase)
        broken = asyncio.run(ask(mine, name, folder, request)) if phase != "scores" and mine else {}
        left_out += [(benchmark, info.name, error) for benchmark, error in {**why, **broken}.items()]
        for one in mine:
            if one.name in broken:
                continue
            try:
                runs[one.name, info.name] = finished(one, info.name, folder, request)
            except UserError as error:  # a scorer whose weights are missing says nothing of the other benchmarks
                left_out.append((one.name, info.name, error))
    if not runs:
        raise left_out[0][2]
    outcome = Outcome(folder, runs, tuple((benchmark, name, str(error)) for benchmark, name, error in left_out))
    write_overview(outcome)
    return outcome


def _check_options(given: Mapping[str, Any], models: Sequence[str], judge: str | None) -> None:
    """Refuses options of what is neither in the run nor known otherwise.

    Raises:
        UnknownName: with the nearest name that is.
    """
    from codec_bench import features

    known = [*models, *([judge] if judge else [])]
    for name in given:
        if name not in known and name not in model_names() and Spec.parse(name).name not in features.REGISTRY.table():
            raise UnknownName("model, benchmark or feature of this run", name, known)


def run_codecs(
    *,
    benchmark: str | Sequence[str],
    codec: str | Sequence[str],
    out: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    seed: int = 0,
    limit: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    running: Running | None = None,
    **how: Any,
) -> Outcome:
    """Runs benchmarks of codecs: `evaluate` with the data and the metrics of their definitions.

    Args:
        benchmark: names such as `codec-librispeech-test-clean`. codec: as `evaluate`.
        out, data, seed, limit, options, running: as `run_benchmark`.

    Returns:
        One run for each benchmark, `OUT/BENCHMARK`, with the codecs as its systems.

    Raises:
        UserError: whatever the caller can mend.
    """
    folder = Path(out) if out is not None else new_folder("run")
    given = {name: dict(values) for name, values in (options or {}).items()}
    running = running or Running(**how)
    runs: dict[tuple[str, str], Run] = {}
    for name in names(benchmark):
        one = load_benchmark(name, given.pop(name, None))
        if one.kind != "codec":
            raise UserError(f"'{one.name}' asks a model, not a codec", hint=f"codec-bench run {one.name} --model NAME")
        questions = one.questions(limit=limit, seed=seed if limit is not None else None, mirror=data)
        source = open_source([_sample(question) for question in questions])
        request = {
            "command": "run", "benchmark": one.name, "data": questions.name, "seed": seed, "limit": limit,
        }  # fmt: skip
        run = execute(
            names(codec), list(one.metrics), source, folder / safe(one.name), request, given, running,
            {"benchmark": one.described},
        )  # fmt: skip
        runs.update({(one.name, system): run for system in run.systems})
    outcome = Outcome(folder, runs)
    write_overview(outcome)
    return outcome


def _sample(question: Question) -> Sample:
    """A question of a codec's benchmark as the engine takes it."""
    sound = question.audio.source if question.audio is not None else None
    text = question.fields.get("text")
    sample = Sample(
        question.id,
        sound if isinstance(sound, str) else None,
        str(text) if text is not None else next(iter(question.references), None),
        question.fields.get("speaker"),
        question.language,
    )
    return with_problem(sample, question.problem) if question.problem is not None else sample


def _info(name: str, request: Request) -> ModelInfo:
    """What a model is called in results, and what it takes and gives. Scores need no model, only its name."""
    try:
        return load_model(name, request.options.get(name), device=request.running.device).info
    except UserError:
        if request.phase != "scores":
            raise
        return ModelInfo(own_name(name))


def _fitting(
    wanted: Sequence[Benchmark], info: ModelInfo, phase: Phase
) -> tuple[list[Benchmark], dict[str, UserError]]:
    """The benchmarks that a model can answer, and why not the others."""
    fitting: list[Benchmark] = []
    why: dict[str, UserError] = {}
    for one in wanted:
        if one.kind == "codec":
            raise UserError(
                f"'{one.name}' is a benchmark of codecs, and '{info.name}' is asked for as a model",
                hint=f"codec-bench run {one.name} --codec NAME",
            )
        try:
            if phase != "scores":
                _check_fit(one, info)
            fitting.append(one)
        except UserError as error:
            why[one.name] = error
    return fitting, why


def _check_fit(one: Benchmark, info: ModelInfo) -> None:
    if one.wants not in info.outputs:
        gives = " and ".join(info.outputs)
        raise UserError(f"'{one.name}' needs {one.wants} back, and the model '{info.name}' gives {gives}")
    one.prompt_for(info)


__all__ = ["Outcome", "Phase", "run_benchmark", "run_codecs", "run_folder"]

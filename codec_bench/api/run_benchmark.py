"""Run benchmarks: ask models, record their answers, score the record.

Asking needs the model and the data; scoring needs only the run folder, at any time and on any machine. Each pair of
benchmark and model has its run folder, `OUT/BENCHMARK/MODEL`. A call with the same arguments continues a stopped run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codec_bench.api.executors import show_progress
from codec_bench.api.recorded_arguments import record_arguments
from codec_bench.benchmark import Benchmark, Question, load_benchmark
from codec_bench.benchmark.asking.benchmarks import ask, preview
from codec_bench.benchmark.asking.spending import Budget
from codec_bench.benchmark.asking.variants import check_orders, check_repeats
from codec_bench.benchmark.controls import Planned, record_controls, with_controls
from codec_bench.benchmark.definition.prompt import EACH, SEEDED, check_wording
from codec_bench.benchmark.judge.metric import is_judge_metric
from codec_bench.benchmark.judging import judge_notices
from codec_bench.benchmark.run_request import PHASES, BenchmarkRequest, Phase, Terms, run_folder, safe_name, scheme_of
from codec_bench.benchmark.runs_overview import RunOutcome, write_overview
from codec_bench.benchmark.scoring_phase import score
from codec_bench.config import check_settings
from codec_bench.config.custom_code import code_hash, is_custom_code
from codec_bench.config.option import documented, names
from codec_bench.config.run_request import RunRequest
from codec_bench.data import Shard, broken_down, open_source, part_of, read_shard, with_trials
from codec_bench.data.source import with_problem
from codec_bench.engine.evaluation import Evaluation, execute
from codec_bench.engine.extend import restore_sample_order
from codec_bench.engine.running import Progress, Running, choose_running
from codec_bench.engine.systems import Codecs, System, read_systems
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import AnswersPending, MissingExtra, UnknownName, UserError
from codec_bench.models import check_served, load_model, own_name
from codec_bench.models.base import ModelInfo
from codec_bench.models.likelihood import facts_of
from codec_bench.report.open_run import Run
from codec_bench.report.results import write_results
from codec_bench.store.controls import NO_CONTROL, Control
from codec_bench.store.draws import AS_WRITTEN
from codec_bench.store.folders import RunFolder, mark_finished, named_folder, own_folder
from codec_bench.store.parts import mark_part
from codec_bench.types import Sample


@documented(RunRequest)
def run_benchmark(
    *,
    benchmark: str | Sequence[str],
    model: str | Sequence[str],
    out: str | os.PathLike[str] | None = None,
    phase: Phase = "both",
    data: str | os.PathLike[str] | None = None,
    judge: str | Sequence[str] | None = None,
    baseline: str | os.PathLike[str] | None = None,
    seed: int = 0,
    limit: int | None = None,
    shard: str | tuple[int, int] | None = None,
    repeats: int = 1,
    prompts: str = SEEDED,
    choices: str = AS_WRITTEN,
    sound: str = AS_WRITTEN,
    question: str = AS_WRITTEN,
    controls: bool = False,
    rescore: bool = False,
    dry_run: bool = False,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | Sequence[str] | None = None,
    terms: Terms | None = None,
    progress: bool | Progress | None = None,
    running: Running | None = None,
    **running_fields: Any,
) -> RunOutcome:
    """Run benchmarks against models.

    Args:
        by: columns to break the results down by, besides the benchmark's own subsets: `speaker`, `language`,
            `duration`, `sample_rate` or a field of its questions. They change no score. A continued run without them
            keeps its own.
        terms: conditions for calling a service, such as
            `codec_bench.benchmark.run_request.Terms(max_cost_usd=5.0)`.
        progress: whether to show a progress line, or a function for progress. None: only in a notebook.
        running: how to run it, or its fields as keyword arguments. `retry_failed` repeats failed questions.

    Returns:
        The runs, opened for reading.

    Raises:
        UserError: a name, the data or an option is wrong, or none of the benchmarks can run. A failure of a single
            question is in the run and is not raised.

    Examples:
        >>> from pathlib import Path
        >>> from codec_bench import run_benchmark
        >>> Path("capitals").mkdir(exist_ok=True)
        >>> rows = [
        ...     '{"id": "a", "q": "Of France?", "right": "Paris"}',
        ...     '{"id": "b", "q": "Of Italy?", "right": "Rome"}',
        ... ]
        >>> written = Path("capitals/rows.jsonl").write_text("\\n".join(rows))
        >>> written = Path("capitals/benchmark.yaml").write_text('''
        ... version: 1
        ... title: Capitals
        ... summary: Which town it is.
        ... category: QA
        ... kind: qa
        ... language: en
        ... data: {path: rows.jsonl, id: id, columns: {question: q, reference: right}}
        ... prompt: {messages: [{content: ["{{ question }}"]}]}
        ... metrics: ["accuracy[exact]"]
        ... primary: "accuracy[exact]"
        ... ''')
        >>> written = Path("parisian.py").write_text('''
        ... from codec_bench.models.base import Model, ModelInfo
        ... from codec_bench.types import Response
        ... class Parisian(Model):
        ...     info = ModelInfo("parisian")
        ...     identity = {"knows": "Paris"}
        ...     async def ask(self, request):
        ...         return Response(text="Paris")
        ... ''')
        >>> outcome = run_benchmark(benchmark="./capitals", model="./parisian.py:Parisian", out="runs/capitals")
        >>> (run,) = outcome.runs.values()
        >>> run.summary()["systems"]["parisian"]["metrics"]["accuracy[exact]"]["value"]
        0.5
    """
    running = choose_running(running, running_fields)
    arguments = record_arguments(RunRequest, locals(), running, [terms or Terms()])
    _check_no_loop()
    settings = {name: dict(values) for name, values in (options or {}).items()}
    benchmarks = [load_benchmark(name, settings.pop(name, None)) for name in names(benchmark)]
    mirror, judges = None if data is None else os.fspath(data), list(dict.fromkeys(names(judge or "")))
    request = _resolve(benchmarks, BenchmarkRequest(
        phase, mirror, seed, limit, judges, rescore, settings, running, models=names(model),
        set_options={name: dict(values) for name, values in (options or {}).items()}, terms=terms or Terms(),
        by=names(by or ""), repeats=repeats, prompts=prompts, choices=choices, shard=read_shard(shard),
        controls=controls, control=Control(sound, question), arguments=arguments,
        baseline=None if baseline is None else os.fspath(baseline),
    ))  # fmt: skip
    if dry_run:
        return _preview(benchmarks, request, Path(out or "."))
    budget = Budget(request.terms.max_cost_usd, request.terms.max_hours)
    runs: dict[tuple[str, str, str], Run] = {}
    excluded: list[Excluded] = []
    is_repeatable = rescore or phase == "scores"
    with (
        show_progress(running, progress) as running,
        _open_folder(out, _identity(benchmarks, request), is_repeatable, running) as out_folder,
    ):
        request = replace(request, running=_announce_once(out_folder, running))
        for name in _ordered_models(request):
            plan = _plan(name, benchmarks, request)
            if phase != "scores" and plan.pairs:
                plan.drop(asyncio.run(ask(plan.pairs, plan.model, out_folder.path, request, budget)))
            _score(plan, out_folder.path, request, budget)
            runs |= _report(plan, out_folder.path, request)
            excluded += plan.excluded
        return _conclude(runs, excluded, out_folder, request)


Excluded = tuple[str, str, UserError]
"""A benchmark, a model, and why it could not run."""


@dataclass(slots=True)
class _ModelPlan:
    """Questions for a model (`model` typed, `name` recorded): pairs with controls."""

    model: str
    name: str
    pairs: list[Planned] = field(default_factory=list)
    excluded: list[Excluded] = field(default_factory=list)

    def drop(self, errors: Mapping[tuple[str, Control], UserError]) -> None:
        """Move pairs that cannot run, by benchmark and control, to the excluded ones."""
        self.pairs = [(one, control) for one, control in self.pairs if (one.name, control) not in errors]
        self.excluded += [
            (benchmark, control.label(self.name), error) for (benchmark, control), error in errors.items()
        ]


def _resolve(benchmarks: Sequence[Benchmark], request: BenchmarkRequest) -> BenchmarkRequest:
    """Check a whole request, report what is known of its judges, resolve the baseline."""
    if request.phase not in PHASES:
        raise UserError("option_choice", option="phase", value=request.phase, known=list(PHASES))
    check_repeats(request.repeats)
    check_wording(request.prompts)
    check_orders(request.choices)
    if request.controls and request.control:
        raise UserError("control_and_controls", control=request.control.words, hint="give one of them")
    if request.prompts == EACH and request.repeats > 1:
        raise UserError("repeats_with_wordings", hint="give --prompts each or --repeats, not both")
    if not benchmarks:
        raise UserError("no_benchmark_named", hint="codec-bench run NAME --model NAME; see codec-bench list benchmarks")
    if not request.models:
        raise UserError("no_model_named", hint="codec-bench run NAME --model NAME; see codec-bench list models")
    if request.choices != AS_WRITTEN and not any(one.has_options for one in benchmarks):
        raise UserError(
            "no_options_to_order",
            order=request.choices,
            benchmark=benchmarks[0].name,
            hint="leave out --choices; options within the text of a question cannot be put into another order",
        )
    judged = [one.name for one in benchmarks if any(map(is_judge_metric, one.metrics))]
    if judged and not request.judges and request.phase != "answers":
        raise UserError(
            "judge_needed",
            benchmark=judged[0],
            hint="--judge NAME (see codec-bench list models), or --phase answers to score later",
        )
    _check_models(request)
    _check_options(benchmarks, request)
    for words in judge_notices(benchmarks, request) if request.phase != "answers" else ():
        request.running.on_estimate(words)
    if request.baseline is None or request.baseline not in request.models:
        return request
    return replace(request, baseline_model=_info(request.baseline, request).name)


def _check_models(request: BenchmarkRequest) -> None:
    """Raise UnknownName if a model or judge does not exist."""
    for name in (*request.models, *request.judges):
        try:
            _info(name, request)
        except UnknownName:
            raise
        except UserError:  # opening a model reports its other faults
            continue


def _check_options(benchmarks: Sequence[Benchmark], request: BenchmarkRequest) -> None:
    """Raise UnknownName for an option of no model, judge or feature of this run."""
    names_read = [*request.models, *request.judges]
    if all(name in names_read for name in request.options):
        return
    for one in benchmarks:
        try:
            names_read += scheme_of(one, (), request).features
        except MissingExtra:
            if request.phase == "answers":
                return  # the reader of an option is known when answers are scored
            raise
    check_settings(request.options, names_read, "part_of_run")


def _ordered_models(request: BenchmarkRequest) -> list[str]:
    """The models, the baseline first: judges of the others need its answers."""
    return sorted(request.models, key=lambda name: name != request.baseline)


def _identity(benchmarks: Sequence[Benchmark], request: BenchmarkRequest) -> dict[str, Any]:
    """Return the fields by which an unfinished run of the same request is found."""
    optional = {
        "repeats": (request.repeats, 1), "prompts": (request.prompts, SEEDED), "choices": (request.choices, AS_WRITTEN),
        **{name: (value, None) for name, value in request.control.changes.items()},
        "baseline": (request.baseline, None), "controls": (request.controls, False),
    }  # fmt: skip
    return {
        "benchmark": [{"asked": one.request_facts, "scored": one.scored} for one in benchmarks],
        "judge": ",".join(request.judges) or None, "options": request.options,
        **_base_identity(_ordered_models(request), request.data, request.seed, request.limit, request.shard),
        **{name: value for name, (value, default) in optional.items() if value != default},
    }  # fmt: skip


def _plan(name: str, benchmarks: Sequence[Benchmark], request: BenchmarkRequest) -> _ModelPlan:
    """Plan which benchmarks a model can answer, with their controls."""
    try:
        info = _info(name, request)
    except UserError as error:
        return _ModelPlan(name, name, excluded=[(one.name, name, error) for one in benchmarks])
    fitting, reasons = _fitting(benchmarks, info, request.phase)
    pairs, without = with_controls(fitting, info, request)
    if request.phase != "scores" and not request.terms.anyway:
        try:
            check_served(name, request.options.get(name))
        except UserError as error:
            return _ModelPlan(name, info.name, excluded=[(one.name, info.name, error) for one in benchmarks])
    plan = _ModelPlan(name, info.name, pairs, [(benchmark, info.name, error) for benchmark, error in reasons.items()])
    plan.drop(without)
    return plan


def _score(plan: _ModelPlan, folder: Path, request: BenchmarkRequest, budget: Budget) -> None:
    """Score a model's answers; benchmarks that fail are dropped from the plan."""
    errors: dict[tuple[str, Control], UserError] = {}
    for one, control in plan.pairs if request.phase != "answers" else ():
        try:
            score(one, plan.name, folder, replace(request, control=control), budget)
        except UserError as error:  # such as missing weights of a metric; the other benchmarks may not need them
            errors[one.name, control] = error
    plan.drop(errors)


def _report(plan: _ModelPlan, folder: Path, request: BenchmarkRequest) -> dict[tuple[str, str, str], Run]:
    """Write the results of a model's runs; by benchmark, model and control."""
    for one in {one.name: one for one, _ in plan.pairs}.values():
        has_controls = request.phase != "answers" and record_controls(run_folder(folder, one.name, plan.name))
        if has_controls and (one, NO_CONTROL) not in plan.pairs:  # a control was run next to the recorded pairs
            _write_results(one, plan.name, NO_CONTROL, folder, request).close()
    return {
        (one.name, plan.name, control.words): _write_results(one, plan.name, control, folder, request)
        for one, control in plan.pairs
    }


def _conclude(
    runs: Mapping[tuple[str, str, str], Run],
    excluded: Sequence[Excluded],
    out_folder: RunFolder,
    request: BenchmarkRequest,
) -> RunOutcome:
    """Write the overview of all runs; raise the first error if none could run.

    Args:
        runs: by benchmark, model and control.
        excluded: (benchmark, model, error) of each pair that could not run.
    """
    if not runs and not any(isinstance(error, AnswersPending) for *_, error in excluded):
        raise excluded[0][2]
    outcome = RunOutcome(
        out_folder.path,
        {(one, name): run for (one, name, words), run in runs.items() if words == request.control.words},
        _reasons(excluded),
        controls={key: run for key, run in runs.items() if key[2] != request.control.words},
    )
    request.running.on_folder(out_folder.path, out_folder.words)
    write_overview(outcome)
    if not excluded and request.phase != "answers":
        mark_finished(out_folder.path)
    return outcome


def _base_identity(
    systems: Sequence[str], data: object, seed: int, limit: int | None, shard: Shard | None
) -> dict[str, Any]:
    """The facts by which an unfinished run is found: systems, data and selection."""
    code = {name: code_hash(name) for name in systems if is_custom_code(name)}
    shard_identity = {} if shard is None else {"shard": str(shard)}
    return {"systems": list(systems), "code": code, "data": data, "seed": seed, "limit": limit, **shard_identity}


def _open_folder(
    out: str | os.PathLike[str] | None, known: Mapping[str, Any], also_finished: bool, running: Running
) -> RunFolder:
    """Open the folder of a command; several commands can share a named one."""
    if out is not None:
        return named_folder(out, shared=True)
    return own_folder("run", known, also_finished=also_finished or running.retry_failed)


def _announce_once(out_folder: RunFolder, running: Running) -> Running:
    """Announce the folder at the first progress, so not for a refused command."""
    is_announced = False

    def on_folder(folder: Path, words: str) -> None:
        nonlocal is_announced
        if not is_announced:
            is_announced = True
            running.on_folder(folder, words)

    def progress(*args: Any) -> None:
        on_folder(out_folder.path, out_folder.words)
        running.progress(*args)

    return replace(running, on_folder=on_folder, progress=progress)


def _check_no_loop() -> None:
    """Raise UserError if this thread runs an event loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UserError("inside_event_loop", hint="await asyncio.to_thread(run_benchmark, benchmark=..., model=...)")


def _reasons(excluded: Sequence[Excluded]) -> tuple[tuple[str, str, Diagnostic], ...]:
    return tuple(
        (one, name, Diagnostic("pair_cannot_run", cause=of_error(error), advice=error.hint or ""))
        for one, name, error in excluded
    )


def _preview(benchmarks: Sequence[Benchmark], request: BenchmarkRequest, folder: Path) -> RunOutcome:
    """Preview the requests and costs of every model without sending any."""
    request = replace(request, phase="answers", terms=replace(request.terms, anyway=True))
    previews, excluded = [], []
    for name in _ordered_models(request):
        plan = _plan(name, benchmarks, request)
        excluded += plan.excluded
        for one, control in plan.pairs:
            try:
                previews.append(preview(one, name, replace(request, control=control)))
            except UserError as error:
                excluded.append((one.name, control.label(name), error))
    if not previews:
        raise excluded[0][2]
    return RunOutcome(folder, {}, _reasons(excluded), tuple(previews))


def _write_results(one: Benchmark, model: str, control: Control, folder: Path, request: BenchmarkRequest) -> Run:
    """Write the report of one model's run and open the run."""
    run = Run(run_folder(folder, one.name, model, control))
    request.running.progress(f"{one.name}: writing the report", 0, 0, 0, 0.0)
    write_results(run, page=request.running.page)
    if request.phase != "answers":
        mark_part(run)
    return run


def run_codecs(
    *,
    benchmark: str | Sequence[str],
    codec: Codecs,
    out: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    seed: int = 0,
    limit: int | None = None,
    shard: str | tuple[int, int] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | Sequence[str] | None = None,
    progress: bool | Progress | None = None,
    running: Running | None = None,
    **running_fields: Any,
) -> RunOutcome:
    """Run benchmarks of codecs: `evaluate` with the data and metrics of definitions.

    Args:
        benchmark: names such as `codec-librispeech-test-clean`.
        codec: as for `evaluate`.
        out, data, seed, limit, shard, options, by, progress, running: as for `run_benchmark`.

    Returns:
        One run for each benchmark, `OUT/BENCHMARK`, with the codecs as its systems.

    Raises:
        UserError: as for `evaluate`, or a benchmark is for models.
    """
    arguments = record_arguments(RunRequest, locals(), choose_running(running, running_fields))
    running, own_shard = choose_running(running, running_fields), read_shard(shard)
    systems, benchmarks, settings = _resolve_codecs(benchmark, codec, options)
    mirror, specs = None if data is None else os.fspath(data), [system.spec for system in systems]
    known = {
        "benchmark": [{"asked": one.request_facts, "metrics": list(one.metrics)} for one in benchmarks],
        "options": settings, **_base_identity(specs, mirror, seed, limit, own_shard),
    }  # fmt: skip
    runs: dict[tuple[str, str], Run] = {}
    with show_progress(running, progress) as running, _open_folder(out, known, False, running) as out_folder:
        for one in benchmarks:
            folder = out_folder.path / safe_name(one.name)
            evaluation = _codec_evaluation(one, systems, settings, folder, data=data, seed=seed, limit=limit, by=by)
            if own_shard is not None and len(benchmarks) > 1 and not len(own_shard.among(evaluation.source.places)):
                continue  # another benchmark may have samples in this part
            about = {**evaluation.about, "arguments": arguments}
            evaluation = replace(evaluation, source=part_of(evaluation.source, own_shard), about=about)
            record = execute(evaluation, folder, replace(running, on_folder=lambda folder, words: None))
            record.close()
            run = Run(record.folder)
            write_results(run, page=running.page)
            mark_part(run)
            runs.update({(one.name, system): run for system in run.systems})
        if not runs:
            raise UserError("no_sample_in_shard", shard=own_shard, hint="use fewer shards")
        outcome = RunOutcome(out_folder.path, runs)
        write_overview(outcome)
        mark_finished(out_folder.path)
    return outcome


def prepare_codecs(
    *,
    benchmark: str | Sequence[str],
    codec: Codecs,
    data: str | os.PathLike[str] | None = None,
    seed: int = 0,
    limit: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | Sequence[str] | None = None,
) -> list[Evaluation]:
    """Build the evaluations of `run_codecs`, one per benchmark, without running them."""
    systems, benchmarks, settings = _resolve_codecs(benchmark, codec, options)
    return [
        _codec_evaluation(one, systems, settings, None, data=data, seed=seed, limit=limit, by=by) for one in benchmarks
    ]  # fmt: skip


def _resolve_codecs(
    benchmark: str | Sequence[str], codec: Codecs, options: Mapping[str, Mapping[str, Any]] | None
) -> tuple[tuple[System, ...], list[Benchmark], dict[str, dict[str, Any]]]:
    """The codecs, their benchmarks, and the options that are not of a benchmark."""
    settings = {name: dict(values) for name, values in (options or {}).items()}
    systems = read_systems(codec)
    benchmarks = [load_benchmark(name, settings.pop(name, None)) for name in names(benchmark)]
    for one in benchmarks:
        if one.kind != "codec":
            raise UserError("benchmark_of_models", benchmark=one.name, hint=f"codec-bench run {one.name} --model NAME")
    return systems, benchmarks, settings


def _codec_evaluation(
    one: Benchmark, systems: tuple[System, ...], settings: Mapping[str, Mapping[str, Any]], folder: Path | None, *,
    data: str | os.PathLike[str] | None, seed: int, limit: int | None, by: str | Sequence[str] | None,
) -> Evaluation:  # fmt: skip
    """Build the evaluation of codecs on one benchmark.

    Args:
        settings: arguments of codecs and features by name.
        folder: the run folder to extend, in its order of samples; None for a new one.
    """
    questions = one.questions(limit=limit, seed=seed if limit is not None else None, mirror=data)
    source = open_source([_sample(question) for question in questions])
    if one.data.trials is not None:
        trials = Path(one.entry.file).parent / one.data.trials
        source = with_trials(source, trials if trials.is_file() else Path(one.data.trials))
    source = restore_sample_order(source, folder, limit=limit, seed=seed)
    request = {
        "command": "run", "benchmark": one.name, "data": questions.name, "seed": seed, "limit": limit,
        "mirror": os.fspath(data) if data is not None else None,
    }  # fmt: skip
    about = {"benchmark": one.described, **broken_down(by, source.samples, source.name)}
    return Evaluation(systems, one.metrics, source, request, settings, about)


def _sample(question: Question) -> Sample:
    """Convert a question with audio to a sample of an evaluation."""
    sound = question.audio.source if question.audio is not None else None
    text = question.fields.get("text")
    sample = Sample(
        question.id,
        sound if isinstance(sound, str) else None,
        str(text) if text is not None else next(iter(question.references), None),
        question.fields.get("speaker") if question.speaker is None else question.speaker,
        question.language,
    )
    return with_problem(sample, question.problem) if question.problem is not None else sample


def _info(name: str, request: BenchmarkRequest) -> ModelInfo:
    """The facts of a model; for scoring only its name, without loading it."""
    try:
        return facts_of(load_model(name, request.options.get(name), device=request.running.device))
    except UserError:
        if request.phase != "scores":
            raise
        return ModelInfo(own_name(name))


def _fitting(
    benchmarks: Sequence[Benchmark], info: ModelInfo, phase: Phase
) -> tuple[list[Benchmark], dict[str, UserError]]:
    """The benchmarks that a model can answer, and the errors of others by name.

    Args:
        phase: with `scores`, all benchmarks fit.
    """
    fitting: list[Benchmark] = []
    reasons: dict[str, UserError] = {}
    for one in benchmarks:
        if one.kind == "codec":
            raise UserError(
                "codec_benchmark_for_model",
                benchmark=one.name,
                model=info.name,
                hint=f"codec-bench run {one.name} --codec NAME",
            )
        try:
            if phase != "scores":
                _check_fit(one, info)
            fitting.append(one)
        except UserError as error:
            reasons[one.name] = error
    return fitting, reasons


def _check_fit(one: Benchmark, info: ModelInfo) -> None:
    """Raise UserError unless the model gives the output that the benchmark needs."""
    if one.wants == "likelihood" and one.wants not in info.outputs:
        raise UserError(
            "likelihood_needed",
            benchmark=one.name,
            model=info.name,
            hint="a model of this machine can define it: see Likelihoods in the documentation of benchmarks",
        )
    if one.wants not in info.outputs:
        gives = " and ".join(info.outputs)
        raise UserError("output_needed", benchmark=one.name, needed=one.wants, model=info.name, output=gives)
    one.prompt_for(info)


__all__ = ["Phase", "RunOutcome", "Terms", "run_benchmark", "run_codecs", "run_folder"]

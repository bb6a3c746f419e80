"""Runs benchmarks: asks a model their questions, records its answers, and scores the recorded answers.

Asking and scoring are two phases, which can run at different times and on different machines. Asking needs the model
and the data; scoring needs only the run folder. Each pair of benchmark and model has a run folder of its own,
`OUT/BENCHMARK/MODEL`. A call with the same arguments continues a run that was stopped, also without `out`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codec_bench.api.recorded_arguments import record_arguments
from codec_bench.benchmark import Benchmark, Question, load_benchmark
from codec_bench.benchmark.asking.benchmarks import ask, preview
from codec_bench.benchmark.asking.spending import Purse
from codec_bench.benchmark.asking.variants import check_orders, check_repeats
from codec_bench.benchmark.controls import Wanted, tell_controls, with_controls
from codec_bench.benchmark.definition.prompt import EACH, SEEDED, check_wording
from codec_bench.benchmark.judge.metric import is_judge_metric
from codec_bench.benchmark.judging import judges_told
from codec_bench.benchmark.run_request import PHASES, Phase, RunRequest, Terms, run_folder, safe, scheme_of
from codec_bench.benchmark.runs_overview import Outcome, write_overview
from codec_bench.benchmark.scoring_phase import score
from codec_bench.config import check_settings
from codec_bench.config.option import documented, names
from codec_bench.config.run_request import RunRequest as RunOptions
from codec_bench.data import Shard, broken_down, open_source, part_of, read_shard, with_trials
from codec_bench.data.source import with_problem
from codec_bench.engine.evaluation import Evaluation, execute
from codec_bench.engine.extend import in_begun_order
from codec_bench.engine.running import Running, chosen_running
from codec_bench.engine.systems import Codecs, System, read_systems
from codec_bench.errors import AnswersPending, MissingExtra, UserError
from codec_bench.models import check_served, load_model, own_name
from codec_bench.models.base import ModelInfo
from codec_bench.models.likelihood import told
from codec_bench.registry import code_hash, is_own_code
from codec_bench.report.open_run import Run
from codec_bench.report.results import write_results
from codec_bench.stats.controls import AS_GIVEN, Control
from codec_bench.store.draws import GIVEN
from codec_bench.store.folders import RunFolder, mark_finished, named_folder, own_folder
from codec_bench.store.parts import mark_part
from codec_bench.types import Sample


@documented(RunOptions)
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
    choices: str = GIVEN,
    sound: str = GIVEN,
    question: str = GIVEN,
    controls: bool = False,
    rescore: bool = False,
    dry_run: bool = False,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | Sequence[str] | None = None,
    terms: Terms | None = None,
    running: Running | None = None,
    **running_fields: Any,
) -> Outcome:
    """Runs benchmarks against models.

    Args:
        by: columns to break the results down by, beside the benchmark's own subsets: `speaker`, `language`, `duration`,
            `sample_rate` or a field of its questions. They change no score. A run that is continued without them keeps
            those that it has.
        terms: on which terms a service is asked: `Terms(max_cost_usd=5.0)`, for example.
        running: how to run it. Its fields may be given as keyword arguments in its place. `retry_failed` asks failed
            questions again.

    Returns:
        The runs, opened for reading.

    Raises:
        UserError: a name, the data or an option is wrong, or none of the benchmarks can run. A failure of a single
            question is not raised; it is in the run.

    Examples:
        >>> from pathlib import Path
        >>> from codec_bench import run_benchmark
        >>> Path("capitals").mkdir(exist_ok=True)
        >>> rows = ['{"id": "a", "q": "Of France?", "right": "Paris"}', '{"id": "b", "q": "Of Italy?", "right": "Rome"}']
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
    arguments = record_arguments(RunOptions, locals(), chosen_running(running, running_fields), [terms or Terms()])
    running = chosen_running(running, running_fields)
    _check_no_loop()
    if phase not in PHASES:
        raise UserError(f"the phase is '{phase}'; expected {', '.join(PHASES)}")
    check_repeats(repeats)
    check_wording(prompts)
    check_orders(choices)
    control = Control(sound, question)
    if controls and control:
        raise UserError(
            f"the control '{control.words}' was asked for, and --controls as well, which chooses controls itself",
            hint="give one of them",
        )
    if prompts == EACH and repeats > 1:
        raise UserError(
            "each wording is asked once, and repeats were asked for as well",
            hint="give --prompts each or --repeats, not both",
        )
    given = {name: dict(values) for name, values in (options or {}).items()}
    judges = list(dict.fromkeys(names(judge or "")))
    request = RunRequest(
        phase, os.fspath(data) if data is not None else None, seed, limit, judges, rescore, given, running,
        models=names(model), given=dict(given), terms=terms or Terms(), by=names(by or ""), repeats=repeats, prompts=prompts,
        choices=choices, shard=read_shard(shard), control=control, controls=controls,
        baseline=None if baseline is None else os.fspath(baseline), arguments=arguments,
    )  # fmt: skip
    wanted = [load_benchmark(name, given.pop(name, None)) for name in names(benchmark)]
    if not wanted:
        raise UserError("no benchmark was named", hint="see codec-bench list benchmarks")
    models = sorted(names(model), key=lambda name: name != request.baseline)  # its answers are needed first
    if request.baseline in models:
        request = replace(request, baseline_model=_info(request.baseline, request).name)
    if not models:
        raise UserError("no model was named", hint="see codec-bench list models")
    if choices != GIVEN and not any(one.offers for one in wanted):
        raise UserError(
            f"the order of the options is to be '{choices}', and no question of '{wanted[0].name}' comes with options of its own",
            hint="leave out --choices; options within the text of a question cannot be put into another order",
        )
    judged = [one.name for one in wanted if any(map(is_judge_metric, one.metrics))]
    if judged and not judges and phase != "answers":
        raise UserError(
            f"'{judged[0]}' needs a judge, and none was named",
            hint="--judge NAME (see codec-bench list models), or --phase answers to score later",
        )
    _check_options(wanted, request)
    known = {
        "benchmark": [{"asked": one.asked, "scored": one.scored} for one in wanted], "judge": ",".join(judges) or None, "options": given,
        **_known(models, request.data, seed, limit, request.shard), **({"repeats": repeats} if repeats > 1 else {}),
        **({"prompts": prompts} if prompts != SEEDED else {}), **({"choices": choices} if choices != GIVEN else {}),
        **control.told, **({"baseline": request.baseline} if baseline is not None else {}), **({"controls": True} if controls else {}),
    }  # fmt: skip
    for words in judges_told(wanted, request) if phase != "answers" else ():
        running.on_estimate(words)
    runs: dict[tuple[str, str, str], Run] = {}
    left_out: list[tuple[str, str, UserError]] = []
    purse = Purse(request.terms.max_cost_usd, request.terms.max_hours)
    if dry_run:
        return _previewed(wanted, models, request, Path(out or "."))
    with _place(out, known, rescore or phase == "scores", request.running) as place:
        request = replace(request, running=_announcing(place, request.running))
        for name in models:
            done, why = _of_model(name, wanted, place.path, request, purse)
            runs.update(done)
            left_out += why
        if not runs and not any(isinstance(error, AnswersPending) for _, _, error in left_out):
            raise left_out[0][2]
        outcome = Outcome(
            place.path,
            {(one, name): run for (one, name, words), run in runs.items() if words == control.words},
            tuple((benchmark, name, str(error)) for benchmark, name, error in left_out),
            controls={key: run for key, run in runs.items() if key[2] != control.words},
        )
        request.running.on_folder(place.path, place.words)
        write_overview(outcome)
        if not left_out and phase != "answers":
            mark_finished(place.path)
    return outcome


def _known(systems: Sequence[str], data: object, seed: int, limit: int | None, shard: Shard | None) -> dict[str, Any]:
    """What tells a request from others before models, codecs and data are opened, beside the benchmarks."""
    code = {name: code_hash(name) for name in systems if is_own_code(name)}
    part = {} if shard is None else {"shard": str(shard)}
    return {"systems": list(systems), "code": code, "data": data, "seed": seed, "limit": limit, **part}


def _place(
    out: str | os.PathLike[str] | None, known: Mapping[str, Any], also_finished: bool, running: Running
) -> RunFolder:
    """The folder of a command. One that was named may be used by several commands at a time, with other models."""
    if out is not None:
        return named_folder(out, shared=True)
    return own_folder("run", known, also_finished=also_finished or running.retry_failed)


def _announcing(place: RunFolder, running: Running) -> Running:
    """Tells the folder once, when the first thing is done in it: a command that is refused has none."""
    told = False

    def on_folder(folder: Path, words: str) -> None:
        nonlocal told
        if not told:
            told = True
            running.on_folder(folder, words)

    def progress(*args: Any) -> None:
        on_folder(place.path, place.words)
        running.progress(*args)

    return replace(running, on_folder=on_folder, progress=progress)


def _check_no_loop() -> None:
    """Checks that no event loop runs in this thread: asking has one of its own, and a thread can run only one.

    Raises:
        UserError: one runs, as in every cell of a notebook.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UserError(
        "run_benchmark was called inside an event loop, such as that of a notebook, and needs one of its own",
        hint="await asyncio.to_thread(run_benchmark, benchmark=..., model=...)",
    )


def _of_model(
    name: str, wanted: Sequence[Benchmark], folder: Path, request: RunRequest, purse: Purse
) -> tuple[dict[tuple[str, str, str], Run], list[tuple[str, str, UserError]]]:
    """Runs the benchmarks that one model can answer, and their controls.

    Returns:
        The runs by benchmark, model and control, and (benchmark, model, why) of each benchmark that could not run.
    """
    try:
        info = _info(name, request)
    except UserError as error:
        return {}, [(one.name, name, error) for one in wanted]
    runs: dict[tuple[str, str, str], Run] = {}
    fitting, why = _fitting(wanted, info, request.phase)
    mine, without = with_controls(fitting, info, request)
    if request.phase != "scores" and not request.terms.anyway:
        try:
            check_served(name, request.options.get(name))
        except UserError as error:
            return {}, [(one.name, info.name, error) for one in wanted]
    broken = asyncio.run(ask(mine, name, folder, request, purse)) if request.phase != "scores" and mine else {}
    left_out = [(benchmark, info.name, error) for benchmark, error in why.items()]
    left_out += [
        (benchmark, control.beside(info.name), error) for (benchmark, control), error in (without | broken).items()
    ]
    done: list[Wanted] = []
    for one, control in mine:
        if (one.name, control) in broken:
            continue
        try:
            if request.phase != "answers":
                score(one, info.name, folder, replace(request, control=control), purse)
            done.append((one, control))
        except UserError as error:  # such as missing weights of a metric; the other benchmarks may not need them
            left_out.append((one.name, control.beside(info.name), error))
    for one in {one.name: one for one, _ in done}.values():
        told = request.phase != "answers" and tell_controls(run_folder(folder, one.name, info.name))
        if told and (one, AS_GIVEN) not in done:  # a control was run beside what was there
            _written(one, info.name, AS_GIVEN, folder, request).close()
    for one, control in done:
        runs[one.name, info.name, control.words] = _written(one, info.name, control, folder, request)
    return runs, left_out


def _previewed(wanted: Sequence[Benchmark], models: Sequence[str], request: RunRequest, folder: Path) -> Outcome:
    """What each model would be asked of each benchmark.

    Raises:
        UserError: none of the benchmarks can run.
    """
    previews, left_out = [], []
    for name in models:
        fitting, why = _fitting(wanted, _info(name, request), "answers")
        left_out += [(one, name, error) for one, error in why.items()]
        mine, without = with_controls(fitting, _info(name, request), request)
        left_out += [(one, name, error) for (one, _), error in without.items()]
        for one, control in mine:
            try:
                previews.append(preview(one, name, replace(request, control=control)))
            except UserError as error:
                left_out.append((one.name, control.beside(name), error))
    if not previews:
        raise left_out[0][2]
    return Outcome(folder, {}, tuple((one, name, str(error)) for one, name, error in left_out), tuple(previews))


def _written(one: Benchmark, model: str, control: Control, folder: Path, request: RunRequest) -> Run:
    """Writes the results of one run."""
    run = Run(run_folder(folder, one.name, model, control))
    request.running.progress(f"{one.name}: writing the report", 0, 0, 0, 0.0)
    write_results(run, page=request.running.page)
    if request.phase != "answers":
        mark_part(run)
    return run


def _check_options(wanted: Sequence[Benchmark], request: RunRequest) -> None:
    """Checks that every option is for a model, a judge or a feature of this run.

    Raises:
        UnknownName: an option is for another name; the message suggests the nearest.
    """
    read = [*request.models, *request.judges]
    if all(name in read for name in request.options):
        return
    for one in wanted:
        try:
            read += scheme_of(one, (), request).features
        except MissingExtra:
            if request.phase == "answers":
                return  # what reads an option is known where the answers are scored
            raise
    check_settings(request.options, read, "model, benchmark or feature of this run")


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
    running: Running | None = None,
    **running_fields: Any,
) -> Outcome:
    """Runs benchmarks of codecs, which is `evaluate` with the data and the metrics of their definitions.

    Args:
        benchmark: names such as `codec-librispeech-test-clean`. codec: as for `evaluate`.
        out, data, seed, limit, shard, options, by, running: as for `run_benchmark`.

    Returns:
        One run for each benchmark, `OUT/BENCHMARK`, with the codecs as its systems.

    Raises:
        UserError: as for `evaluate`, or a benchmark asks a model and not a codec.
    """
    arguments = record_arguments(RunOptions, locals(), chosen_running(running, running_fields))
    running, taken = chosen_running(running, running_fields), read_shard(shard)
    systems, wanted, given = _codecs_asked(benchmark, codec, options)
    known = {
        "benchmark": [{"asked": one.asked, "metrics": list(one.metrics)} for one in wanted], "options": given,
        **_known([system.asked for system in systems], os.fspath(data) if data is not None else None, seed, limit, taken),
    }  # fmt: skip
    runs: dict[tuple[str, str], Run] = {}
    with _place(out, known, False, running) as place:
        for one in wanted:
            folder = place.path / safe(one.name)
            asked = _codec_evaluation(one, systems, given, folder, data=data, seed=seed, limit=limit, by=by)
            if taken is not None and len(wanted) > 1 and not len(taken.among(asked.source.places)):
                continue  # another benchmark may have samples in this part
            asked = replace(asked, source=part_of(asked.source, taken), about={**asked.about, "arguments": arguments})
            done = execute(asked, folder, replace(running, on_folder=lambda folder, words: None))
            done.close()
            run = Run(done.folder)
            write_results(run, page=running.page)
            mark_part(run)
            runs.update({(one.name, system): run for system in run.systems})
        if not runs:
            raise UserError(f"no sample of the benchmarks is in shard {taken}", hint="use fewer shards")
        outcome = Outcome(place.path, runs)
        write_overview(outcome)
        mark_finished(place.path)
    return outcome


def prepared_codecs(
    *,
    benchmark: str | Sequence[str],
    codec: Codecs,
    data: str | os.PathLike[str] | None = None,
    seed: int = 0,
    limit: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | Sequence[str] | None = None,
) -> list[Evaluation]:
    """What `run_codecs` with these arguments would evaluate: one for each benchmark."""
    systems, wanted, given = _codecs_asked(benchmark, codec, options)
    return [
        _codec_evaluation(one, systems, given, None, data=data, seed=seed, limit=limit, by=by) for one in wanted
    ]  # fmt: skip


def _codecs_asked(
    benchmark: str | Sequence[str], codec: Codecs, options: Mapping[str, Mapping[str, Any]] | None
) -> tuple[tuple[System, ...], list[Benchmark], dict[str, dict[str, Any]]]:
    """The codecs, the benchmarks that they are run on, and the options that are for no benchmark.

    Raises:
        UserError: a name is wrong, or a benchmark asks a model.
    """
    given = {name: dict(values) for name, values in (options or {}).items()}
    systems = read_systems(codec)
    wanted = [load_benchmark(name, given.pop(name, None)) for name in names(benchmark)]
    for one in wanted:
        if one.kind != "codec":
            raise UserError(f"'{one.name}' asks a model, not a codec", hint=f"codec-bench run {one.name} --model NAME")
    return systems, wanted, given


def _codec_evaluation(
    one: Benchmark, systems: tuple[System, ...], given: Mapping[str, Mapping[str, Any]], folder: Path | None, *,
    data: str | os.PathLike[str] | None, seed: int, limit: int | None, by: str | Sequence[str] | None,
) -> Evaluation:  # fmt: skip
    """What codecs are evaluated on for one benchmark; `folder` is that of its run, or None for a new one."""
    questions = one.questions(limit=limit, seed=seed if limit is not None else None, mirror=data)
    source = open_source([_sample(question) for question in questions])
    if one.data.trials is not None:
        beside = Path(one.entry.file).parent / one.data.trials
        source = with_trials(source, beside if beside.is_file() else Path(one.data.trials))
    source = in_begun_order(source, folder, limit=limit, seed=seed)
    request = {
        "command": "run", "benchmark": one.name, "data": questions.name, "seed": seed, "limit": limit,
        "mirror": os.fspath(data) if data is not None else None,
    }  # fmt: skip
    about = {"benchmark": one.described, **broken_down(by, source.samples, source.name)}
    return Evaluation(systems, one.metrics, source, request, given, about)


def _sample(question: Question) -> Sample:
    """A question of a benchmark of codecs, as a sample for the engine."""
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


def _info(name: str, request: RunRequest) -> ModelInfo:
    """The facts of a model. Scoring needs only its name, so that it works for a model that cannot be loaded here."""
    try:
        return told(load_model(name, request.options.get(name), device=request.running.device))
    except UserError:
        if request.phase != "scores":
            raise
        return ModelInfo(own_name(name))


def _fitting(
    wanted: Sequence[Benchmark], info: ModelInfo, phase: Phase
) -> tuple[list[Benchmark], dict[str, UserError]]:
    """The benchmarks that a model can answer, and for each of the others the reason why it cannot."""
    fitting: list[Benchmark] = []
    why: dict[str, UserError] = {}
    for one in wanted:
        if one.kind == "codec":
            raise UserError(
                f"'{one.name}' is a benchmark of codecs, and '{info.name}' was named as a model",
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
    if one.wants == "likelihood" and one.wants not in info.outputs:
        raise UserError(
            f"'{one.name}' asks how likely sounds are, and the model '{info.name}' has no method log_likelihood",
            hint="a model of this machine can define it: see Likelihoods in the documentation of benchmarks",
        )
    if one.wants not in info.outputs:
        gives = " and ".join(info.outputs)
        raise UserError(f"'{one.name}' needs answers in {one.wants}, and the model '{info.name}' gives {gives}")
    one.prompt_for(info)


__all__ = ["Outcome", "Phase", "Terms", "run_benchmark", "run_codecs", "run_folder"]

"""Benchmarks: questions to a model, its answers into a record, scores from the record.

Two phases that can run apart and on different machines: answers need the model and the data, scores need the run folder
alone. Each benchmark and model has a run folder of its own, `OUT/BENCHMARK/MODEL`, like any other run's; asking again
with the same arguments continues where an earlier call was stopped.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from codec_bench.api import (
    Running,
    code_hash,
    execute,
    kept_numbers,
    names,
    new_folder,
    working_engine,
    write_json,
    write_results,
)
from codec_bench.benchmark import Benchmark, Question, load_benchmark
from codec_bench.data import open_source
from codec_bench.data.source import with_problem
from codec_bench.engine.answering import Answering
from codec_bench.engine.judging import rate_all
from codec_bench.engine.marking import mark_all, mark_sets
from codec_bench.engine.scheme import Scheme
from codec_bench.environment import machine, versions
from codec_bench.errors import UserError
from codec_bench.judges.rating import is_rating
from codec_bench.models import load_model, own_name
from codec_bench.models.asking import ask_all
from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.cache import ResponseCache
from codec_bench.registry import is_own_code
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.record import DATABASE, Run, run_folders
from codec_bench.types import Sample

if TYPE_CHECKING:
    from codec_bench.benchmark.questions import QuestionStream

Phase = Literal["both", "answers", "scores"]
PHASES: tuple[str, ...] = ("both", "answers", "scores")
_UNSAFE = re.compile(r"[^A-Za-z0-9._+@-]+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a command that ran benchmarks.

    Args:
        folder: holds a run folder per benchmark and model, and `summary.json` over all of them.
        runs: by benchmark and model.
        left_out: (benchmark, model, why) of pairs that cannot run, because the model does not give what is asked for.
    """

    folder: Path
    runs: Mapping[tuple[str, str], Run]
    left_out: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Request:
    """What was asked for, the same for every benchmark and model."""

    phase: Phase
    data: str | None
    seed: int
    limit: int | None
    judge: str | None
    rescore: bool
    options: Mapping[str, Mapping[str, Any]]
    running: Running


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
    request = _Request(
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
    runs: dict[tuple[str, str], Run] = {}
    left_out: list[tuple[str, str, str]] = []
    for name in models:
        info = _info(name, request)
        mine, why = _fitting(wanted, info, phase)
        left_out += why
        if phase != "scores" and mine:
            asyncio.run(_answers(mine, name, folder, request))
        for one in mine:
            runs[one.name, info.name] = _finished(one, info.name, folder, request)
    if not runs:
        raise UserError(f"none of it can run: {left_out[0][2]}")
    outcome = Outcome(folder, runs, tuple(left_out))
    _write_overview(outcome)
    return outcome


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
            names(codec), list(one.metrics), source, folder / _safe(one.name), request, given, running,
            {"benchmark": one.described},
        )  # fmt: skip
        runs.update({(one.name, system): run for system in run.systems})
    outcome = Outcome(folder, runs)
    _write_overview(outcome)
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


def _info(name: str, request: _Request) -> ModelInfo:
    """What a model is called in results, and what it takes and gives. Scores need no model, only its name."""
    try:
        return load_model(name, request.options.get(name), device=request.running.device).info
    except UserError:
        if request.phase != "scores":
            raise
        return ModelInfo(own_name(name))


def _fitting(
    wanted: Sequence[Benchmark], info: ModelInfo, phase: Phase
) -> tuple[list[Benchmark], list[tuple[str, str, str]]]:
    """The benchmarks that a model can answer, and why not the others."""
    fitting, why = [], []
    for one in wanted:
        if one.kind == "codec":
            raise UserError(
                f"'{one.name}' is a benchmark of codecs, and '{info.name}' is asked for as a model",
                hint=f"codec-bench run {one.name} --codec NAME",
            )
        if phase == "scores" or one.wants in info.outputs:
            fitting.append(one)
        else:
            gives = " and ".join(info.outputs)
            reason = f"'{one.name}' needs {one.wants} back, and the model '{info.name}' gives {gives}"
            why.append((one.name, info.name, reason))
    return fitting, why


def run_folder(folder: Path, benchmark: str, model: str) -> Path:
    """Where the run of one benchmark and model lies."""
    return folder / _safe(benchmark) / _safe(model)


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name).strip(".") or "_"


async def _answers(wanted: Sequence[Benchmark], name: str, folder: Path, request: _Request) -> None:
    """The first phase of every benchmark, with the model loaded once."""
    model = load_model(name, request.options.get(name), device=request.running.device)
    # What code of one's own does may change while its identity stays: its answers are not kept for other runs.
    cache = ResponseCache.of_user() if request.running.cache and not is_own_code(name) else None
    identity = {**model.identity, **({"code": code_hash(name)} if is_own_code(name) else {})}
    started = False

    async def start() -> None:
        nonlocal started
        if not started:
            request.running.progress("loading", 0, 0, 0, 0.0)
            started = True
            await model.start()

    try:
        for one in wanted:
            place = run_folder(folder, one.name, model.info.name)
            await _answer(one, model, start, identity, place, request, cache)
    finally:
        if started:
            await model.close()
        if cache is not None:
            cache.close()


async def _answer(
    one: Benchmark,
    model: Model,
    start: Callable[[], Awaitable[None]],
    identity: Mapping[str, Any],
    folder: Path,
    request: _Request,
    cache: ResponseCache | None,
) -> None:
    questions = one.questions(limit=request.limit, seed=request.seed, mirror=request.data)
    prompt = one.prompt_for(model.info)
    scheme = _scheme(one, prompt.process, request.judge)
    asked = {
        **one.asked, "prompt": prompt.identity, "model": identity, "limit": request.limit, "seed": request.seed,
        "revision": questions.revision,
    }  # fmt: skip
    with _writing(folder, asked, _scored(one, scheme, request), rescore=request.rescore) as writer:
        if request.running.retry_failed:
            writer.forget_failed_answers()
        answered = writer.answered()
        before, total = len(answered), questions.total or 0
        _describe(writer, one, model, prompt.process, scheme, request, questions)
        tell = lambda done, failed, audio_s: request.running.progress(  # noqa: E731
            f"{one.name}: asking", before + done, total, failed, audio_s
        )
        tell(0, 0, 0.0)
        answering = Answering(
            model,
            start,
            lambda question: _with_seed(prompt.render(question), request.seed),
            writer,
            _keeps(request.running.save_audio, questions.total, scheme.compares),
            lambda m, requests: ask_all(m, requests, cache=cache),
            tell,
        )
        timings = await answering.run(questions, answered)
        if timings["asked"] or not before:
            writer.set_meta(answering=timings)
        writer.set_meta(state="answered")


def _describe(
    writer: AnswerWriter,
    one: Benchmark,
    model: Model,
    answer_steps: Sequence[str],
    scheme: Scheme,
    request: _Request,
    questions: QuestionStream,
) -> None:
    """What the record says of what was asked, before the first answer."""
    info = asdict(model.info)
    writer.begin({model.info.name: {**info, **model.identity, "name": model.info.name}}, scheme.facts(), ())
    config = {
        "command": "run", "benchmark": one.name, "model": model.info.name, "data": questions.name, "seed": request.seed,
        "limit": request.limit, "systems": [model.info.name], "metrics": list(scheme.facts()), "options": dict(request.options),
    }  # fmt: skip
    writer.set_meta(
        config=config, benchmark=one.described, answer_steps=list(answer_steps), versions=versions(), machine=machine(),
        how={"device": request.running.device, "cache": request.running.cache},
        started=datetime.now(UTC).isoformat(timespec="seconds"), state="answering",
        data={"name": questions.name, "samples": questions.total, "fingerprint": questions.revision, "unmatched": []},
    )  # fmt: skip


@contextmanager
def _writing(
    folder: Path, asked: Mapping[str, Any], scored: Mapping[str, Any], *, rescore: bool = False
) -> Iterator[AnswerWriter]:
    """The record of one run, opened for writing.

    Raises:
        RunMismatch: it was begun with other questions or another model, or its scores follow other rules.
    """
    writer = AnswerWriter(folder, {"asked": asked, "scored": scored}, replacing=("scored",) if rescore else ())
    try:
        if rescore:
            writer.forget_scores()
        yield writer
    finally:
        writer.close()


def _scheme(one: Benchmark, answer_steps: Sequence[str], judge: str | None) -> Scheme:
    """How a benchmark's answers are scored, where the prompt's format needs some steps first."""
    return Scheme.of([*answer_steps, *one.process], one.own_steps, judge)


def _scored(one: Benchmark, scheme: Scheme, request: _Request) -> dict[str, Any]:
    """Everything that changes a score."""
    judge = None
    if scheme.ratings and request.judge is not None:
        judge = dict(
            load_model(request.judge, request.options.get(request.judge), device=request.running.device).identity
        )
    return {**one.scored, **scheme.identity(), "judge": judge}


def _with_seed(request: Any, seed: int) -> Any:
    """Every question draws for itself: what a model samples does not depend on the order of the questions."""
    if "seed" in request.parameters or not request.parameters.get("temperature"):
        return request
    drawn = int.from_bytes(hashlib.blake2b(f"{seed}:{request.id}".encode(), digest_size=4).digest(), "big") >> 1
    return replace(request, parameters={**request.parameters, "seed": drawn})


def _keeps(save_audio: str | int | None, total: int | None, compares: bool) -> Callable[[int], bool]:
    """Which questions' sounds are copied into the run folder: all where scores compare with them, else some to listen to."""
    if compares:
        return lambda number: True
    if total is None:
        return lambda number: save_audio == "all" or (save_audio != "none" and number < 24)
    kept = kept_numbers(save_audio, total)
    return lambda number: number in kept


# ---- the second phase ----


def _finished(one: Benchmark, model: str, folder: Path, request: _Request) -> Run:
    """Scores the answers of one run, unless only answers were asked for, and writes its results."""
    place = run_folder(folder, one.name, model)
    if request.phase != "answers":
        _score(one, place, request)
    run = Run(place)
    request.running.progress(f"{one.name}: writing the report", 0, 0, 0, 0.0)
    write_results(run, page=request.running.page)
    return run


def _score(one: Benchmark, folder: Path, request: _Request) -> None:
    if not (folder / DATABASE).is_file():
        raise UserError(
            f"'{folder}' holds no answers to score", hint="run the phase 'answers' first, or name the folder it wrote"
        )
    with closing(Run(folder)) as run:
        meta, systems = run.meta, run.systems
    scheme = _scheme(one, meta.get("answer_steps", ()), request.judge)
    scored = _scored(one, scheme, request)
    # The writer closes last: what closes a record that others still read leaves its side files behind.
    with (
        _writing(folder, meta["fingerprint"]["asked"], scored, rescore=request.rescore) as writer,
        closing(Run(folder)) as run,
    ):
        finished = {number for _, number in writer.begin(systems, scheme.facts(), ())}
        # The definition may have changed since the questions were asked, where that changes no answer.
        writer.set_meta(benchmark=one.described, config={**meta["config"], "metrics": list(scheme.facts())})
        if request.running.retry_failed:
            for name in scheme.ratings:
                writer.forget_failed_scores(name)
        todo = sorted(set(writer.answered()) - finished)
        tell = lambda done, failed, audio_s: request.running.progress(  # noqa: E731
            f"{one.name}: scoring", len(finished) + done, len(finished) + len(todo), failed, audio_s
        )
        started = perf_counter()
        opened = partial(working_engine, running=request.running, folder=folder)
        marked = mark_all(run, writer, scheme, todo, request.options, opened, tell)
        mark_sets(run, writer, scheme)
        if scheme.ratings:
            asyncio.run(_rate(run, writer, scheme, request, one.name))
        if todo or not finished:
            timings = {"wall_s": perf_counter() - started, "items": len(todo), **marked}
            writer.set_meta(timings={**timings, "answering": meta.get("answering")})
        writer.set_meta(state="finished", finished=datetime.now(UTC).isoformat(timespec="seconds"))


async def _rate(run: Run, writer: AnswerWriter, scheme: Scheme, request: _Request, name: str) -> None:
    """Asks the judge for every verdict that the record does not hold."""
    judge = load_model(request.judge, request.options.get(request.judge), device=request.running.device)
    cache = ResponseCache.of_user() if request.running.cache else None
    tell = lambda done, total, failed: request.running.progress(f"{name}: judging", done, total, failed, 0.0)  # noqa: E731
    try:
        await judge.start()
        await rate_all(run, writer, scheme.ratings, judge, lambda m, r: ask_all(m, r, cache=cache), tell, request.seed)
    finally:
        await judge.close()
        if cache is not None:
            cache.close()


def _failures(reasons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One system's failures, counted from their reasons."""
    whole = [reason["count"] for reason in reasons if reason["metric"] is None]
    broken = ("failed", "unparsed", "not_scored")
    scores = [reason["count"] for reason in reasons if reason["metric"] is not None and reason["status"] in broken]
    return {"items": sum(whole), "scores": sum(scores), "reasons": list(reasons)}


def _write_overview(outcome: Outcome) -> None:
    """`summary.json` over all runs of the folder, those of earlier commands included: a row per benchmark and system."""
    rows = []
    for folder in run_folders(outcome.folder):
        run = Run(folder)
        facts = run.meta.get("benchmark")
        written = folder / "summary.json"
        if facts is None or not written.is_file():
            continue
        summary = json.loads(written.read_text("utf-8"))
        for system, entry in summary["systems"].items():
            mine = [reason for reason in summary["failures"]["reasons"] if reason["system"] == system]
            rows.append(
                {
                    "benchmark": facts["name"],
                    "model": system,
                    "folder": os.path.relpath(folder, outcome.folder),
                    "category": facts.get("category"),
                    "primary": facts.get("primary"),
                    "metrics": entry["metrics"],
                    "failures": _failures(mine),
                    "answers": summary.get("answers"),
                    "published": facts.get("published", []),
                }
            )
    left_out = [{"benchmark": b, "model": m, "reason": why} for b, m, why in outcome.left_out]
    write_json(outcome.folder / "summary.json", {"schema": 1, "benchmarks": rows, "left_out": left_out})

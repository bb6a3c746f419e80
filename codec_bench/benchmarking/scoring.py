"""The second phase of a benchmark: scores from the run folder alone."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter

from codec_bench.api import working_engine, write_results
from codec_bench.benchmark import Benchmark
from codec_bench.benchmarking.request import Request, run_folder, scheme_of, scored, started_model, writing
from codec_bench.engine.judging import rate_all
from codec_bench.engine.marking import mark_all, mark_sets
from codec_bench.engine.scheme import Scheme
from codec_bench.errors import UserError
from codec_bench.models import load_model
from codec_bench.models.asking import ask_all
from codec_bench.models.cache import ResponseCache
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.record import DATABASE, Run


def finished(one: Benchmark, model: str, folder: Path, request: Request) -> Run:
    """Scores the answers of one run, unless only answers were asked for, and writes its results."""
    place = run_folder(folder, one.name, model)
    if request.phase != "answers":
        _score(one, place, request)
    run = Run(place)
    request.running.progress(f"{one.name}: writing the report", 0, 0, 0, 0.0)
    write_results(run, page=request.running.page)
    return run


def _score(one: Benchmark, folder: Path, request: Request) -> None:
    if not (folder / DATABASE).is_file():
        beside = sorted(p.parent.name for p in folder.parent.glob(f"*/{DATABASE}"))
        hint = (
            f"there are those of {', '.join(beside)}" if beside else "run the phase 'answers' first, or name its folder"
        )
        raise UserError(f"'{folder}' holds no answers to score", hint=hint)
    with closing(Run(folder)) as run:
        meta, systems = run.meta, run.systems
    scheme = scheme_of(one, meta.get("answer_steps", ()), request.judge)
    rules = scored(one, scheme, request)
    # The writer closes last: what closes a record that others still read leaves its side files behind.
    with (
        writing(folder, meta["fingerprint"]["asked"], rules, rescore=request.rescore) as writer,
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


async def _rate(run: Run, writer: AnswerWriter, scheme: Scheme, request: Request, name: str) -> None:
    """Asks the judge for every verdict that the record does not hold."""
    judge = load_model(request.judge, request.options.get(request.judge), device=request.running.device)
    cache = ResponseCache.of_user() if request.running.cache else None
    tell = lambda done, total, failed: request.running.progress(f"{name}: judging", done, total, failed, 0.0)  # noqa: E731
    try:
        await started_model(judge)
        await rate_all(run, writer, scheme.ratings, judge, lambda m, r: ask_all(m, r, cache=cache), tell, request.seed)
    finally:
        await judge.close()
        if cache is not None:
            cache.close()

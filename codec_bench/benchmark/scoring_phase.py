"""The scoring phase: score a run folder's answers, without model or data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from codec_bench.benchmark import Benchmark
from codec_bench.benchmark.asking.spending import Budget
from codec_bench.benchmark.baselines import baseline_of
from codec_bench.benchmark.judging import judge_at_once
from codec_bench.benchmark.run_request import BenchmarkRequest, open_writer, run_folder, scheme_of, score_rules
from codec_bench.benchmark.scoring.options import choice_facts
from codec_bench.benchmark.scoring.scoring import score_all, score_sets
from codec_bench.engine.device import has_gpu
from codec_bench.engine.running import start_engine
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.columns import grouped
from codec_bench.store.record import DATABASE, REQUEST, Run
from codec_bench.types import Audio

MEASURED = frozenset(("duration", "sample_rate"))
"""Columns for breakdowns that only the sounds tell."""
MEASURED_AT_ONCE = 64


def score(one: Benchmark, model: str, folder: Path, request: BenchmarkRequest, budget: Budget) -> None:
    """Score the recorded answers of one benchmark and model, and record the scores.

    Args:
        folder: folder of all runs.
        budget: the command's budget, judges included.

    Raises:
        UserError: there are no answers, they lack a column of the breakdown, or a metric cannot be used.
    """
    baseline_folder = None if request.baseline_model is None else run_folder(folder, one.name, request.baseline_model)
    baseline = baseline_of(request.baseline, baseline_folder, one.name)
    folder = run_folder(folder, one.name, model, request.control)
    if not (folder / DATABASE).is_file():
        siblings = sorted(p.parent.name for p in folder.parent.glob(f"*/{DATABASE}"))
        others = f"there are answers of {', '.join(siblings)}"
        hint = others if siblings else "run the phase 'answers' first, or name its folder"
        raise UserError("no_answers_to_score", folder=folder, hint=hint)
    with closing(Run(folder)) as run:
        meta, systems = run.meta, run.systems
        by = {"by": list(grouped(run, request.by))} if request.by else {}
    recorded = meta["fingerprint"]
    scheme = scheme_of(one, meta.get("answer_steps", ()), request)
    rules = score_rules(one, scheme, request)
    # The writer closes last: SQLite's side files would stay if the record were still open for reading.
    with (
        open_writer(
            folder, recorded.get(REQUEST, {}), rules, shard=_shard(recorded, request), rescore=request.rescore
        ) as writer,
        closing(Run(folder)) as run,
    ):
        finished = {number for _, number in writer.begin(systems, scheme.facts(), ())}
        # The definition may have changed since the questions were sent, as long as no answer depends on it.
        config = {**(meta.get("config") or {}), "metrics": list(scheme.facts())}
        writer.set_meta(benchmark=one.described, config=config, **({"judging": None} if request.rescore else {}), **by)
        if MEASURED & set(by.get("by", ())):
            _measure(run, writer, partial(request.running.progress, f"{one.name}: measuring the questions' sounds"))
        if request.running.retry_failed:
            for name in scheme.judged:
                writer.delete_failed_scores(name)
        todo = sorted(set(writer.answered()) - finished)
        notify = lambda phase, done, failed, audio_s: request.running.progress(  # noqa: E731
            f"{one.name}: {phase}", len(finished) + done, len(finished) + len(todo), failed, audio_s
        )
        started = perf_counter()
        opened = partial(start_engine, running=request.running, folder=folder)
        timed = score_all(
            run, writer, scheme, todo, request.options, opened, notify, gpu=has_gpu(request.running.device)
        )
        score_sets(run, writer, scheme)
        if scheme.judged:
            asyncio.run(judge_at_once(run, writer, scheme, request, budget, one.name, baseline))
        if todo or not finished:
            timings = {"wall_s": perf_counter() - started, "items": len(todo), **timed}
            writer.set_meta(timings={**timings, "answering": meta.get("answering")})
        if (chosen := choice_facts(run)) is not None:
            writer.set_meta(choices=chosen)
        writer.set_meta(state="finished", finished=datetime.now(UTC).isoformat(timespec="seconds"))


def _measure(run: Run, writer: AnswerWriter, notify: Callable[[int, int, int, float], None]) -> None:
    """Decode the questions' audio without a recorded duration, and record it.

    Only for results by duration or sample rate.
    """
    unknown = run.query(
        "SELECT number, audio FROM samples WHERE duration_s IS NULL AND audio IS NOT NULL ORDER BY number"
    )
    failed, seconds = 0, 0.0
    for start in range(0, len(unknown), MEASURED_AT_ONCE):
        lengths = []
        for number, path in unknown[start : start + MEASURED_AT_ONCE]:
            try:
                sound = Audio.read(path)
            except AudioError:  # the question's own failure has the reason
                failed += 1
                continue
            seconds += sound.duration_s
            lengths.append((number, sound.duration_s, sound.sample_rate_hz, sound.channels))
        writer.write_lengths(lengths)
        notify(min(start + MEASURED_AT_ONCE, len(unknown)), len(unknown), failed, seconds)


def _shard(recorded: Mapping[str, Any], request: BenchmarkRequest) -> str | None:
    """The recorded shard, or the requested one, which the writer compares."""
    return recorded.get("shard") if request.shard is None else str(request.shard)

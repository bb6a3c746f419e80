"""One evaluation: runs systems over data, from the plan to the finished record."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codec_bench.audio.resample import SIGNALS
from codec_bench.codecs import code_of_codec, is_foreign_codec
from codec_bench.codecs.checks.signals import DELAY
from codec_bench.config.file_content import with_content
from codec_bench.config.option import options_of
from codec_bench.config.registry import doc_summary, source_hash
from codec_bench.config.shared_options import RunningOptions
from codec_bench.data import Shard, Source, part_of
from codec_bench.engine.device import has_gpu
from codec_bench.engine.extend import GROWN, adds_systems, count_held_samples
from codec_bench.engine.plan import NATIVE, Plan, build_plan, list_features_read
from codec_bench.engine.recorded_sounds import check_sounds
from codec_bench.engine.run import Engine
from codec_bench.engine.running import Running, Workers, describe_machine, numbers_to_save, start_engine
from codec_bench.engine.timings import Timeline, name_models
from codec_bench.machine.environment import process_started_at
from codec_bench.messages.errors import RunMismatch, UserError
from codec_bench.metrics import code_of_metric
from codec_bench.metrics.base import ALIGNMENT_UNKNOWN
from codec_bench.metrics.sensitivity import NOTABLE, shifts_in_spreads
from codec_bench.store.files import write_json
from codec_bench.store.folders import RunFolder, named_folder, new_folder, own_folder, started_fingerprint
from codec_bench.store.parts import mark_part
from codec_bench.store.record import Run
from codec_bench.store.writer import RunWriter


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The inputs of a run that affect its scores; the run's record stores all of them.

    Args:
        systems: as `read_systems` accepts them.
        request: the caller's request for the record, with `command`, `seed` and `limit`.
        options: arguments of codecs and features by name.
        about: further entries of the run's `meta`.
    """

    systems: Any
    metrics: Sequence[str]
    source: Source
    request: Mapping[str, Any]
    options: Mapping[str, Mapping[str, Any]]
    about: Mapping[str, Any] = field(default_factory=dict)


def execute(evaluation: Evaluation, out: str | os.PathLike[str] | None, running: Running) -> Run:
    """Run systems over data into a run folder; `evaluate` and `score` both end here.

    Args:
        out: the run folder; None continues an unfinished run of the same request under `runs/`, or makes a new one.

    Raises:
        UserError: a name, the data or an option is wrong, or the folder cannot be written.
    """
    timeline = Timeline(process_started_at() if running.is_command else None)
    plan = plan_evaluation(evaluation, running)
    for attempt in open_folders(evaluation, plan, out, running):
        with attempt as folder:
            return _execute_in(folder, plan, evaluation, running, timeline)
    raise AssertionError("the last folder is new")


def plan_evaluation(evaluation: Evaluation, running: Running) -> Plan:
    """Plan an evaluation, or raise UserError."""
    source = evaluation.source
    if not len(source):
        raise UserError("data_without_samples", label=f"'{source.name}'", hint="name data that holds at least one")
    gpu = has_gpu(running.device) if running.as_on_gpu is None else running.as_on_gpu
    seed = evaluation.request["seed"]
    return build_plan(evaluation.systems, evaluation.metrics, evaluation.options, source.languages, gpu=gpu, seed=seed)


def open_folders(
    evaluation: Evaluation, plan: Plan, out: str | os.PathLike[str] | None, running: Running
) -> Iterator[AbstractContextManager[RunFolder]]:
    """Yield context managers of run folders to try in turn; the first match counts.

    With `out`, there is only that folder. Otherwise the first is an unfinished run of the same request under `runs/`. A
    new folder follows, because only loaded codecs show that their weights differ from those of the unfinished run.
    """
    if out is not None:
        yield named_folder(out)
        return
    command, known = evaluation.request["command"], _fingerprint(plan, {}, evaluation)
    mismatches: list[str] = []
    yield _unless_mismatched(own_folder(command, known, also_finished=running.retry_failed), mismatches)
    yield new_folder(command, known, f"; {mismatches[0]}")


@contextmanager
def _unless_mismatched(folder: RunFolder, mismatches: list[str]) -> Iterator[RunFolder]:
    """Collect the message of a RunMismatch in `mismatches` instead of raising it."""
    with folder:
        try:
            yield folder
        except RunMismatch as error:
            mismatches.append(error.message)


def execute_shard(evaluation: Evaluation, shard: Shard, folder: Path, running: Running, workers: Workers) -> Run:
    """Run one shard of an evaluation in `folder`, and mark it as finished.

    Args:
        shard: which part of the samples.
        running: options that change no number.
        workers: they stay for the next shard.
    """
    shard_evaluation = replace(evaluation, source=part_of(evaluation.source, shard))
    plan = plan_evaluation(shard_evaluation, running)
    with named_folder(folder) as run_folder:
        run = _execute_in(run_folder, plan, shard_evaluation, running, Timeline(), workers)
    mark_part(run)
    return run


def _execute_in(
    run_folder: RunFolder, plan: Plan, evaluation: Evaluation, running: Running, timeline: Timeline,
    workers: Workers | None = None,
) -> Run:  # fmt: skip
    """Run the plan into a locked folder; RunMismatch if it has another record."""
    timeline.mark("plan")
    running.on_folder(run_folder.path, run_folder.words)
    source, folder = evaluation.source, run_folder.path
    total = len(source) * len(plan.systems)
    report_progress = running.progress
    keep = numbers_to_save(running.save_audio, source.full_size)
    with start_engine(plan, running, folder, keep, workers, total) as (engine, processes):
        codecs = [system.name for system in plan.systems if system.stage is not None]
        if codecs:
            report_progress(f"loading {name_models('codec', codecs)}", 0, total, 0, 0.0)
        facts = engine.load_codecs()
        plan = engine.plan
        if started_fingerprint(folder).get("systems"):
            _check_readable(plan, folder)
        writer = _open_record(run_folder, plan, facts, evaluation)
        execution = {**{name: getattr(running, name) for name in options_of(RunningOptions)}, "workers": processes}
        try:
            writer.set_meta(**evaluation.about)
            _run(engine, writer, plan, facts, evaluation, running, execution, timeline)
        finally:
            writer.close()
    report_progress("writing the report", total, total, 0, 0.0)
    return Run(folder)


def _open_record(run_folder: RunFolder, plan: Plan, facts: Mapping[str, Any], evaluation: Evaluation) -> RunWriter:
    """Open the record; a raised limit or further systems extend it, else RunMismatch."""
    now, recorded = _fingerprint(plan, facts, evaluation), started_fingerprint(run_folder.path)
    count = count_held_samples(recorded, now)
    if count is None and adds_systems(recorded, json.loads(json.dumps(now))):
        writer = RunWriter(run_folder.path, {**now, "systems": recorded["systems"]}, lock=run_folder.lock)
        writer.set_meta(fingerprint=now)
        return writer
    if count is None:
        return RunWriter(run_folder.path, now, lock=run_folder.lock)
    smaller = {**_fingerprint(plan, facts, evaluation, first=count), "limit": recorded["limit"]}
    # If something else differs, the writer tells it.
    writer = RunWriter(
        run_folder.path, smaller if json.loads(json.dumps(smaller)) == recorded else now, lock=run_folder.lock
    )
    writer.set_meta(fingerprint=now, **{GROWN: True})
    return writer


def _check_readable(plan: Plan, folder: Path) -> None:
    """Raise RunMismatch if the source of a codec of this process cannot be read."""
    for system in plan.systems:
        if system.runs_here and source_hash(system.cls) is None:
            raise RunMismatch(
                "class_source_unknown",
                folder=folder,
                system=system.name,
                hint="use another folder, or put the class into a separate file or cell",
            )


def _run(
    engine: Engine,
    writer: RunWriter,
    plan: Plan,
    facts: Mapping[str, dict[str, Any]],
    evaluation: Evaluation,
    running: Running,
    execution: Mapping[str, Any],
    timeline: Timeline,
) -> None:
    """Run the unfinished items, and record the request and the `execution`."""
    source = evaluation.source
    config = {
        **evaluation.request,
        **_shard(source),
        "systems": [s.name for s in plan.systems],
        "codecs": {s.name: s.spec for s in plan.systems if s.stage is not None and s.spec != s.name},
        "metrics": list(plan.metrics),
        "options": {of: {k: _plain(v) for k, v in chosen.items()} for of, chosen in evaluation.options.items()},
    }
    systems = {s.name: facts.get(s.name, {}) for s in plan.systems}
    finished = writer.begin(systems, metric_facts(plan), source, source.numbers, source.columns)
    if running.retry_failed and writer.delete_failures():
        finished = writer.begin(systems, metric_facts(plan), source, source.numbers, source.columns)
    check_sounds(writer, plan, source, running.progress)
    total = len(source) * len(plan.systems)
    started = datetime.now(UTC).isoformat(timespec="milliseconds")  # two runs started in one second differ
    writer.set_meta(
        config=config, how=execution, **describe_machine(), started=started, state="running",
        data={
            "name": source.name, "samples": len(source), "fingerprint": source.fingerprint,
            "unmatched": [*source.unmatched, *_unmatched_files(plan)],
        },
    )  # fmt: skip
    with closing(Run(writer.folder)) as previous:  # also a run that is stopped can be repeated from it
        if len(finished) < total or writer.took_up:
            write_json(writer.folder / "run.json", previous.meta)
        checks = previous.meta.get("checks") or {}
    before = len(finished)

    def report(phase: str, done: int, failed: int, audio_s: float) -> None:
        running.progress(phase, before + done, total, failed, audio_s)

    timeline.mark("load")
    timings = engine.run(list(source), writer, finished, report, checks, source.numbers, source.front)
    if engine.first_item_at is not None:
        timeline.mark("first_item", engine.first_item_at)
    timeline.mark("items")
    if engine.checks.results:
        results = {**checks, **engine.checks.results}
        checks = {s.name: results[s.name] for s in plan.systems if s.name in results} | results  # in one order
        writer.set_meta(checks=checks)
    rule: dict[str, Any] = {
        "check": DELAY,
        "metrics": [n for n, metric in plan.metrics.items() if metric.waveform],
        "flag": ALIGNMENT_UNKNOWN.as_dict(),
    }
    writer.set_meta(flag_unchecked=rule)
    if source.shard is None:  # the shards of a run are flagged alike when they are merged, by the checks of all of them
        writer.flag_unchecked(checks, **rule)
    timeline.mark("finish")
    timings |= {"continued_after_items": before, "timeline": timeline.phases}
    if timings["items"] or not before:  # if nothing was left to do, the earlier timings stay
        writer.set_meta(timings=timings)
    writer.set_meta(finished=datetime.now(UTC).isoformat(timespec="seconds"), state="finished")


def _unmatched_files(plan: Plan) -> list[str]:
    """Name the files without a sample, with their system if there are several."""
    several = len(plan.systems) > 1
    return [
        f"{system.name}: {id}" if several else id
        for system in plan.systems
        if system.source is not None
        for id in system.source.unmatched
    ]


def _shard(source: Source) -> dict[str, str]:
    """The shard for the record; empty for the whole data set."""
    return {} if source.shard is None else {"shard": str(source.shard)}


def metric_facts(plan: Plan) -> dict[str, dict[str, Any]]:
    """Facts of each metric of a plan, for the record."""
    return {
        name: {
            **{key: getattr(m, key) for key in ("protocol", "kind", "unit", "higher_is_better", "aggregate", "paper")},
            "range": list(m.range),
            **({"bounds": list(m.bounds)} if m.bounds is not None else {}),
            "source": m.source, "summary": doc_summary(type(m)),
            **({"implausible": m.implausible} if m.implausible is not None else {}), **_input_facts(plan, name),
        }
        for name, m in plan.metrics.items()
    }  # fmt: skip


def _input_facts(plan: Plan, name: str) -> dict[str, Any]:
    """Return `hears_hz` and `moved_by` of a metric; {} if it reads no audio.

    `hears_hz` is the highest input rate, or `NATIVE` for the file's. `moved_by` has the shift by each kind of change,
    such as a delay, relative to the metric's spread over five codecs; 0 if not notable. None if it was not measured.
    """
    metric = plan.metrics[name]
    rates = [plan.features[one].rate_hz for one in list_features_read(metric) if one in plan.features]
    if metric.signals:
        rates.append(metric.rate_hz or NATIVE)
    if not rates:
        return {}
    shifts = shifts_in_spreads().get(name)
    notable = (
        None
        if shifts is None
        else {kind: shift if NOTABLE <= shift < math.inf else 0.0 for kind, shift in shifts.items()}
    )
    return {"hears_hz": NATIVE if NATIVE in rates else max(rates), "moved_by": notable}


def _plain(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return str(value)


def _fingerprint(
    plan: Plan, facts: Mapping[str, Any], evaluation: Evaluation, *, first: int | None = None
) -> dict[str, Any]:
    """Everything that changes numbers; options of `Running` do not."""
    data_of = lambda source: source if first is None else source.first(first)  # noqa: E731
    options = {k: chosen for k, chosen in evaluation.options.items() if k in plan.features}
    codecs: dict[str, dict[str, Any]] = {}
    for system in plan.systems:
        codecs[system.name] = {k: v for k, v in facts.get(system.name, {}).items() if k not in ("where", "batch_s")}
        if system.runs_here:
            codecs[system.name]["code"] = source_hash(system.cls) or "its source cannot be read"
        elif code := code_of_codec(system.codec):
            codecs[system.name]["code"] = code
        elif system.source is not None:
            codecs[system.name]["audio"] = data_of(system.source).fingerprint
        if system.stage is not None and system.stage.options:
            of_files = is_foreign_codec(system.codec) or system.live is not None
            options[system.name] = {k: with_content(k, v) if of_files else v for k, v in system.stage.options.items()}
    return {
        "data": data_of(evaluation.source).fingerprint,
        "samples": data_of(evaluation.source).full_size,
        **_shard(evaluation.source),
        "systems": codecs,
        "metrics": {n: f"{m.protocol} {code_of_metric(n)}".rstrip() for n, m in plan.metrics.items()},
        "features": {n: f.identity for n, f in plan.features.items()},
        "options": {k: {a: str(b) for a, b in v.items()} for k, v in options.items()},
        "signals": SIGNALS,
        "seed": evaluation.request["seed"],
        "limit": evaluation.request["limit"],
        **({"reference": role} if (role := evaluation.request.get("reference", "target")) != "target" else {}),
    }

"""The public API behind the commands: evaluate, score, load_metric, verify_batching, compare.

Each function takes keyword arguments, returns a value, prints nothing, and raises `UserError` for what the caller can
mend. `codec_bench` itself exports them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codec_bench.audio.resample import SIGNALS
from codec_bench.data import Source, match_estimates, open_source
from codec_bench.engine.cache import FeatureCache, cache_folder
from codec_bench.engine.device import cpu_count, resolve_devices
from codec_bench.engine.plan import GENERATED, Plan, build_plan
from codec_bench.engine.pool import Pool
from codec_bench.engine.run import LOOK_AHEAD_S, Engine, Settings
from codec_bench.environment import machine, versions
from codec_bench.errors import UserError
from codec_bench.registry import is_own_code
from codec_bench.store.record import Run
from codec_bench.store.writer import RunWriter

KEEP_ALL_UP_TO = 60
KEEP_OTHERWISE = 24
_GPU_LOOK_AHEAD_S = 1800.0

Progress = Callable[[str, int, int, int, float], None]


@dataclass(frozen=True, slots=True)
class Running:
    """How a run is run; none of it changes a number.

    Args:
        device: `auto`, `cpu`, `cuda:0` or several GPUs with commas.
        workers: CPU worker processes; None for one per core.
        batch_s: padded seconds per batch in place of every stage's own budget.
        time_limit_s: seconds that a batch may take before its worker is ended and it is asked again item by item, loading
            left out; None for 600, or 60 for every padded second of the batch where that is more.
        cache: whether features are taken from and put into the feature cache.
        save_audio: `all`, `none`, or how many samples' audio to keep; None keeps all of a small run and 24 of a large one.
        retry_failed: whether items that failed before run again.
        page: whether to write `report.html` at the end.
        progress: called with (what is happening, items finished, items in all, items failed, seconds of audio finished).
    """

    device: str = "auto"
    workers: int | None = None
    batch_s: float | None = None
    time_limit_s: float | None = None
    cache: bool = True
    save_audio: str | int | None = None
    retry_failed: bool = False
    page: bool = True
    progress: Progress = lambda stage, done, total, failed, audio_s: None


def evaluate(
    *,
    codec: str | Sequence[str],
    data: Any,
    metrics: str | Sequence[str],
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    limit: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    running: Running | None = None,
    **how: Any,
) -> Run:
    """Sends audio through codecs and scores what comes out.

    Running it again with the same arguments continues where an earlier run was stopped.

    Args:
        codec: names of codecs (`opus-12k`, `encodec-24khz@6`, `./mine.py:MyCodec`, `unprocessed`), or one string with commas.
        data: a folder, a manifest, `embedded`, or a list of `Sample`.
        metrics: names of metrics (`stoi`, `wer[pocketsphinx]`, `dnsmos`, `./mine.py:MyMetric`), or one string with commas.
        out: the run folder; None makes one under `runs/`.
        seed: of the bootstrap and of the subset that `limit` takes.
        limit: how many samples to take.
        options: arguments of codecs and features, such as {"dnsmos": {"weights": "folder"}}.
        running: how to run it; its fields may also be given as keyword arguments (`device="cpu"`, `workers=2`, ...).

    Returns:
        The finished run, opened for reading; `run.folder` holds the record, `summary.json` and `report.html`.

    Raises:
        UserError: whatever the caller can mend. Failures of single items are in the run, not raised.
    """
    source = open_source(data, limit=limit, seed=seed if limit is not None else None)
    request = {"command": "evaluate", "data": _data_name(data), "seed": seed, "limit": limit}
    return execute(names(codec), names(metrics), source, out, request, dict(options or {}), running or Running(**how))


def score(
    *,
    generated: Any,
    data: Any,
    metrics: str | Sequence[str],
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    limit: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    running: Running | None = None,
    **how: Any,
) -> Run:
    """Scores audio that exists already (speech synthesis, voice conversion, somebody else's codec).

    Args:
        generated: a folder or manifest; files are matched to `data` by id, which is the file's stem.
        data: what they should be like: transcripts, reference audio, speakers. A sample without a generated file is a
            failure in the record.
        metrics, out, seed, limit, options, running: as in `evaluate`. Pair metrics need reference audio in `data`.

    Returns:
        The finished run with one system, `generated`.

    Raises:
        UserError: as `evaluate`.
    """
    source = open_source(data, limit=limit, seed=seed if limit is not None else None, require_audio=False)
    source = match_estimates(source, generated)
    request = {"command": "score", "data": _data_name(data), "generated": str(generated), "seed": seed, "limit": limit}
    return execute([GENERATED], names(metrics), source, out, request, dict(options or {}), running or Running(**how))


def names(value: str | Sequence[str]) -> list[str]:
    """A list of names from a list, or from one string with commas."""
    parts = value.split(",") if isinstance(value, str) else list(value)
    return [p.strip() for p in parts if p.strip()]


def _data_name(data: Any) -> str:
    return str(data) if isinstance(data, (str, os.PathLike)) else "samples"


def execute(
    systems: list[str],
    metrics: list[str],
    source: Source,
    out: str | os.PathLike[str] | None,
    request: dict[str, Any],
    options: dict[str, Mapping[str, Any]],
    running: Running,
    about: Mapping[str, Any] | None = None,
) -> Run:
    """Runs systems over data into a run folder; what `evaluate` and `score` have in common.

    Args:
        systems, metrics: names. source: the data. out: the run folder, or None. options, running: as `evaluate`.
        request: what was asked for, for the record; `seed` and `limit` are in it.
        about: further entries of the run's `meta`.

    Raises:
        UserError: whatever the caller can mend.
    """
    if not len(source):
        raise UserError(f"'{source.name}' holds no samples")
    plan = build_plan(systems, metrics, options, {sample.language for sample in source})
    folder = Path(out) if out is not None else new_folder(request["command"])
    total = len(source) * len(plan.systems)
    tell = running.progress
    with working_engine(plan, running, folder, kept_numbers(running.save_audio, len(source))) as (engine, workers):
        tell("loading", 0, total, 0, 0.0)
        facts = engine.load_codecs()
        writer = RunWriter(folder, _fingerprint(plan, facts, source, request, options))
        try:
            writer.set_meta(**(about or {}))
            _run(engine, writer, plan, facts, source, request, options, running, workers)
        finally:
            writer.close()
    run = Run(folder)
    tell("writing the report", total, total, 0, 0.0)
    write_results(run, page=running.page)
    return run


@contextmanager
def working_engine(
    plan: Plan, running: Running, folder: Path, keep: frozenset[int] = frozenset()
) -> Iterator[tuple[Engine, int]]:
    """Workers, cache and engine for one plan, closed at the end; gives (engine, number of workers).

    Raises:
        UserError: the run folder cannot be written.
    """
    devices = tuple(resolve_devices(running.device))
    settings = Settings(
        batch_s=running.batch_s,
        time_limit_s=running.time_limit_s,
        look_ahead_s=LOOK_AHEAD_S if devices == ("cpu",) else _GPU_LOOK_AHEAD_S,
        keep=keep,
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        log = open(folder / "workers.log", "ab")
    except OSError as error:
        raise UserError(f"the run folder '{folder}' cannot be written: {error.strerror}") from error
    cache = FeatureCache(cache_folder() / "features.sqlite" if running.cache else None)
    with log:
        pool = Pool(devices, running.workers or cpu_count(), log)
        try:
            yield Engine(plan, settings, pool, cache, str(folder / "workers.log")), len(pool.workers)
        finally:
            pool.close()
            cache.close()


def _run(
    engine: Engine,
    writer: RunWriter,
    plan: Plan,
    facts: dict[str, dict[str, Any]],
    source: Source,
    request: dict[str, Any],
    options: Mapping[str, Any],
    running: Running,
    workers: int,
) -> None:
    config = {
        **request,
        "systems": [s.name for s in plan.systems],
        "metrics": list(plan.metrics),
        "options": dict(options),
    }
    finished = writer.begin({s.name: facts.get(s.name, {}) for s in plan.systems}, metric_facts(plan), source)
    if running.retry_failed and writer.forget_failures():
        finished = writer.begin({s.name: facts.get(s.name, {}) for s in plan.systems}, metric_facts(plan), source)
    total = len(source) * len(plan.systems)
    how = {
        "device": running.device, "workers": workers, "batch_s": running.batch_s, "time_limit_s": running.time_limit_s,
        "cache": running.cache,
    }  # fmt: skip
    started = datetime.now(UTC).isoformat(timespec="seconds")
    writer.set_meta(
        config=config, how=how, versions=versions(), machine=machine(), started=started, state="running",
        data={"name": source.name, "samples": len(source), "fingerprint": source.fingerprint, "unmatched": list(source.unmatched)},
    )  # fmt: skip
    before = len(finished)
    report = lambda done, failed, audio_s: running.progress("running", before + done, total, failed, audio_s)  # noqa: E731
    timings = engine.run(list(source), writer, finished, report)
    timings["continued_after_items"] = before
    if timings["items"] or not before:  # a run that had nothing left to do keeps the timings of the one that worked
        writer.set_meta(timings=timings)
    writer.set_meta(finished=datetime.now(UTC).isoformat(timespec="seconds"), state="finished")


def metric_facts(plan: Plan) -> dict[str, dict[str, Any]]:
    """What the record says of each metric of a plan."""
    return {
        name: {
            "protocol": m.protocol, "kind": m.kind, "unit": m.unit, "higher_is_better": m.higher_is_better, "range": list(m.range),
            "aggregate": m.aggregate, "paper": m.paper, "source": m.source, "summary": (type(m).__doc__ or "").strip().split("\n")[0],
        }
        for name, m in plan.metrics.items()
    }  # fmt: skip


def _fingerprint(
    plan: Plan, facts: Mapping[str, Any], source: Source, request: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything that changes numbers. What a run was told about how to run is not in it."""
    codecs = {}
    for system in plan.systems:
        codecs[system.name] = {k: v for k, v in facts.get(system.name, {}).items() if k not in ("where", "batch_s")}
        if is_own_code(system.name):
            codecs[system.name]["code"] = code_hash(system.name)
    return {
        "data": source.fingerprint,
        "samples": len(source),
        "systems": codecs,
        "metrics": {
            n: m.protocol if not is_own_code(n) else f"{m.protocol} {code_hash(n)}" for n, m in plan.metrics.items()
        },
        "features": {n: f.cache_id or n for n, f in plan.features.items()},
        "options": {k: {a: str(b) for a, b in v.items()} for k, v in options.items()},
        "signals": SIGNALS,
        "seed": request["seed"],
        "limit": request["limit"],
    }


def code_hash(name: str) -> str:
    """64 bits over the file of code of one's own, as hexadecimal; empty where there is none to read."""
    path = Path(name.rpartition(":")[0]).expanduser()
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def kept_numbers(save_audio: str | int | None, samples: int) -> frozenset[int]:
    """The samples whose audio is kept: all, none, or so many spread evenly.

    Raises:
        UserError: it is none of these.
    """
    if save_audio is None:
        save_audio = "all" if samples <= KEEP_ALL_UP_TO else KEEP_OTHERWISE
    if save_audio == "all":
        return frozenset(range(samples))
    if save_audio == "none":
        return frozenset()
    try:
        count = int(save_audio)
    except ValueError:
        raise UserError(f"save_audio is '{save_audio}'; expected all, none or a number of samples") from None
    count = min(max(count, 0), samples)
    return frozenset(round(k * (samples - 1) / max(1, count - 1)) for k in range(count))


def new_folder(command: str) -> Path:
    """Where a run goes that was given no folder."""
    return Path("runs") / f"{command}-{datetime.now().strftime('%Y%m%d-%H%M%S')}"


def write_results(run: Run, *, page: bool = True) -> dict[str, Any]:
    """Writes `summary.json`, `run.json` and `report.html` from the record, each whole or not at all; returns the summary."""
    from codec_bench.stats.summary import summarise

    summary = summarise(run)
    write_json(run.folder / "summary.json", summary)
    write_json(run.folder / "run.json", run.meta)
    if page:
        from codec_bench.report.page import write_page

        write_page([run], run.folder / "report.html", summaries=[summary])
    return summary


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file whole or not at all.

    Raises:
        UserError: it cannot be written.
    """
    temporary = path.with_suffix(".json.part")
    try:
        temporary.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"'{path}' cannot be written: {error.strerror}") from error

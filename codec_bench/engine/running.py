"""The options of a run that change no number; its workers, cache and engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codec_bench.config.option import documented
from codec_bench.config.paths import cache_folder
from codec_bench.config.request import EvalRequest
from codec_bench.config.shared_options import RunningOptions
from codec_bench.engine.cache import FeatureCache
from codec_bench.engine.device import cpu_workers, resolve_devices
from codec_bench.engine.executor import OnRay, read_executor
from codec_bench.engine.plan import Plan
from codec_bench.engine.pool import Pool
from codec_bench.engine.run import Engine, EngineSettings
from codec_bench.machine.environment import cpu_count, machine, versions
from codec_bench.messages.errors import UserError, on_disk

KEEP_ALL_UP_TO = 60
KEEP_OTHERWISE = 24
ON_A_GPU = (4 << 30, 16_384)
"""Limit with a GPU, so that batches can grow to fill its memory."""

Progress = Callable[[str, int, int, int, float], None]
OnFolder = Callable[[Path, str], None]


def report_nothing(stage: str, done: int, total: int, failed: int, audio_s: float) -> None:
    """Report nothing."""


@documented(EvalRequest, "running")
@dataclass(frozen=True, slots=True, kw_only=True)
class Running(RunningOptions):
    """How a run is carried out. None of these options changes a number.

    Args:
        impatient: whether slow code costs few time limits: the limit then holds for loading too, and a codec or metric
            ends after three items that exceeded it, although others had results.
        page: whether to write `report.html` at the end. The run of a shard gets none.
        progress: called with (phase, items finished, items in all, items failed, seconds of audio finished).
        as_on_gpu: whether features are computed as on a GPU, the same for all parts of a cluster's run; None for the
            devices here.
        on_folder: called with the run folder and a sentence on it before anything is loaded.
        on_estimate: called with a sentence on the cost of a benchmark's questions before the first is sent.
        is_command: whether the run is this process's only work, so that its time begins with the process.
    """

    impatient: bool = False
    page: bool = True
    executor: str | OnRay = "local"
    as_on_gpu: bool | None = None
    progress: Progress = report_nothing
    on_folder: OnFolder = lambda folder, words: None
    on_estimate: Callable[[str], None] = lambda words: None
    is_command: bool = False

    @property
    def on_ray(self) -> OnRay | None:
        """The Ray cluster of the run, None for this machine, or a UserError."""
        return read_executor(self.executor)


@dataclass(frozen=True, slots=True)
class Workers:
    """Worker processes, which several shards may use in turn; they load a model once."""

    pool: Pool
    log: Path


def choose_running(running: Running | None, fields: Mapping[str, Any]) -> Running:
    """Return `running`, or build it from separate arguments; UserError for both."""
    if running is not None and fields:
        named = ", ".join(f"{name}=" for name in fields)
        raise UserError(
            "running_and_options",
            options=named,
            hint=f"Running({', '.join(f'{name}={value!r}' for name, value in fields.items())}), or leave running= out",
        )
    return running if running is not None else Running(**fields)


def describe_machine() -> dict[str, Any]:
    """The machine and the versions of packages that may change numbers."""
    return {"versions": versions(), "machine": machine()}


@contextmanager
def start_workers(
    running: Running, folder: Path, cores: int | None = None, items: int | None = None, is_cheap: bool = False
) -> Iterator[Workers]:
    """Start the workers of a run, and end them with the block.

    Args:
        folder: takes the workers' output.
        cores: that the workers share; None for all.
        items: of the run, if known: no more CPU workers are started.
        is_cheap: whether the engine starts all CPU workers but the first, once the run takes longer than they take to
            start.

    Raises:
        UserError: the folder cannot be written, or this machine has no such device.
    """
    devices = resolve_devices(running.device)
    path = folder / "workers.log"
    with on_disk("file_not_writable", path=folder):
        folder.mkdir(parents=True, exist_ok=True)
        log = open(path, "ab")
    with log:
        each = [device for device in devices for _ in range(1 if device == "cpu" else running.per_gpu)]
        loading_s = math.inf if not running.impatient or running.time_limit_s is None else running.time_limit_s
        workers = running.workers or cpu_workers(devices)
        # A worker's share of the cores does not depend on the number of items.
        threads = max(1, (cores or cpu_count()) // workers)
        started = workers if items is None else max(1, min(workers, items))
        pool = Pool(each, started, log, threads * started, loading_s, started - 1 if is_cheap else 0)
        try:
            yield Workers(pool, path)
        finally:
            pool.close()


@contextmanager
def start_engine(
    plan: Plan,
    running: Running,
    folder: Path,
    keep: frozenset[int] = frozenset(),
    workers: Workers | None = None,
    items: int | None = None,
) -> Iterator[tuple[Engine, int]]:
    """Start workers, cache and engine for a plan; yields (engine, number of workers).

    Args:
        keep: numbers of the samples whose audio is saved.
        workers: reused and left running; None starts new ones.
        items: of the run, if known.
    """
    devices = tuple(resolve_devices(running.device))
    batch_s, limit_s, check, impatient = running.batch_s, running.time_limit_s, running.check, running.impatient
    settings = EngineSettings(batch_s, limit_s, keep=keep, check=check, impatient=impatient)
    if devices != ("cpu",):
        settings = replace(settings, look_ahead=ON_A_GPU)
    is_cheap = devices == ("cpu",) and not plan.features and all(system.stage is None for system in plan.systems)
    started = (
        start_workers(running, folder, items=items, is_cheap=is_cheap) if workers is None else nullcontext(workers)
    )
    with started as used, closing(FeatureCache(cache_folder() / "features.sqlite" if running.cache else None)) as cache:
        yield Engine(plan, settings, used.pool, cache, str(used.log)), len(used.pool.workers) + used.pool.spare


def numbers_to_save(save_audio: str | int | None, samples: int) -> frozenset[int]:
    """Numbers of the samples whose audio is saved (`all`, `none` or so many, spread)."""
    if save_audio is None:
        save_audio = "all" if samples <= KEEP_ALL_UP_TO else KEEP_OTHERWISE
    if save_audio == "all":
        return frozenset(range(samples))
    if save_audio == "none":
        return frozenset()
    try:
        count = int(save_audio)
    except ValueError:
        raise UserError("save_audio_value", value=save_audio) from None
    count = min(max(count, 0), samples)
    return frozenset(round(k * (samples - 1) / max(1, count - 1)) for k in range(count))

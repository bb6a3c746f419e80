"""Running a plan: one event loop that keeps the workers fed, follows every item to its record, and survives faults.

How an item travels
    A sample is read by a thread (feed). Its reference goes to every codec; what a codec gives back, like the reference
    itself, is a signal. Each signal is asked for the features that the metrics need, each feature once. Metrics run as
    soon as what they read is there. When every metric of an item has a score, the item is written.

Faults
    A batch that fails is asked again item by item, so one item's fault is its own. A batch that was too large for memory
    halves its stage's budget. A worker that dies is replaced; what it held runs again, and an item that kills its
    worker twice is recorded as failed.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from codec_bench.audio.resample import resampled_length
from codec_bench.engine.arena import Arena
from codec_bench.engine.cache import FeatureCache
from codec_bench.engine.feed import Loaded, Signal, load
from codec_bench.engine.plan import UNPROCESSED, FeaturePlan, Plan, System
from codec_bench.engine.pool import Batch, Died, Done, Pool, Worker
from codec_bench.engine.stage import CodecResult, CodecWork, Fault, MetricWork, StageSpec, compute_scores
from codec_bench.errors import UserError
from codec_bench.metrics.base import inputs_or_score
from codec_bench.store.record import ItemRecord, RunWriter
from codec_bench.types import Sample, Score

SIGNAL_METRICS = "signal metrics"
FEATURE_METRICS = "feature metrics"
CPU_BATCH_S = 0.25  # a CPU batch aims at this much work: long enough to hide the pipe, short enough to share the end
GPU_BATCH_GROWTH = 1.25
LOOK_AHEAD_S = 240.0
LOOK_AHEAD_SAMPLES = 512
WRITE_ITEMS = 256
WRITE_S = 1.0
_WINDOW = 2048  # works among which a batch of similar lengths is sought
_MAX_KILLS = 2
_MAX_IDLE_DEATHS = 6


@dataclass(slots=True, eq=False)
class _Work:
    """One item waiting for one stage. `alone` works are sent by themselves, since their batch failed."""

    payload: Any
    length_s: float
    done: Callable[[Any], None]
    order: int
    alone: bool = False
    kills: int = 0


@dataclass(slots=True, eq=False)
class _Stage:
    """A stage's waiting works, its budget, and what it has cost."""

    spec: StageSpec
    where: str
    budget_s: float
    pads: bool
    waiting: deque[_Work] = field(default_factory=deque)
    growing: bool = True
    items: int = 0
    audio_s: float = 0.0
    busy_s: float = 0.0
    cpu_s: float = 0.0
    steps: dict[str, float] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """Seconds of work per second of audio so far, loading left out; 0 while unknown."""
        return (self.busy_s - self.steps.get("load", 0.0)) / self.audio_s if self.audio_s else 0.0


@dataclass(slots=True, eq=False)
class _Item:
    """One sample in flight."""

    loaded: Loaded
    open_systems: int
    audio_s: float


@dataclass(slots=True, eq=False)
class _Outcome:
    """One sample through one system, in flight."""

    item: _Item
    system: System
    estimate: Signal | None = None
    bits: float | None = None
    audio: str | None = None
    notes: tuple[str, ...] = ()
    scores: dict[str, Score] = field(default_factory=dict)
    features_missing: int = 0


@dataclass(frozen=True, slots=True)
class Settings:
    """How a plan is run; none of it may change a number.

    Args:
        devices: `cpu`, or GPUs. workers: CPU worker processes. batch_s: padded seconds per batch in place of each
            stage's own budget, or None. look_ahead_s: audio in flight. keep: numbers of the samples whose audio is kept.
    """

    devices: tuple[str, ...]
    workers: int
    batch_s: float | None = None
    look_ahead_s: float = LOOK_AHEAD_S
    keep: frozenset[int] = frozenset()


class Engine:
    """Runs one plan over one data set into one record.

    Args:
        plan: what to compute. settings: how. cache: computed features.
    """

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        cache: FeatureCache,
    ) -> None:
        self._plan, self._settings, self._cache = plan, settings, cache
        self._stages: dict[str, _Stage] = {}
        self._rates: dict[str, tuple[int, ...]] = {}
        self._order = 0
        self._in_flight_s = 0.0
        self._in_flight = 0
        self._records: list[tuple[int, ItemRecord]] = []
        self._last_write = perf_counter()
        self._finished = self._failed = 0
        self._finished_audio_s = 0.0
        self._feed_s = self._write_s = self._wait_s = 0.0
        self._idle_deaths = 0

    def load_codecs(self, pool: Pool) -> dict[str, dict[str, Any]]:
        """Loads every codec once and returns its facts.

        Raises:
            UserError: one cannot be loaded.
        """
        specs = {s.name: s.stage for s in self._plan.systems if s.stage is not None}
        specs |= {f.name: f.stage for f in self._plan.features.values()}
        if self._plan.signal_metrics:
            specs[SIGNAL_METRICS] = StageSpec(SIGNAL_METRICS, "metrics", self._plan.signal_metrics)
        if self._plan.feature_metrics:
            specs[FEATURE_METRICS] = StageSpec(FEATURE_METRICS, "metrics", self._plan.feature_metrics)
        pool.define({spec.key: spec for spec in specs.values()})
        codecs = [s.stage.key for s in self._plan.systems if s.stage is not None]
        facts = pool.facts((key, "device") for key in codecs)
        for key in codecs:
            self._rates[key] = tuple(facts[key]["sample_rates_hz"])
            self._add_stage(specs[key], facts[key]["where"], facts[key]["batch_s"], True)
        for feature in self._plan.features.values():
            self._add_stage(feature.stage, feature.where, feature.batch_s, feature.where == "device")
        for key in (SIGNAL_METRICS, FEATURE_METRICS):
            if key in specs:
                self._add_stage(specs[key], "cpu", 600.0, False)
        return facts

    def _add_stage(self, spec: StageSpec, where: str, budget_s: float, pads: bool) -> None:
        self._stages[spec.key] = _Stage(spec, where, self._settings.batch_s or budget_s, pads)

    def run(
        self,
        samples: Sequence[Sample],
        writer: RunWriter,
        finished: set[tuple[int, int]],
        pool: Pool,
        progress: Callable[[int, int, float], None],
    ) -> dict[str, Any]:
        """Runs everything that is not finished; `load_codecs` comes first.

        Args:
            samples: the data. writer: where results go. finished: (system, sample) numbers to leave out.
            pool: the workers. progress: called with (items finished, failed, seconds of audio finished) now and then.

        Returns:
            Timings for the record.

        Raises:
            UserError: the record cannot be written, or workers cannot be kept alive.
        """
        start, start_cpu = perf_counter(), os.times()
        self._writer, self._progress = writer, progress
        arena = Arena()
        reader, waker = os.pipe()
        os.set_blocking(reader, False)
        loaded: deque[Future[Loaded]] = deque()
        threads = ThreadPoolExecutor(2, thread_name_prefix="feed")
        todo = self._todo(samples, finished)
        loading = 0
        more = True

        def wake(future: Future[Loaded]) -> None:
            loaded.append(future)
            os.write(waker, b"\0")

        try:
            while True:
                while more and loading < 8 and self._room(loading):
                    entry = next(todo, None)
                    if entry is None:
                        more = False
                        break
                    number, sample, systems = entry
                    keep = self._writer.folder if number in self._settings.keep else None
                    from_files = any(s.from_files for s in systems)
                    future = threads.submit(load, number, sample, self._plan, arena, keep, from_files)
                    future.systems = systems  # carried along to the moment it is read
                    future.add_done_callback(wake)
                    loading += 1
                while loaded:
                    future = loaded.popleft()
                    loading -= 1
                    self._admit(future.result(), future.systems, arena)
                self._dispatch(pool)
                self._write(force=False)
                if not (more or loading or loaded or self._in_flight or pool.busy):
                    break
                self._turn(pool, reader, arena)
            self._write(force=True)
            self._cache.flush()
            return self._timings(perf_counter() - start, start_cpu, pool)
        except BaseException:
            try:
                self._write(force=True)  # what is finished is kept, whatever ended the run
            except UserError:
                pass  # the record itself is the trouble, and its error is on its way already
            raise
        finally:
            threads.shutdown(cancel_futures=True)
            os.close(reader)
            os.close(waker)
            arena.close()

    def _todo(
        self, samples: Sequence[Sample], finished: set[tuple[int, int]]
    ) -> Iterator[tuple[int, Sample, list[System]]]:
        for number, sample in enumerate(samples):
            systems = [s for k, s in enumerate(self._plan.systems) if (k, number) not in finished]
            if systems:
                yield number, sample, systems

    def _room(self, loading: int) -> bool:
        busy = self._in_flight + loading
        return busy == 0 or (self._in_flight_s < self._settings.look_ahead_s and busy < LOOK_AHEAD_SAMPLES)

    def _turn(self, pool: Pool, reader: int, arena: Arena) -> None:
        """Waits for news and follows it up."""
        start = perf_counter()
        events = pool.events([_Handle(reader)], 1.0)
        self._wait_s += perf_counter() - start
        try:
            os.read(reader, 65536)
        except BlockingIOError:
            pass  # the news came from a worker
        for event in events:
            if isinstance(event, Died):
                self._on_death(event, pool)
            else:
                self._on_done(event)
        pool.forget(arena.trim())

    # ---- samples ----

    def _admit(self, loaded: Loaded, systems: list[System], arena: Arena) -> None:
        self._feed_s += loaded.busy_s
        signals = [s for s in (loaded.reference, loaded.estimate) if s is not None]
        item = _Item(loaded, len(systems), sum(s.duration_s for s in signals))
        self._in_flight += 1
        self._in_flight_s += item.audio_s
        for signal in signals:
            signal.holders = 1
        for system in systems:
            outcome = _Outcome(item, system)
            if loaded.reason is not None:
                self._no_estimate(outcome, loaded.reason, arena)
            elif system.from_files:
                outcome.audio = self._kept("generated", loaded.number)
                if loaded.estimate is None:
                    self._no_estimate(outcome, loaded.estimate_reason or "", arena)
                else:
                    self._on_estimate(outcome, loaded.estimate, arena)
            elif system.name == UNPROCESSED:
                outcome.audio = self._kept("reference", loaded.number)
                loaded.reference.holders += 1
                self._on_estimate(outcome, loaded.reference, arena)
            else:
                self._send_to_codec(outcome, arena)

    def _kept(self, system: str, number: int) -> str | None:
        if number not in self._settings.keep:
            return None
        safe = "".join(c if c.isalnum() or c in "-_.@" else "_" for c in system)
        return f"audio/{safe}/{number:07d}.flac"

    def _send_to_codec(self, outcome: _Outcome, arena: Arena) -> None:
        reference = outcome.item.loaded.reference
        key = outcome.system.stage.key
        rate = reference.sample_rate_hz
        lengths = {r: resampled_length(reference.num_samples, rate, r) for r in self._plan.rates("estimate", rate)}
        regions = {r: arena.allocate((n,)) for r, n in lengths.items()}
        outcome.audio = self._kept(outcome.system.name, outcome.item.loaded.number)
        keep = str(self._writer.folder / outcome.audio) if outcome.audio else None
        work = CodecWork(reference.audio, rate, regions, keep)

        def done(result: CodecResult | Fault) -> None:
            if isinstance(result, Fault):
                for region in regions.values():
                    arena.free(region)
                outcome.audio = None
                self._no_estimate(outcome, result.reason, arena)
                return
            outcome.bits = result.bits
            estimate = Signal(regions, rate, reference.num_samples, result.content_hash, notes=result.notes, holders=1)
            self._on_estimate(outcome, estimate, arena)

        self._queue(key, work, reference.duration_s, done)

    def _no_estimate(self, outcome: _Outcome, reason: str, arena: Arena) -> None:
        for name, metric in self._plan.metrics.items():
            outcome.scores[name] = Score.failed(reason, metric.protocol)
        self._finish(outcome, arena, reason)

    def _on_estimate(self, outcome: _Outcome, estimate: Signal, arena: Arena) -> None:
        outcome.estimate, outcome.notes = estimate, estimate.notes
        reference = outcome.item.loaded.reference
        if self._plan.signal_metrics:
            works = self._metric_work(outcome)
            self._queue(
                SIGNAL_METRICS, works, estimate.duration_s, lambda r: self._on_scores(outcome, r, arena, SIGNAL_METRICS)
            )
        wanted = [(estimate, f) for f in self._plan.estimate_features]
        wanted += [(reference, f) for f in self._plan.reference_features if reference is not None]
        for signal, name in wanted:
            self._need(signal, self._plan.features[name], outcome, arena)
        if outcome.features_missing == 0:
            self._on_features(outcome, arena)

    def _metric_work(self, outcome: _Outcome) -> MetricWork:
        loaded, estimate = outcome.item.loaded, outcome.estimate
        reference = loaded.reference
        rate = reference.sample_rate_hz if reference is not None else estimate.sample_rate_hz
        return MetricWork(
            id=loaded.sample.id,
            estimate=estimate.rates,
            reference=reference.rates if reference is not None else {},
            native_rate_hz=rate,
            text=loaded.sample.text,
            language=loaded.sample.language,
            bits=outcome.bits,
            duration_s=estimate.duration_s,
        )

    # ---- features ----

    def _need(self, signal: Signal, feature: FeaturePlan, outcome: _Outcome, arena: Arena) -> None:
        state = signal.features.get(feature.name)
        if isinstance(state, list):
            if outcome not in state:
                state.append(outcome)
                outcome.features_missing += 1
            return
        if state is not None:
            return
        key = f"{signal.content_hash}|{feature.cache_id}" if feature.cache_id is not None else None
        stored = self._cache.get(key) if key is not None else None
        if stored is not None:
            signal.features[feature.name] = stored
            return
        signal.features[feature.name] = [outcome]
        outcome.features_missing += 1
        signal.holders += 1

        def done(result: dict[str, Any] | Fault) -> None:
            waiting = signal.features[feature.name]
            signal.features[feature.name] = result
            if key is not None and not isinstance(result, Fault):
                self._cache.put(key, result)
            signal.release(arena)
            for waiter in waiting:
                waiter.features_missing -= 1
                if waiter.features_missing == 0:
                    self._on_features(waiter, arena)

        self._queue(feature.stage.key, signal.rates[feature.rate_hz], signal.duration_s, done)

    def _on_features(self, outcome: _Outcome, arena: Arena) -> None:
        """Every feature of an item is there: score what reads them."""
        reference = outcome.item.loaded.reference
        values = {
            "estimate_features": {f: outcome.estimate.features[f] for f in self._plan.estimate_features},
            "reference_features": {f: reference.features[f] for f in self._plan.reference_features}
            if reference is not None
            else {},
        }
        base = self._metric_work(outcome)
        for name in self._plan.inline_metrics:
            metric = self._plan.metrics[name]
            ready = inputs_or_score(
                metric, id=base.id, rate_hz=base.native_rate_hz, text=base.text, language=base.language,
                bits=base.bits, duration_s=base.duration_s, **values,
            )  # fmt: skip
            outcome.scores[name] = ready if isinstance(ready, Score) else compute_scores(metric, [ready])[0]
        if self._plan.feature_metrics:
            work = MetricWork(
                base.id, base.estimate, base.reference, base.native_rate_hz, base.text, base.language, **values,
                bits=base.bits, duration_s=base.duration_s,
            )  # fmt: skip
            self._queue(
                FEATURE_METRICS, work, base.duration_s, lambda r: self._on_scores(outcome, r, arena, FEATURE_METRICS)
            )
        self._maybe_finish(outcome, arena)

    def _on_scores(self, outcome: _Outcome, result: dict[str, Score] | Fault, arena: Arena, stage: str) -> None:
        if isinstance(result, Fault):
            names = self._stages[stage].spec.names
            result = {n: Score.failed(result.reason, self._plan.metrics[n].protocol) for n in names}
        outcome.scores.update(result)
        self._maybe_finish(outcome, arena)

    def _maybe_finish(self, outcome: _Outcome, arena: Arena) -> None:
        if len(outcome.scores) == len(self._plan.metrics):
            self._finish(outcome, arena, None)

    def _finish(self, outcome: _Outcome, arena: Arena, reason: str | None) -> None:
        loaded = outcome.item.loaded
        reference = loaded.reference
        shown = reference or outcome.estimate
        record = ItemRecord(
            system=outcome.system.name,
            sample=loaded.sample.id,
            status="ok" if reason is None else "failed",
            reason=reason,
            scores={name: outcome.scores[name] for name in self._plan.metrics},
            bits=outcome.bits,
            audio=outcome.audio if reason is None else None,
            notes=outcome.notes,
            duration_s=shown.duration_s if shown is not None else None,
            sample_rate_hz=shown.sample_rate_hz if shown is not None else None,
            channels=loaded.channels if shown is not None else None,
        )
        self._records.append((loaded.number, record))
        self._finished += 1
        self._failed += reason is not None or any(s.status == "failed" for s in record.scores.values())
        if shown is not None:
            self._finished_audio_s += shown.duration_s
        if outcome.estimate is not None:
            outcome.estimate.release(arena)
        outcome.item.open_systems -= 1
        if outcome.item.open_systems == 0:
            self._in_flight -= 1
            self._in_flight_s -= outcome.item.audio_s
            if reference is not None:
                reference.release(arena)

    # ---- batches ----

    def _queue(self, key: str, payload: Any, length_s: float, done: Callable[[Any], None]) -> None:
        self._order += 1
        self._stages[key].waiting.append(_Work(payload, length_s, done, self._order))

    def _dispatch(self, pool: Pool) -> None:
        """Gives every worker with room a batch: a full one where there is one, else the one that has waited longest."""
        for worker in sorted(pool.workers, key=lambda w: len(w.batches)):
            while worker.room:
                fitting = [s for s in self._stages.values() if s.waiting and worker in pool.fitting(s.where)]
                if not fitting:
                    break
                full = [s for s in fitting if self._is_full(s, worker)]
                if not full and worker.batches:
                    break  # it has work; waiting lets batches fill up
                stage = min(full or fitting, key=lambda s: s.waiting[0].order)
                works = self._take(stage, worker)
                batch = Batch(stage.spec.key, works, sum(w.length_s for w in works), worker.device)
                pool.submit(worker, batch, [w.payload for w in works])

    def _room_s(self, stage: _Stage, worker: Worker) -> float:
        """Padded seconds that a batch of this stage may hold on this worker."""
        if self._settings.batch_s is not None or worker.device != "cpu":
            return stage.budget_s
        return min(stage.budget_s, CPU_BATCH_S / stage.cost) if stage.cost else 0.0

    def _is_full(self, stage: _Stage, worker: Worker) -> bool:
        room_s = self._room_s(stage, worker)
        total = 0.0
        for work in stage.waiting:
            total += work.length_s
            if work.alone or total >= room_s:
                return True
        return False

    def _take(self, stage: _Stage, worker: Worker) -> list[_Work]:
        """The oldest work and, of those that waited with it, the nearest in length, within the budget."""
        oldest = stage.waiting[0]
        if oldest.alone:
            return [stage.waiting.popleft()]
        room_s = self._room_s(stage, worker)
        window = [w for _, w in zip(range(_WINDOW), stage.waiting) if not w.alone]
        if stage.pads:
            window.sort(key=lambda w: (abs(w.length_s - oldest.length_s), w.order))
        chosen, longest, total = [], 0.0, 0.0
        for work in window:
            longest = max(longest, work.length_s)
            total += work.length_s
            if chosen and (longest * (len(chosen) + 1) if stage.pads else total) > room_s:
                break
            chosen.append(work)
        taken = set(map(id, chosen))
        stage.waiting = deque(w for w in stage.waiting if id(w) not in taken)
        return chosen

    def _on_done(self, event: Done) -> None:
        self._idle_deaths = 0
        batch, stage = event.batch, self._stages[event.batch.key]
        stage.busy_s += event.busy_s
        stage.cpu_s += event.cpu_s
        for step, seconds in event.steps.items():
            stage.steps[step] = stage.steps.get(step, 0.0) + seconds
        if isinstance(event.outcome, list):
            stage.items += len(batch.works)
            stage.audio_s += batch.audio_s
            self._grow(stage, batch)
            for work, result in zip(batch.works, event.outcome):
                work.done(result)
        elif len(batch.works) > 1:
            if event.outcome == "oom":
                padded = max(w.length_s for w in batch.works) * len(batch.works)
                stage.budget_s, stage.growing = min(stage.budget_s, padded) / 2, False
            for work in batch.works:
                work.alone = event.outcome != "oom"
            stage.waiting.extendleft(reversed(batch.works))
        else:
            stage.items += 1
            stage.audio_s += batch.audio_s
            outcome = Fault("out of memory with a batch of one") if event.outcome == "oom" else event.outcome
            batch.works[0].done(outcome)

    def _grow(self, stage: _Stage, batch: Batch) -> None:
        """On a GPU the budget is found by trial: it grows with every batch that filled it, until one does not fit."""
        padded_s = max(w.length_s for w in batch.works) * len(batch.works)
        if (
            batch.device != "cpu"
            and stage.growing
            and self._settings.batch_s is None
            and padded_s > 0.7 * stage.budget_s
        ):
            stage.budget_s *= GPU_BATCH_GROWTH

    def _on_death(self, event: Died, pool: Pool) -> None:
        for batch in reversed(event.waiting):
            self._stages[batch.key].waiting.extendleft(reversed(batch.works))
        if event.running is None:
            self._idle_deaths += 1
            if self._idle_deaths >= _MAX_IDLE_DEATHS:
                raise UserError(
                    f"worker processes end as soon as they start ({event.reason})",
                    hint=f"see {self._writer.folder / 'workers.log'}",
                )
            return
        batch = event.running
        stage = self._stages[batch.key]
        for work in reversed(batch.works):
            work.alone = True
            work.kills += len(batch.works) == 1
            if work.kills >= _MAX_KILLS:
                work.done(
                    Fault(f"the worker process died {_MAX_KILLS} times ({event.reason}) while computing {batch.key}")
                )
            else:
                stage.waiting.appendleft(work)

    # ---- the record ----

    def _write(self, force: bool) -> None:
        now = perf_counter()
        if not self._records or not (force or len(self._records) >= WRITE_ITEMS or now - self._last_write >= WRITE_S):
            return
        self._writer.write(self._records)
        self._records = []
        self._last_write = perf_counter()
        self._write_s += self._last_write - now
        self._progress(self._finished, self._failed, self._finished_audio_s)

    def _timings(self, wall_s: float, start_cpu: os.times_result, pool: Pool) -> dict[str, Any]:
        """Where the time went. `share` is a stage's part of all the workers' time; what is left of it is idle."""
        stages = [
            {
                "stage": "decode and resample",
                "items": None,
                "audio_s": None,
                "busy_s": self._feed_s,
                "cpu_s": None,
                "share": None,
            }
        ]
        capacity_s = wall_s * len(pool.workers) or 1.0
        for key, s in self._stages.items():
            stages.append(
                {
                    "stage": key, "items": s.items, "audio_s": s.audio_s, "busy_s": s.busy_s, "cpu_s": s.cpu_s,
                    "share": s.busy_s / capacity_s, "steps": s.steps,
                }
            )  # fmt: skip
        stages.append(
            {
                "stage": "writing the record",
                "items": self._finished,
                "audio_s": None,
                "busy_s": self._write_s,
                "cpu_s": None,
                "share": None,
            }
        )
        now = os.times()
        systems = {}
        for system in self._plan.systems:
            stage = self._stages.get(system.stage.key) if system.stage is not None else None
            if stage is not None and stage.items:
                codec_s = stage.steps.get("encode", 0.0) + stage.steps.get("decode", 0.0)
                systems[system.name] = {
                    "encode_s": stage.steps.get("encode", 0.0), "decode_s": stage.steps.get("decode", 0.0), "audio_s": stage.audio_s,
                    "times_real_time": stage.audio_s / codec_s if codec_s else None,
                }  # fmt: skip
        busy_s = sum(s.busy_s for s in self._stages.values())
        return {
            "wall_s": wall_s,
            "items": self._finished,
            "audio_s": self._finished_audio_s,
            "workers": len(pool.workers),
            "worker_use": busy_s / capacity_s,
            "main_cpu_s": now.user + now.system - start_cpu.user - start_cpu.system,
            "feed_s": self._feed_s,
            "waited_s": self._wait_s,
            "cache": {"hits": self._cache.hits, "misses": self._cache.misses},
            "stages": stages,
            "systems": systems,
        }


@dataclass(frozen=True, slots=True)
class _Handle:
    """A file descriptor that can be waited for."""

    number: int

    def fileno(self) -> int:
        return self.number

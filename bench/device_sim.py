"""A device that is not there: its costs, its workers on a virtual clock, and a run of the real scheduler on them.

`bench_device_sim.py` says what is real in it and what is not.
"""

from __future__ import annotations

import heapq
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from codec_bench.engine import feed
from codec_bench.engine.arena import Region, rounded
from codec_bench.engine.cache import FeatureCache
from codec_bench.engine.evaluation import metric_facts
from codec_bench.engine.plan import SIGNAL_METRICS, build_plan
from codec_bench.engine.pool import Batch, Died, Done, Pool, Worker
from codec_bench.engine.reading import READING, Heard, ReadResult, ReadWork
from codec_bench.engine.run import Engine, Settings
from codec_bench.engine.running import ON_A_GPU
from codec_bench.engine.systems import generated
from codec_bench.features.base import Feature
from codec_bench.metrics.base import Metric
from codec_bench.networks import ladder
from codec_bench.store import record as store
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

RATE, WINDOW_S, DEVICE_GIB = 24000, 30.0, 139.0


@dataclass(frozen=True, slots=True)
class Host:
    """What the machine around the device costs.

    Args:
        read_s: seconds of a core for a second of a file: reading, resampling to 16 kHz and hashing a FLAC at 24 kHz (11.9 ms for 5 s).
        metrics_s: seconds of a core for a second of an item's signal metrics (22 ms for 7.4 s).
        ready_s: seconds for a second of padded audio until a batch is ready: cut, padded, pinned and sent (5 ms for 120 s).
        start_s: how long a worker takes to start. loaded_gib_s: how much of its networks it then reads a second.
    """

    read_s: float = 0.0024
    metrics_s: float = 0.003
    ready_s: float = 0.00004
    start_s: float = 3.0
    loaded_gib_s: float = 1.0


HOST = Host()


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stage costs on a device.

    Args:
        call_s: seconds a batch. each_s: seconds for a second of padded audio. gib: memory of a second of padded audio.
        weights_gib: memory of the network. windows: whether it pads every signal to windows of 30 s.
    """

    call_s: float
    each_s: float
    gib: float
    weights_gib: float
    windows: bool = False

    def padded_s(self, lengths_s: Sequence[float]) -> float:
        """The padded seconds of a batch."""
        if self.windows:
            return WINDOW_S * sum(math.ceil(length / WINDOW_S) for length in lengths_s)
        length_s, rows = shape_of(lengths_s)
        return length_s * rows

    def seconds(self, padded_s: float) -> float:
        """How long a batch takes."""
        return self.call_s + self.each_s * padded_s


def shape_of(lengths_s: Sequence[float]) -> tuple[float, int]:
    """The length and the number of items to which a batch is filled up."""
    return ladder.rung_s(max(lengths_s)), ladder.rows_of(len(lengths_s))


UTTERANCE_S = 7.42
COSTS = {
    "float32": {
        # The encoder of large-v3 (5,200 s for 100,000 windows) and 27 steps of its decoder (310 s); 0.49 GiB a window.
        "Recogniser": Cost(0.030, (5200 + 310) / 1e5 / WINDOW_S, 0.6 / WINDOW_S, 6.2, windows=True),
        "Speaker": Cost(0.017, 1120 / 2e5 / UTTERANCE_S, 0.020, 1.3),
        "Naturalness": Cost(0.010, 216 / 1e5 / UTTERANCE_S, 0.010, 0.4),
        "Quality": Cost(0.005, 110 / 1e5 / UTTERANCE_S, 0.004, 0.1),
    },
    "half": {
        "Recogniser": Cost(0.030, (430 + 155) / 1e5 / WINDOW_S, 0.3 / WINDOW_S, 3.1, windows=True),
        "Speaker": Cost(0.017, 140 / 2e5 / UTTERANCE_S, 0.010, 0.7),
        "Naturalness": Cost(0.010, 27 / 1e5 / UTTERANCE_S, 0.005, 0.2),
        "Quality": Cost(0.005, 110 / 1e5 / UTTERANCE_S, 0.004, 0.1),
    },
}  # fmt: skip
"""Estimates for an H200 over 100,000 utterances of 7.42 s; the seconds of a call are the launches of its kernels."""


class _Stand(Feature):
    """A feature that is not computed: its batches end on the virtual clock."""

    rate_hz, cached = 16_000, False

    def compute(self, signals: Sequence[np.ndarray]) -> list[Any]:
        """Nothing on a virtual clock calls this."""
        raise NotImplementedError


class Recogniser(_Stand):
    """As Whisper-large-v3."""

    name, protocol, batch_s = "recogniser", "recogniser/simulated", 600.0


class Speaker(_Stand):
    """As WavLM-large for speaker similarity."""

    name, protocol, batch_s = "speaker", "speaker/simulated", 120.0
    mib_per_s = 1024 * COSTS["float32"]["Speaker"].gib


class Naturalness(_Stand):
    """As UTMOS."""

    name, protocol, batch_s = "naturalness", "naturalness/simulated", 240.0
    mib_per_s = 1024 * COSTS["float32"]["Naturalness"].gib


class Quality(_Stand):
    """As DNSMOS."""

    name, protocol, batch_s = "quality", "quality/simulated", 120.0
    mib_per_s = 1024 * COSTS["float32"]["Quality"].gib


class _OfFeature(Metric):
    kind, protocol, where, signals = "single", "simulated/1", "inline", False

    def compute(self, batch: Sequence[Any]) -> list[Score]:
        """One for every item."""
        return [Score.ok(1.0, self.protocol) for _ in batch]


def _of(feature: type[Feature], both: bool = False) -> type[Metric]:
    """A metric that reads a feature of the estimate, or of both sides."""
    key = f"{__file__}:{feature.__name__}"
    sides = {"estimate_features": (key,), "reference_features": (key,) if both else ()}
    about = {"name": f"of_{feature.__name__.lower()}", "kind": "pair" if both else "single", "__doc__": "Simulated."}
    return type(f"Of{feature.__name__}", (_OfFeature,), {**about, **sides})


OfRecogniser, OfNaturalness, OfQuality = _of(Recogniser), _of(Naturalness), _of(Quality)
OfSpeaker = _of(Speaker, both=True)
METRICS = ("OfRecogniser", "OfSpeaker", "OfNaturalness", "OfQuality")


class VirtualPool(Pool):
    """Workers that are no processes: their batches end on a virtual clock.

    Args:
        devices: how many. cpus: workers of the CPU. costs: of the stages of the device, by the name of the feature.
        seconds: the length of every file, by its path. faults: what goes wrong, of `worker` and `memory`.
        run_s: about how long the run takes; faults happen in its middle.
        lanes: 2 if a batch is made ready while another computes. metrics_s: of a second of an item's signal metrics.

    Attributes
        shapes: by stage, the shape of every batch, and the seconds of audio in it.
    """

    def __init__(
        self,
        devices: int,
        cpus: int,
        costs: dict[str, Cost],
        seconds: dict[str, float],
        faults: Iterable[str],
        run_s: float,
        lanes: int = 2,
        metrics_s: float = HOST.metrics_s,
    ) -> None:
        self.now = self.main_s = 0.0
        self.busy_s: dict[int, float] = {}
        self.shapes: dict[str, list[tuple[tuple[float, int], float]]] = {}
        self._metrics_s = metrics_s
        self._costs, self._seconds, self._faults, self._middle_s = costs, seconds, set(faults), run_s / 2
        self._since = time.process_time()
        self._lanes = lanes
        self._free: dict[int, float] = {}
        self._made_ready: dict[int, float] = {}
        self._ends: list[tuple[float, int, Worker, int, Done | Died]] = []
        self._count = self._started = 0
        self._killed = False
        self._loaded: dict[int, set[str]] = {}
        super().__init__([f"cuda:{k}" for k in range(devices)], cpus, subprocess.DEVNULL)

    def _start(self, device: str) -> Worker:
        self._started += 1
        worker = Worker(device, SimpleNamespace(pid=self._started), None)  # type: ignore[arg-type]
        self._free[id(worker)] = self._made_ready[id(worker)] = self.now
        self._loaded[id(worker)] = set()
        return worker

    def _tell(self, message: tuple[Any, ...]) -> None:
        pass

    def close(self) -> None:
        """Nothing to end."""

    def facts(self, keys: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """No codec is simulated."""
        return {}

    def memory_bytes(self) -> int:
        """Of the device that is not there."""
        return round(DEVICE_GIB * 2**30)

    @property
    def loading(self) -> list[str]:
        """Nothing that is shown."""
        return []

    def submit(self, worker: Worker, batch: Batch, payload: list[Any]) -> None:
        """Takes a batch, and works out when it ends and with what."""
        self._tick()
        self._count += 1
        worker.batches[self._count] = batch
        begin = max(self.now, self._free[id(worker)])
        cost_s, outcome, memory = self._outcome(worker, batch, payload)
        if worker.device != "cpu":
            name = batch.key.rpartition(":")[2]
            if name not in self._loaded[id(worker)]:
                self._loaded[id(worker)].add(name)
                if self._killed and worker is self.workers[0]:  # the first loading is not part of the run
                    begin += HOST.start_s / len(self._costs) + self._costs[name].weights_gib / HOST.loaded_gib_s
            # Windows are padded on the device, and everything else by the host.
            padded_s = batch.audio_s if self._costs[name].windows else self._padded_s(batch)
            begin = self._ready(worker, begin, padded_s)
            key = int(worker.device.partition(":")[2])
            self.busy_s[key] = self.busy_s.get(key, 0.0) + (cost_s if outcome != "oom" else 0.0)
        end = begin + cost_s
        self._free[id(worker)] = end
        done = Done(batch, outcome, cost_s, cost_s, {}, memory)
        heapq.heappush(self._ends, (end, self._count, worker, self._count, done))

    def _ready(self, worker: Worker, begin: float, padded_s: float) -> float:
        """When a batch begins that could begin at `begin`, but must be made ready."""
        takes_s = HOST.ready_s * padded_s
        if self._lanes == 1:
            return begin + takes_s
        self._made_ready[id(worker)] = max(self.now, self._made_ready[id(worker)]) + takes_s
        return max(begin, self._made_ready[id(worker)])

    def _padded_s(self, batch: Batch) -> float:
        return self._costs[batch.key.rpartition(":")[2]].padded_s([work.length_s for work in batch.works])

    def _outcome(self, worker: Worker, batch: Batch, payload: list[Any]) -> tuple[float, Any, tuple[int, int] | None]:
        if batch.key == READING:
            results = [self._read(work) for work in payload]
            return HOST.read_s * sum(seconds for seconds, _ in results), [result for _, result in results], None
        if batch.key == SIGNAL_METRICS:
            scores = {name: Score.ok(1.0, "simulated/1") for name in self._specs[batch.key].names}
            return self._metrics_s * batch.audio_s, [scores] * len(payload), None
        name = batch.key.rpartition(":")[2]
        cost, padded_s = self._costs[name], self._padded_s(batch)
        lengths = [work.length_s for work in batch.works]
        self.shapes.setdefault(name, []).append((shape_of(lengths), sum(lengths)))
        room_gib = room_for_batches_gib(self._costs)
        if "memory" in self._faults and self._middle_s <= self.now < 1.2 * self._middle_s:
            room_gib /= 8  # another process takes it for a while
        if padded_s * cost.gib > room_gib:
            return cost.call_s, "oom", None
        # The memory of a recogniser through CTranslate2 is not torch's, so the engine does not see it.
        memory = None if cost.windows else (round(padded_s * cost.gib * 2**30), round(room_gib * 2**30))
        return cost.seconds(padded_s), [{"value": 1.0}] * len(payload), memory

    def _read(self, work: ReadWork) -> tuple[float, ReadResult]:
        used, heard, total_s = 0, {}, 0.0
        files = {"": work.reference, **work.estimates} if work.reference is not None else dict(work.estimates)
        for side, wanted in files.items():
            assert wanted is not None
            seconds = self._seconds[wanted.path]
            region = Region(work.room.segment, work.room.offset + used, (round(16000 * seconds),))
            used += rounded(region.nbytes)
            heard[side] = Heard({16000: region}, None, RATE, round(RATE * seconds), 1, wanted.path, ())
            total_s += seconds
        needs = used if used > work.room.nbytes else 0
        reference = heard.pop("", None)
        # A file that needs more room than it has is not decoded, because its header says so.
        return 0.0 if needs else total_s, ReadResult(reference, heard, used, needs)

    def _tick(self) -> None:
        """Adds what the main process has computed since the last call."""
        now = time.process_time()
        self.now += now - self._since
        self.main_s += now - self._since
        self._since = now

    def events(self, timeout_s: float) -> list[Done | Died]:
        """What has ended by now, or what ends next."""
        self._tick()
        if "worker" in self._faults and self.now >= self._middle_s:
            self._faults.discard("worker")
            return [self._kill(self.workers[0])]
        if not self._ends:
            return []
        self.now = max(self.now, self._ends[0][0])
        events: list[Done | Died] = []
        while self._ends and self._ends[0][0] <= self.now:
            _, _, worker, number, done = heapq.heappop(self._ends)
            if worker.batches.pop(number, None) is not None:
                events.append(done)
        return events

    def _kill(self, worker: Worker) -> Died:
        held = list(worker.batches.values())
        mine = [entry for entry in self._ends if entry[2] is worker]
        key = int(worker.device.partition(":")[2])
        for end, _, _, _, done in mine:  # what was not computed does not count as busy
            self.busy_s[key] -= min(done.busy_s, max(0.0, end - self.now)) if done.outcome != "oom" else 0.0
        self._ends = [entry for entry in self._ends if entry[2] is not worker]
        heapq.heapify(self._ends)
        self._killed = True
        self.workers[self.workers.index(worker)] = self._start(worker.device)
        return Died("killed by signal 9", held[0] if held else None, held[1:])


def room_for_batches_gib(costs: dict[str, Cost]) -> float:
    """What the weights of the networks leave of the memory."""
    return DEVICE_GIB - sum(one.weights_gib for one in costs.values())


def lengths_s(count: int, seed: int = 0) -> np.ndarray:
    """Seconds of utterances, spread as LibriSpeech's test sets: 1.3 to 35 s, 7.4 s on average."""
    rng = np.random.default_rng(seed)
    drawn = np.clip(rng.lognormal(1.78, 0.70, count), 1.29, 34.96)
    return drawn * (UTTERANCE_S / drawn.mean())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulated run came to, in virtual seconds but for `main_s`, which is the processor time of the main process."""

    wall_s: float
    busy: float
    main_s: float
    items: int
    failed: int
    shapes: dict[str, list[tuple[tuple[float, int], float]]]


@dataclass(frozen=True, slots=True)
class Run:
    """What is run.

    Args:
        utterances: how many. precision: of `COSTS`. devices: how many. cpus: workers of the CPU; None for 14 for each device.
        faults: of `worker`, `memory` and `long` (a file of 60 minutes), in the middle of the run.
        lanes: of each device's worker. metrics_ms: what the signal metrics of an utterance take of a core.
    """

    utterances: int
    precision: str
    devices: int = 1
    cpus: int | None = None
    faults: tuple[str, ...] = ()
    lanes: int = 2
    metrics_ms: float = 1000 * HOST.metrics_s * UTTERANCE_S

    @property
    def seconds(self) -> list[float]:
        """The lengths of the utterances."""
        seconds = [float(s) for s in lengths_s(self.utterances)]
        if "long" in self.faults:
            seconds[self.utterances // 2] = 3600.0
        return seconds

    @property
    def about_s(self) -> float:
        """About how long the devices compute."""
        each_s = sum(c.each_s * (2 if name == "Speaker" else 1) for name, c in COSTS[self.precision].items())
        return sum(self.seconds) * each_s / self.devices

    def samples(self, folder: str = "") -> list[Sample]:
        """The utterances, whose files are in a folder."""
        names = [f"{k:06d}" for k in range(self.utterances)]
        return [Sample(name, f"{folder}ref/{name}.flac", estimate=f"{folder}est/{name}.flac") for name in names]


def simulate(run: Run) -> Outcome:
    """Runs the real scheduler and record over virtual workers."""
    samples, seconds = run.samples(), run.seconds
    known = {path: s for sample, s in zip(samples, seconds) for path in (sample.audio, sample.estimate)}
    costs = COSTS[run.precision]
    metrics_s = run.metrics_ms / 1000 / UTTERANCE_S
    cpus = run.cpus or 14 * run.devices
    pool = VirtualPool(run.devices, cpus, costs, known, run.faults, run.about_s, run.lanes, metrics_s)
    sized = mock.patch.object(feed, "file_bytes", lambda sample: 2 * RATE * known[sample.audio])
    with sized, tempfile.TemporaryDirectory() as folder:
        counts = record(pool, samples, folder)
    busy = sum(pool.busy_s.values()) / (pool.now * run.devices)
    return Outcome(pool.now, busy, pool.main_s, counts["finished"], counts["failed_scores"], pool.shapes)


def record(
    pool: Pool, samples: Sequence[Sample], folder: str | Path, numbers: Sequence[int] | None = None, **fingerprint: str
) -> dict[str, int]:
    """Runs the scheduler over a pool into a record in a folder; gives the record's counts.

    Args:
        pool: the workers. samples: the utterances. folder: of the record.
        numbers: of the samples in the whole data, if they are a shard. fingerprint: what else tells this run from others.
    """
    plan = build_plan([generated()], [*(f"{__file__}:{name}" for name in METRICS), "stoi"], {})
    settings = Settings(look_ahead=ON_A_GPU)
    with closing(FeatureCache(None)) as cache:
        engine = Engine(plan, settings, pool, cache, "")
        engine.load_codecs()
        with closing(RunWriter(folder, {"simulated": True, **fingerprint})) as writer:
            writer.begin({s.name: {} for s in engine.plan.systems}, metric_facts(engine.plan), samples, numbers)
            engine.run(samples, writer, set(), lambda *told: None, **({"numbers": numbers} if numbers else {}))
            writer.set_meta(state="finished", config={}, data={"name": "simulated"})
        with closing(store.Run(folder)) as found:
            return found.counts()


def compare(found: Outcome, count: int) -> None:
    """Stops where an item is missing or failed, a batch is larger than its shape, or the time that the device computed cannot be."""
    if found.items != count or found.failed:
        raise SystemExit(f"{found.items} of {count} items, {found.failed} scores failed")
    batches = [batch for of_stage in found.shapes.values() for batch in of_stage]
    if any(audio_s > length_s * items * (1 + 1e-6) for (length_s, items), audio_s in batches):
        raise SystemExit("a batch holds more audio than its shape")
    if not (0 < found.busy <= 1 and found.wall_s > found.main_s):
        raise SystemExit(f"busy {found.busy:.3g} of {found.wall_s:.3g} s, the main process {found.main_s:.3g} s")


def rows_of(run: Run, found: Outcome, one_s: float | None = None) -> list[dict[str, object]]:
    """The rows of a run, which are also printed. `one_s` is how long the same took on one device."""
    lanes, note = "" if run.lanes == 2 else ", one lane", "virtual clock; device costs estimated"
    if run.cpus is not None:
        note += f"; {run.cpus} workers, {run.metrics_ms:g} ms of signal metrics an item"
    case = f"{run.utterances} utterances, {run.devices} devices, faults {'+'.join(run.faults) or 'none'}{lanes}"
    sys.stdout.write(f"{run.precision}, {case}: {found.wall_s:.1f} s, device busy {100 * found.busy:.1f} %\n")
    about = {"case": case, "variant": run.precision, "n": run.utterances, "note": note}
    values = {"s": found.wall_s, "busy share": found.busy, "main s": found.main_s}
    rows: list[dict[str, object]] = [{**about, "unit": unit, "p50": f"{value:.5g}"} for unit, value in values.items()]
    if one_s is not None:
        rows[0]["ratio_to_baseline"] = f"{one_s / found.wall_s:.3g}"
    return rows


def shape_rows(run: Run, found: Outcome) -> list[dict[str, object]]:
    """How many shapes each stage's batches have, and how far they are padded; both are also printed."""
    note = f"virtual clock; {run.cpus or 14} workers, {run.metrics_ms:g} ms of signal metrics an item"
    rows: list[dict[str, object]] = []
    for stage, batches in found.shapes.items():
        shapes = len({shape for shape, _ in batches})
        padded_s = sum(length_s * items for (length_s, items), _ in batches)
        values = {
            "batches": len(batches),
            "shapes": shapes,
            "padded": padded_s / sum(audio_s for _, audio_s in batches),
        }
        sys.stdout.write(f"  {stage}: {', '.join(f'{value:.4g} {unit}' for unit, value in values.items())}\n")
        about = {
            "case": f"{run.utterances} utterances, {stage}",
            "variant": run.precision,
            "n": len(batches),
            "note": note,
        }
        rows += [{**about, "unit": unit, "p50": f"{value:.5g}"} for unit, value in values.items()]
    return rows

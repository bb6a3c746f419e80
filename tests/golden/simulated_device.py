"""Virtual workers: the real scheduler, plan, batches and record over a GPU that is not there.

A batch takes `a + b * padded seconds` on a virtual clock, holds memory, and gives results without content. The costs of
a stage are those of the newest rows of an H200, or estimates from FLOPs and bytes where no row exists. What the main
process computes between two events is measured and added to the clock.
"""

from __future__ import annotations

import csv
import heapq
import math
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from codec_bench.config.registry import Registry
from codec_bench.engine import feed
from codec_bench.engine.arena import Region, round_up
from codec_bench.engine.cache import FeatureCache
from codec_bench.engine.evaluation import metric_facts
from codec_bench.engine.plan import SIGNAL_METRICS, build_plan
from codec_bench.engine.pool import Died, Done, Pool, PoolWorker, WorkerBatch
from codec_bench.engine.reading import READING, ReadResult, ReadWork, Signal
from codec_bench.engine.run import Engine, EngineSettings
from codec_bench.engine.running import ON_A_GPU
from codec_bench.engine.systems import build_generated
from codec_bench.features.base import Feature
from codec_bench.metrics.base import Metric
from codec_bench.networks import batch_shapes
from codec_bench.store import record as store
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

RATE, WINDOW_S, DEVICE_GIB = 24000, 30.0, 139.0
LOG_NORMAL, SHORTEST_S, LONGEST_S = (math.log(5.8), 0.7), 1.285, 34.955
"""The lengths of the utterances: median, spread and extremes of LibriSpeech's test-clean."""


READ_S = 0.0024
"""Seconds of a core for a second of a file: reading, resampling to 16 kHz and hashing a FLAC at 24 kHz (11.9 ms for 5
s).
"""
COSTS_FILE = Path(__file__).parent / "device_costs.csv"
METRICS_MS = 22.26
"""What the signal metrics of an utterance of 7.42 s take of a core."""
READY_S = 0.00004
"""Seconds for a second of padded audio until a batch is ready: cut, padded, pinned and sent (5 ms for 120 s)."""
START_S, LOADED_GIB_S = 3.0, 1.0
"""How long a worker takes to start, and how much of its networks it then reads a second."""


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


def shape_of(lengths_s: Sequence[float]) -> tuple[float, int]:
    """The length and the number of items to which a batch is filled up."""
    return batch_shapes.rung_s(max(lengths_s)), batch_shapes.rows_of(len(lengths_s))


UTTERANCE_S = 7.42
_ESTIMATES = {
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
"""From FLOPs and bytes, over 100,000 utterances of 7.42 s; the seconds of a call are the launches of its kernels."""


def _measured(precision: str, trees: tuple[str, ...]) -> dict[str, Cost]:
    """The estimates, with the seconds of the newest rows of an H200 where rows of such trees exist."""
    costs = dict(_ESTIMATES[precision])
    with COSTS_FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["precision"] == precision and row["tree"] in trees:
                cost, batch_s, audio_s = costs[row["stage"]], float(row["batch_s"]), float(row["audio_s"])
                costs[row["stage"]] = replace(cost, each_s=(batch_s - cost.call_s) / audio_s)
    return costs


COSTS = {
    "float32": _measured("float32", ("clean", "changed")),
    "half": _measured("half", ("clean", "changed")),
    "half, committed code": _measured("half", ("clean",)),
}
"""What stages cost: `bench/table.py` writes the measured part from the newest rows."""


class _Stand(Feature):
    """A feature that is not computed: its batches end on the virtual clock."""

    rate_hz, cached = 16_000, False

    def compute(self, signals: Sequence[np.ndarray]) -> list[Any]:
        """Nothing on a virtual clock calls this."""
        raise NotImplementedError


def _stand(name: str, batch_s: float) -> type[Feature]:
    """A feature with the memory of its stage; the engine does not know how much a recogniser
    through CTranslate2 takes.
    """
    cost = COSTS["float32"][name]
    facts = {"name": name.lower(), "protocol": f"{name.lower()}/simulated", "batch_s": batch_s, "__doc__": "Simulated."}
    return type(name, (_Stand,), facts if cost.windows else {**facts, "mib_per_s": 1024 * cost.gib})


# As Whisper-large-v3, WavLM-large for speaker similarity, UTMOS and DNSMOS.
Recogniser, Speaker = _stand("Recogniser", 600.0), _stand("Speaker", 120.0)
Naturalness, Quality = _stand("Naturalness", 240.0), _stand("Quality", 120.0)


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


@dataclass(frozen=True, slots=True)
class Run:
    """What is run.

    Args:
        utterances: how many. precision: of `COSTS`. devices: how many. cpus: workers of the CPU; None for 14 for each
        device.
        faults: of `worker`, `memory` and `long` (a file of 60 minutes), in the middle of the run.
        lanes: of each device's worker. metrics_ms: what the signal metrics of an utterance take of a core.
    """

    utterances: int
    precision: str
    devices: int = 1
    cpus: int | None = None
    faults: tuple[str, ...] = ()
    lanes: int = 2
    metrics_ms: float = METRICS_MS

    @property
    def seconds(self) -> list[float]:
        """The lengths of the utterances."""
        drawn = np.random.default_rng(0).lognormal(*LOG_NORMAL, self.utterances)
        seconds: list[float] = np.clip(drawn, SHORTEST_S, LONGEST_S).tolist()
        if "long" in self.faults:
            seconds[self.utterances // 2] = 3600.0
        return seconds

    @property
    def about_s(self) -> float:
        """About how long the devices compute."""
        each_s = sum(c.each_s * (2 if name == "Speaker" else 1) for name, c in COSTS[self.precision].items())
        return sum(self.seconds) * each_s / self.devices


class VirtualPool(Pool):
    """Workers that are no processes: their batches end on a virtual clock. Faults happen in the middle of the run.

    Args:
        run: what is run. seconds: the length of every file, by its path.

    Attributes
        shapes: by stage, the shape of every batch, and the seconds of audio in it.
    """

    def __init__(self, run: Run, seconds: dict[str, float]) -> None:
        self.now = self.main_s = self.busy_s = 0.0
        self.shapes: dict[str, list[tuple[tuple[float, int], float]]] = {}
        self._metrics_s, self._costs, self._lanes = run.metrics_ms / 1000 / UTTERANCE_S, COSTS[run.precision], run.lanes
        self._seconds, self._faults, self._middle_s = seconds, set(run.faults), run.about_s / 2
        self._room_gib = DEVICE_GIB - sum(cost.weights_gib for cost in self._costs.values())
        self._since = time.process_time()
        self._free: dict[int, float] = {}
        self._prepared: dict[int, float] = {}
        self._ends: list[tuple[float, int, PoolWorker, int, Done | Died]] = []
        self._count = self._started = 0
        self._killed = False
        self._loaded: dict[int, set[str]] = {}
        devices = [f"cuda:{k}" for k in range(run.devices)]
        super().__init__(devices, run.cpus or 14 * run.devices, subprocess.DEVNULL)

    def _start(self, device: str) -> PoolWorker:
        self._started += 1
        worker = PoolWorker(device, SimpleNamespace(pid=self._started), None)  # type: ignore[arg-type]
        self._free[id(worker)] = self._prepared[id(worker)] = self.now
        self._loaded[id(worker)] = set()
        return worker

    def _broadcast(self, message: tuple[Any, ...]) -> None:
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

    def submit(self, worker: PoolWorker, batch: WorkerBatch, payload: list[Any]) -> None:
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
                    begin += START_S / len(self._costs) + self._costs[name].weights_gib / LOADED_GIB_S
            # Windows are padded on the device, and everything else by the host.
            padded_s = batch.audio_s if self._costs[name].windows else self._padded_s(batch)
            begin = self._ready(worker, begin, padded_s)
            self.busy_s += cost_s if outcome != "oom" else 0.0
        end = begin + cost_s
        self._free[id(worker)] = end
        done = Done(batch, outcome, cost_s, cost_s, {}, memory)
        heapq.heappush(self._ends, (end, self._count, worker, self._count, done))

    def _ready(self, worker: PoolWorker, begin: float, padded_s: float) -> float:
        """When a batch begins that could begin at `begin`, but must be made ready."""
        takes_s = READY_S * padded_s
        if self._lanes == 1:
            return begin + takes_s
        self._prepared[id(worker)] = max(self.now, self._prepared[id(worker)]) + takes_s
        return max(begin, self._prepared[id(worker)])

    def _padded_s(self, batch: WorkerBatch) -> float:
        return self._costs[batch.key.rpartition(":")[2]].padded_s([work.length_s for work in batch.works])

    def _outcome(
        self, worker: PoolWorker, batch: WorkerBatch, payload: list[Any]
    ) -> tuple[float, Any, tuple[int, int] | None]:
        if batch.key == READING:
            results = [self._read(work) for work in payload]
            return READ_S * sum(seconds for seconds, _ in results), [result for _, result in results], None
        if batch.key == SIGNAL_METRICS:
            scores = {name: Score.ok(1.0, "simulated/1") for name in self._specs[batch.key].names}
            return self._metrics_s * batch.audio_s, [scores] * len(payload), None
        name = batch.key.rpartition(":")[2]
        cost, padded_s = self._costs[name], self._padded_s(batch)
        lengths = [work.length_s for work in batch.works]
        self.shapes.setdefault(name, []).append((shape_of(lengths), sum(lengths)))
        # Where memory fails, another process takes it for a while.
        is_scarce = "memory" in self._faults and self._middle_s <= self.now < 1.2 * self._middle_s
        room_gib = self._room_gib / 8 if is_scarce else self._room_gib
        if padded_s * cost.gib > room_gib:
            return cost.call_s, "oom", None
        # The memory of a recogniser through CTranslate2 is not torch's, so the engine does not see it.
        memory = None if cost.windows else (round(padded_s * cost.gib * 2**30), round(room_gib * 2**30))
        return cost.call_s + cost.each_s * padded_s, [{"value": 1.0}] * len(payload), memory

    def _read(self, work: ReadWork) -> tuple[float, ReadResult]:
        used, output, total_s = 0, {}, 0.0
        files = {"": work.reference, **work.estimates} if work.reference is not None else dict(work.estimates)
        for role, expected in files.items():
            assert expected is not None
            seconds = self._seconds[expected.path]
            region = Region(work.room.segment, work.room.offset + used, (round(16000 * seconds),))
            used += round_up(region.nbytes)
            output[role] = Signal({16000: region}, RATE, round(RATE * seconds), expected.path)
            total_s += seconds
        needs = used if used > work.room.nbytes else 0
        reference = output.pop("", None)
        # A file that needs more room than it has is not decoded, because its header says so.
        return 0.0 if needs else total_s, ReadResult(reference, output, used, needs)

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

    def _kill(self, worker: PoolWorker) -> Died:
        held = list(worker.batches.values())
        mine = [entry for entry in self._ends if entry[2] is worker]
        for end, _, _, _, done in mine:  # what was not computed does not count as busy
            self.busy_s -= min(done.busy_s, max(0.0, end - self.now)) if done.outcome != "oom" else 0.0
        self._ends = [entry for entry in self._ends if entry[2] is not worker]
        heapq.heapify(self._ends)
        self._killed = True
        self.workers[self.workers.index(worker)] = self._start(worker.device)
        return Died("killed by signal 9", held[0] if held else None, held[1:])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulated run came to, in virtual seconds but for `main_s`, which is the processor time of the main
    process.
    """

    wall_s: float
    busy: float
    main_s: float
    items: int
    failed: int
    shapes: dict[str, list[tuple[tuple[float, int], float]]]


def simulate(run: Run) -> Outcome:
    """Runs the real scheduler and record over virtual workers."""
    names = [f"{k:06d}" for k in range(run.utterances)]
    samples = [Sample(name, f"ref/{name}.flac", estimate=f"est/{name}.flac") for name in names]
    known = {path: s for sample, s in zip(samples, run.seconds) for path in (sample.audio, sample.estimate)}
    pool = VirtualPool(run, known)
    with mock.patch.object(Registry, "is_foreign", lambda *_: False):  # they stand in for metrics and features of ours
        plan = build_plan([build_generated()], [*(f"{__file__}:{name}" for name in METRICS), "stoi"], {})
    sized = mock.patch.object(feed, "file_bytes", lambda sample: 2 * RATE * known[sample.audio])
    with sized, tempfile.TemporaryDirectory() as folder, closing(FeatureCache(None)) as cache:
        engine = Engine(plan, EngineSettings(look_ahead=ON_A_GPU), pool, cache, "")
        engine.load_codecs()
        with closing(RunWriter(folder, {"simulated": True})) as writer:
            writer.begin({s.name: {} for s in engine.plan.systems}, metric_facts(engine.plan), samples)
            engine.run(samples, writer, set(), lambda *details: None)
            writer.set_meta(state="finished", config={}, data={"name": "simulated"})
        with closing(store.Run(folder)) as result:
            counts = result.counts()
    busy = pool.busy_s / (pool.now * run.devices)
    return Outcome(pool.now, busy, pool.main_s, counts["finished"], counts["failed_scores"], pool.shapes)

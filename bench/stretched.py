"""A device that is not there beside real work: `bench_device_sim.py --stretched` has its explanation.

    python bench/stretched.py HANDLE DEVICE PROCESSES

is the program of a device's worker: it makes batches ready while it sleeps for others.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import device_sim as sim
import numpy as np

from codec_bench import Audio
from codec_bench.audio.encode import write_flac
from codec_bench.audio.resample import to_rate
from codec_bench.data import open_source
from codec_bench.engine.arena import Arena
from codec_bench.engine.lanes import Place
from codec_bench.engine.pool import Died, Done, Pool
from codec_bench.engine.reading import READING, ReadStage, ReadWork, Wanted
from codec_bench.engine.stage import StageSpec
from codec_bench.engine.worker import serve
from codec_bench.environment import cpu_count

H200_CORES = 16
READ_SAMPLES, READ_REPEATS = 20, 5


class Sleeping(Place):
    """A device whose worker sleeps in place of computing."""

    def __init__(self, device: str, lanes: int) -> None:
        self.device, self.lanes = device, lanes

    def ahead(self, make: Callable[[], Any]) -> Any:
        """Made in ordinary memory."""
        value = make()
        return SimpleNamespace(taken=lambda: value)


class StretchedPool(Pool):
    """Workers of the CPU as always, and workers of a device that sleep.

    Args:
        run: what is run. stretch: by what factor the device is slower.
    """

    def __init__(self, run: sim.Run, stretch: float) -> None:
        self._run, self._stretch = run, stretch
        self._middle = time.perf_counter() + run.about_s * stretch / 2
        self._faults = set(run.faults)
        self.busy_s = 0.0
        os.environ["DEVICE_SIM_PRECISION"], os.environ["DEVICE_SIM_STRETCH"] = run.precision, str(stretch)
        os.environ["DEVICE_SIM_LANES"] = str(run.lanes)
        room_gib = sim.room_for_batches_gib(sim.COSTS[run.precision])
        # A sixteenth of the memory, from the start: there is no trial of larger batches otherwise.
        os.environ["DEVICE_SIM_ROOM_GIB"] = str(room_gib / 16 if "memory" in self._faults else room_gib)
        super().__init__([f"cuda:{k}" for k in range(run.devices)], run.cpus or cpu_count(), subprocess.DEVNULL)

    def program(self, device: str) -> list[str]:
        """That of this file for a device."""
        return super().program(device) if device == "cpu" else [sys.executable, __file__]

    def events(self, timeout_s: float) -> list[Done | Died]:
        """Ends a device's worker in the middle of the run, if that is asked for; adds up how long devices compute."""
        if "worker" in self._faults and time.perf_counter() >= self._middle:
            self._faults.discard("worker")
            self.workers[0].kill()
        events = super().events(timeout_s)
        for event in events:
            if isinstance(event, Done) and event.batch.device != "cpu" and isinstance(event.outcome, list):
                cost = sim.COSTS[self._run.precision][event.batch.key.rpartition(":")[2]]
                lengths = [work.length_s for work in event.batch.works]
                self.busy_s += cost.seconds(cost.padded_s(lengths)) * self._stretch
        return events


def speech() -> np.ndarray:
    """The embedded recordings at 24 kHz, one after the other."""
    read = [Audio.read(sample.audio) for sample in open_source("embedded") if sample.audio is not None]
    return np.concatenate([to_rate(audio, sim.RATE).samples[0] for audio in read])


def write_audio(samples: Sequence[Any], seconds: Sequence[float]) -> None:
    """Writes the files of utterances: speech that begins at another place in each, and in the estimate noise with it."""
    whole, rng = speech(), np.random.default_rng(0)
    for number, (sample, length_s) in enumerate(zip(samples, seconds, strict=True)):
        count = round(length_s * sim.RATE)
        wave = np.resize(np.roll(whole, -7919 * number), count)
        noisy = np.clip(wave + rng.normal(0, 0.01, count).astype(np.float32), -1, 1)
        for path, samples_of in ((sample.audio, wave), (sample.estimate, noisy)):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            write_flac(path, Audio(samples_of[None].astype(np.float32), sim.RATE))


def stretched(run: sim.Run, stretch: float) -> sim.Outcome:
    """Runs the scheduler with real files and processes."""
    with tempfile.TemporaryDirectory() as folder:
        samples = run.samples(f"{folder}/")
        write_audio(samples, run.seconds)
        with closing(StretchedPool(run, stretch)) as pool:
            start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
            counts = sim.record(pool, samples, f"{folder}/run")
            wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    main_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return sim.Outcome(
        wall_s, pool.busy_s / (wall_s * run.devices), main_s, counts["finished"], counts["failed_scores"]
    )


def reading_rate() -> list[float]:
    """Samples that one thread reads in a second, each time: two files of 7.42 s at 24 kHz, resampled to 16 kHz and hashed."""
    rates = {"reference": frozenset({16000}), "estimate": frozenset({16000}), "with_audio": False}
    stage, found = ReadStage(StageSpec(READING, "read", (), rates), "cpu"), []
    with tempfile.TemporaryDirectory() as folder, closing(Arena()) as arena:
        samples = sim.Run(READ_SAMPLES, "half").samples(f"{folder}/")
        write_audio(samples, [sim.UTTERANCE_S] * READ_SAMPLES)
        room = arena.allocate_bytes(4 << 20)
        works = [ReadWork(Wanted(sample.audio or ""), {"e": Wanted(sample.estimate or "")}, room) for sample in samples]
        for _ in range(READ_REPEATS):
            start = time.perf_counter()
            results, _ = stage.run(works, arena)
            found.append(len(works) / (time.perf_counter() - start))
            if any(result.needs or isinstance(result.reference, str) for result in results):
                raise SystemExit("a file was not read")
    return found


def measured(asked: argparse.Namespace) -> list[dict[str, object]]:
    """The rows of the stretched runs, and of reading."""
    stretch = H200_CORES / cpu_count()
    note = f"real files and processes, times of the device stretched by {stretch:g}; device costs estimated"
    rates = reading_rate()
    sys.stdout.write(f"reading: {np.median(rates):.1f} samples a second on a core\n")
    rows: list[dict[str, object]] = [
        {
            "case": "reading two files of 7.42 s at 24 kHz, resampled to 16 kHz and hashed", "variant": "one core",
            "n": READ_SAMPLES, "unit": "samples/s", "note": "embedded speech, FLAC", "repeats": len(rates),
            **{f"p{part}": f"{np.percentile(rates, part):.5g}" for part in (20, 50, 80)},
        }
    ]  # fmt: skip
    for precision, devices, lanes in product(asked.precision, asked.devices, asked.lanes):
        run = sim.Run(asked.utterances, precision, devices, faults=tuple(asked.fault), lanes=lanes)
        found = stretched(run, stretch)
        sim.compare(found, asked.utterances)
        rows += sim.rows_of(run, found, note)
    return rows


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), Sleeping(sys.argv[2], int(os.environ["DEVICE_SIM_LANES"])))

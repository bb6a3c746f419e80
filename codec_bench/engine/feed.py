"""Reads samples ahead of the workers: decoded once, resampled once per rate, and put into shared memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from codec_bench.audio.hash import content_hash
from codec_bench.audio.resample import to_signal
from codec_bench.data import problem_of
from codec_bench.engine.arena import Arena, Region
from codec_bench.engine.plan import Plan
from codec_bench.engine.stage import describe, keep_audio, signal_notes
from codec_bench.engine.systems import System
from codec_bench.errors import UserError
from codec_bench.types import Audio, Sample

LOADING = 8  # samples that are read at the same time, or wait to be


@dataclass(slots=True, eq=False)
class Signal:
    """One piece of audio in the run.

    Args:
        rates: its samples at every rate that is needed, by rate in Hz, not cut to full scale. audio: its samples as they were read, for codecs.
        sample_rate_hz, num_samples: as it was read. content_hash: of its samples. notes: what is worth knowing of it.
        features: by feature, the result, a `Fault`, or the list of the items that wait for it.
        holders: how many still need it; its memory is freed when none does.
    """

    rates: dict[int, Region]
    sample_rate_hz: int
    num_samples: int
    content_hash: str
    audio: Region | None = None
    notes: tuple[str, ...] = ()
    features: dict[str, Any] = field(default_factory=dict)
    holders: int = 0

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.num_samples / self.sample_rate_hz

    def release(self, arena: Arena) -> None:
        """Removes one holder. When none is left, the memory is freed."""
        self.holders -= 1
        if self.holders:
            return
        for region in self.rates.values():
            arena.free(region)
        if self.audio is not None:
            arena.free(self.audio)


@dataclass(frozen=True, slots=True)
class Loaded:
    """One sample that was read.

    Args:
        number: its place in the data. reference, reason: its reference signal, or why there is none.
        channels: of the reference.
        estimates: by system, the signal of each estimate that is read from a file, or the reason why there is none.
        busy_s, cpu_s: what reading it took.
    """

    number: int
    sample: Sample
    reference: Signal | None
    channels: int
    reason: str | None
    estimates: Mapping[str, Signal | str]
    busy_s: float
    cpu_s: float


def load(number: int, sample: Sample, systems: Sequence[System], plan: Plan, arena: Arena, keep: Path | None) -> Loaded:
    """Reads one sample. If a file cannot be read, the result holds the reason; no exception is raised.

    Args:
        systems: those that need the sample. Of those whose estimates are files, the estimates are read too.
        keep: the run folder if the audio is to be kept there, otherwise None.
    """
    start, start_cpu = perf_counter(), thread_time()
    reference, channels = None, 1
    reason = problem_of(sample)
    from_files = [system for system in systems if system.kind == "files"]
    if reason is None and sample.audio is not None:
        target = keep / "audio" / "reference" / f"{number:07d}.flac" if keep else None
        rates = lambda hz: plan.rates("reference", hz)  # noqa: E731
        reference, channels, reason = _signal(sample.audio, rates, arena, plan.needs_codec_audio, target)
    elif reason is None and len(from_files) < len(systems):
        reason = "the data names no reference audio for this sample"
    estimates: dict[str, Signal | str] = {}
    known_hz = reference.sample_rate_hz if reference is not None else None
    for system in from_files if reason is None else ():
        target = keep / "audio" / system.folder / f"{number:07d}.flac" if keep else None
        estimates[system.name] = _estimate(system.sample(number, sample), known_hz, plan, arena, target)
    return Loaded(
        number, sample, reference, channels, reason, estimates, perf_counter() - start, thread_time() - start_cpu
    )


def _estimate(sample: Sample, known_hz: int | None, plan: Plan, arena: Arena, keep: Path | None) -> Signal | str:
    """The estimate that a sample names, or the reason why there is none; `known_hz` is the rate of its reference."""
    if sample.estimate is None:
        return problem_of(sample) or "there is no generated audio for this sample"
    signal, _, reason = _signal(sample.estimate, lambda hz: plan.rates("estimate", known_hz or hz), arena, False, keep)
    return signal if signal is not None else str(reason)


def _signal(
    path: str, rates: Callable[[int], Iterable[int]], arena: Arena, with_audio: bool, keep: Path | None
) -> tuple[Signal | None, int, str | None]:
    try:
        audio = Audio.read(path)
        signal = make_signal(audio, rates(audio.sample_rate_hz), arena, with_audio)
        if keep is not None:
            keep_audio(str(keep), audio)
    except UserError as error:
        return None, 1, error.message
    except Exception as error:  # a decoder may raise anything for a broken file; only this sample fails
        return None, 1, f"'{path}' cannot be read: {describe(error)}"
    return signal, audio.channels, None


def make_signal(audio: Audio, rates: Iterable[int], arena: Arena, with_audio: bool) -> Signal:
    """Puts a piece of audio into shared memory: resampled to each of `rates` and, if `with_audio`, also as it is."""
    regions = {rate: arena.put(to_signal(audio, rate)) for rate in rates}
    return Signal(
        rates=regions,
        sample_rate_hz=audio.sample_rate_hz,
        num_samples=audio.num_samples,
        content_hash=content_hash(audio.samples, audio.sample_rate_hz),
        audio=arena.put(np.ascontiguousarray(audio.samples)) if with_audio else None,
        notes=signal_notes(audio),
    )


class Feed:
    """Threads that read samples ahead of the workers.

    `multiprocessing.connection.wait` can wait for it (`fileno`): it becomes readable when a sample has been read.

    Args:
        plan: what the run computes. arena: the shared memory that the audio is put into.
        todo: (number, sample, the systems that still need it).
        keep: numbers of the samples whose audio is kept in `folder`, the run folder.
    """

    def __init__(
        self,
        plan: Plan,
        arena: Arena,
        todo: Iterator[tuple[int, Sample, list[System]]],
        keep: frozenset[int],
        folder: Path,
    ) -> None:
        self._plan, self._arena, self._todo, self._keep, self._folder = plan, arena, todo, keep, folder
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="feed")
        self._read: deque[tuple[Future[Loaded], list[System]]] = deque()
        self._reader, self._waker = os.pipe()
        os.set_blocking(self._reader, False)
        self._loading = 0
        self._exhausted = False

    @property
    def more(self) -> bool:
        """Whether samples are left to read, or are being read."""
        return not self._exhausted or self._loading > 0

    def fileno(self) -> int:
        """The file descriptor to wait for."""
        return self._reader

    def request(self, has_room: Callable[[int], bool]) -> None:
        """Starts reading the next samples while there is room for them."""
        while not self._exhausted and self._loading < LOADING and has_room(self._loading):
            entry = next(self._todo, None)
            if entry is None:
                self._exhausted = True
                return
            number, sample, systems = entry
            keep = self._folder if number in self._keep else None
            future = self._threads.submit(load, number, sample, systems, self._plan, self._arena, keep)
            self._loading += 1
            future.add_done_callback(partial(self._wake, systems))

    def _wake(self, systems: list[System], future: Future[Loaded]) -> None:
        self._read.append((future, systems))
        os.write(self._waker, b"\0")

    def ready(self) -> Iterator[tuple[Loaded, list[System]]]:
        """The samples that have been read since the last call."""
        with suppress(BlockingIOError):  # nothing has been read
            os.read(self._reader, 65536)
        while self._read:
            future, systems = self._read.popleft()
            self._loading -= 1
            yield future.result(), systems

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown(cancel_futures=True)
        self._read.clear()
        os.close(self._reader)
        os.close(self._waker)

"""From a named sample to signals in shared memory: decoded once, resampled once per rate, ahead of the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from codec_bench.audio.hash import content_hash
from codec_bench.audio.resample import prepare
from codec_bench.data import problem_of
from codec_bench.engine.arena import Arena, Region
from codec_bench.engine.plan import Plan
from codec_bench.engine.stage import describe, keep_audio, overshoot_notes
from codec_bench.errors import UserError
from codec_bench.types import Audio, Sample


@dataclass(slots=True, eq=False)
class Signal:
    """One piece of audio in the run: its signals per rate, its hash, and what has been computed from it.

    `features` holds, per feature, a result, a Fault, or the list of those waiting for it.
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
        """Drops one holder; the last one gives the memory back."""
        self.holders -= 1
        if self.holders:
            return
        for region in self.rates.values():
            arena.free(region)
        if self.audio is not None:
            arena.free(self.audio)


@dataclass(frozen=True, slots=True)
class Loaded:
    """One sample, read: its reference (or why there is none), and the estimate read from a file, where there is one."""

    number: int
    sample: Sample
    reference: Signal | None
    channels: int
    reason: str | None
    estimate: Signal | None
    estimate_reason: str | None
    busy_s: float
    cpu_s: float


def load(number: int, sample: Sample, plan: Plan, arena: Arena, keep: Path | None, from_files: bool) -> Loaded:
    """Reads one sample. What cannot be read becomes a reason, never an exception.

    Args:
        keep: the run folder, where the audio is to be kept; None otherwise.
        from_files: whether the estimate is read from `sample.estimate`.
    """
    start, start_cpu = perf_counter(), thread_time()
    reference = estimate = None
    channels, estimate_reason = 1, None
    reason = problem_of(sample)
    if reason is None and sample.audio is not None:
        target = keep / "audio" / "reference" / f"{number:07d}.flac" if keep else None
        rates = lambda hz: plan.rates("reference", hz)  # noqa: E731
        reference, channels, reason = _signal(sample.audio, rates, arena, plan.needs_codec_audio, target)
    elif reason is None and not from_files:
        reason = "the data names no audio for it"
    if reason is None and from_files:
        if sample.estimate is None:
            estimate_reason = "there is no generated audio for it"
        else:
            target = keep / "audio" / "generated" / f"{number:07d}.flac" if keep else None
            known_hz = reference.sample_rate_hz if reference is not None else None
            rates = lambda hz: plan.rates("estimate", known_hz or hz)  # noqa: E731
            estimate, _, estimate_reason = _signal(sample.estimate, rates, arena, False, target)
    return Loaded(
        number,
        sample,
        reference,
        channels,
        reason,
        estimate,
        estimate_reason,
        perf_counter() - start,
        thread_time() - start_cpu,
    )


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
    except Exception as error:  # a decoder may raise anything over a broken file: it is this sample's failure
        return None, 1, f"'{path}' cannot be read: {describe(error)}"
    return signal, audio.channels, None


def make_signal(audio: Audio, rates: Iterable[int], arena: Arena, with_audio: bool) -> Signal:
    """Puts a piece of audio into shared memory, at every rate asked for and, for codecs, as it is."""
    regions = {rate: arena.put(prepare(audio, rate)) for rate in rates}
    return Signal(
        rates=regions,
        sample_rate_hz=audio.sample_rate_hz,
        num_samples=audio.num_samples,
        content_hash=content_hash(audio.samples, audio.sample_rate_hz),
        audio=arena.put(np.ascontiguousarray(audio.samples)) if with_audio else None,
        notes=overshoot_notes(audio),
    )

"""The stage that reads samples: decode, resample once per rate, and hash.

Each sample gets room for what samples have needed so far, and the unused rest is freed. A sample that needs more is
read again with enough room.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from codec_bench.audio.content import content_of
from codec_bench.audio.hash import content_hash
from codec_bench.audio.level_checks import (
    FRAME_S,
    Levels,
    channel_peaks,
    flat_peak_share,
    loudest_levels,
    with_loud_level,
)
from codec_bench.audio.resample import mono, resampled_length, to_signal
from codec_bench.decoding.decode import MOST_BYTES, read_file
from codec_bench.decoding.remote import shown
from codec_bench.engine.arena import Arena, Region, Segments, round_up
from codec_bench.engine.stage import Fault, StageSpec, signal_notes, write_audio_file
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio

READING = "decode and resample"
"""Key of the stage, and its name in the table of timings."""

LARGE_PART = 16
"""A file is large from this part of the sample's room on; decoded samples need more bytes than a file."""
SMALL_BYTES = 1 << 20
"""A smaller file is decoded without reading its header first."""

MUCH_SILENCE_S = 2.0
NARROW_HZ = 4_200
MOST_EMPTY = 0.45
FLAT_SHARE = 0.001
"""Limits for notes: silence around less sound; nothing above `NARROW_HZ` or this part of the rate; share of flat peaks.
"""

READ_AT_ONCE = 2
"""Samples per batch, at most; each may be an hour long."""


class FileRequest(NamedTuple):
    """A file to read.

    Args:
        keep: where to save a copy, or None.
        name: for messages, if not the path.
        most_s: longer audio is refused; None for any length, and then the path may be a locator too.
    """

    path: str
    keep: str | None = None
    name: str = ""
    most_s: float | None = None

    def read(self) -> Audio:
        """Return the audio, or raise a UserError if it is unreadable or too long."""
        return Audio.read(self.path) if self.most_s is None else Audio(*read_file(self.path, self.most_s))

    def with_name(self, message: str) -> str:
        """Replace this file's temporary path in a message by the name the user gave."""
        if not self.name:
            return message
        rename = message.rename if isinstance(message, Diagnostic) else message.replace
        return rename(self.path, shown(self.name))


class ReadWork(NamedTuple):
    """One sample to read into `room`; `estimates` are files by system."""

    reference: FileRequest | None
    estimates: Mapping[str, FileRequest]
    room: Region


@dataclass(slots=True, eq=False)
class Signal:
    """A reference or an estimate in shared memory, at each rate that the run needs.

    Args:
        rates: samples `(samples,)` by rate in Hz, not clipped.
        audio: `(channels, samples)` as read, for codecs.
        features: by feature, the result, a `Fault`, or the list of waiting items.
        levels: of the samples at the lowest rate, if they were measured while reading.
        holders: number of users; the memory is freed at 0.
    """

    rates: Mapping[int, Region]
    sample_rate_hz: int
    num_samples: int
    content_hash: str
    audio: Region | None = None
    channels: int = 1
    notes: tuple[Diagnostic, ...] = ()
    features: dict[str, Any] = field(default_factory=dict)
    levels: Levels | None = None
    holders: int = 0

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.num_samples / self.sample_rate_hz

    @property
    def nbytes(self) -> int:
        """Bytes of shared memory."""
        return sum(region.nbytes for region in self._regions)

    @property
    def _regions(self) -> list[Region]:
        return [*self.rates.values(), *([self.audio] if self.audio is not None else [])]

    def release(self, arena: Arena) -> None:
        """Remove one holder, and free the memory after the last one."""
        self.holders -= 1
        for region in self._regions if not self.holders else ():
            arena.free(region)


class ReadResult(NamedTuple):
    """A sample that was read.

    Args:
        reference: the file, why it cannot be read, or None without a reference.
        estimates: the same by system; they are not read without the reference.
        used: bytes of the room that hold audio.
        needs: bytes needed if the room is too small.
    """

    reference: Signal | Diagnostic | None
    estimates: Mapping[str, Signal | Diagnostic]
    used: int
    needs: int = 0


class _Room:
    def __init__(self, room: Region, segments: Segments) -> None:
        self._room, self._segments, self.used = room, segments, 0

    def put(self, samples: np.ndarray) -> Region:
        """Copy samples to shared memory, or only count their bytes if they do not fit."""
        region = Region(self._room.segment, self._room.offset + self.used, samples.shape)
        self.used += round_up(region.nbytes)
        if self.used <= self._room.nbytes:  # a sample that needs more is counted to its end
            self._segments.view(region)[...] = samples
        return region


class ReadStage:
    """Reads samples at the rates of its spec's options `reference` and `estimate`."""

    def __init__(self, spec: StageSpec, device: str) -> None:
        import soundfile  # noqa: F401  # before the first batch, whose time counts
        import soxr  # noqa: F401

        self._options = spec.options
        self.facts: dict[str, Any] = {}

    def run(self, works: Sequence[ReadWork], segments: Segments) -> tuple[list[ReadResult | Fault], dict[str, float]]:
        """Return one `ReadResult` per sample."""
        return [self._read(work, segments) for work in works], {}

    def _read(self, work: ReadWork, segments: Segments) -> ReadResult:
        """Read a sample's reference and estimates to shared memory."""
        needed_bytes = self._count_needed_bytes(work)
        if needed_bytes > work.room.nbytes:
            return ReadResult(None, {}, 0, needed_bytes)
        room = _Room(work.room, segments)
        reference, rate_hz = None, None
        if work.reference is not None:
            reference = _read_signal(
                work.reference, self._options["reference"], None, room, self._options["with_audio"]
            )
            if isinstance(reference, Diagnostic):
                return ReadResult(reference, {}, 0)
            rate_hz = reference.sample_rate_hz
        estimates = {
            system: _read_signal(request, self._options["estimate"], rate_hz, room, False)
            for system, request in work.estimates.items()
        }
        fits = room.used <= work.room.nbytes
        return ReadResult(reference, estimates, room.used, 0 if fits else room.used)

    def _count_needed_bytes(self, work: ReadWork) -> int:
        """Add up the bytes that the files' signals will take, by their headers."""
        files = [(one, self._options["estimate"], False) for one in work.estimates.values()]
        if work.reference is not None:
            files.insert(0, (work.reference, self._options["reference"], self._options["with_audio"]))
        total, native_hz = 0, None
        for request, rates, with_audio in files:
            header = _header(request.path, max(SMALL_BYTES, work.room.nbytes // LARGE_PART))
            if header is None:
                continue
            native_hz = native_hz or header.samplerate
            needed = {rate or native_hz for rate in rates}
            lengths = [resampled_length(header.frames, header.samplerate, rate) for rate in needed]
            lengths += [header.frames * header.channels] if with_audio else []
            total += sum(round_up(4 * length) for length in lengths)
        return total


def content_notes(audio: Audio, levels: np.ndarray, peaks: Sequence[tuple[float, float]]) -> tuple[Diagnostic, ...]:
    """Notes on silence around a recording, an empty band, clipping, empty channels.

    Args:
        levels, peaks: by `level_checks.loudest_levels` and `channel_peaks`.
    """
    rate_hz = audio.sample_rate_hz
    content = content_of(mono(audio.samples), rate_hz, levels)
    if content is None:
        return ()
    notes: list[Diagnostic] = []
    if content.around_s >= max(MUCH_SILENCE_S, content.sound_s):
        silence_s, sound_s = round(content.around_s, 1), round(content.sound_s, 1)
        notes.append(Diagnostic("silence_around", silence_s=silence_s, sound_s=sound_s))
    if content.top_hz <= max(NARROW_HZ, MOST_EMPTY * rate_hz / 2):
        top_khz, rate_khz = round(content.top_hz / 1000, 1), float(f"{rate_hz / 1000:g}")
        notes.append(Diagnostic("empty_band", top_khz=top_khz, rate_khz=rate_khz))
    if (flat := flat_peak_share(audio.samples, peaks)) >= FLAT_SHARE:
        notes.append(Diagnostic("flat_peaks", percent=float(f"{100 * flat:.2g}")))
    used = int(np.count_nonzero(audio.samples.any(axis=1))) if audio.channels > 1 else audio.channels
    if used < audio.channels:
        notes.append(Diagnostic("empty_channels", heard=used, channels=audio.channels))
    return tuple(notes)


def _header(path: str, least_bytes: int) -> Any:
    """Header of a file; None if smaller, unreadable, or of unknown length (2**63 - 1)."""
    import soundfile

    with suppress(Exception):  # reading the file explains the error
        if os.path.getsize(path) >= least_bytes:
            header = soundfile.info(path)
            return header if 0 < 4 * header.frames * header.channels <= MOST_BYTES else None
    return None


def _comparable_levels(audio: Audio, levels: np.ndarray, peak: float, rates: Iterable[int]) -> Levels | None:
    """Return a file's levels if they hold at the lowest rate too; None if not.

    They hold for whole frames of mono within full scale, whose own rate is the lowest.

    Args:
        levels: by `loudest_levels`, at the file's rate. peak: the largest magnitude.
        rates: in Hz, of the signals that the run needs.
    """
    whole_frames = audio.num_samples // round(FRAME_S * audio.sample_rate_hz)
    is_same = audio.channels == 1 and peak <= 1.0 and levels.size == whole_frames
    return with_loud_level(levels) if is_same and min(rates, default=0) == audio.sample_rate_hz else None


def _read_signal(
    request: FileRequest, rates: Iterable[int], native_hz: int | None, room: _Room, with_audio: bool
) -> Signal | Diagnostic:
    """Read a file, or return the reason why not.

    Args:
        rates: 0 is the reference's rate, or the file's own without a reference.
        native_hz: of the reference.
    """
    try:
        audio = request.read()
        needed = {rate or native_hz or audio.sample_rate_hz for rate in rates}
        peaks = channel_peaks(audio.samples)
        levels = loudest_levels(audio, peaks)
        decoded = Signal(
            rates={rate: room.put(to_signal(audio, rate)) for rate in sorted(needed)},
            audio=room.put(audio.samples) if with_audio else None,
            sample_rate_hz=audio.sample_rate_hz,
            num_samples=audio.num_samples,
            channels=audio.channels,
            content_hash=content_hash(audio.samples, audio.sample_rate_hz),
            notes=(*signal_notes(audio, levels, peaks), *content_notes(audio, levels, peaks)),
            levels=_comparable_levels(audio, levels, max(map(abs, peaks[0])), needed),
        )
        if request.keep is not None:
            write_audio_file(request.keep, audio)
    except UserError as error:
        return as_reason(request.with_name(error.message), "unreadable_audio")
    except Exception as error:  # a decoder may raise anything for a broken file; only this sample fails
        message = request.with_name(" ".join(str(error).split()))
        cause = Diagnostic("error", type=type(error).__name__, message=message)
        return Diagnostic("unreadable_file", path=request.with_name(request.path), cause=cause)
    return decoded

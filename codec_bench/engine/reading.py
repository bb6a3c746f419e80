"""The stage that reads samples: decode, resample once per rate, and hash.

Only the main process allocates shared memory, and it does not know a file's length yet. Each sample gets room for what
samples have needed so far, and the unused rest is freed. A sample that needs more is read again with enough room. The
header of a large file is read first, because decoding an hour takes many seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.audio.content import Content, content_of
from codec_bench.audio.hash import content_hash
from codec_bench.audio.level_checks import flat_peak_share, loudest_levels
from codec_bench.audio.resample import mono, resampled_length, to_signal
from codec_bench.decoding.decode import MOST_BYTES, read_file
from codec_bench.decoding.remote import shown
from codec_bench.engine.arena import Region, Segments, rounded
from codec_bench.engine.stage import Fault, StageSpec, keep_audio, signal_notes
from codec_bench.errors import UserError
from codec_bench.messages import Diagnostic
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


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A file to read.

    Args:
        path: as for `Audio.read`. keep: where a copy is kept, or None. name: for messages, if not the path.
        most_s: longer audio is refused; None for any length, and then the path may be a locator too.
    """

    path: str
    keep: str | None = None
    name: str = ""
    most_s: float | None = None

    def read(self) -> Audio:
        """Return the audio, or raise a UserError if it is unreadable or too long."""
        return Audio.read(self.path) if self.most_s is None else Audio(*read_file(self.path, self.most_s))

    def words(self, message: str) -> str:
        """A message with the name in place of the path."""
        return message.replace(self.path, shown(self.name)) if self.name else message


@dataclass(frozen=True, slots=True)
class ReadWork:
    """One sample to read.

    Args:
        estimates: files by the name of their system. room: memory for the audio.
    """

    reference: FileRequest | None
    estimates: Mapping[str, FileRequest]
    room: Region


@dataclass(frozen=True, slots=True)
class DecodedFile:
    """A decoded file.

    Args:
        rates: samples `(samples,)` by rate in Hz, not clipped. audio: `(channels, samples)` as read, for codecs.
    """

    rates: Mapping[int, Region]
    audio: Region | None
    sample_rate_hz: int
    num_samples: int
    channels: int
    content_hash: str
    notes: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class ReadResult:
    """A sample that was read.

    Args:
        reference: the file, why it cannot be read, or None without a reference. estimates: the same by system; they are
            not read without the reference.
        used: bytes of the room that hold audio. needs: bytes needed if the room is too small.
    """

    reference: DecodedFile | Diagnostic | None
    estimates: Mapping[str, DecodedFile | Diagnostic]
    used: int
    needs: int = 0


class _Room:
    """Consecutive regions in a larger region."""

    def __init__(self, room: Region, segments: Segments) -> None:
        self._room, self._segments, self.used = room, segments, 0

    def put(self, samples: np.ndarray) -> Region:
        region = Region(self._room.segment, self._room.offset + self.used, samples.shape)
        self.used += rounded(region.nbytes)
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
        """Returns one `ReadResult` per sample."""
        return [self._read(work, segments) for work in works], {}

    def _read(self, work: ReadWork, segments: Segments) -> ReadResult:
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
        """Bytes that a sample's large files need, by their headers."""
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
            total += sum(rounded(4 * length) for length in lengths)
        return total


def content_notes(audio: Audio, levels: np.ndarray) -> tuple[Diagnostic, ...]:
    """Notes on silence around a recording, an empty band, clipping, empty channels.

    Args:
        levels: of its frames, by `loudest_levels`.
    """
    rate_hz = audio.sample_rate_hz
    content = content_of(mono(audio.samples), rate_hz, levels)
    if content is None:
        return ()
    flat = flat_peak_share(audio.samples)
    used_channels = int(np.count_nonzero(audio.samples.any(axis=1))) if audio.channels > 1 else audio.channels
    around = content.around_s >= max(MUCH_SILENCE_S, content.sound_s)
    empty = content.top_hz <= max(NARROW_HZ, MOST_EMPTY * rate_hz / 2)
    return (
        *((_silence_around(content),) if around else ()),
        *((_empty_band(content.top_hz, rate_hz),) if empty else ()),
        *((Diagnostic("flat_peaks", percent=float(f"{100 * flat:.2g}")),) if flat >= FLAT_SHARE else ()),
        *(
            (Diagnostic("empty_channels", heard=used_channels, channels=audio.channels),)
            if used_channels < audio.channels
            else ()
        ),
    )


def _silence_around(content: Content) -> Diagnostic:
    return Diagnostic("silence_around", silence_s=round(content.around_s, 1), sound_s=round(content.sound_s, 1))


def _empty_band(top_hz: float, rate_hz: int) -> Diagnostic:
    return Diagnostic("empty_band", top_khz=round(top_hz / 1000, 1), rate_khz=float(f"{rate_hz / 1000:g}"))


def _header(path: str, least_bytes: int) -> Any:
    """Header of a file; None if smaller, unreadable, or of unknown length (2**63 - 1)."""
    import soundfile

    with suppress(Exception):  # reading the file says what is wrong with it
        if os.path.getsize(path) >= least_bytes:
            header = soundfile.info(path)
            return header if 0 < 4 * header.frames * header.channels <= MOST_BYTES else None
    return None


def _read_signal(
    request: FileRequest, rates: Iterable[int], native_hz: int | None, room: _Room, with_audio: bool
) -> DecodedFile | Diagnostic:
    """Read a file, or return the reason why not.

    Args:
        rates: 0 is the reference's rate, or the file's own without a reference. native_hz: of the reference.
    """
    try:
        audio = request.read()
        needed = {rate or native_hz or audio.sample_rate_hz for rate in rates}
        levels = loudest_levels(audio)
        decoded = DecodedFile(
            rates={rate: room.put(to_signal(audio, rate)) for rate in sorted(needed)},
            audio=room.put(audio.samples) if with_audio else None,
            sample_rate_hz=audio.sample_rate_hz,
            num_samples=audio.num_samples,
            channels=audio.channels,
            content_hash=content_hash(audio.samples, audio.sample_rate_hz),
            notes=(*signal_notes(audio, levels), *content_notes(audio, levels)),
        )
        if request.keep is not None:
            keep_audio(request.keep, audio)
    except UserError as error:
        return Diagnostic("unreadable_audio", message=request.words(error.message))
    except Exception as error:  # a decoder may raise anything for a broken file; only this sample fails
        message = request.words(" ".join(str(error).split()))
        cause = Diagnostic("error", type=type(error).__name__, message=message)
        return Diagnostic("unreadable_file", path=request.words(request.path), cause=cause)
    return decoded

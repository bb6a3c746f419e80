"""The stage that reads samples: a worker decodes each file once, resamples it once per rate, and hashes it.

Memory
    Only the main process allocates shared memory, and it does not know how long a file is before the file is decoded.
    So it gives each sample room for what samples have needed so far. The worker fills the beginning of the room, and
    the rest is free again. A sample that needs more is read a second time, with the room that it needs. Because reading
    an hour takes many seconds, the header of a large file is read first: if it says that the room is too small, the
    file is not decoded.
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
"""The key of the stage, and its name in the table of where the time went."""

LARGE_PART = 16
"""A file is large from such a part of the sample's room on; samples that are decoded need more bytes than a file."""
SMALL_BYTES = 1 << 20
"""A file of at most so many bytes is decoded sooner than its header is worth."""

MUCH_SILENCE_S = 2.0
NARROW_HZ = 4_200
MOST_EMPTY = 0.45
FLAT_SHARE = 0.001
"""Worth a note: so much silence around less sound; nothing above `NARROW_HZ`, or above such a part of what the rate can
hold; such a share of flat peaks.
"""

READ_AT_ONCE = 2
"""Samples that a worker reads as one batch, at most. How long they are is not known before, and each may be an hour."""


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A file to read.

    Args:
        path: as `Audio.read` takes it. keep: where a copy is kept, or None.
        name: what messages call it, where that is not the path. most_s: longer audio is refused; None for any length,
            and then the path may be a locator too.
    """

    path: str
    keep: str | None = None
    name: str = ""
    most_s: float | None = None

    def read(self) -> Audio:
        """The audio.

        Raises:
            UserError: it cannot be read, or is too long.
        """
        return Audio.read(self.path) if self.most_s is None else Audio(*read_file(self.path, self.most_s))

    def words(self, message: str) -> str:
        """A message about the path, with the name in its place."""
        return message.replace(self.path, shown(self.name)) if self.name else message


@dataclass(frozen=True, slots=True)
class ReadWork:
    """One sample to read.

    Args:
        reference: its reference, or None. estimates: the files of each system that has some, by its name.
        room: the memory that takes the audio.
    """

    reference: FileRequest | None
    estimates: Mapping[str, FileRequest]
    room: Region


@dataclass(frozen=True, slots=True)
class DecodedFile:
    """A file that was read.

    Args:
        rates: its samples `(samples,)` at every rate that is needed, by rate in Hz, not cut to full scale.
        audio: its samples `(channels, samples)` as they were read, if a codec needs them.
        sample_rate_hz, num_samples, channels: as it was read.
        content_hash: of its samples. notes: what is worth knowing of it.
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
    """One sample that was read.

    Args:
        reference: what was read of it, the reason why it cannot be read, or None if there is none.
        estimates: the same by system. They are not read if the reference cannot be.
        used: bytes of the room that hold audio. needs: bytes that the sample needs, where that is more than the room
            has.
    """

    reference: DecodedFile | Diagnostic | None
    estimates: Mapping[str, DecodedFile | Diagnostic]
    used: int
    needs: int = 0


class _Room:
    """Regions one after the other in a given region."""

    def __init__(self, room: Region, segments: Segments) -> None:
        self._room, self._segments, self.used = room, segments, 0

    def put(self, samples: np.ndarray) -> Region:
        region = Region(self._room.segment, self._room.offset + self.used, samples.shape)
        self.used += rounded(region.nbytes)
        if self.used <= self._room.nbytes:  # a sample that needs more is counted to its end
            self._segments.view(region)[...] = samples
        return region


class ReadStage:
    """Reads samples. The options of its spec say at which rates: `reference`, `estimate` and `with_audio`."""

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
        """The room that the headers of a sample's large files ask for; a header that says less than is true does no
        harm.
        """
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
    """What is worth knowing of a recording before it is measured: much silence around it, a band that is mostly empty,
    clipped peaks, empty channels.

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
    """What libsndfile says of a file of at least so many bytes; None of a smaller one, and of what it cannot open.

    A length that is unknown (2**63 - 1), or that no sound may have, counts as none.
    """
    import soundfile

    with suppress(Exception):  # reading the file says what is wrong with it
        if os.path.getsize(path) >= least_bytes:
            header = soundfile.info(path)
            return header if 0 < 4 * header.frames * header.channels <= MOST_BYTES else None
    return None


def _read_signal(
    request: FileRequest, rates: Iterable[int], native_hz: int | None, room: _Room, with_audio: bool
) -> DecodedFile | Diagnostic:
    """Reads a file; a reason if that cannot be done, since no other sample is to be affected.

    Args:
        rates: at which it is needed; 0 stands for the rate of the reference, or of the file itself where there is none.
        native_hz: the rate of the reference, or None.
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

"""A sound that is read only when its samples are needed. The questions of a benchmark carry sounds in this form.

Where several requests are about one sound, they share a clip whose sound is read, converted and encoded once
(`SharedSounds`).
"""

from __future__ import annotations

import hashlib
import io
import wave
from collections import OrderedDict
from collections.abc import Callable, Hashable
from copy import deepcopy
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from codec_bench.audio.hash import content_hash
from codec_bench.audio.resample import prepare
from codec_bench.config.file_content import file_hash
from codec_bench.decoding.decode import check_audio, decode_bytes
from codec_bench.decoding.read import file_of
from codec_bench.decoding.remote import is_url
from codec_bench.errors import UserError
from codec_bench.types import Audio, Built

MOST_BYTES = 512 << 20
"""The most bytes that are kept of sounds which several requests share. The latest is kept whatever its size."""


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """A sound in a file, in a row of a table, or in memory. `read` and `signal` decode it each time they are called.

    Args:
        source: a path that `Audio.read` takes, the bytes of a sound file, or decoded audio.
        name: the name of a sound in memory, for messages.
    """

    source: str | bytes | Audio
    name: str = "the audio in memory"

    def __deepcopy__(self, memo: dict[int, Any]) -> Clip:
        """The clip itself: nothing of it can be changed, and `read` gives copies."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """A clip by itself: what several requests share stays in its process."""
        return Clip, (self.source, self.name)

    def read(self) -> Audio:
        """Decodes the sound: all channels, at its own rate.

        Raises:
            AudioError: the sound cannot be read, holds no samples, or holds samples that are not finite.
        """
        audio = self._held()
        return (
            deepcopy(audio) if self._is_shared else audio
        )  # a model may write into it, and others read the same sound

    @property
    def _is_shared(self) -> bool:
        return isinstance(self.source, Audio)

    @property
    def duration_s(self) -> float:
        """Its length in seconds.

        Raises:
            AudioError: as `read`.
        """
        return self._held().duration_s

    def _held(self) -> Audio:
        """As `read`, but it may be the sound that others read too."""
        if isinstance(self.source, Audio):
            check_audio(self.source, self.name)
            return self.source
        return (
            Audio(*decode_bytes(self.source, self.name)) if isinstance(self.source, bytes) else Audio.read(self.source)
        )

    def signal(self, rate_hz: int, limit_s: float | None = None) -> tuple[Audio, float]:
        """Decodes the sound to one channel at a given rate, and cuts it to a given length.

        Args:
            rate_hz: the rate of the result.
            limit_s: how many seconds to keep at most, from the start; None keeps all.

        Returns:
            The audio `(1, samples)`, and the number of seconds that were cut off.
        """
        signal = prepare(self.read(), rate_hz)
        keep = len(signal) if limit_s is None else min(len(signal), round(limit_s * rate_hz))
        return Audio(signal[None, :keep], rate_hz), (len(signal) - keep) / rate_hz

    def fitted(self, rate_hz: int, limit_s: float | None = None) -> tuple[Clip, float]:
        """As `signal`, but gives the audio as a clip."""
        audio, cut_s = self.once(("signal", rate_hz, limit_s), lambda: self.signal(rate_hz, limit_s))
        return self.derive(audio, (rate_hz, limit_s)), cut_s

    def derive(self, audio: Audio, variant: Hashable) -> Clip:
        """A clip of audio that was made of this one; it is shared if this one is.

        Args:
            audio: the audio. variant: tells it from others that are made of this clip.
        """
        return Clip(audio, self.name)

    def once(self, key: Hashable, make: Callable[[], Built]) -> Built:
        """What is made of the sound. A shared clip makes it once, and keeps it as long as there is room.

        Args:
            key: tells it from other things that are made of this clip. make: makes it.
        """
        return make()


@dataclass(slots=True, eq=False)
class _Entry:
    """One thing that was made of a sound, and its size; the lock is held while it is made."""

    lock: Lock = field(default_factory=Lock)
    value: Any = None
    is_ready: bool = False
    size: int = 0


class SharedSounds:
    """What was made of sounds that several requests are about: samples, signals, encoded files.

    What was used longest ago is forgotten first, and made again when it is needed. May be used by several threads.

    Args:
        most_bytes: how much is kept.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._bytes = most_bytes, 0
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = Lock()

    def share(self, clip: Clip, name: Hashable) -> Clip:
        """A clip of the same sound that several requests share.

        Args:
            clip: the clip. name: tells the sound from all others.
        """
        return _Shared(clip.source, clip.name, self, (name,))

    def once(self, key: Hashable, make: Callable[[], Built]) -> Built:
        """What `make` gives; it is called once as long as its result is kept."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        with entry.lock:
            if not entry.is_ready:
                entry.value = make()
                entry.is_ready, entry.size = True, _size_of(entry.value)
                self._make_room(key, entry)
            value: Built = entry.value
            return value

    def _make_room(self, key: Hashable, entry: _Entry) -> None:
        with self._lock:
            if self._entries.get(key) is not entry:  # it was forgotten while it was made
                return
            self._bytes += entry.size
            for old in list(self._entries):
                if self._bytes <= self._most:
                    break
                if old != key:
                    self._bytes -= self._entries.pop(old).size


def _size_of(value: object) -> int:
    """The bytes of samples and of encoded sounds; nothing else that is kept is large."""
    if isinstance(value, Audio):
        return value.samples.nbytes
    if isinstance(value, tuple):
        return sum(map(_size_of, value))
    return len(value) if isinstance(value, (bytes, str)) else 0


@dataclass(frozen=True, slots=True, eq=False)
class _Shared(Clip):
    """A clip that several requests share. The first arguments are those of `Clip`.

    Args:
        sounds: where what is made of it is kept. key: its place there.
    """

    sounds: SharedSounds = field(default_factory=SharedSounds)
    key: tuple[Hashable, ...] = ()

    @property
    def _is_shared(self) -> bool:
        return True

    def _held(self) -> Audio:
        """As `Clip._held`; the sound is decoded once."""
        plain = Clip(self.source, self.name)
        return plain._held() if isinstance(self.source, Audio) else self.once("audio", plain._held)

    def derive(self, audio: Audio, variant: Hashable) -> Clip:
        """As `Clip.derive`."""
        return _Shared(audio, self.name, self.sounds, (*self.key, variant))

    def once(self, key: Hashable, make: Callable[[], Built]) -> Built:
        """As `Clip.once`."""
        return self.sounds.once((*self.key, key), make)


def wav_bytes(audio: Audio) -> bytes:
    """The bytes of a 16-bit WAV file, a format that every endpoint accepts. Samples beyond full scale are clipped."""
    pcm = np.clip(np.rint(audio.samples.T * 32768.0), -32768, 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((audio.channels, 2, audio.sample_rate_hz, 0, "NONE", ""))
        out.writeframes(pcm.tobytes())
    return file.getvalue()


def clip_digest(clip: Clip) -> str:
    """A 160-bit hash of the samples and their rate, as hexadecimal. It does not depend on where the sound is stored.

    Raises:
        AudioError: as `Clip.read`.
    """

    def digest() -> str:
        audio = clip.read()
        return content_hash(audio.samples, audio.sample_rate_hz)

    return clip.once("digest", digest)


def clip_content(clip: Clip) -> str:
    """What tells the content of a sound from others without decoding it; of one behind a URL, its address.

    A sound within a table or a tar file counts as changed if the file is another one.
    """
    source = clip.source
    try:
        if isinstance(source, bytes):
            return bytes_digest(source)
        if not isinstance(source, str):
            return clip_digest(clip)
        file = file_of(source)
        return source if is_url(file) else file_hash(file) + source.removeprefix(file)
    except (UserError, OSError, ValueError):
        return "unreadable"


def bytes_digest(data: bytes) -> str:
    """A 160-bit hash of bytes, as hexadecimal."""
    return hashlib.blake2b(data, digest_size=20).hexdigest()

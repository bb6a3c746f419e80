"""Audio that is read on demand, as in the requests of benchmarks.

Requests about the same audio share a clip that is read, converted and encoded once (`SharedSounds`).
"""

from __future__ import annotations

import hashlib
import io
import os
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
from codec_bench.decoding.decode import check_audio
from codec_bench.decoding.read import file_of
from codec_bench.decoding.remote import is_url
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio, Built

MOST_BYTES = 512 << 20
"""The most cached bytes of shared audio; the latest stays whatever its size."""


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """Audio in a file, a table row, or memory, which each call decodes again.

    Args:
        source: a path that `Audio.read` takes, the bytes of a sound file, or decoded audio.
        name: the name of audio in memory, for messages.
    """

    source: str | bytes | Audio
    name: str = "the audio in memory"

    def __deepcopy__(self, memo: dict[int, Any]) -> Clip:
        """Return the clip itself: it is immutable, and `read` returns copies."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the clip without shared values, which stay in their process."""
        return Clip, (self.source, self.name)

    def read(self) -> Audio:
        """Decode the audio: all channels, at its own rate.

        Raises:
            AudioError: the audio is unreadable, empty or not finite.
        """
        audio = self._held()
        return deepcopy(audio) if self._is_shared else audio  # a model may write into it

    @property
    def _is_shared(self) -> bool:
        return isinstance(self.source, Audio)

    @property
    def duration_s(self) -> float:
        """The length in seconds; raises as `read`."""
        return self._held().duration_s

    @property
    def missing_file(self) -> str | None:
        """The source's local file if it is missing; None for URLs and bytes."""
        file = file_of(self.source) if isinstance(self.source, str) else None
        return None if file is None or is_url(file) or os.path.exists(file) else file

    def _held(self) -> Audio:
        """As `read`, possibly without a copy."""
        if isinstance(self.source, Audio):
            check_audio(self.source, self.name)
            return self.source
        if isinstance(self.source, bytes):
            return Audio.decode(self.source, self.name)
        return Audio.read(self.source)

    def signal(self, rate_hz: int, limit_s: float | None = None) -> tuple[Audio, float]:
        """Decode to one channel at `rate_hz`, cut to the first `limit_s` seconds.

        Returns:
            The audio `(1, samples)`, and the number of seconds that were cut off.
        """
        signal = prepare(self.read(), rate_hz)
        keep = len(signal) if limit_s is None else min(len(signal), round(limit_s * rate_hz))
        return Audio(signal[None, :keep], rate_hz), (len(signal) - keep) / rate_hz

    def fitted(self, rate_hz: int, limit_s: float | None = None) -> tuple[Clip, float]:
        """As `signal`, but returns the audio as a clip."""
        audio, cut_s = self.once(("signal", rate_hz, limit_s), lambda: self.signal(rate_hz, limit_s))
        return self.derive(audio, (rate_hz, limit_s)), cut_s

    def derive(self, audio: Audio, variant: Hashable) -> Clip:
        """Return a clip of audio derived from this one; it is shared if this one is."""
        return Clip(audio, self.name)

    def once(self, key: Hashable, make: Callable[[], Built]) -> Built:
        """Return `make()`; a shared clip caches it under `key` while there is room."""
        return make()


@dataclass(slots=True, eq=False)
class _Entry:
    lock: Lock = field(default_factory=Lock)
    value: Any = None
    is_ready: bool = False
    size: int = 0


class SharedSounds:
    """A thread-safe LRU cache for audio that several requests share, limited in bytes."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._bytes = most_bytes, 0
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = Lock()

    def share(self, clip: Clip, name: Hashable) -> Clip:
        """Return a shared clip of the same audio; `name` identifies the audio."""
        return _Shared(clip.source, clip.name, self, (name,))

    def once(self, key: Hashable, make: Callable[[], Built]) -> Built:
        """Return `make()`, computed once while it is cached."""
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
        """Evict the oldest entries beyond the limit, except a new one."""
        with self._lock:
            if self._entries.get(key) is not entry:  # evicted meanwhile
                return
            self._bytes += entry.size
            for old in list(self._entries):
                if self._bytes <= self._most:
                    break
                if old != key:
                    self._bytes -= self._entries.pop(old).size


def _size_of(value: object) -> int:
    if isinstance(value, Audio):
        return value.samples.nbytes
    if isinstance(value, tuple):
        return sum(map(_size_of, value))
    return len(value) if isinstance(value, (bytes, str)) else 0


@dataclass(frozen=True, slots=True, eq=False)
class _Shared(Clip):
    """A clip that several requests share."""

    sounds: SharedSounds = field(default_factory=SharedSounds)
    key: tuple[Hashable, ...] = ()

    @property
    def _is_shared(self) -> bool:
        return True

    def _held(self) -> Audio:
        """As `Clip._held`; the audio is decoded once."""
        plain = Clip(self.source, self.name)
        return plain._held() if isinstance(self.source, Audio) else self.once("audio", plain._held)

    def derive(self, audio: Audio, variant: Hashable) -> Clip:
        """As `Clip.derive`."""
        return _Shared(audio, self.name, self.sounds, (*self.key, variant))

    def once(self, key: Hashable, make: Callable[[], Built]) -> Built:
        """As `Clip.once`."""
        return self.sounds.once((*self.key, key), make)


def wav_bytes(audio: Audio) -> bytes:
    """Encode a 16-bit WAV file, which every endpoint accepts, clipped to full scale."""
    pcm = np.clip(np.rint(audio.samples.T * 32768.0), -32768, 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((audio.channels, 2, audio.sample_rate_hz, 0, "NONE", ""))
        out.writeframes(pcm.tobytes())
    return file.getvalue()


def clip_digest(clip: Clip) -> str:
    """Return a 160-bit hexadecimal hash of samples and rate.

    Raises:
        AudioError: as `Clip.read`.
    """

    def digest() -> str:
        audio = clip.read()
        return content_hash(audio.samples, audio.sample_rate_hz)

    return clip.once("digest", digest)


def clip_content(clip: Clip) -> str:
    """Return an identity of the content without decoding; for URLs, the address.

    Audio in a table or tar file changes with that file.
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
    """Return a 160-bit hexadecimal hash of bytes."""
    return hashlib.blake2b(data, digest_size=20).hexdigest()

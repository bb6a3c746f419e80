"""One item to score: its fields, and the checks of its audio."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio, Score

MOST_BYTES = 64 << 20
MOST_SECONDS = 600.0
RATES_HZ = (4_000, 192_000)
MOST_CHANNELS = 8
MOST_TEXT = 20_000
UNKNOWN_LENGTH = 2**60
"""libsndfile's least length for a FLAC stream of unknown length."""

AudioInput = Audio | bytes | str | Path | np.ndarray


class BadItem(UserError):
    """An item that cannot be scored; `code` is that of the protocol, the message has another code."""

    code: str

    def __init__(self, message: str, *, code: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), code=self.code, hint=self.hint), (self.message,)


def bad_type(name: str, value: Any, expected: str, *, code: str = "bad_item", hint: str | None = None) -> BadItem:
    """Build the error of a value of another type."""
    return BadItem(
        Diagnostic("item_type", name=name, type=type(value).__name__, expected=expected), code=code, hint=hint
    )


def too_large(name: str, size: int, most: int) -> BadItem:
    """Build the error of too many bytes."""
    return BadItem(Diagnostic("item_bytes", name=name, bytes=size, most=most), code="too_large")


@dataclass(frozen=True, slots=True)
class Item:
    """One item.

    Args:
        audio: the generated audio: bytes of a file, an `Audio`, or the path of a local file.
        reference: the audio to compare it with, in the same forms; None for metrics without one.
        reference_id: a reference stored by `put_reference`, in place of `reference`.
        text: the transcript.
        language: such as `en`.
        id: for messages and results.
    """

    audio: AudioInput
    reference: AudioInput | None = None
    reference_id: str | None = None
    text: str | None = None
    language: str | None = None
    id: str = ""


class QueueFull(UserError):
    """The queue of items is full; try again later."""


@dataclass(frozen=True, slots=True)
class Result:
    """The scores of an item.

    Args:
        scores: by metric.
        duration_s: of the audio; None if unreadable.
        seconds: from arrival to scores.
        unreadable: why the audio or its reference could not be read.
    """

    id: str
    scores: Mapping[str, Score]
    duration_s: float | None
    seconds: float
    unreadable: str | None = None


def as_item(value: Item | Mapping[str, Any]) -> Item:
    """Build an item from a mapping of its fields; raises BadItem."""
    if isinstance(value, Item):
        return value
    if not isinstance(value, Mapping):
        raise bad_type("item", value, "item")
    unknown = sorted(map(str, value.keys() - set(Item.__dataclass_fields__)))
    if unknown:
        known = list(Item.__dataclass_fields__)
        raise BadItem(Diagnostic("no_item_field", field=unknown[0], known=known), code="bad_item")
    if "audio" not in value:
        raise BadItem(Diagnostic("item_without_audio"), code="bad_item")
    for name in ("text", "language", "id", "reference_id"):
        if not isinstance(value.get(name), str | None):
            raise bad_type(name, value[name], "text")
    return Item(**{**value, "id": value.get("id") or ""})


def check_text(item: Item) -> None:
    """Check the texts of an item; raises BadItem if one is too long."""
    for name in ("text", "language", "id", "reference_id"):
        if len(getattr(item, name) or "") > MOST_TEXT:
            raise BadItem(Diagnostic("item_text_length", field=name, most=MOST_TEXT), code="text_too_long")


def audio_bytes(audio: AudioInput, name: str) -> bytes:
    """Return the bytes of an audio file, checked by its header.

    Args:
        audio: an `Audio`, bytes of a file, or the path of a local file.
        name: for messages.

    Raises:
        BadItem: it is none of these, is empty, too large, too long, or has no allowed rate or channels.
    """
    if isinstance(audio, Audio):
        return wav_bytes(audio.samples, audio.sample_rate_hz, name)
    if isinstance(audio, str | Path):
        try:
            audio = Path(audio).read_bytes()
        except OSError as error:
            unreadable = Diagnostic("item_unreadable", name=name, cause=error.strerror or error)
            raise BadItem(unreadable, code="unreadable") from error
    if not isinstance(audio, bytes | bytearray | memoryview):
        hint = "codec_bench.Audio(samples, sample_rate_hz) makes one of an array"
        raise bad_type(name, audio, "item_audio", hint=hint)
    data = bytes(audio)
    if not data:
        raise BadItem(Diagnostic("item_empty", name=name), code="empty")
    if len(data) > MOST_BYTES:
        raise too_large(name, len(data), MOST_BYTES)
    _check_header(data, name)
    return data


def _check_header(data: bytes, name: str) -> None:
    """Check length, channels and rate if the header can be read; raises BadItem."""
    import soundfile

    try:
        info = soundfile.info(io.BytesIO(data))
    except Exception:  # another format, or a broken file: the decoder says which
        return
    check_shape(info.frames, info.channels, info.samplerate, name)


def check_shape(samples: int, channels: int, rate_hz: int, name: str) -> None:
    """Check length, channels and rate; raises BadItem beyond a limit."""
    if not RATES_HZ[0] <= rate_hz <= RATES_HZ[1]:
        low, high = RATES_HZ
        raise BadItem(Diagnostic("item_rate", name=name, rate_hz=rate_hz, low=low, high=high), code="bad_rate")
    if not 1 <= channels <= MOST_CHANNELS:
        raise BadItem(
            Diagnostic("item_channels", name=name, channels=channels, most=MOST_CHANNELS), code="bad_channels"
        )
    if MOST_SECONDS * rate_hz < samples < UNKNOWN_LENGTH:
        length_s = samples / rate_hz
        raise BadItem(Diagnostic("item_length", name=name, length_s=length_s, most_s=MOST_SECONDS), code="too_long")


def wav_bytes(samples: Any, rate_hz: int, name: str) -> bytes:
    """Encode samples, `(samples,)` or `(channels, samples)`, as 32-bit float WAV.

    Raises:
        BadItem: they are empty, not finite, or beyond a limit.
    """
    import soundfile

    array = np.atleast_2d(np.asarray(samples, np.float32))
    if not array.size:
        raise BadItem(Diagnostic("item_empty", name=name), code="empty")
    check_shape(array.shape[1], array.shape[0], rate_hz, name)
    if not np.isfinite(array).all():
        raise BadItem(Diagnostic("item_not_finite", name=name), code="not_finite")
    out = io.BytesIO()
    soundfile.write(out, array.T, rate_hz, format="WAV", subtype="FLOAT")
    return out.getvalue()

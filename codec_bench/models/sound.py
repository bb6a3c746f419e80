"""Sound on its way to and from a service: as base64, as bytes of a file, as bare samples."""

from __future__ import annotations

import base64
import binascii
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.audio.clip import Clip, wav_bytes
from codec_bench.audio.decode import read_audio
from codec_bench.errors import AudioError
from codec_bench.types import Audio, Request


class Base64(str):
    """Text of letters, digits and `+/=:;,` only, which no format of text has to escape."""

    __slots__ = ()


def clips_of(request: Request) -> Iterator[Clip]:
    """Every sound of a request, in order."""
    for message in request.messages:
        yield from (part for part in message.content if isinstance(part, Clip))
    yield from (value for value in request.fields.values() if isinstance(value, Clip))


def wav_base64(clip: Clip) -> Base64:
    """A clip as a WAV file of 16 bits in base64."""
    return Base64(base64.b64encode(wav_bytes(clip.read())), "ascii")


def data_uri(clip: Clip) -> Base64:
    """A clip as a WAV file in a `data:` address (RFC 2397)."""
    return Base64(f"data:audio/wav;base64,{wav_base64(clip)}")


def pcm16_base64(clip: Clip) -> str:
    """A clip as bare samples in base64: 16 bits, little-endian, at the clip's rate."""
    samples = np.clip(np.round(clip.read().samples[0] * 32768.0), -32768, 32767).astype("<i2")
    return base64.b64encode(samples.tobytes()).decode("ascii")


def from_base64(text: Any) -> bytes:
    """What base64 says; a `data:` address loses its head.

    Raises:
        AudioError: it is not base64.
    """
    if not isinstance(text, str):
        raise AudioError(f"the answer's audio is {type(text).__name__}; expected base64")
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise AudioError(f"the answer's audio is not base64: {error}") from None


def from_pieces(parts: Sequence[Any]) -> bytes:
    """What base64 in pieces says, whether each was coded by itself or one text was cut anywhere.

    Raises:
        AudioError: it is not base64.
    """
    if any(isinstance(part, str) and len(part) % 4 for part in parts):
        return from_base64("".join(map(str, parts)))
    return b"".join(from_base64(part) for part in parts)


def audio_of(data: bytes, kind: str, rate_hz: int) -> Audio:
    """The sound in an answer.

    Args:
        data: a file of any kind that `read_audio` knows, or bare samples.
        kind: `wav`, `mp3`, `flac`, ...; `pcm` for bare samples of 16 bits, little-endian, one channel.
        rate_hz: rate of bare samples; a file says its own.

    Raises:
        AudioError: it is not such a sound, or holds no samples.
    """
    if not data:
        raise AudioError("the answer's audio is empty (0 bytes)")
    # Some services send a file where bare samples were asked for.
    if kind.startswith("pcm") and data[:4] != b"RIFF":
        return Audio(np.frombuffer(data[: len(data) // 2 * 2], "<i2").astype(np.float32) / 32768.0, rate_hz)
    with tempfile.TemporaryDirectory(prefix="codec-bench-") as folder:
        path = Path(folder) / f"answer.{'wav' if data[:4] == b'RIFF' else kind}"
        path.write_bytes(data)
        try:
            return read_audio(path)
        except AudioError as error:
            raise AudioError(error.message.replace(f"'{path}'", "the answer's audio")) from None


def joined(parts: list[Audio]) -> Audio:
    """One sound after the other.

    Raises:
        AudioError: they differ in rate or channels.
    """
    if len({(part.sample_rate_hz, part.channels) for part in parts}) != 1:
        raise AudioError("the parts of the answer's audio differ in rate or channels")
    return Audio(np.concatenate([part.samples for part in parts], axis=1), parts[0].sample_rate_hz)

"""Converts audio to and from base64, files, and samples without a header."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from codec_bench.audio.clip import Clip, wav_bytes
from codec_bench.messages.errors import AudioError
from codec_bench.types import Audio, Request, Sound


class Base64(str):
    """Text of letters, digits and `+/=:;,` only, which JSON need not escape."""

    __slots__ = ()


def clips_of(request: Request) -> Iterator[Clip]:
    """Yield every clip of a request, in order."""
    for message in request.messages:
        yield from (item for item in message.content if isinstance(item, Clip))
    yield from (value for value in request.fields.values() if isinstance(value, Clip))


def wav_file(clip: Sound) -> bytes:
    """Return audio as a 16-bit WAV file."""
    return clip.once("wav", lambda: wav_bytes(clip.read()))


def wav_base64(clip: Sound) -> Base64:
    """Return audio as a 16-bit WAV file in base64."""
    return clip.once("wav-base64", lambda: Base64(base64.b64encode(wav_bytes(clip.read())), "ascii"))


def data_uri(clip: Sound) -> Base64:
    """Return audio as a 16-bit WAV file in a `data:` URL (RFC 2397)."""
    return Base64(f"data:audio/wav;base64,{wav_base64(clip)}")


def pcm16_base64(clip: Sound) -> str:
    """Return the first channel as 16-bit little-endian PCM in base64, at its own rate."""
    samples = np.clip(np.round(clip.read().samples[0] * 32768.0), -32768, 32767).astype("<i2")
    return base64.b64encode(samples.tobytes()).decode("ascii")


def pcm16_pieces(clip: Sound, piece_s: float) -> list[str]:
    """Split audio into chunks of `piece_s` seconds, as base64 of 16-bit samples."""
    audio = clip.read()
    signal, step = audio.samples[:, : audio.num_samples], int(piece_s * audio.sample_rate_hz)
    starts = range(0, signal.shape[1], step)
    return [pcm16_base64(Clip(Audio(signal[:, at : at + step], audio.sample_rate_hz))) for at in starts]


def from_base64(text: Any) -> bytes:
    """Decode base64, also a `data:` URL; AudioError if it is damaged."""
    if not isinstance(text, str):
        raise AudioError("audio_not_base64", type=type(text).__name__)
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise AudioError("base64_damaged", cause=error) from None


def from_hex(text: Any) -> bytes:
    """Decode hexadecimal digits, or raise AudioError."""
    if not isinstance(text, str):
        raise AudioError("audio_not_hexadecimal", type=type(text).__name__)
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise AudioError("hexadecimal_damaged", cause=error) from None


def from_pieces(parts: Sequence[Any]) -> bytes:
    """Decode base64 chunks: each encoded separately, or one text cut anywhere."""
    if any(isinstance(chunk, str) and len(chunk) % 4 for chunk in parts):
        return from_base64("".join(map(str, parts)))
    return b"".join(from_base64(chunk) for chunk in parts)


def audio_of(data: bytes, kind: str, rate_hz: int) -> Audio:
    """Decode the audio in a model's response.

    Args:
        data: a file of any kind that `Audio.read` knows, or samples without a header.
        kind: `wav`, `mp3`, `flac`, ...; `pcm` for 16-bit little-endian mono samples without a header.
        rate_hz: sample rate of `pcm`; a file states its own.

    Raises:
        AudioError: the data is not audio of this kind, or empty.
    """
    if not data:
        raise AudioError("answer_audio_empty")
    # Some services send a WAV file when `pcm` was requested.
    if kind.startswith("pcm") and data[:4] != b"RIFF":
        if len(data) % 2:
            raise AudioError("odd_bytes", bytes=len(data))
        return Audio(np.frombuffer(data, "<i2").astype(np.float32) / 32768.0, rate_hz)
    return Audio.decode(data, "audio of the answer")


def joined(parts: list[Audio]) -> Audio:
    """Concatenate audio; different rates or channels raise AudioError."""
    if len({(audio.sample_rate_hz, audio.channels) for audio in parts}) != 1:
        raise AudioError("answer_audio_parts_differ")
    return Audio(np.concatenate([audio.samples for audio in parts], axis=1), parts[0].sample_rate_hz)

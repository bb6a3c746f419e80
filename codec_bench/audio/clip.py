"""A sound that is named and not yet read: what a question carries until somebody needs it."""

from __future__ import annotations

import hashlib
import io
import wave
from dataclasses import dataclass

import numpy as np

from codec_bench.audio.decode import check_samples, decode_bytes, read_audio
from codec_bench.audio.hash import content_hash
from codec_bench.audio.resample import prepare
from codec_bench.types import Audio


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """Sound in a file, in a row of a table, or in memory; nothing is decoded before it is asked for.

    Args:
        source: a path as `read_audio` takes it, the bytes of a sound file, or audio that is here already.
        name: what sound in memory is called in messages.
    """

    source: str | bytes | Audio
    name: str = "the audio in memory"

    def read(self) -> Audio:
        """All channels at the sound's own rate.

        Raises:
            AudioError: it cannot be read, or holds no samples or samples that are not finite.
        """
        if isinstance(self.source, Audio):
            check_samples(self.source, self.name)
            return self.source
        return decode_bytes(self.source, self.name) if isinstance(self.source, bytes) else read_audio(self.source)

    def signal(self, rate_hz: int, limit_s: float | None = None) -> tuple[Audio, float]:
        """One channel at a rate, cut to a length.

        Args:
            rate_hz: the rate wanted.
            limit_s: keep at most so many seconds from the start; None keeps all.

        Returns:
            (audio `(1, samples)`, seconds that were cut).
        """
        signal = prepare(self.read(), rate_hz)
        keep = len(signal) if limit_s is None else min(len(signal), round(limit_s * rate_hz))
        return Audio(signal[None, :keep], rate_hz), (len(signal) - keep) / rate_hz


def wav_bytes(audio: Audio) -> bytes:
    """Audio as a WAV file of 16 bits, which every endpoint takes; samples beyond full scale are cut."""
    pcm = np.clip(np.rint(audio.samples.T * 32768.0), -32768, 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((audio.channels, 2, audio.sample_rate_hz, 0, "NONE", ""))
        out.writeframes(pcm.tobytes())
    return file.getvalue()


def clip_digest(clip: Clip) -> str:
    """160 bits over the samples and their rate, as hexadecimal: one sound has one digest, wherever it lies.

    Raises:
        AudioError: as `Clip.read`.
    """
    audio = clip.read()
    return content_hash(audio.samples, audio.sample_rate_hz)


def bytes_digest(data: bytes) -> str:
    """160 bits over bytes, as hexadecimal."""
    return hashlib.blake2b(data, digest_size=20).hexdigest()

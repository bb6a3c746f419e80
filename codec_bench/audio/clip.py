"""A sound that is read only when its samples are needed. The questions of a benchmark carry sounds in this form."""

from __future__ import annotations

import hashlib
import io
import wave
from dataclasses import dataclass

import numpy as np

from codec_bench.audio.decode import check_audio, decode_bytes
from codec_bench.audio.hash import content_hash
from codec_bench.audio.read import read_audio
from codec_bench.audio.resample import prepare
from codec_bench.types import Audio


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """A sound in a file, in a row of a table, or in memory. `read` and `signal` decode it each time they are called.

    Args:
        source: a path that `read_audio` takes, the bytes of a sound file, or decoded audio.
        name: the name of a sound in memory, for messages.
    """

    source: str | bytes | Audio
    name: str = "the audio in memory"

    def read(self) -> Audio:
        """Decodes the sound: all channels, at its own rate.

        Raises:
            AudioError: the sound cannot be read, holds no samples, or holds samples that are not finite.
        """
        if isinstance(self.source, Audio):
            check_audio(self.source, self.name)
            return self.source
        return decode_bytes(self.source, self.name) if isinstance(self.source, bytes) else read_audio(self.source)

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
    audio = clip.read()
    return content_hash(audio.samples, audio.sample_rate_hz)


def bytes_digest(data: bytes) -> str:
    """A 160-bit hash of bytes, as hexadecimal."""
    return hashlib.blake2b(data, digest_size=20).hexdigest()

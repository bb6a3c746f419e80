"""Vorbis I by libvorbis (libsndfile) at a quality; decoded by FFmpeg."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.classical.bitstream import BitstreamCodec, decode_packets
from codec_bench.decoding.decode import opened_sound
from codec_bench.messages.errors import UserError

_RATES_HZ = (8000, 16000, 22050, 24000, 32000, 44100, 48000)
_BLOCK = 16384  # libsndfile holds all samples of a call on its stack


class Vorbis(BitstreamCodec):
    """Vorbis at variable bitrate, without headers, which the receiver makes again.

    Args:
        quality: 0 to 10, as of `oggenc -q`.
    """

    def __init__(self, quality: float) -> None:
        if not 0 <= quality <= 10:
            raise UserError("codec_quality", quality=quality, hint="it has 0 to 10")
        self._quality = quality
        super().__init__(CodecInfo(f"vorbis-q{quality:g}", sample_rates_hz=_RATES_HZ, channels=(1, 2), causal=False))

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Encode one item to audio packets, without the headers."""
        return _encoded(samples, rate_hz, self._quality)[1]

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """Decode one item; Vorbis has no delay to cut."""
        headers = _headers(rate_hz, channels, self._quality)
        return decode_packets("vorbis", packets, rate_hz=rate_hz, channels=channels, extradata=headers)


@cache
def _headers(rate_hz: int, channels: int, quality: float) -> bytes:
    """Build a stream's three header packets from its settings, in FFmpeg's layout."""
    return _encoded(np.zeros((channels, 1), np.float32), rate_hz, quality)[0]


def _encoded(samples: np.ndarray, rate_hz: int, quality: float) -> tuple[bytes, list[bytes]]:
    """Encode `(channels, samples)` with libvorbis: setup header and audio packets.

    Args:
        quality: 0 to 10, as of `oggenc -q`.
    """
    import soundfile

    file = io.BytesIO()
    level = 1 - quality / 10
    facts = {"format": "OGG", "subtype": "VORBIS", "compression_level": level}
    with soundfile.SoundFile(file, "w", rate_hz, samples.shape[0], **facts) as out:
        for start in range(0, samples.shape[1], _BLOCK):
            out.write(np.clip(samples[:, start : start + _BLOCK].T, -1, 1))
    with opened_sound(file.getvalue()) as container:
        stream = container.streams.audio[0]
        packets = [bytes(packet) for packet in container.demux(stream) if packet.size]
        return bytes(stream.codec_context.extradata or b""), packets

"""RealAudio 14.4 (an early code-excited linear predictor at 8 kbit/s) through FFmpeg's encoder and decoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.classical.bitstream import (
    BitstreamCodec,
    Encoder,
    check_packet_sizes,
    decode_packets,
    one_rate,
    packets_for,
)

_RATE_HZ, _FRAME, _BYTES = 8000, 160, 20
DELAY_SAMPLES = 160  # the encoder codes the frame before the one that it is given


class Ra144(BitstreamCodec):
    """RealAudio 14.4, 8 kHz mono, constant bitrate."""

    def __init__(self) -> None:
        facts = one_rate(_RATE_HZ, _FRAME, DELAY_SAMPLES)
        super().__init__(CodecInfo("ra-144", nominal_bitrate_bps=8.0 * _BYTES * _RATE_HZ / _FRAME, **facts))

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Packets of 20 bytes, each of 20 ms."""
        count = packets_for(samples.shape[1] + DELAY_SAMPLES, _FRAME)
        return Encoder("real_144", "s16", _FRAME).encode(samples, rate_hz, count)

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """The decoded signal without its delay."""
        check_packet_sizes(self.info.name, packets, _BYTES)
        return decode_packets("real_144", packets, rate_hz=rate_hz, channels=channels)[:, DELAY_SAMPLES:]

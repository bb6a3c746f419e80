"""ITU-T G.722 at 64 kbps: two ADPCM bands at 16 kHz."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.classical.bitstream import BitstreamCodec, Encoder, decode_packets, one_rate, packets_for

_RATE_HZ = 16000
_FRAME = 320
DELAY_SAMPLES = 22  # two 24-tap quadrature mirror filters


class G722(BitstreamCodec):
    """G.722, mode 1 (64 kbps), 20 ms packets."""

    def __init__(self) -> None:
        super().__init__(CodecInfo("g722", nominal_bitrate_bps=64000.0, **one_rate(_RATE_HZ, _FRAME, DELAY_SAMPLES)))

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """One byte for every two samples; the last packet is cut after the last byte that is needed."""
        needed = samples.shape[1] + DELAY_SAMPLES
        packets = Encoder("g722", "s16", _FRAME).encode(samples, rate_hz, packets_for(needed, _FRAME))
        packets[-1] = packets[-1][: -(-(needed - (len(packets) - 1) * _FRAME) // 2)]
        return packets

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """The decoded signal without its delay."""
        return decode_packets("g722", packets, rate_hz=rate_hz, channels=channels)[:, DELAY_SAMPLES:]

"""ITU-T G.723.1 at 6.3 kbps: multi-pulse excitation in frames of 30 ms."""

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

_RATE_HZ = 8000
_FRAME = 240
_FRAME_BYTES = 24  # 189 bits of speech, two that name the rate, one spare
BITRATE_BPS = 6300
DELAY_SAMPLES = 60  # the encoder looks one subframe (7.5 ms) ahead


class G7231(BitstreamCodec):
    """G.723.1 at the higher of its two rates, the only one that FFmpeg encodes; without discontinuous transmission.

    A packet is one frame of 24 bytes, 1.6 % above the declared rate: 6.4 kbps.
    """

    def __init__(self) -> None:
        facts = one_rate(_RATE_HZ, _FRAME, DELAY_SAMPLES)
        super().__init__(CodecInfo("g723.1", nominal_bitrate_bps=float(BITRATE_BPS), **facts))

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """One packet a frame."""
        encoder = Encoder("g723_1", "s16", _FRAME, BITRATE_BPS)
        return encoder.encode(samples, rate_hz, packets_for(samples.shape[1] + DELAY_SAMPLES, _FRAME))

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """The decoded signal without its delay. The decoder's post-filter is on."""
        # A shorter packet is a frame of the other rate, or of comfort noise.
        check_packet_sizes(self.info.name, packets, _FRAME_BYTES)
        return decode_packets("g723_1", packets, rate_hz=rate_hz, channels=channels)[:, DELAY_SAMPLES:]

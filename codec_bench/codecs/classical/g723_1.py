"""ITU-T G.723.1 at 6.3 kbps: multi-pulse excitation in frames of 30 ms."""

from __future__ import annotations

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.classical.bitstream import BitstreamCodec, Coder, Encoder, one_rate

_RATE_HZ = 8000
_FRAME = 240
_FRAME_BYTES = 24  # 189 bits of speech, two that name the rate, one spare
BITRATE_BPS = 6300
DELAY_SAMPLES = 60  # the encoder looks one subframe (7.5 ms) ahead


class G7231(BitstreamCodec):
    """G.723.1 at 6.3 kbit/s, FFmpeg's only rate, with post-filter.

    There is no discontinuous transmission. A packet is one frame of 24 bytes, 1.6 % above the declared rate: 6.4 kbps.
    Packets of other sizes, of the other rate or comfort noise, are refused.
    """

    def __init__(self) -> None:
        facts = one_rate(_RATE_HZ, _FRAME, DELAY_SAMPLES)
        encoder = Encoder("g723_1", "s16", _FRAME, BITRATE_BPS)
        coder = Coder(encoder, delay_samples=DELAY_SAMPLES, packet_bytes=_FRAME_BYTES)
        super().__init__(CodecInfo("g723.1", nominal_bitrate_bps=float(BITRATE_BPS), **facts), coder)

"""RealAudio 14.4 (early CELP at 8 kbit/s) by FFmpeg."""

from __future__ import annotations

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.classical.bitstream import BitstreamCodec, Coder, Encoder, one_rate

_RATE_HZ, _FRAME, _BYTES = 8000, 160, 20
DELAY_SAMPLES = 160  # the encoder codes the frame before its input


class Ra144(BitstreamCodec):
    """RealAudio 14.4, 8 kHz mono, constant bitrate."""

    def __init__(self) -> None:
        facts = one_rate(_RATE_HZ, _FRAME, DELAY_SAMPLES)
        coder = Coder(Encoder("real_144", "s16", _FRAME), delay_samples=DELAY_SAMPLES, packet_bytes=_BYTES)
        super().__init__(CodecInfo("ra-144", nominal_bitrate_bps=8.0 * _BYTES * _RATE_HZ / _FRAME, **facts), coder)

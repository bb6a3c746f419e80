"""ITU-T G.722 at 64 kbps: two ADPCM bands at 16 kHz."""

from __future__ import annotations

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.classical.bitstream import BitstreamCodec, Coder, Encoder, one_rate

_RATE_HZ = 16000
_FRAME = 320
DELAY_SAMPLES = 22  # two 24-tap quadrature mirror filters


class G722(BitstreamCodec):
    """G.722, mode 1 (64 kbps), 20 ms packets."""

    def __init__(self) -> None:
        coder = Coder(Encoder("g722", "s16", _FRAME), delay_samples=DELAY_SAMPLES, word=(2, 1))
        facts = one_rate(_RATE_HZ, _FRAME, DELAY_SAMPLES)
        super().__init__(CodecInfo("g722", nominal_bitrate_bps=64000.0, **facts), coder)

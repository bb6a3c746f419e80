"""Nellymoser Asao, the speech codec of Flash, through FFmpeg: 2 bits a sample."""

from __future__ import annotations

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.classical.bitstream import BitstreamCodec, Coder, Encoder, one_rate
from codec_bench.messages.errors import UserError

_FRAME = 256
DELAY_SAMPLES = 128  # the window of the MDCT of 128 samples overlaps by one block
_RATES_HZ = (8000, 16000, 22050, 44100)


class Nellymoser(BitstreamCodec):
    """Nellymoser Asao, constant bitrate.

    Args:
        rate_hz: 8000, 16000, 22050 or 44100.
    """

    def __init__(self, rate_hz: int) -> None:
        if rate_hz not in _RATES_HZ:
            rates = ", ".join(map(str, _RATES_HZ))
            raise UserError("codec_rate", rate_hz=rate_hz, codec="Nellymoser", hint=f"it codes {rates} Hz")
        facts = one_rate(rate_hz, _FRAME, DELAY_SAMPLES)
        info = CodecInfo(f"nellymoser-{2 * rate_hz / 1000:g}k", nominal_bitrate_bps=2.0 * rate_hz, **facts)
        super().__init__(info, Coder(Encoder("nellymoser", "flt", _FRAME), delay_samples=DELAY_SAMPLES))

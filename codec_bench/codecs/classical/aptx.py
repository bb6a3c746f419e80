"""aptX and aptX HD: four sub-bands of adaptive differential PCM, stereo."""

from __future__ import annotations

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.classical.bitstream import BitstreamCodec, Coder, Encoder, one_rate
from codec_bench.messages.errors import UserError

RATES_HZ = (44100, 48000)
_FRAME = 1024
_STEP = 4  # samples per channel behind one code word
DELAY_SAMPLES = 90  # of two stages of quadrature mirror filters, in the encoder and in the decoder


class Aptx(BitstreamCodec):
    """aptX (4:1 of 16-bit audio) or aptX HD (4:1 of 24-bit audio), constant bitrate.

    Args:
        rate_hz: 44100 or 48000; the bitrate follows from it (352.8 and 384 kbps; HD 529.2 and 576 kbps).
        hd: aptX HD.
    """

    def __init__(self, rate_hz: int, hd: bool = False) -> None:
        if rate_hz not in RATES_HZ:
            raise UserError(
                "codec_rate", rate_hz=rate_hz, codec="aptX", hint=f"it codes {' or '.join(map(str, RATES_HZ))} Hz"
            )
        word_bytes = 6 if hd else 4
        encoder = Encoder("aptx_hd" if hd else "aptx", "s32p", _FRAME)
        name, bps = f"aptx{'-hd' if hd else ''}-{rate_hz // 1000}k", 8.0 * word_bytes * rate_hz / _STEP
        info = CodecInfo(name, channels=(2,), nominal_bitrate_bps=bps, **one_rate(rate_hz, _STEP, DELAY_SAMPLES))
        super().__init__(info, Coder(encoder, delay_samples=DELAY_SAMPLES, word=(_STEP, word_bytes)))

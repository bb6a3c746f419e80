"""MPEG-1 and 2 Audio Layer II through FFmpeg's own encoder, at constant bitrate."""

from __future__ import annotations

from codec_bench.codecs.classical.bitstream import Coder, Encoder, RatedCodec, check_bitrate

_FRAME = 1152
# The filter bank of 512 taps and 32 sub-bands delays by 512 - 31 samples.
DELAY_SAMPLES = 481
# In kbps. MPEG-1 has further ones for one channel only or for two only; they are omitted.
_MPEG_1 = (64, 96, 112, 128, 160, 192)
_MPEG_2 = (32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_KBPS = {**dict.fromkeys((16000, 22050, 24000), _MPEG_2), **dict.fromkeys((32000, 44100, 48000), _MPEG_1)}


class Mp2(RatedCodec):
    """Layer II at the rates whose MPEG version has the bitrate, headers included.

    Args:
        bitrate_bps: one of the format's bitrates.
    """

    def __init__(self, bitrate_bps: int) -> None:
        check_bitrate("MP2", bitrate_bps, [1000 * kbps for kbps in sorted({*_MPEG_1, *_MPEG_2})])
        rates = tuple(rate for rate, kbps in _KBPS.items() if bitrate_bps / 1000 in kbps)
        coder = Coder(Encoder("mp2", "s16", _FRAME, int(bitrate_bps)), "mp2float", DELAY_SAMPLES)
        super().__init__("mp2", bitrate_bps, coder, sample_rates_hz=rates, channels=(1, 2), causal=False)

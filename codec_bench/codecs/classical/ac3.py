"""AC-3 and E-AC-3 (ETSI TS 102 366) by FFmpeg, at constant bitrate."""

from __future__ import annotations

from codec_bench.codecs.classical.bitstream import Coder, Encoder, RatedCodec, check_bitrate

_FRAME = 1536
DELAY_SAMPLES = 256  # half a block: the first block of the MDCT only overlaps into the second
_KBPS = (48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448)


class Ac3(RatedCodec):
    """AC-3 or E-AC-3, mono and stereo.

    Args:
        bitrate_bps: 48000 to 448000, one of AC-3's bitrates.
        enhanced: E-AC-3.
    """

    def __init__(self, bitrate_bps: int, enhanced: bool = False) -> None:
        name = "eac3" if enhanced else "ac3"
        check_bitrate("E-AC-3" if enhanced else "AC-3", bitrate_bps, [1000 * kbps for kbps in _KBPS])
        coder = Coder(Encoder(name, "fltp", _FRAME, int(bitrate_bps)), delay_samples=DELAY_SAMPLES)
        facts = {"sample_rates_hz": (32000, 44100, 48000), "channels": (1, 2), "causal": False}
        super().__init__(name, bitrate_bps, coder, **facts)

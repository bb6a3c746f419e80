"""MPEG-1, 2 and 2.5 Layer III through LAME, at constant bitrate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.codecs.classical.bitstream import Encoder, RatedCodec, check_bitrate, decode_packets, packets_for

# The bitrates in kbps that each version of the format has a code for (LAME stops at 64 in MPEG-2.5).
_MPEG_1 = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MPEG_2 = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_MPEG_2_5 = (8, 16, 24, 32, 40, 48, 56, 64)
_KBPS = {
    **dict.fromkeys((8000, 11025, 12000), _MPEG_2_5),
    **dict.fromkeys((16000, 22050, 24000), _MPEG_2),
    **dict.fromkeys((32000, 44100, 48000), _MPEG_1),
}
# LAME delays by 576 samples, the decoder's filter bank by 528, and its output starts one sample late.
DELAY_SAMPLES = 576 + 528 + 1


class Mp3(RatedCodec):
    """MP3 at constant bitrate with the bit reservoir, at its MPEG version's rates.

    Args:
        bitrate_bps: one of the format's bitrates.
    """

    def __init__(self, bitrate_bps: int) -> None:
        rates = tuple(rate for rate, kbps in _KBPS.items() if bitrate_bps / 1000 in kbps)
        check_bitrate("MP3", bitrate_bps, [1000 * kbps for kbps in sorted({*_MPEG_1, *_MPEG_2})])
        super().__init__("mp3", bitrate_bps, sample_rates_hz=rates, channels=(1, 2), causal=False)

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Encode one item to MP3 frames, header and side information included."""
        frame = 1152 if rate_hz >= 32000 else 576
        encoder = Encoder("libmp3lame", "fltp", frame, self.bitrate_bps)
        return encoder.encode(samples, rate_hz, packets_for(samples.shape[1] + DELAY_SAMPLES, frame))

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """Decode one item, without the delay of encoder and decoder."""
        return decode_packets("mp3float", packets, rate_hz=rate_hz, channels=channels)[:, DELAY_SAMPLES:]

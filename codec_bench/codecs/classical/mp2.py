"""MPEG-1 and 2 Audio Layer II through FFmpeg's own encoder, at constant bitrate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.codecs.classical.bitstream import Encoder, RatedCodec, check_bitrate, decode_packets, packets_for

_FRAME = 1152
# The filter bank of 512 taps and 32 sub-bands delays by 512 - 31 samples.
DELAY_SAMPLES = 481
# In kbps. MPEG-1 has further ones for one channel only or for two only; they are left out.
_MPEG_1 = (64, 96, 112, 128, 160, 192)
_MPEG_2 = (32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_KBPS = {
    **dict.fromkeys((16000, 22050, 24000), _MPEG_2),
    **dict.fromkeys((32000, 44100, 48000), _MPEG_1),
}


class Mp2(RatedCodec):
    """Layer II, at the sample rates whose MPEG version has that bitrate.

    Args:
        bitrate_bps: one of the format's bitrates.
    """

    def __init__(self, bitrate_bps: int) -> None:
        check_bitrate("MP2", bitrate_bps, [1000 * kbps for kbps in sorted({*_MPEG_1, *_MPEG_2})])
        rates = tuple(rate for rate, kbps in _KBPS.items() if bitrate_bps / 1000 in kbps)
        super().__init__("mp2", bitrate_bps, sample_rates_hz=rates, channels=(1, 2), causal=False)

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Frames of one item with their headers: a decoder needs them in every frame."""
        count = packets_for(samples.shape[1] + DELAY_SAMPLES, _FRAME)
        return Encoder("mp2", "s16", _FRAME, self.bitrate_bps).encode(samples, rate_hz, count)

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """The decoded signal without its delay."""
        return decode_packets("mp2float", packets, rate_hz=rate_hz, channels=channels)[:, DELAY_SAMPLES:]

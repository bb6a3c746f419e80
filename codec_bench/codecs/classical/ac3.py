"""AC-3 and E-AC-3 (ETSI TS 102 366, Dolby Digital and Dolby Digital Plus) through FFmpeg's own encoders, at constant bitrate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.codecs.classical.bitstream import Encoder, RatedCodec, check_bitrate, decode_packets, packets_for

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
        self._codec = "eac3" if enhanced else "ac3"
        check_bitrate("E-AC-3" if enhanced else "AC-3", bitrate_bps, [1000 * kbps for kbps in _KBPS])
        super().__init__(
            self._codec, bitrate_bps, sample_rates_hz=(32000, 44100, 48000), channels=(1, 2), causal=False
        )  # fmt: skip

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Synchronisation frames of one item."""
        count = packets_for(samples.shape[1] + DELAY_SAMPLES, _FRAME)
        return Encoder(self._codec, "fltp", _FRAME, self.bitrate_bps).encode(samples, rate_hz, count)

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """The decoded signal without its delay."""
        return decode_packets(self._codec, packets, rate_hz=rate_hz, channels=channels)[:, DELAY_SAMPLES:]

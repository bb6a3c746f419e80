"""ITU-T G.726: adaptive differential PCM at 8 kHz, two to five bits a sample."""

from __future__ import annotations

import numpy as np

from codec_bench.codecs.classical.bitstream import Coder, Encoder, RatedCodec, check_bitrate, one_rate

_RATE_HZ = 8000
_PACKET = 160  # 20 ms: a whole number of bytes at every bitrate
BITRATES_BPS = (16000, 24000, 32000, 40000)
# Samples that FFmpeg's encoder takes at a time: about 1024 bytes of codes, and a whole number of bytes.
_FRAME = {16000: 4096, 24000: 2736, 32000: 2048, 40000: 1640}


class G726(RatedCodec):
    """G.726 in packets of 20 ms, no delay, first code highest (ITU-T I.366.2).

    Args:
        bitrate_bps: 16000, 24000, 32000 or 40000.
    """

    def __init__(self, bitrate_bps: int) -> None:
        check_bitrate("G.726", bitrate_bps, BITRATES_BPS)
        self._bits = bitrate_bps // _RATE_HZ
        encoder = Encoder("g726", "s16", _FRAME[bitrate_bps], int(bitrate_bps))
        coder = Coder(encoder, options={"bits_per_coded_sample": str(self._bits)})
        super().__init__("g726", bitrate_bps, coder, **one_rate(_RATE_HZ, _PACKET, 0))

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Encode one item to packets of 20 ms, with 2 to 5 bits a sample.

        The last packet ends with the byte of the last sample's code.
        """
        codes = b"".join(super().encode_one(samples, rate_hz))
        codes = codes[: -(-samples.shape[1] * self._bits // 8)]
        size = _PACKET * self._bits // 8
        return [codes[start : start + size] for start in range(0, len(codes), size)]

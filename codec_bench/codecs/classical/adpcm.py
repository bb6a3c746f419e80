"""ADPCM of 4 bits a sample through FFmpeg: IMA's as in QuickTime, Microsoft's, and Yamaha's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.classical.bitstream import BitstreamCodec, Encoder, decode_packets, one_rate, packets_for
from codec_bench.errors import UserError

# FFmpeg's name, its sample format, samples and bytes of a block. Each block begins anew but for Yamaha's.
_KINDS = {
    "ima": ("adpcm_ima_qt", "s16p", 64, 34),
    "ms": ("adpcm_ms", "s16", 500, 256),
    "yamaha": ("adpcm_yamaha", "s16", 512, 256),
}
# Microsoft's seven pairs of predictor coefficients, which a WAV file holds in its header, after the samples of a block.
_MS_PAIRS = ((256, 0), (512, -256), (0, 0), (192, 64), (240, 0), (460, -208), (392, -232))


class Adpcm(BitstreamCodec):
    """ADPCM of one channel, constant bitrate, without delay.

    Args:
        kind: `ima`, `ms` or `yamaha`.
        rate_hz: 8000, 16000 or another rate; the bitrate follows from it.
    """

    def __init__(self, kind: Literal["ima", "ms", "yamaha"], rate_hz: int) -> None:
        if kind not in _KINDS:
            raise UserError(f"there is no ADPCM '{kind}'", hint=f"there are {', '.join(_KINDS)}")
        self._name, self._format, self._frame, size = _KINDS[kind]
        rate_bps = 8.0 * size * rate_hz / self._frame
        facts = one_rate(rate_hz, self._frame, 0.0)
        super().__init__(CodecInfo(f"adpcm-{kind}-{rate_hz // 1000}khz", nominal_bitrate_bps=rate_bps, **facts))

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Blocks of one item."""
        options = None if self._name == "adpcm_ima_qt" else {"block_size": "256"}
        encoder = Encoder(self._name, self._format, self._frame, options=options)
        return encoder.encode(samples, rate_hz, packets_for(samples.shape[1], self._frame))

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """The decoded signal."""
        pairs = np.array([self._frame, len(_MS_PAIRS), *np.ravel(_MS_PAIRS)], "<i2").tobytes()
        header = pairs if self._name == "adpcm_ms" else None
        return decode_packets(self._name, packets, rate_hz=rate_hz, channels=channels, extradata=header)

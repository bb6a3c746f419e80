"""ADPCM of 4 bits a sample by FFmpeg: IMA's (QuickTime), Microsoft's, Yamaha's."""

from __future__ import annotations

from typing import Literal

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.classical.bitstream import BitstreamCodec, Coder, Encoder, one_rate
from codec_bench.messages.errors import UserError

# FFmpeg's name, its sample format, samples and bytes of a block. Each block begins again but for Yamaha's.
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
            raise UserError("no_variant", variant=kind, name="ADPCM", hint=f"there are {', '.join(_KINDS)}")
        name, sample_format, frame, size = _KINDS[kind]
        encoder = Encoder(name, sample_format, frame, options=None if kind == "ima" else {"block_size": "256"})
        header = np.array([frame, len(_MS_PAIRS), *np.ravel(_MS_PAIRS)], "<i2").tobytes() if kind == "ms" else None
        rate_bps, facts = 8.0 * size * rate_hz / frame, one_rate(rate_hz, frame, 0.0)
        info = CodecInfo(f"adpcm-{kind}-{rate_hz // 1000}khz", nominal_bitrate_bps=rate_bps, **facts)
        super().__init__(info, Coder(encoder, extradata=header))

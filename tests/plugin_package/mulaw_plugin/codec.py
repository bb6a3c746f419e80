"""One codec in one file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench import Audio, Codec, CodecInfo, Codes, CodeStream

MU = 255.0


class MuLaw(Codec):
    """Each sample becomes one of 256 logarithmically spaced levels: 8 bits a sample at 16 kHz."""

    where = "cpu"
    info = CodecInfo(
        "mulaw", sample_rates_hz=(16_000,), frame_rate_hz=16_000.0, nominal_bitrate_bps=128_000.0, causal=True,
        lookahead_s=0.0,
    )  # fmt: skip

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """One stream of one codebook and one frame a sample."""
        encoded = []
        for audio in batch:
            x = np.clip(audio.samples, -1, 1)
            bent = np.sign(x) * np.log1p(MU * np.abs(x)) / np.log1p(MU)
            levels = np.round((bent + 1) / 2 * MU).astype(np.int16)
            stream = CodeStream(levels, 256, float(audio.sample_rate_hz))
            encoded.append(Codes((stream,), audio.num_samples, audio.sample_rate_hz))
        return encoded

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """The levels, bent back."""
        decoded = []
        for item in codes:
            bent = item.streams[0].values.astype(np.float64) / MU * 2 - 1
            x = np.sign(bent) * np.expm1(np.abs(bent) * np.log1p(MU)) / MU
            decoded.append(Audio(x, item.sample_rate_hz))
        return decoded

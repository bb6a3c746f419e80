"""ITU-T G.711 at 64 kbps: logarithmic PCM at 8 kHz."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import numpy as np

from codec_bench.codecs.base import CodecInfo, CodecStream
from codec_bench.codecs.classical.bitstream import BitstreamCodec, Encoder, decode_packets, packets_for
from codec_bench.errors import UserError
from codec_bench.types import Audio, Codes

_RATE_HZ = 8000
_FRAME = 160


class G711(BitstreamCodec):
    """G.711: one byte a sample, packets of 20 ms, no delay.

    Args:
        law: `ulaw` (North America, Japan) or `alaw` (elsewhere).
    """

    def __init__(self, law: Literal["ulaw", "alaw"]) -> None:
        if law not in ("ulaw", "alaw"):
            raise UserError(f"G.711 has no law '{law}'", hint="it has ulaw and alaw")
        super().__init__(
            CodecInfo(
                name=f"g711-{law}",
                sample_rates_hz=(_RATE_HZ,),
                frame_rate_hz=_RATE_HZ / _FRAME,
                nominal_bitrate_bps=64000.0,
                causal=True,
                lookahead_s=0.0,
            )
        )
        self._codec = {"ulaw": "pcm_mulaw", "alaw": "pcm_alaw"}[law]

    def streaming(self) -> AbstractContextManager[CodecStream]:
        """A stream of packets of 20 ms. Every sample is coded by itself, so no state is carried."""
        return nullcontext(_G711Stream(self))

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """One byte a sample; the last packet is cut after the last sample."""
        count = packets_for(samples.shape[1], _FRAME)
        packets = Encoder(self._codec, "s16", _FRAME).encode(samples, rate_hz, count)
        packets[-1] = packets[-1][: samples.shape[1] - (count - 1) * _FRAME]
        return packets

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """The decoded signal."""
        return decode_packets(self._codec, packets, rate_hz=rate_hz, channels=channels)


class _G711Stream(CodecStream):
    """Encoder and decoder of one stream."""

    step_samples = _FRAME

    def __init__(self, codec: G711) -> None:
        self._codec = codec

    def encode(self, piece: Audio) -> Codes:
        """The packets of this piece."""
        (codes,) = self._codec.encode([piece])
        return codes

    def decode(self, codes: Codes) -> Audio:
        """The samples of these packets."""
        (audio,) = self._codec.decode([codes])
        return audio

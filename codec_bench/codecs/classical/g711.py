"""ITU-T G.711 at 64 kbps: logarithmic PCM at 8 kHz."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

from codec_bench.codecs.base import CodecInfo, CodecStream
from codec_bench.codecs.classical.bitstream import BitstreamCodec, Coder, Encoder, one_rate
from codec_bench.messages.errors import UserError
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
            raise UserError("no_variant", variant=law, name="G.711", hint="it has ulaw and alaw")
        encoder = Encoder({"ulaw": "pcm_mulaw", "alaw": "pcm_alaw"}[law], "s16", _FRAME)
        info = CodecInfo(f"g711-{law}", nominal_bitrate_bps=64000.0, **one_rate(_RATE_HZ, _FRAME, 0))
        super().__init__(info, Coder(encoder, word=(1, 1)))

    def streaming(self) -> AbstractContextManager[CodecStream]:
        """Open a stream of packets of 20 ms. Samples are coded alone, without state."""
        return nullcontext(_G711Stream(self))


class _G711Stream(CodecStream):
    step_samples = _FRAME

    def __init__(self, codec: G711) -> None:
        self._codec = codec

    def encode(self, segment: Audio) -> Codes:
        """Return the packets of this segment."""
        (codes,) = self._codec.encode([segment])
        return codes

    def decode(self, codes: Codes) -> Audio:
        """Decode these packets."""
        (audio,) = self._codec.decode([codes])
        return audio

"""Latents rounded to codes, for a bitrate and a rate-quality curve.

Each dimension is rounded to one of 2 ** bits levels evenly between its lowest and highest value over `RANGE_CLIPS`,
which the receiver has too; values beyond are clipped. There is no entropy coding, dither or noise shaping. Side
information counts as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from codec_bench.codecs.adapt import check_encoded, ready
from codec_bench.codecs.base import Codec, CodecInfo, CodecStream
from codec_bench.codecs.checks.labels import side_bits
from codec_bench.codecs.embedded_speech import embedded_clip
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio, Codes, CodeStream, Latents

OPTION = "latent_bits"
"""The option of `load_codec` that requests rounded latents."""
RANGE_CLIPS = tuple(f"{voice}_{clip:02d}" for voice in ("awb", "kal16", "rms", "slt") for clip in (1, 2))
"""The clips of the embedded speech that set the range of every dimension: two of each voice, 26 s."""
_MOST_BITS = 16


def quantised_info(info: CodecInfo, bits: Any) -> CodecInfo:
    """Return the facts of a continuous codec with latents rounded to codes.

    Args:
        bits: of each latent dimension, 1 to 16.

    Raises:
        UserError: the codec has no latents, or `bits` is out of range.
    """
    if info.latents is None or info.frame_rate_hz is None:
        raise UserError(
            "no_latents_to_round", codec=info.name, option=OPTION, bits=bits, hint="its codes are discrete already"
        )
    if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= _MOST_BITS:
        raise UserError("option_bits", codec=info.name, option=OPTION, bits=bits, most=_MOST_BITS)
    per_s = info.latents * info.frame_rate_hz
    name = f"{info.name}-{bits}bit"
    return replace(info, name=name, nominal_bitrate_bps=per_s * bits, tokens_per_s=per_s, latents=None)


def latent_range(codec: Any) -> tuple[np.ndarray, np.ndarray]:
    """Encode eight embedded clips; return each latent dimension's minimum and maximum.

    Returns:
        Both float64 `(dimensions, 1)`.
    """
    clips = [segment for name in RANGE_CLIPS for segment in ready(embedded_clip(name), codec.info)]
    latents = codec.encode(clips)
    check_encoded(codec.info, latents, len(clips))
    values = np.concatenate([np.asarray(item.values, np.float64) for item in latents], axis=1)
    return values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)


class Quantised(Codec):
    """A continuous codec whose latents are sent as integers.

    Args:
        codec: the continuous codec.
        bits: of each latent dimension, 1 to 16.
        span: minimum and maximum of each dimension, from `latent_range`; computed when None.

    Raises:
        UserError: the codec has no latents, or `bits` is out of range.
    """

    def __init__(self, codec: Any, bits: int, span: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        self.info = quantised_info(codec.info, bits)
        self._codec, self._levels, self._span = codec, 2**bits, span
        self.where = getattr(codec, "where", "device")  # type: ignore[misc]
        self.batch_s = getattr(codec, "batch_s", 60.0)  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_codec":
            raise AttributeError(name)
        return getattr(self._codec, name)  # its networks, for those who count them

    @cached_property
    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest value of each dimension and its step, both `(dimensions, 1)`."""
        low, high = self._span or latent_range(self._codec)
        return low, (high - low) / (self._levels - 1)

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode each item's latents to integers, with one codebook for each dimension."""
        latents = self._codec.encode(batch)
        check_encoded(self._codec.info, latents, len(batch))
        return list(map(self.rounded, latents))

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode each item."""
        return self._codec.decode(list(map(self._dequantise, codes)))

    def vectors(self, values: np.ndarray) -> np.ndarray:
        """Return the latents of quantised codes, `(frames, dimensions)`."""
        low, step = self._range
        return np.asarray(low + values * step, np.float32).T

    @contextmanager
    def _stream(self) -> Iterator[CodecStream]:
        with self._codec.streaming() as stream:
            yield _Stream(self, stream)

    def streaming(self) -> AbstractContextManager[CodecStream]:
        """Open the codec's stream, with rounded latents."""
        if not callable(getattr(self._codec, "streaming", None)):
            raise UserError("streaming_unsupported", codec=self.info.name)
        return self._stream()

    def rounded(self, item: Latents) -> Codes:
        """Quantise latents uniformly within the range of each dimension."""
        low, step = self._range
        places = np.rint((item.values - low) / np.where(step > 0, step, 1.0))
        values = np.clip(places, 0, self._levels - 1).astype(np.int64)
        stream = CodeStream(values, self._levels, float(item.frame_rate_hz), "latents")
        bits = side_bits(item.side)
        return Codes((stream,), item.num_samples, item.sample_rate_hz, side_bits=bits, side=item.side)

    def _dequantise(self, item: Codes) -> Latents:
        (stream,) = item.streams
        values = np.ascontiguousarray(self.vectors(stream.values).T)
        return Latents(values, stream.frame_rate_hz, item.num_samples, item.sample_rate_hz, item.side)


class _Stream(CodecStream):
    def __init__(self, codec: Quantised, stream: Any) -> None:
        self._codec, self._of = codec, stream
        self.step_samples = stream.step_samples

    def encode(self, segment: Audio) -> Codes:
        return self._codec.rounded(self._of.encode(segment))

    def decode(self, codes: Codes) -> Audio:
        return self._of.decode(self._codec._dequantise(codes))

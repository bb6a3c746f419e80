"""The interface of a codec: its facts, and coding of batches.

A codec gets audio at one of its rates and channel counts (`codecs/adapt.py` converts it). `decode` returns exactly the
samples that were encoded, without the codec's delay. The bitrate is computed from the codes, never declared; a codec
whose codes are real numbers (`Latents`) has none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from codec_bench.messages.errors import UserError
from codec_bench.types import Audio, Codes, Latents


@dataclass(frozen=True, slots=True)
class CodecInfo:
    """The facts a codec declares.

    Args:
        name: the name in tables, with the operating point.
        sample_rates_hz: the rates that the codec codes. Audio is resampled to the lowest of them that is not below its
            own rate; if all are below, to the highest.
        channels: the channel counts that the codec codes, such as (1,) or (1, 2).
        frame_rate_hz: code frames per second; None for a bitstream without a fixed frame rate.
        nominal_bitrate_bps: the requested bitrate; None if the codec has no such setting.
        causal: whether the output depends on no input after its own frame.
        lookahead_s: seconds of later input that the output depends on.
        code_licence, weights_licence: SPDX names; weights_licence is None if there are no weights.
        weights: the weights in use (repository and revision, a path, or `random`), or None.
        paper: where the codec is described.
        latents: real numbers of each frame, for a continuous codec; None for a discrete one.
        global_side: keys of `Codes.side` that are sent once per item and hold for all of it, such as the voice; like
            streams with a frame rate of 0.
        tokens_per_s: codes per second over all codebooks, without those sent once per item; None for packets or
            latents.

    Examples:
        >>> info = CodecInfo("mine", sample_rates_hz=(16000, 24000), frame_rate_hz=50.0, causal=True)
        >>> info.sample_rates_hz, info.channels, info.nominal_bitrate_bps
        ((16000, 24000), (1,), None)
    """

    name: str
    sample_rates_hz: tuple[int, ...]
    channels: tuple[int, ...] = (1,)
    frame_rate_hz: float | None = None
    nominal_bitrate_bps: float | None = None
    causal: bool | None = None
    lookahead_s: float | None = None
    code_licence: str | None = None
    weights_licence: str | None = None
    weights: str | None = None
    paper: str = ""
    latents: int | None = None
    tokens_per_s: float | None = None
    global_side: tuple[str, ...] = ()

    @property
    def bits_per_token(self) -> float | None:
        """The nominal bits of a code; None if the codec declares no tokens or no bitrate."""
        rate_bps, per_s = self.nominal_bitrate_bps, self.tokens_per_s
        return rate_bps / per_s if rate_bps is not None and per_s else None


@dataclass(frozen=True, slots=True)
class PublishedWeights:
    """Facts of a codec's published weights; None where no source states them.

    Args:
        revision: the commit of their repository; of several checkpoints one after the other. size: of all files, in
            bytes.
    """

    revision: str | None = None
    size: int | None = None


class Codec(ABC):
    """Encodes and decodes batches. Custom codecs may derive from it or imitate it.

    Class attributes
        where: `device` for networks, `cpu` for codecs that always run in the CPU workers.
        batch_s: seconds of padded audio in the first batch. The engine halves it when memory runs out.

    Examples:
        >>> class Pcm(Codec):
        ...     info = CodecInfo("pcm-16", sample_rates_hz=(16000,))
        ...     def encode(self, batch):
        ...         sent = lambda a: (np.rint(a.samples * 32767).astype("<i2").tobytes(),)
        ...         return [Codes((), a.num_samples, a.sample_rate_hz, packets=sent(a)) for a in batch]
        ...     def decode(self, codes):
        ...         return [Audio(np.frombuffer(c.packets[0], "<i2") / 32767, c.sample_rate_hz) for c in codes]
        >>> (sent,) = Pcm().encode([Audio(np.full(16000, 0.25), 16000)])
        >>> sent.bits, round(float(Pcm().decode([sent])[0].samples[0, 0]), 4)
        (256000.0, 0.25)
    """

    info: CodecInfo
    where: ClassVar[Literal["device", "cpu"]] = "device"
    batch_s: ClassVar[float] = 60.0

    @abstractmethod
    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode each item, independently of the rest of the batch.

        Raises:
            UserError: an item has a rate or channel count that is not in `info`.
        """

    @abstractmethod
    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode each item to `codes.num_samples` samples at `codes.sample_rate_hz`."""

    def vectors(self, values: np.ndarray) -> np.ndarray:
        """Return the vectors that the decoder uses for codes: `(frames, dimensions)`.

        Args:
            values: integers `(codebooks, frames)` of the codec's only stream.

        Raises:
            UserError: the codec has no such vectors.
        """
        raise UserError("vectors_unsupported", codec=self.info.name)

    def conceal(self, codes: Sequence[Codes], dropped: Sequence[np.ndarray]) -> list[Audio]:
        """Decode items with lost packets or frames, which the decoder conceals.

        Args:
            codes: as for `decode`; lost packets or frames must not be read.
            dropped: for each item, bools `(packets or frames,)`: which ones are lost.

        Raises:
            UserError: the decoder has no concealment.
        """
        raise UserError("concealment_unsupported", codec=self.info.name)

    def first(self, codebooks: int) -> Codec:
        """Return the same codec with its first codebooks only; both may share state.

        Args:
            codebooks: how many to keep, counted from the first.

        Raises:
            UserError: the codec has no such number of codebooks, or can only decode all of them.
        """
        raise UserError("fewer_codebooks_unsupported", codec=self.info.name)

    def streaming(self) -> AbstractContextManager[CodecStream]:
        """Open a stream that encodes and decodes one signal step by step.

        Raises:
            UserError: the codec needs the whole signal.
        """
        raise UserError("streaming_unsupported", codec=self.info.name)


class LatentCodec(Codec):
    """A continuous codec: `encode` gives `Latents` of `info.latents` numbers a frame.

    Examples:
        >>> class Mean(LatentCodec):
        ...     info = CodecInfo("mean", sample_rates_hz=(16000,), frame_rate_hz=100, latents=1)
        ...     def encode(self, batch):
        ...         means = lambda a: a.samples.reshape(1, -1, 160).mean(2)
        ...         return [Latents(means(a), 100, a.num_samples, a.sample_rate_hz) for a in batch]
        ...     def decode(self, codes):
        ...         return [Audio(np.repeat(c.values[0], 160), c.sample_rate_hz) for c in codes]
        >>> (sent,) = Mean().encode([Audio(np.full(16000, 0.25), 16000)])
        >>> sent.values.shape, sent.bits, float(Mean().decode([sent])[0].samples[0, 0])
        ((1, 100), None, 0.25)
    """

    @abstractmethod
    def encode(self, batch: Sequence[Audio]) -> list[Latents]:  # type: ignore[override]
        """Encode each item to latents, under the rules of `Codec.encode`."""

    @abstractmethod
    def decode(self, codes: Sequence[Latents]) -> list[Audio]:  # type: ignore[override]
        """Decode the latents of each item, under the rules of `Codec.decode`."""


class CodecStream(ABC):
    """Codes one signal step by step, with the same result as for the whole signal.

    Attributes:
        step_samples: samples per channel of a frame of codes: the shortest piece.

    Examples:
        >>> class PcmStream(CodecStream):
        ...     step_samples = 160
        ...     def encode(self, piece):
        ...         sent = np.rint(piece.samples * 32767).astype("<i2").tobytes()
        ...         return Codes((), piece.num_samples, piece.sample_rate_hz, packets=(sent,))
        ...     def decode(self, codes):
        ...         return Audio(np.frombuffer(codes.packets[0], "<i2") / 32767, codes.sample_rate_hz)
        >>> stream, pieces = PcmStream(), [Audio(np.full(n, 0.25), 16000) for n in (160, 160, 40)]
        >>> [stream.decode(stream.encode(piece)).num_samples for piece in pieces]
        [160, 160, 40]
    """

    step_samples: int

    @abstractmethod
    def encode(self, segment: Audio) -> Codes:
        """Return the codes that this input completes. A short last input is zero-padded.

        Args:
            segment: `step_samples` samples; the last one of a signal may have fewer.
        """

    @abstractmethod
    def decode(self, codes: Codes) -> Audio:
        """Decode codes to the samples that they complete, at most `codes.num_samples`."""


def check_input(audio: Audio, info: CodecInfo) -> None:
    """Check that a codec can code this audio.

    Raises:
        UserError: an unsupported rate or channel count, or no samples.
    """
    if audio.sample_rate_hz not in info.sample_rates_hz:
        rates = ", ".join(map(str, info.sample_rates_hz))
        raise UserError("codec_rate", codec=info.name, rate_hz=audio.sample_rate_hz, hint=f"it codes {rates} Hz")
    if audio.channels not in info.channels:
        counts = " or ".join(map(str, info.channels))
        raise UserError("codec_channels", codec=info.name, channels=audio.channels, hint=f"it codes {counts}")
    if audio.num_samples == 0:
        raise UserError("codec_without_samples", codec=info.name)

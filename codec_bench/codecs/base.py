"""What a codec is: declared facts, and encode and decode over batches.

Conventions
    The caller gives a codec audio at one of its rates and with a channel count it takes; `codecs/adapt.py` makes it so.
    `decode` gives back exactly as many samples as were encoded, aligned to the sample (delay compensated).
    The bitrate is derived from the codes, never typed in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Literal

from codec_bench.errors import UserError
from codec_bench.types import Audio, Codes


@dataclass(frozen=True, slots=True)
class CodecInfo:
    """The facts a codec declares.

    Args:
        name: as shown in tables, with its operating point.
        sample_rates_hz: the rates it codes, one or several; audio is resampled to the lowest that is not below its own
            rate, else to the highest.
        channels: the channel counts it codes, such as (1,) or (1, 2).
        frame_rate_hz: code frames per second, or None for a bitstream without a fixed one.
        nominal_bitrate_bps: what it was asked to spend, or None where it has no such setting.
        causal: whether output never depends on later input beyond the frame. lookahead_s: how far it looks ahead.
        code_licence, weights_licence: SPDX names; weights_licence is None where there are no weights.
        weights: which weights are in use (repository and revision, a path, or `random`), or None.
        paper: where it is described.
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


class Codec(ABC):
    """Encodes and decodes batches. A codec of one's own may derive from this or just have `info`, `encode`, `decode`.

    Class attributes
        where: `device` for networks, `cpu` for work that always runs in the CPU workers.
        batch_s: first guess of a batch's budget in padded seconds; halved on out-of-memory.
    """

    info: CodecInfo
    where: ClassVar[Literal["device", "cpu"]] = "device"
    batch_s: ClassVar[float] = 60.0

    @abstractmethod
    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Codes of each item, independent of the rest of the batch.

        Raises:
            UserError: an item has a rate or channel count that is not in `info`.
        """

    @abstractmethod
    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Audio of each item, `codes.num_samples` long at `codes.sample_rate_hz`."""

    def streaming(self) -> AbstractContextManager[CodecStream]:
        """One signal coded piece by piece with carried state, in both directions.

        Raises:
            UserError: the codec needs the whole signal.
        """
        raise UserError(f"{self.info.name} needs the whole signal: it has no streaming way of coding")


class CodecStream(ABC):
    """Both ends of one stream; the concatenated results equal those of the whole signal, within float tolerance.

    Args:
        step_samples: input samples of one step, per channel: what a microphone must have delivered for a frame of codes.
    """

    step_samples: int

    @abstractmethod
    def encode(self, piece: Audio) -> Codes:
        """The codes that this next piece completes; of a last, incomplete step those of the piece followed by zeros.

        Args:
            piece: `step_samples` samples, or fewer for the last one.
        """

    @abstractmethod
    def decode(self, codes: Codes) -> Audio:
        """The samples that these next codes complete, `codes.num_samples` or fewer; a delay is the decoder's own."""

"""Convert any audio for any codec, and check what the codec returns.

Audio is resampled to the codec's lowest rate that is not below its own, else to the highest; the output stays at the
codec's rate. Without the audio's channel count, channels are coded one by one and bits summed; for a codec of two
channels only, each is doubled first and both results averaged. Codecs get copies, into which they may write.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from codec_bench.audio.resample import to_rate
from codec_bench.codecs.base import CodecInfo
from codec_bench.machine.process_state import preserved_torch_state
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, describe
from codec_bench.types import Audio, Codes, Latents, Sent

_LONGEST = 500  # characters of a reason; torch writes pages about weights that do not fit


class CodecFault(Exception):
    """A codec broke the contract of `Codec`."""


def sentence(error: BaseException) -> str:
    """Describe an exception in one sentence of at most 500 characters.

    It is the message of a `UserError` or `CodecFault`; other exceptions are named with their type.
    """
    text = " ".join(str(error).split()) if isinstance(error, UserError | CodecFault) else describe(error)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


def fault_of(error: BaseException) -> Diagnostic:
    """Return the diagnostic that an exception carries, else one with its sentence."""
    carried = next(iter(error.args), None)
    return carried if isinstance(carried, Diagnostic) else Diagnostic("error", type="", message=sentence(error))


@dataclass(frozen=True, slots=True)
class Coded:
    """An encoded and decoded clip.

    Args:
        estimate: the output at the codec's rate.
        bits: sent for the clip; None for latents.
        no_bits: why `bits` is None.
    """

    estimate: Audio
    bits: float | None
    no_bits: str | None = None


@dataclass(frozen=True, slots=True)
class CodedBatch:
    """The items of a batch, and the seconds that encoding and decoding took."""

    items: list[Coded]
    encode_s: float
    decode_s: float


def choose_rate(rates_hz: Sequence[int], rate_hz: int) -> int:
    """Choose the codec's rate for audio at `rate_hz`.

    It is the lowest of `rates_hz` that is not below `rate_hz`, else the highest.
    """
    return min((r for r in rates_hz if r >= rate_hz), default=max(rates_hz))


def split_channels(audio: Audio, counts: Sequence[int]) -> list[Audio]:
    """Split audio into inputs with a channel count of the codec.

    Audio whose channel count the codec takes stays as it is. Other audio is split into mono inputs, or into stereo
    inputs with two equal channels.

    Args:
        counts: the channel counts that the codec takes.

    Raises:
        UserError: the codec takes neither this number of channels, nor one or two.
    """
    if audio.channels in counts:
        return [audio]
    if 1 in counts:
        return [Audio(channel, audio.sample_rate_hz) for channel in audio.samples]
    if 2 in counts:
        return [Audio(np.stack([channel, channel]), audio.sample_rate_hz) for channel in audio.samples]
    raise UserError("codec_takes_channels", channels=audio.channels, expected=" or ".join(map(str, counts)))


def join_channels(pieces: Sequence[Audio], channels: int) -> Audio:
    """Undo `split_channels` on the outputs; a mono input sent as stereo is averaged.

    Args:
        pieces: the codec's outputs.
        channels: of the original audio.
    """
    if len(pieces) == 1 and pieces[0].channels == channels:
        return pieces[0]
    return Audio(np.stack([p.samples.mean(axis=0, dtype=np.float32) for p in pieces]), pieces[0].sample_rate_hz)


def ready(audio: Audio, info: CodecInfo) -> list[Audio]:
    """Convert a clip to the codec's inputs: resampled, and one per channel if needed.

    Raises:
        UserError: the codec takes neither this number of channels, nor one or two.
    """
    return split_channels(to_rate(audio, choose_rate(info.sample_rates_hz, audio.sample_rate_hz)), info.channels)


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A batch of audio, converted to the codec's inputs.

    Args:
        batch: the original audio.
        pieces: the codec's inputs, one or several for each audio.
        owners: the index in `batch` of each of `pieces`.
    """

    batch: Sequence[Audio]
    pieces: list[Audio]
    owners: list[int]

    @classmethod
    def of(cls, info: CodecInfo, batch: Sequence[Audio]) -> PreparedBatch:
        """Resample and split a batch for a codec.

        Raises:
            UserError: the codec takes neither some audio's number of channels, nor one or two.
        """
        pieces = [(index, segment) for index, audio in enumerate(batch) for segment in ready(audio, info)]
        return cls(batch, [segment for _, segment in pieces], [index for index, _ in pieces])


def reconstruct(codec: Any, batch: Sequence[Audio]) -> CodedBatch:
    """Encode and decode a batch of audio with any rates and channel counts.

    Raises:
        CodecFault: another number of items, another length or rate, codes out of range, or samples that are not finite.
    """
    return reconstruct_prepared(codec, PreparedBatch.of(codec.info, batch))


def reconstruct_prepared(codec: Any, prepared: PreparedBatch) -> CodedBatch:
    """Encode and decode a prepared batch, and measure the time of both.

    Raises:
        CodecFault: as `encode` and `decode`.
    """
    start = perf_counter()
    codes = encode(codec, prepared.pieces)
    bits = [item.bits for item in codes]  # before the decoder has them, which may write into them
    middle = perf_counter()
    decoded = decode(codec, codes, prepared.pieces)
    end = perf_counter()
    items = []
    for index, audio in enumerate(prepared.batch):
        mine = [k for k, owner in enumerate(prepared.owners) if owner == index]
        estimate = join_channels([decoded[k] for k in mine], audio.channels)
        latents = next((item for item in (codes[k] for k in mine) if isinstance(item, Latents)), None)
        sent = None if latents else sum(bits[k] or 0.0 for k in mine)
        items.append(Coded(estimate, sent, latents.no_bits if latents else None))
    return CodedBatch(items, middle - start, end - middle)


def encode(codec: Any, pieces: Sequence[Audio]) -> list[Sent]:
    """Encode copies of a batch, since a codec may write into them; check the codes.

    Raises:
        CodecFault: the codec returned another number of items, or codes out of range.
    """
    with preserved_torch_state(codec):
        codes = codec.encode(deepcopy(list(pieces)))
    check_encoded(codec.info, codes, len(pieces))
    return codes


def decode(codec: Any, codes: Sequence[Sent], pieces: Sequence[Audio]) -> list[Audio]:
    """Decode a batch of codes, and check the output against the encoded inputs.

    Args:
        pieces: the encoder's inputs, whose lengths and rates the output must have.

    Raises:
        CodecFault: another number of items, another length or rate, or samples that are not finite.
    """
    with preserved_torch_state(codec):
        decoded = codec.decode(list(codes))
    check_decoded(codec.info.name, decoded, pieces)
    return decoded


def recode(codec: Any, pieces: Sequence[Audio]) -> tuple[list[Sent], list[Audio]]:
    """Encode and decode a batch of the codec's inputs, with the checks of both.

    Returns copies of the codes, made before decoding, and the decoded audio.
    """
    codes = encode(codec, pieces)
    sent = [copy_codes(item) for item in codes]
    return sent, decode(codec, codes, pieces)


def copy_codes(item: Sent) -> Sent:
    """Copy codes or latents, since a decoder may write into them."""
    if isinstance(item, Latents):
        return replace(item, values=np.array(item.values))
    return replace(item, streams=tuple(replace(stream, values=np.array(stream.values)) for stream in item.streams))


def check_encoded(info: CodecInfo, codes: Any, count: int) -> None:
    """Check the codes that a codec returned for a batch of `count` items.

    Raises:
        CodecFault: another number of items, something other than `Codes` (`Latents` of a continuous codec), codes out
            of range, invalid bits, or latents that are not finite.
    """
    name = info.name
    if not isinstance(codes, (list, tuple)) or len(codes) != count:
        facts: dict[str, Any] = {"returned": _returned(codes), "batch": count}
        raise CodecFault(Diagnostic("returned_count", codec=name, method="encode", **facts))
    for item in codes:
        kind = Codes if info.latents is None else Latents
        if not isinstance(item, kind):
            facts = {"returned": type(item).__name__, "expected": kind.__name__, "latents": info.latents}
            raise CodecFault(Diagnostic("returned_type", codec=name, method="encode", **facts))
        if isinstance(item, Latents):
            _check_array(name, "latents", item.values)
            _check_latents(info, item.values)
        else:
            _check_bits(name, item)
        for stream in item.streams:
            values = stream.values
            _check_array(name, "codes", values)
            if values.ndim != 2:
                raise CodecFault(Diagnostic("codes_shape", codec=name, shape=values.shape))
            if values.dtype.kind not in "iub":
                raise CodecFault(Diagnostic("codes_dtype", codec=name, dtype=str(values.dtype)))
            if values.size and (values.min() < 0 or values.max() >= stream.cardinality):
                span = {"low": values.min(), "high": values.max(), "highest": stream.cardinality - 1}
                raise CodecFault(Diagnostic("codes_range", codec=name, **span))


def _check_bits(name: str, codes: Codes) -> None:
    """Raise CodecFault unless the numbers that the bitrate is computed from are valid."""
    side_bits = codes.side_bits
    if not isinstance(side_bits, (int, float, np.integer, np.floating)) or not 0 <= side_bits < math.inf:
        raise CodecFault(Diagnostic("side_bits_value", codec=name, value=str(side_bits)))
    for packet in codes.packets:
        if not isinstance(packet, (bytes, bytearray, memoryview)):
            raise CodecFault(Diagnostic("packet_type", codec=name, returned=type(packet).__name__))
    for stream in codes.streams:
        size = stream.cardinality
        is_whole = isinstance(size, (int, float, np.integer, np.floating)) and size == size // 1
        if not is_whole or size < 1:
            raise CodecFault(Diagnostic("cardinality_value", codec=name, value=str(size)))


def _returned(items: Any) -> int | str:
    return len(items) if isinstance(items, (list, tuple)) else type(items).__name__


def _check_array(name: str, kind: str, values: Any) -> None:
    if not isinstance(values, np.ndarray):
        raise CodecFault(Diagnostic("not_array", codec=name, kind=kind, returned=type(values).__name__))


def _check_latents(info: CodecInfo, values: np.ndarray) -> None:
    """Raise CodecFault unless latents are finite floats `(info.latents, frames)`."""
    if values.ndim != 2 or len(values) != info.latents or values.dtype.kind != "f":
        facts = {"dtype": str(values.dtype), "shape": values.shape, "latents": info.latents}
        raise CodecFault(Diagnostic("latents_shape", codec=info.name, **facts))
    if not np.isfinite(values.sum(dtype=np.float64)):
        raise CodecFault(Diagnostic("latents_not_finite", codec=info.name))


def check_decoded(name: str, decoded: Any, pieces: Sequence[Audio]) -> None:
    """Check that a codec decoded all items, with their lengths and rates.

    Args:
        name: the codec's name in messages.
        pieces: the encoder's inputs.

    Raises:
        CodecFault: another number of items, another length or rate, or samples that are not finite.
    """
    if not isinstance(decoded, (list, tuple)) or len(decoded) != len(pieces):
        facts = {"returned": _returned(decoded), "batch": len(pieces)}
        raise CodecFault(Diagnostic("returned_count", codec=name, method="decode", **facts))
    for out, segment in zip(decoded, pieces):
        if not isinstance(out, Audio):
            facts = {"returned": type(out).__name__, "expected": "Audio"}
            raise CodecFault(Diagnostic("returned_type", codec=name, method="decode", **facts))
        if out.samples.shape != segment.samples.shape or out.sample_rate_hz != segment.sample_rate_hz:
            expected = {"expected_shape": segment.samples.shape, "expected_rate_hz": segment.sample_rate_hz}
            actual = {"shape": out.samples.shape, "rate_hz": out.sample_rate_hz}
            raise CodecFault(Diagnostic("decoded_shape", codec=name, **actual, **expected))
        if not np.isfinite(out.samples.sum(dtype=np.float64)):
            raise CodecFault(Diagnostic("decoded_not_finite", codec=name))

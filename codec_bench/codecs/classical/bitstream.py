"""Classical codecs by PyAV (FFmpeg) in this process, without files.

Only payload packets are counted. The decoder derives from `Codes` what a container or call set-up carries once (rate,
channels, length, pre-skip, AAC's AudioSpecificConfig). Every item gets a new single-threaded encoder and decoder.
Packets at the end that no sample depends on are not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from codec_bench.codecs.base import Codec, CodecInfo, check_input
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio, Codes


@dataclass(frozen=True, slots=True)
class Encoder:
    """One of FFmpeg's encoders and its settings.

    Args:
        name: FFmpeg's name for it.
        sample_format: of its input: `s16`, `flt` (interleaved), `fltp` or `s32p` (planar).
        frame_samples: samples per channel of each input frame.
        bit_rate_bps: the requested bitrate; None if it has no such setting.
    """

    name: str
    sample_format: str
    frame_samples: int
    bit_rate_bps: int | None = None
    options: Mapping[str, str] | None = None

    def encode(self, samples: np.ndarray, rate_hz: int, packets: int) -> list[bytes]:
        """Encode float32 `(channels, samples)`, padded with silence to whole frames.

        Args:
            packets: how many packets to return, from the first.

        Raises:
            UserError: FFmpeg does not have the encoder, refuses the settings, or gives fewer packets.
        """
        import av

        layout = _layout(samples.shape[0])
        try:
            # PyAV says that it gives its base class; here it is one of the audio codecs.
            context: Any = av.CodecContext.create(self.name, "w")
            context.sample_rate, context.layout, context.format = rate_hz, layout, self.sample_format
            context.time_base, context.thread_count = Fraction(1, rate_hz), 1
            if self.bit_rate_bps is not None:
                context.bit_rate = self.bit_rate_bps
            context.options = dict(self.options or {})
            context.open()
        except (av.error.FFmpegError, ValueError) as error:  # av.codec.codec.UnknownCodecError is a ValueError
            raise UserError(
                "ffmpeg_refuses", encoder=self.name, rate_hz=rate_hz, layout=layout, cause=_plain(error)
            ) from error
        out: list[bytes] = []
        start = 0
        while len(out) < packets and start < samples.shape[1] + _DRAIN_FRAMES * self.frame_samples:
            packed = _pack(samples[:, start : start + self.frame_samples], self.frame_samples, self.sample_format)
            frame = av.AudioFrame.from_ndarray(packed, format=self.sample_format, layout=layout)
            frame.sample_rate, frame.pts = rate_hz, start
            out += map(bytes, context.encode(frame))
            start += self.frame_samples
        out += map(bytes, context.encode(None))
        if len(out) < packets:
            raise UserError("ffmpeg_packets", encoder=self.name, packets=len(out), expected=packets)
        return out[:packets]


@dataclass(frozen=True, slots=True)
class Coder:
    """FFmpeg's encoder and decoder of one operating point with frames of one size.

    Args:
        decoder: FFmpeg's name for the decoder; empty if it is the encoder's.
        delay_samples: of encoder and decoder together, which decoding cuts off.
        packet_bytes: the size of every packet, or None if they differ.
        word: samples and bytes of a code word, if the last packet is cut after the last word needed.
        extradata: the decoder's data that a container would carry once.
    """

    encoder: Encoder
    decoder: str = ""
    delay_samples: int = 0
    packet_bytes: int | None = None
    word: tuple[int, int] | None = None
    extradata: bytes | None = None
    options: Mapping[str, str] | None = None


# Frames of silence after the end: more than any encoder here delays its packets (LAME by 4, for bit reservoir and
# look-ahead).
_DRAIN_FRAMES = 16


def decode_packets(
    name: str,
    packets: Sequence[bytes],
    *,
    rate_hz: int,
    channels: int,
    extradata: bytes | None = None,
    options: Mapping[str, str] | None = None,
) -> np.ndarray:
    """Decode packets with one of FFmpeg's decoders.

    Args:
        name: FFmpeg's name for the decoder.
        rate_hz, channels: of the coded audio.
        extradata: the codec's setup data, which a container stores in its header.
        options: the decoder's options.

    Returns:
        float32 `(channels, samples)`, delay included, at the decoder's own rate.

    Raises:
        UserError: a packet cannot be decoded; the message names the packet and the reason.
    """
    import av

    context: Any = av.CodecContext.create(name, "r")
    context.sample_rate, context.layout, context.thread_count = rate_hz, _layout(channels), 1
    if extradata is not None:
        context.extradata = extradata
    context.options = dict(options or {})
    out: list[np.ndarray] = []
    for index, packet in enumerate((*packets, None)):
        if packet is not None and not packet:  # FFmpeg reads an empty packet as the end of the stream
            raise UserError("packet_empty", packet=index + 1, packets=len(packets))
        try:
            frames = context.decode(None if packet is None else av.Packet(packet))
        except (av.error.FFmpegError, ValueError) as error:
            where = "the end" if packet is None else f"packet {index + 1}"
            raise UserError(
                "packet_not_decoded", packet=where, packets=len(packets), decoder=name, cause=_plain(error)
            ) from error
        # Before PyAV reads it: it reads no more than eight.
        if any(frame.layout.nb_channels != channels for frame in frames):
            raise UserError("ffmpeg_channels", decoder=name, channels=channels)
        out += map(_unpack, frames)
    return np.concatenate(out, axis=1) if out else np.zeros((channels, 0), np.float32)


class BitstreamCodec(Codec):
    """A codec whose output is a sequence of packets.

    Args:
        coder: codes one item. A subclass without one overrides `encode_one` and `decode_one`.
    """

    where: ClassVar = "cpu"

    def __init__(self, info: CodecInfo, coder: Coder | None = None) -> None:
        self.info, self._coder = info, coder

    @classmethod
    def describe(cls, **options: Any) -> CodecInfo:
        """Return `CodecInfo` of an operating point, without loading."""
        return cls(**options).info

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Encode float32 `(channels, samples)`; as many packets as samples and delay need."""
        assert self._coder is not None
        needed, frame = samples.shape[1] + self._coder.delay_samples, self._coder.encoder.frame_samples
        packets = self._coder.encoder.encode(samples, rate_hz, packets_for(needed, frame))
        if self._coder.word is not None:
            of_samples, of_bytes = self._coder.word
            words = packets_for(needed - (len(packets) - 1) * frame, of_samples)
            packets[-1] = packets[-1][: words * of_bytes]
        return packets

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """Decode to float32 `(channels, at least num_samples)`, aligned with the input."""
        coder = self._coder
        assert coder is not None
        if coder.packet_bytes is not None:
            check_packet_sizes(self.info.name, packets, coder.packet_bytes)
        options: dict[str, Any] = {"extradata": coder.extradata, "options": coder.options}
        name = coder.decoder or coder.encoder.name
        return decode_packets(name, packets, rate_hz=rate_hz, channels=channels, **options)[:, coder.delay_samples :]

    def decode_gaps(self, packets: Sequence[bytes | None], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """Decode as `decode_one`, where the decoder conceals lost packets, which are None."""
        raise UserError("concealment_unsupported", codec=self.info.name)

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode each item to packets."""
        for audio in batch:
            check_input(audio, self.info)
        codes = []
        for audio in batch:
            packets = tuple(self.encode_one(audio.samples, audio.sample_rate_hz))
            side_info = {"channels": audio.channels}
            codes.append(Codes((), audio.num_samples, audio.sample_rate_hz, packets, side=side_info))
        return codes

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode each item to audio of the input's length, aligned with the input."""
        return [self._decoded(self.decode_one, item, item.packets) for item in codes]

    def conceal(self, codes: Sequence[Codes], dropped: Sequence[np.ndarray]) -> list[Audio]:
        """Decode items with lost packets, concealed by the decoder."""
        arrived = [
            [None if missing else packet for packet, missing in zip(item.packets, gone, strict=True)]
            for item, gone in zip(codes, dropped, strict=True)
        ]
        return [self._decoded(self.decode_gaps, item, packets) for item, packets in zip(codes, arrived)]

    def _decoded(self, decode: Callable[..., np.ndarray], item: Codes, packets: Sequence[bytes | None]) -> Audio:
        """Decode packets with `decode_one` or `decode_gaps`; cut to the item's length.

        Packets that are None are lost. UserError if the packets are too few.
        """
        length = item.num_samples
        samples = decode(packets, length, item.sample_rate_hz, item.side["channels"])
        if samples.shape[1] < length:
            raise UserError(
                "packets_missing",
                codec=self.info.name,
                packets=len(item.packets),
                samples=samples.shape[1],
                expected=length,
            )
        return Audio(samples[:, :length], item.sample_rate_hz)


class RatedCodec(BitstreamCodec):
    """A bitstream codec with several bitrates; an instance has one.

    Args:
        family: the codec's name before the `@`.
    """

    def __init__(self, family: str, bitrate_bps: int, coder: Coder | None = None, **facts: Any) -> None:
        self.bitrate_bps = int(bitrate_bps)
        name = f"{family}@{bitrate_bps / 1000:g}"
        super().__init__(CodecInfo(name, nominal_bitrate_bps=float(bitrate_bps), **facts), coder)


def one_rate(rate_hz: int, frame_samples: int, delay_samples: float) -> dict[str, Any]:
    """Return `CodecInfo` fields of a causal codec with one sample rate and frame size.

    Args:
        delay_samples: the codec's look-ahead.
    """
    return {
        "sample_rates_hz": (rate_hz,), "frame_rate_hz": rate_hz / frame_samples, "causal": True,
        "lookahead_s": delay_samples / rate_hz,
    }  # fmt: skip


def check_bitrate(codec: str, bitrate_bps: int, known_bps: Sequence[int]) -> None:
    """Check that a codec has a bitrate.

    Args:
        codec: its name in the message.

    Raises:
        UserError: it does not; the message names its bitrates.
    """
    if bitrate_bps not in known_bps:
        known = ", ".join(f"{bps / 1000:g}" for bps in known_bps)
        raise UserError("codec_bitrate", codec=codec, kbps=bitrate_bps / 1000, hint=f"it has {known} kbps")


def check_packet_sizes(codec: str, packets: Sequence[bytes], size: int) -> None:
    """Check that all packets have the codec's one size.

    Raises:
        UserError: a packet has another size; the message names the packet.
    """
    for index, packet in enumerate(packets):
        if len(packet) != size:
            raise UserError(
                "packet_size", codec=codec, packet=index + 1, packets=len(packets), bytes=len(packet), expected=size
            )


def packets_for(num_samples: int, frame_samples: int) -> int:
    """Count the packets of `frame_samples` that `num_samples` need."""
    return -(-num_samples // frame_samples)


def _layout(channels: int) -> str:
    return {1: "mono", 2: "stereo"}[channels]


def _plain(error: Exception) -> str:
    """Return FFmpeg's last log line, else the text of the error, on one line."""
    log = getattr(error, "log", None)
    return " ".join(str(log[2] if log else getattr(error, "strerror", None) or error).split())


def _pack(samples: np.ndarray, length: int, sample_format: str) -> np.ndarray:
    """Convert float samples to a sample format, zero-padded to `length`."""
    if samples.shape[1] < length:
        samples = np.pad(samples, ((0, 0), (0, length - samples.shape[1])))
    if sample_format.startswith("s16"):
        samples = np.clip(np.round(samples * 32768.0), -32768, 32767).astype(np.int16)
    elif sample_format.startswith("s32"):  # in double precision, because float32 cannot hold the largest integer
        samples = np.clip(np.round(samples.astype(np.float64) * 2**31), -(2**31), 2**31 - 1).astype(np.int32)
    if not sample_format.endswith("p"):
        samples = samples.T.reshape(1, -1)
    return np.ascontiguousarray(samples)


def _unpack(frame: Any) -> np.ndarray:
    """Convert a decoded frame to float32 `(channels, samples)`."""
    samples = frame.to_ndarray()
    if not frame.format.is_planar:
        samples = samples.reshape(-1, frame.layout.nb_channels).T
    if samples.dtype == np.int32:
        return samples.astype(np.float32) / np.float32(2**31)
    return samples.astype(np.float32) / 32768.0 if samples.dtype == np.int16 else samples

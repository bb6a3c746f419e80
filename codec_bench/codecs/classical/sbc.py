"""SBC, the sub-band codec of Bluetooth, and mSBC for calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.classical.bitstream import (
    BitstreamCodec,
    Coder,
    Encoder,
    RatedCodec,
    check_packet_sizes,
    decode_packets,
    one_rate,
    packets_for,
)
from codec_bench.messages.errors import UserError

RATES_HZ = (16000, 32000, 44100, 48000)
_BLOCKS = 16
# Frames have whole bytes and whole bit pools. A rate is offered if its frames come this close to the bitrate.
_TOLERANCE = 0.05
_MSBC_RATE_HZ, _MSBC_FRAME, _MSBC_BYTES = 16000, 120, 57


@dataclass(frozen=True, slots=True)
class Frame:
    """The shape of a frame, which follows from bitrate, rate and channels.

    Args:
        subbands: 4 or 8. bitpool: bits shared by a block's sub-bands (of both channels).
        bytes: length, header and scale factors included.
    """

    subbands: int
    bitpool: int
    bytes: int

    @property
    def samples(self) -> int:
        """Samples per channel."""
        return self.subbands * _BLOCKS

    @property
    def delay_samples(self) -> int:
        """The delay of encoder and decoder: polyphase filters of ten taps a sub-band."""
        return delay_samples(self.subbands)


def delay_samples(subbands: int) -> int:
    """Return the delay of encoder and decoder together, in samples."""
    return 9 * subbands + 1


def frame_of(bitrate_bps: int, rate_hz: int, channels: int) -> Frame | None:
    """Compute the frame of FFmpeg's SBC encoder at its longest delay (A2DP 1.3, B).

    Four sub-bands above 270 kbps (mono) and 420 kbps (stereo), else eight. Stereo is joint below 180 and above 420
    kbps.

    Returns:
        The frame's shape; None if no frame has this bitrate.
    """
    subbands = 4 if bitrate_bps > (270000 if channels == 1 else 420000) else 8
    joint = channels == 2 and not 180000 <= bitrate_bps <= 420000
    fixed = 32 + 4 * subbands * channels + (subbands if joint else 0)  # header, scale factors, joint flags
    bits = bitrate_bps * subbands * _BLOCKS // rate_hz
    bitpool = (bits - fixed + _BLOCKS // 2) // _BLOCKS
    if not 2 <= bitpool <= min(250, 16 * subbands * channels):
        return None
    return Frame(subbands, bitpool, -(-(fixed + _BLOCKS * bitpool) // 8))


class Sbc(RatedCodec):
    """SBC at constant bitrate within 5 %: 16 blocks, loudness allocation.

    Args:
        bitrate_bps: 24000 to 512000, of all channels together.
    """

    def __init__(self, bitrate_bps: int) -> None:
        rates = tuple(rate for rate in RATES_HZ if all(_is_near(bitrate_bps, rate, channels) for channels in (1, 2)))
        if not rates:
            raise UserError("codec_bitrate", kbps=bitrate_bps / 1000, codec="SBC", hint="it runs at 24 to 512 kbps")
        facts: dict[str, Any] = {"channels": (1, 2), "causal": True, "lookahead_s": delay_samples(8) / rates[0]}
        super().__init__("sbc", bitrate_bps, sample_rates_hz=rates, **facts)

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Encode one item to frames with their header, which a decoder needs."""
        frame = self._frame(rate_hz, samples.shape[0])
        encoder = Encoder("sbc", "s16", frame.samples, self.bitrate_bps)
        return encoder.encode(samples, rate_hz, packets_for(samples.shape[1] + frame.delay_samples, frame.samples))

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """Decode one item, without the codec's delay."""
        frame = self._frame(rate_hz, channels)
        check_packet_sizes(self.info.name, packets, frame.bytes)
        return decode_packets("sbc", packets, rate_hz=rate_hz, channels=channels)[:, frame.delay_samples :]

    def _frame(self, rate_hz: int, channels: int) -> Frame:
        frame = frame_of(self.bitrate_bps, rate_hz, channels)
        assert frame is not None, "a rate without a frame is not offered"
        return frame


class Msbc(BitstreamCodec):
    """mSBC, Bluetooth's wide-band speech: 16 kHz mono, 15 blocks, bit pool 26.

    57 bytes every 7.5 ms are 60.8 kbps. The transport's three bytes a frame (64 kbps) are not counted.
    """

    def __init__(self) -> None:
        bitrate_bps = 8.0 * _MSBC_BYTES * _MSBC_RATE_HZ / _MSBC_FRAME
        facts = one_rate(_MSBC_RATE_HZ, _MSBC_FRAME, delay_samples(8))
        encoder = Encoder("sbc", "s16", _MSBC_FRAME, None, {"msbc": "1"})
        coder = Coder(encoder, delay_samples=delay_samples(8), packet_bytes=_MSBC_BYTES)
        super().__init__(CodecInfo("msbc", nominal_bitrate_bps=bitrate_bps, **facts), coder)


def _is_near(bitrate_bps: int, rate_hz: int, channels: int) -> bool:
    frame = frame_of(bitrate_bps, rate_hz, channels)
    return frame is not None and abs(8 * frame.bytes * rate_hz / frame.samples / bitrate_bps - 1) <= _TOLERANCE

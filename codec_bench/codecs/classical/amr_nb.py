"""AMR narrow-band (3GPP TS 26.071) by opencore-amr, the fixed-point reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from codec_bench.codecs.classical.bitstream import (
    Encoder,
    RatedCodec,
    check_bitrate,
    check_packet_sizes,
    decode_packets,
    one_rate,
    packets_for,
)

# The modes in the order of the format's frame type. A frame of 20 ms has the bits of this rate.
MODES_BPS = (4750, 5150, 5900, 6700, 7400, 7950, 10200, 12200)
_RATE_HZ = 8000
_FRAME = 160
# The delay is the encoder's look-ahead of 5 ms alone. Its 80 Hz high-pass filter changes the phase of the lowest
# frequencies: the cross-correlation of a voice peaks a few samples early. With pre-emphasis the peak is at 40.
DELAY_SAMPLES = 40


class Amr(RatedCodec):
    """One mode of AMR, without discontinuous transmission, decoded by opencore-amr.

    A packet holds the speech bits of one frame of 20 ms, padded to whole bytes, without the storage format's byte,
    which is constant in a mode.

    Args:
        family: the name of the format. rate_hz, frame, delay_samples: as for `one_rate`.

    Class attributes:
        modes_bps: the bitrates, in the order of the format's frame type.
        decoder: FFmpeg's name for it.
        missing: the frame type for which the decoder calls its concealment.
    """

    modes_bps: ClassVar[tuple[int, ...]]
    decoder: ClassVar[str]
    missing: ClassVar[int]

    def __init__(self, family: str, bitrate_bps: int, rate_hz: int, frame: int, delay_samples: int) -> None:
        check_bitrate(family.upper(), bitrate_bps, self.modes_bps)
        super().__init__(family, bitrate_bps, **one_rate(rate_hz, frame, delay_samples))
        self._mode, self._delay_samples = self.modes_bps.index(bitrate_bps), delay_samples
        self._header = _header(self._mode)
        self._frame_bytes = -(-bitrate_bps * frame // rate_hz // 8)

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """Decode one item, without the codec's delay."""
        return self.decode_gaps(packets, num_samples, rate_hz, channels)

    def decode_gaps(self, packets: Sequence[bytes | None], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """Decode one item without the codec's delay.

        Args:
            packets: None is a lost packet, which the decoder conceals.
        """
        check_packet_sizes(self.info.name, [packet for packet in packets if packet is not None], self._frame_bytes)
        framed = [_header(self.missing) if packet is None else self._header + packet for packet in packets]
        return decode_packets(self.decoder, framed, rate_hz=rate_hz, channels=channels)[:, self._delay_samples :]


def _header(frame_type: int) -> bytes:
    """Build the byte before a frame: its type in bits 3 to 6, and the quality flag."""
    return bytes([frame_type << 3 | 0b100])


class AmrNb(Amr):
    """AMR-NB in one mode. A packet is 0.6 to 2.7 % above the declared rate.

    Args:
        bitrate_bps: 4750, 5150, 5900, 6700, 7400, 7950, 10200 or 12200.
    """

    modes_bps = MODES_BPS
    decoder = "libopencore_amrnb"
    missing = 15  # no data: opencore-amr then replaces the frame as TS 26.091 says

    def __init__(self, bitrate_bps: int) -> None:
        super().__init__("amr-nb", bitrate_bps, _RATE_HZ, _FRAME, DELAY_SAMPLES)

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Encode one item to the speech bits of each frame."""
        encoder = Encoder("libopencore_amrnb", "s16", _FRAME, self.bitrate_bps, {"dtx": "0"})
        packets = encoder.encode(samples, rate_hz, packets_for(samples.shape[1] + DELAY_SAMPLES, _FRAME))
        return [packet[1:] for packet in packets]

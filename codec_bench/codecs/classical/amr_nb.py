"""AMR narrow-band (3GPP TS 26.071) through opencore-amr, the fixed-point reference."""

from __future__ import annotations

from collections.abc import Sequence

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
# A frame of type 15 (no data): opencore-amr then replaces the frame as TS 26.091 says.
_MISSING = bytes([15 << 3 | 0b100])


class AmrNb(RatedCodec):
    """AMR-NB in one mode, without discontinuous transmission.

    A packet holds the speech bits of one frame, padded to whole bytes: 0.6 to 2.7 % above the declared rate. The
    storage format puts a byte in front of every frame. It is the same for all frames of a mode, and is not counted.

    Args:
        bitrate_bps: 4750, 5150, 5900, 6700, 7400, 7950, 10200 or 12200.
    """

    def __init__(self, bitrate_bps: int) -> None:
        check_bitrate("AMR-NB", bitrate_bps, MODES_BPS)
        super().__init__("amr-nb", bitrate_bps, **one_rate(_RATE_HZ, _FRAME, DELAY_SAMPLES))
        # Frame type in bits 3 to 6, and the bit that marks the frame as undamaged.
        self._header = bytes([MODES_BPS.index(bitrate_bps) << 3 | 0b100])
        self._frame_bytes = -(-bitrate_bps * _FRAME // _RATE_HZ // 8)

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Speech bits of each frame."""
        encoder = Encoder("libopencore_amrnb", "s16", _FRAME, self.bitrate_bps, {"dtx": "0"})
        packets = encoder.encode(samples, rate_hz, packets_for(samples.shape[1] + DELAY_SAMPLES, _FRAME))
        return [packet[1:] for packet in packets]

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """The decoded signal without its delay."""
        return self.decode_gaps(packets, num_samples, rate_hz, channels)

    def decode_gaps(self, packets: Sequence[bytes | None], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """The decoded signal without its delay, with opencore-amr's concealment (3GPP TS 26.091) of what is missing."""
        check_packet_sizes(self.info.name, [packet for packet in packets if packet is not None], self._frame_bytes)
        whole = [_MISSING if packet is None else self._header + packet for packet in packets]
        return decode_packets("libopencore_amrnb", whole, rate_hz=rate_hz, channels=channels)[:, DELAY_SAMPLES:]

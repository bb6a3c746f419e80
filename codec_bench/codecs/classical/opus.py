"""Opus (RFC 6716) through libopus, at constant bitrate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from codec_bench.audio.resample import resample
from codec_bench.codecs.classical.bitstream import Encoder, RatedCodec, decode_packets, packets_for
from codec_bench.messages.errors import UserError

RATES_HZ = (8000, 12000, 16000, 24000, 48000)
_DECODED_HZ = 48000  # libopus through FFmpeg always decodes at this rate
_FRAME_S = 0.02
_BPS_PER_CHANNEL = 256000  # FFmpeg refuses more
_MAX_BPS = 510000  # the largest packet, 1275 bytes, every 20 ms

# Encoder and decoder delay in samples at 48 kHz: the pre-skip, exact for CELT. SILK's resamplers move it by up to 3
# samples; its figures are peaks of the cross-correlation on speech, which vary by half a sample between voices.
_CELT_DELAY = 312
_SILK_DELAY = {
    "narrow": {8000: 315, 12000: 314, 16000: 314, 24000: 314, 48000: 315},
    "medium": {12000: 310, 16000: 311, 24000: 309, 48000: 309},
    "wide": dict.fromkeys((16000, 24000, 48000), 310),
}
_LONGEST_DELAY = 315
_ONE_FRAME = 0xFC  # the first byte of a packet without its last two bits, which say how many frames there are


class Opus(RatedCodec):
    """Opus at constant bitrate, 20 ms frames, for any sound (`application=audio`).

    Args:
        bitrate_bps: 6000 to 510000; above 256000 stereo only.
    """

    def __init__(self, bitrate_bps: int) -> None:
        if not 6000 <= bitrate_bps <= _MAX_BPS:
            raise UserError("codec_bitrate", kbps=bitrate_bps / 1000, codec="Opus", hint="it runs at 6 to 510 kbps")
        channels = (1, 2) if bitrate_bps <= _BPS_PER_CHANNEL else (2,)
        facts: dict[str, Any] = {"frame_rate_hz": 1 / _FRAME_S, "causal": True, "lookahead_s": 0.0065}
        super().__init__("opus", bitrate_bps, sample_rates_hz=RATES_HZ, channels=channels, **facts)

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Encode one item to packets of the same size."""
        frame = round(rate_hz * _FRAME_S)
        options = {"application": "audio", "vbr": "off", "frame_duration": f"{_FRAME_S * 1000:g}"}
        encoder = Encoder("libopus", "flt", frame, self.bitrate_bps, options)
        decoded = samples.shape[1] * (_DECODED_HZ // rate_hz) + _LONGEST_DELAY
        return encoder.encode(samples, rate_hz, packets_for(decoded, round(_DECODED_HZ * _FRAME_S)))

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """Decode one item without the codec's delay, at the rate of the encoder's input."""
        header = b"OpusHead" + bytes([1, channels, 0, 0]) + _DECODED_HZ.to_bytes(4, "little") + bytes(3)
        out = decode_packets("libopus", packets, rate_hz=_DECODED_HZ, channels=channels, extradata=header)
        start = delay_samples(packets, rate_hz)
        return resample(out[:, start : start + num_samples * (_DECODED_HZ // rate_hz)], _DECODED_HZ, rate_hz)

    def decode_gaps(self, packets: Sequence[bytes | None], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """Decode with libopus' concealment of lost packets, without error correction.

        An empty frame means a lost one (RFC 6716, section 3.2.1), and libopus conceals it. Its first byte is that of
        the last packet that arrived, at first that of the next.
        """
        return self.decode_one(_with_gaps(packets), num_samples, rate_hz, channels)


def delay_samples(packets: Sequence[bytes], rate_hz: int) -> int:
    """Delay of decoded packets in samples at 48 kHz, for audio at `rate_hz`.

    The first five bits of a packet name its mode (RFC 6716, section 3.1). The most frequent mode decides.
    """
    # Hybrid frames carry their lower half as wide-band SILK.
    mode = Counter(_mode(packet[0] >> 3) for packet in packets if packet).most_common(1)
    return _SILK_DELAY[mode[0][0]].get(rate_hz, _CELT_DELAY) if mode and mode[0][0] in _SILK_DELAY else _CELT_DELAY


def _with_gaps(packets: Sequence[bytes | None]) -> list[bytes]:
    """Replace each lost packet (None) by an empty frame, which libopus conceals.

    An empty frame has the mode and duration of the packet before it, or of the first one that arrived.
    """
    last = next((packet for packet in packets if packet is not None), None)
    if last is None:
        raise UserError("no_packet")
    out: list[bytes] = []
    for packet in packets:
        last = last if packet is None else packet
        out.append(bytes([last[0] & _ONE_FRAME]) if packet is None else packet)
    return out


def _mode(configuration: int) -> str:
    return ("narrow", "medium", "wide", "wide")[configuration // 4] if configuration < 16 else "celt"

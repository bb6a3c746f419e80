"""AAC-LC (ISO/IEC 14496-3) through FFmpeg's own encoder, at an average bitrate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.codecs.classical.bitstream import Encoder, RatedCodec, decode_packets, packets_for
from codec_bench.messages.errors import UserError

# In the order of the format's sampling frequency index.
_RATES_HZ = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000)
_FRAME = 1024
DELAY_SAMPLES = 1024  # one frame: the first block only overlaps into the second
# Above 128 kbps one channel of speech cannot use all bits. With 8 kHz of bandwidth, 10 % are left over at 128 kbps
# already.
_LOWEST_BPS, _HIGHEST_BPS = 8000, 128000
# Bits per sample, of all channels. With fewer, little of the bandwidth is coded; with more, a frame nears its 6144
# bits.
_BITS_PER_SAMPLE = (1.0, 4.0)
_TOLERANCE = 0.03
_TRIES = 5


class Aac(RatedCodec):
    """AAC-LC at an average bitrate, at the rates that reach it.

    The encoder has no constant bitrate. Above 2.5 bits a sample for one channel it exceeds the target by up to 12 %.
    Items more than 3 % off are encoded again with another requested bitrate, at most four times; the nearest result
    counts. Very short items and silence may stay further off.

    Args:
        bitrate_bps: 8000 to 128000.
    """

    def __init__(self, bitrate_bps: int) -> None:
        if not _LOWEST_BPS <= bitrate_bps <= _HIGHEST_BPS:
            reachable = f"{_LOWEST_BPS / 1000:g} to {_HIGHEST_BPS / 1000:g}"
            raise UserError("codec_bitrate", kbps=bitrate_bps / 1000, codec="AAC", hint=f"it runs at {reachable} kbps")
        low, high = _BITS_PER_SAMPLE
        rates = tuple(rate for rate in sorted(_RATES_HZ) if low <= bitrate_bps / rate <= high)
        super().__init__("aac", bitrate_bps, sample_rates_hz=rates, channels=(1, 2), causal=False)

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Encode one item to raw access units, as close to the bitrate as possible.

        FFmpeg's encoder misses its bitrate, so several requests are tried.
        """
        count = packets_for(samples.shape[1] + DELAY_SAMPLES, _FRAME)
        target_bits = self.bitrate_bps * count * _FRAME / rate_hz
        tries: dict[float, tuple[int, list[bytes]]] = {}  # by the ratio of the bits spent to the target
        target_bps = self.bitrate_bps
        for _ in range(_TRIES):
            packets = Encoder("aac", "fltp", _FRAME, target_bps, {"aac_coder": "fast"}).encode(samples, rate_hz, count)
            spent = 8 * sum(map(len, packets)) / target_bits
            tries.setdefault(spent, (target_bps, packets))
            if abs(spent - 1) <= _TOLERANCE:
                break
            target_bps = _next_request({ratio: request for ratio, (request, _) in tries.items()}, spent)
            target_bps = min(target_bps, 6 * rate_hz * samples.shape[0])
        return tries[min(tries, key=lambda ratio: abs(ratio - 1))][1]

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """Decode one item without the codec's delay; the end may exceed `num_samples`."""
        config = (2 << 11) | (_RATES_HZ.index(rate_hz) << 7) | (channels << 3)  # AudioSpecificConfig: AAC-LC
        out = decode_packets("aac", packets, rate_hz=rate_hz, channels=channels, extradata=config.to_bytes(2, "big"))
        return out[:, DELAY_SAMPLES:]


def _next_request(requests: dict[float, int], spent: float) -> int:
    """Choose the bitrate to request next, interpolated between the nearest results.

    Args:
        requests: the bitrates requested so far, by the ratio of the bits spent to the target.
        spent: the latest ratio.
    """
    below, above = (ratio for ratio in requests if ratio < 1), (ratio for ratio in requests if ratio > 1)
    low, high = max(below, default=None), min(above, default=None)
    if low is None or high is None:
        return round(requests[spent] / spent)
    return round(requests[low] + (requests[high] - requests[low]) * (1 - low) / (high - low))

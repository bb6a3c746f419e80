"""LC3, the codec of Bluetooth LE Audio, through Google's liblc3."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from codec_bench.codecs.classical.bitstream import RatedCodec, check_packet_sizes, packets_for
from codec_bench.messages.errors import MissingExtra, UserError, optional_package

RATES_HZ = (8000, 16000, 24000, 32000, 48000)
LOWEST_BPS, HIGHEST_BPS = 16000, 320000  # of a channel: 20 to 400 bytes a frame
_FRAME_US, _FRAMES_A_SECOND = 10000, 100
_FLOATS = 3  # `LC3_PCM_FORMAT_FLOAT`


def delay_samples(rate_hz: int) -> int:
    """Return the delay of encoder and decoder together: 2.5 ms."""
    return rate_hz // 400


class Lc3(RatedCodec):
    """LC3 at a constant bitrate in frames of 10 ms, through `lc3py`.

    Args:
        bitrate_bps: 16000 to 320000, of all channels together; stereo from 32000.

    Raises:
        UserError: LC3 has no such bitrate. MissingExtra, when audio is coded: the package `lc3py` is not installed.
    """

    def __init__(self, bitrate_bps: int) -> None:
        if not LOWEST_BPS <= bitrate_bps <= HIGHEST_BPS:
            raise UserError("codec_bitrate", kbps=bitrate_bps / 1000, codec="lc3", hint="it has 16 to 320 kbps")
        channels = (1, 2) if bitrate_bps >= 2 * LOWEST_BPS else (1,)
        super().__init__(
            "lc3", bitrate_bps, sample_rates_hz=RATES_HZ, channels=channels, frame_rate_hz=float(_FRAMES_A_SECOND),
            causal=True, lookahead_s=delay_samples(RATES_HZ[0]) / RATES_HZ[0],
        )  # fmt: skip

    @classmethod
    def require_weights(cls, weights: str | None, **options: Any) -> None:
        """Raise MissingExtra if the package is not installed, before a command begins."""
        _package()

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Encode one item to a packet for every 10 ms: a frame of each channel."""
        channels, length = samples.shape
        frame = rate_hz // _FRAMES_A_SECOND
        count = packets_for(length + delay_samples(rate_hz), frame)
        padded = np.pad(np.clip(samples, -1, 1), ((0, 0), (0, count * frame - length)))
        pieces = np.ascontiguousarray(padded.T, np.float32).reshape(count, frame * channels)
        with _coder("Encoder", rate_hz, channels) as coder:
            size = coder.get_frame_bytes(self.bitrate_bps)
            return [coder.encode(segment.tobytes(), size) for segment in pieces]

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """Decode one item, without the codec's delay."""
        return self.decode_gaps(packets, num_samples, rate_hz, channels)

    def decode_gaps(self, packets: Sequence[bytes | None], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """Decode one item without delay; liblc3 conceals packets that are None."""
        with _coder("Decoder", rate_hz, channels) as coder:
            size = coder.get_frame_bytes(self.bitrate_bps)
            check_packet_sizes(self.info.name, [packet for packet in packets if packet is not None], size)
            decoded = (_missing(coder, size) if packet is None else coder.decode(packet) for packet in packets)
            pieces = [np.frombuffer(segment, np.float32) for segment in decoded]
        return np.concatenate([*pieces, np.empty(0, np.float32)]).reshape(-1, channels).T[:, delay_samples(rate_hz) :]


def _missing(coder: Any, size: int) -> Any:
    """Conceal a lost packet with `lc3_decode`, which `lc3py` cannot call without data.

    Args:
        coder: the decoder of `lc3py`.
        size: bytes of a packet, all channels together.

    Returns:
        A ctypes array of interleaved float samples.
    """
    channels = coder.num_channels
    out = (ctypes.c_float * (channels * coder.get_frame_samples()))()
    for index, held in enumerate(coder._Decoder__decoders):
        samples = ctypes.byref(out, index * ctypes.sizeof(ctypes.c_float))
        if coder.lib.lc3_decode(held, None, size // channels, _FLOATS, samples, channels) < 0:
            raise UserError("liblc3_refuses")
    return out


def _package() -> Any:
    return optional_package("lc3", MissingExtra("codec", "lc3py", "codecs", name="lc3"))


@contextmanager
def _coder(kind: str, rate_hz: int, channels: int) -> Iterator[Any]:
    """Create an encoder or decoder of `lc3py`, and free its memory at the end."""
    coder = getattr(_package(), kind)(_FRAME_US, rate_hz, channels)
    try:
        yield coder
    finally:
        for held in getattr(coder, f"_{kind}__{kind.lower()}s"):
            coder.free(held)

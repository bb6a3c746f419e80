"""AMR wideband (G.722.2): VisualOn's encoder, opencore-amr's decoder."""

from __future__ import annotations

import ctypes
from ctypes.util import find_library
from functools import cache
from typing import Any

import numpy as np

from codec_bench.codecs.classical.amr_nb import Amr
from codec_bench.codecs.classical.bitstream import packets_for
from codec_bench.messages.errors import MissingResource

# The modes in the order of the format's frame type. A frame of 20 ms has the bits of this rate.
MODES_BPS = (6600, 8850, 12650, 14250, 15850, 18250, 19850, 23050, 23850)
_RATE_HZ, _FRAME, _LONGEST_BYTES = 16000, 320, 61
# 5 ms of look-ahead, and 15 samples of the filters that convert to 12.8 kHz and back.
DELAY_SAMPLES = 95


class AmrWb(Amr):
    """AMR-WB in one mode. A packet is up to 4 % above the declared rate.

    Args:
        bitrate_bps: 6600, 8850, 12650, 14250, 15850, 18250, 19850, 23050 or 23850.

    Raises:
        UserError: it has no such mode. MissingResource, when audio is encoded: the system lacks the encoder's library.
    """

    modes_bps = MODES_BPS
    decoder = "libopencore_amrwb"
    missing = 14  # speech lost: opencore-amr then replaces the frame as TS 26.191 says

    def __init__(self, bitrate_bps: int) -> None:
        super().__init__("amr-wb", bitrate_bps, _RATE_HZ, _FRAME, DELAY_SAMPLES)

    @classmethod
    def require_weights(cls, weights: str | None, **options: Any) -> None:
        """Raise MissingResource if the system lacks the encoder's library."""
        _encoder()

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """Encode one item to the speech bits of each frame."""
        count = packets_for(samples.shape[1] + DELAY_SAMPLES, _FRAME)
        padded = np.pad(samples[0], (0, count * _FRAME - samples.shape[1]))
        pcm = np.clip(np.round(padded * 32768.0), -32768, 32767).astype(np.int16)
        library = _encoder()
        state, out = library.E_IF_init(), ctypes.create_string_buffer(_LONGEST_BYTES)
        try:
            return [self._frame(library, state, segment, out) for segment in pcm.reshape(count, _FRAME)]
        finally:
            library.E_IF_exit(state)

    def _frame(self, library: Any, state: int, segment: np.ndarray, out: Any) -> bytes:
        size = library.E_IF_encode(state, self._mode, segment.ctypes.data, out, 0)
        return out.raw[1:size]


@cache
def _encoder() -> Any:
    """Load the library of the VisualOn encoder, with the types of its functions."""
    name = find_library("vo-amrwbenc")
    if name is None:
        raise MissingResource("amr_wb_library", hint="Debian: apt install libvo-amrwbenc0")
    library = ctypes.CDLL(name)
    library.E_IF_init.restype = ctypes.c_void_p
    library.E_IF_encode.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    library.E_IF_exit.argtypes, library.E_IF_exit.restype = [ctypes.c_void_p], None
    return library

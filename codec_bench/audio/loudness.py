"""Perceived loudness in LUFS, after ITU-R BS.1770.

1 LU is 1 dB. A gain of x dB changes the loudness by x LU, unless parts cross the absolute gate.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from codec_bench.types import Audio

BLOCK_S, HOP_S = 0.4, 0.1
ABSOLUTE_GATE_LUFS, RELATIVE_GATE_LU = -70.0, -10.0
PROTOCOL = "bs1770-4"
_OFFSET_DB = -0.691
_MOST_CHANNELS = 2
_SHELF = (1681.974450955533, 3.999843853973347, 0.7071752369554196)
"""Frequency (Hz), gain (dB) and quality of the analogue shelf."""
_HIGH_PASS = (38.13547087602444, 0.5003270373238773)


def loudness_lufs(audio: Audio) -> float | None:
    """Return the integrated loudness of audio.

    The K-weighted mean power of blocks of 0.4 s, one every 0.1 s, is averaged over the blocks above -70 LUFS that are
    no more than 10 LU below the average of these.

    Paper: ITU-R BS.1770-4, annex 1. Reference implementation: the filter `ebur128` of FFmpeg, within 0.1 LU; the
    synthetic signals of EBU Tech 3341, within 0.1 LU.

    Args:
        audio: one channel or two, at any rate from 8 kHz.

    Returns:
        The loudness in LUFS; None if the audio is shorter than one block or no block is above the absolute gate.

    Raises:
        ValueError: the audio has more than two channels, whose weights depend on unknown loudspeaker positions.
    """
    if audio.channels > _MOST_CHANNELS:
        raise ValueError(f"the audio has {audio.channels} channels; expected one or two")
    powers = _block_powers(audio)
    powers = powers[powers > _power(ABSOLUTE_GATE_LUFS)]
    if not powers.size:
        return None
    gate = float(powers.mean()) * 10 ** (RELATIVE_GATE_LU / 10)
    return _OFFSET_DB + 10 * math.log10(float(powers[powers > gate].mean()))


def _power(level_lufs: float) -> float:
    return 10 ** ((level_lufs - _OFFSET_DB) / 10)


def _block_powers(audio: Audio) -> np.ndarray:
    """Return every block's mean power, summed over channels: float64 `(blocks,)`."""
    from scipy.signal import sosfilt

    rate = audio.sample_rate_hz
    block = round(BLOCK_S * rate)
    if audio.num_samples < block:
        return np.empty(0)
    # Each block's start is rounded by itself, so blocks do not drift.
    starts = np.arange(1 + int((audio.num_samples - block) / (HOP_S * rate) + 1e-9))
    starts = np.rint(starts * (HOP_S * rate)).astype(np.int64)
    starts = starts[starts + block <= audio.num_samples]
    summed = np.zeros(audio.num_samples + 1)
    for channel in audio.samples:
        weighted = sosfilt(_k_weighting(rate), channel.astype(np.float64))
        summed[1:] += np.square(weighted, out=weighted)
    np.cumsum(summed, out=summed)
    # Rounding may make the difference of two sums negative.
    return np.maximum(summed[starts + block] - summed[starts], 0.0) / block


@lru_cache(maxsize=32)
def _k_weighting(rate_hz: int) -> np.ndarray:
    """Return the K-weighting filter of BS.1770 as second-order sections."""
    frequency, gain_db, quality = _SHELF
    k = math.tan(math.pi * frequency / rate_hz)
    high = 10 ** (gain_db / 20)
    band = high**0.4996667741545416
    a0 = 1 + k / quality + k * k
    shelf = [
        (high + band * k / quality + k * k) / a0,
        2 * (k * k - high) / a0,
        (high - band * k / quality + k * k) / a0,
        1.0,
        2 * (k * k - 1) / a0,
        (1 - k / quality + k * k) / a0,
    ]
    frequency, quality = _HIGH_PASS
    k = math.tan(math.pi * frequency / rate_hz)
    a0 = 1 + k / quality + k * k
    return np.array([shelf, [1.0, -2.0, 1.0, 1.0, 2 * (k * k - 1) / a0, (1 - k / quality + k * k) / a0]])

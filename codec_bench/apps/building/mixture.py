"""Mixing two sounds: excerpts, gains by measured loudness, offsets, and one scale for both so that nothing is clipped.

Conventions
    All sounds are one channel `(samples,)` of float32 at one rate.
    A gap is the loudness of the first sound less that of the second, in LU. An offset is the time at which the second sound
    begins less that of the first, in seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from codec_bench.audio.loudness import loudness_lufs
from codec_bench.types import Audio

LOWEST_LUFS = -60.0
"""A sound below this loudness would be raised so much that what is heard is its noise."""


class CannotMix(Exception):
    """Two sounds cannot be mixed; the message is a reason that the funnel counts, and `step` is where it came up."""

    def __init__(self, step: str, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.step, self.reason, self.detail = step, reason, detail


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Two sounds that were mixed.

    Args:
        samples: the mixture `(samples,)`.
        first, second: the two sounds as they stand in it, each from its own beginning.
        first_lufs, second_lufs: their loudness there, as measured after all scaling.
        offset_s: as the conventions say, as it came out in whole samples.
        overlap_s: for how long both are heard.
        gains_db: what the two sounds were scaled by, in dB.
        peak_dbfs: the highest sample of the mixture.
    """

    samples: np.ndarray
    first: np.ndarray
    second: np.ndarray
    first_lufs: float
    second_lufs: float
    offset_s: float
    overlap_s: float
    gains_db: tuple[float, float]
    peak_dbfs: float

    @property
    def gap_db(self) -> float:
        """By how much the first sound is louder than the second, as measured."""
        return self.first_lufs - self.second_lufs


def excerpt(signal: np.ndarray, start: int, length: int, fade: int) -> np.ndarray:
    """A part of a signal whose ends are faded.

    Args:
        signal: float32 `(samples,)`. start, length: in samples. fade: samples of each faded end; a raised cosine.
    """
    part = np.array(signal[start : start + length], np.float32)
    fade = min(fade, part.size // 2)
    if fade:
        ramp = (0.5 - 0.5 * np.cos(np.pi * (np.arange(fade) + 0.5) / fade)).astype(np.float32)
        part[:fade] *= ramp
        part[-fade:] *= ramp[::-1]
    return part


def mix(
    first: np.ndarray,
    second: np.ndarray,
    rate_hz: int,
    *,
    gap_db: float,
    offset_samples: int,
    mean_lufs: float,
    peak_dbfs: float,
) -> Mixture:
    """Mixes two sounds.

    Args:
        first, second: the sounds `(samples,)`.
        rate_hz: of both.
        gap_db: the gap that is wanted.
        offset_samples: where the second sound begins, from the beginning of the first; negative if it begins before.
        mean_lufs: the mean of the two loudnesses, before the peak is looked at.
        peak_dbfs: if the mixture's highest sample is above this, both sounds are scaled down together.

    Raises:
        CannotMix: a sound has no loudness, or too little of it.
    """
    levels = [_level(sound, rate_hz, which) for sound, which in ((first, "first"), (second, "second"))]
    gains_db = [mean_lufs + gap_db / 2 - levels[0], mean_lufs - gap_db / 2 - levels[1]]
    begins = (max(0, -offset_samples), max(0, offset_samples))
    parts = [first * np.float32(_factor(gains_db[0])), second * np.float32(_factor(gains_db[1]))]
    whole = np.zeros(max(begin + part.size for begin, part in zip(begins, parts)), np.float32)
    for begin, part in zip(begins, parts):
        whole[begin : begin + part.size] += part
    peak = float(np.abs(whole).max())
    scale_db = min(0.0, peak_dbfs - 20 * math.log10(peak))
    scale = np.float32(_factor(scale_db))
    parts, whole = [part * scale for part in parts], whole * scale
    ends = [begin + part.size for begin, part in zip(begins, parts)]
    return Mixture(
        samples=whole,
        first=parts[0],
        second=parts[1],
        first_lufs=_level(parts[0], rate_hz, "first"),
        second_lufs=_level(parts[1], rate_hz, "second"),
        offset_s=offset_samples / rate_hz,
        overlap_s=max(0, min(ends) - max(begins)) / rate_hz,
        gains_db=(gains_db[0] + scale_db, gains_db[1] + scale_db),
        peak_dbfs=20 * math.log10(float(np.abs(whole).max())),
    )


def _factor(gain_db: float) -> float:
    return float(10 ** (gain_db / 20))


def _level(sound: np.ndarray, rate_hz: int, which: str) -> float:
    level = loudness_lufs(Audio(sound, rate_hz))
    if level is None:
        raise CannotMix("loudness", "a sound is silent or too short to have a loudness", f"the {which} sound")
    if level < LOWEST_LUFS:
        raise CannotMix("loudness", "a sound is too quiet to be raised", f"the {which} sound has {level:.1f} LUFS")
    return level


def place(overlap: str, lengths: tuple[int, int], first_ahead: bool, random: np.random.Generator, pause: int) -> int:
    """Draws where the second sound begins, from the beginning of the first, in samples.

    Args:
        overlap: `none`, `partial` or `full`.
        lengths: of the two sounds, in samples.
        first_ahead: whether the first sound begins first. With `full`, the longer one does.
        random: where the draw comes from.
        pause: samples between the sounds where they do not overlap.

    Raises:
        CannotMix: the sounds are too short to overlap in part.
    """
    if overlap == "full":
        first_ahead = lengths[0] >= lengths[1]
    earlier, later = lengths if first_ahead else lengths[::-1]
    if overlap == "none":
        offset = earlier + pause
    elif overlap == "full":
        offset = int(random.integers(0, earlier - later + 1))
    else:
        # The later sound begins while the earlier one is heard, and ends after it.
        low, high = max(1, earlier - later + 1), earlier - 1
        if low > high:
            raise CannotMix("overlap", "the sounds are too short to overlap in part")
        offset = int(random.integers(low, high + 1))
    return offset if first_ahead else -offset

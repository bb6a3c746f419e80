"""What a recording holds, judged by levels alone: how much silence lies around its sound, and up to which frequency there is any.

It is looked at while files are read, so it is cheap: levels of frames, and the spectrum of a few frames that are spread over the sound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from codec_bench.audio.following import levels_db

SILENT_DB = 40.0
"""Frames so much below the loudest frame are silent."""
EMPTY_DB = 70.0
"""A frequency so much below the strongest one, in every frame that is looked at, holds nothing."""
_FRAMES, _SIZE = 16, 1024
_WINDOW, _PLACES = np.hanning(_SIZE).astype(np.float32), np.arange(_SIZE)
_QUIETEST = 2.5 / 32768


class Content(NamedTuple):
    """What a recording holds.

    Args:
        around_s: seconds of silence before and after the sound. sound_s: the other seconds.
        top_hz: the highest frequency that holds any sound.
    """

    around_s: float
    sound_s: float
    top_hz: float


def content_of(signal: np.ndarray, rate_hz: int) -> Content | None:
    """What a signal holds; None for one that is silent, or shorter than 0.1 s.

    Args:
        signal: float32 `(samples,)`. rate_hz: its rate.

    Examples:
        >>> rate = 48_000
        >>> tone = np.sin(2 * np.pi * 3000 * np.arange(2 * rate) / rate, dtype=np.float32)
        >>> found = content_of(np.pad(tone, 3 * rate), rate)
        >>> round(found.around_s, 1), round(found.sound_s, 1), round(found.top_hz / 1000)
        (6.0, 2.0, 3)
    """
    levels = levels_db(signal, rate_hz)
    if levels.size < 5 or np.ptp(signal) < 2 * _QUIETEST:
        return None
    heard = np.flatnonzero(levels > levels.max() - SILENT_DB)
    frame_s = signal.size / rate_hz / levels.size
    sound_s = float(heard[-1] - heard[0] + 1) * frame_s
    return Content(signal.size / rate_hz - sound_s, sound_s, _top_hz(signal, rate_hz, levels))


def _top_hz(signal: np.ndarray, rate_hz: int, levels: np.ndarray) -> float:
    """The highest frequency that is less than `EMPTY_DB` below the strongest, over the loudest frames and some of the others."""
    hop = signal.size / levels.size
    order = np.argsort(-levels)[: max(1, levels.size // 2)]
    chosen = order[np.linspace(0, order.size - 1, min(_FRAMES, order.size)).astype(int)]
    starts = np.clip((chosen * hop).astype(int), 0, max(0, signal.size - _SIZE))
    whole = signal if signal.size >= _SIZE else np.resize(signal, _SIZE)
    frames = whole[starts[:, None] + _PLACES]
    found = np.fft.rfft(frames * _WINDOW)
    strongest = (found.real**2 + found.imag**2).max(axis=0)
    return float(np.flatnonzero(strongest > strongest.max() / 10 ** (EMPTY_DB / 10))[-1]) * rate_hz / _SIZE

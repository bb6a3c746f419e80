"""A recording's silence and bandwidth, judged cheaply by levels and a few spectra."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from codec_bench.audio.level_checks import all_silent

SILENT_DB = 40.0
"""Frames so far below the loudest one are silent."""
EMPTY_DB = 70.0
"""A frequency so far below the strongest one, in every examined frame, is empty."""
_FRAMES, _SIZE = 10, 1024
_WINDOW = np.hanning(_SIZE).astype(np.float32)


class Content(NamedTuple):
    """The content of a recording.

    Args:
        around_s: seconds of silence before and after the audio. sound_s: the other seconds.
        top_hz: the highest non-empty frequency.
    """

    around_s: float
    sound_s: float
    top_hz: float


def content_of(signal: np.ndarray, rate_hz: int, levels: np.ndarray) -> Content | None:
    """Return the content of a signal; None if it is silent, or shorter than 0.1 s.

    Args:
        signal: float32 `(samples,)`. levels: of its frames, by `level_checks.loudest_levels`.

    Examples:
        >>> from codec_bench import Audio
        >>> from codec_bench.audio.level_checks import channel_peaks, loudest_levels
        >>> rate = 48_000
        >>> tone = np.sin(2 * np.pi * 3000 * np.arange(2 * rate) / rate, dtype=np.float32)
        >>> sound = Audio(np.pad(tone, 3 * rate), rate)
        >>> found = content_of(sound.samples[0], rate, loudest_levels(sound, channel_peaks(sound.samples)))
        >>> round(found.around_s, 1), round(found.sound_s, 1), round(found.top_hz / 1000)
        (6.0, 2.0, 3)
    """
    if levels.size < 5 or all_silent(levels):
        return None
    loud = np.flatnonzero(levels > levels.max() - SILENT_DB)
    sound_s = float(loud[-1] - loud[0] + 1) * signal.size / levels.size / rate_hz
    return Content(signal.size / rate_hz - sound_s, sound_s, _top_hz(signal, rate_hz, levels))


def _top_hz(signal: np.ndarray, rate_hz: int, levels: np.ndarray) -> float:
    """Estimate the highest audible frequency in the loudest frames."""
    order = np.argsort(-levels)[: max(1, levels.size // 2)]
    count = min(_FRAMES, order.size)
    chosen = order[np.arange(count) * (order.size - 1) // max(1, count - 1)]
    looped = signal if signal.size >= _SIZE else np.resize(signal, _SIZE)
    starts = np.minimum(chosen * signal.size // levels.size, looped.size - _SIZE)
    frames = np.array([looped[start : start + _SIZE] for start in starts.tolist()])
    spectra = np.fft.rfft(frames * _WINDOW)
    strongest = (spectra.real**2 + spectra.imag**2).max(axis=0)
    return float(np.flatnonzero(strongest >= strongest.max() / 10 ** (EMPTY_DB / 10))[-1]) * rate_hz / _SIZE

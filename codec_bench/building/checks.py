"""Checks of a spoken text: its length, silence and clipping, and whether recognisers read back what was meant."""

from __future__ import annotations

import numpy as np

from codec_bench.audio.loudness import loudness_lufs
from codec_bench.audio.resample import mono
from codec_bench.building.item import Dropped, Failure
from codec_bench.building.recipe import Checks
from codec_bench.types import Audio

FRAME_S = 0.02
SILENCE_DB = -40.0
"""A frame is silent if its power is this far below the mean power of the sound."""
FULL_SCALE = 32_767 / 32_768


def longest_pause_s(audio: Audio) -> float:
    """The longest run of silent frames, those at the ends included."""
    signal = mono(audio.samples).astype(np.float64)
    frame = max(1, round(FRAME_S * audio.sample_rate_hz))
    powers = (signal[: signal.size // frame * frame].reshape(-1, frame) ** 2).mean(axis=1)
    silent = powers <= powers.mean() * 10 ** (SILENCE_DB / 10) if powers.size else np.ones(0, bool)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], silent.astype(np.int8), [0]])))
    return float((edges[1::2] - edges[::2]).max(initial=0)) * frame / audio.sample_rate_hz


def check_sound(audio: Audio, checks: Checks) -> None:
    """Checks what needs no recogniser.

    Raises:
        Dropped: at the step `sound`.
    """
    clipped = float((np.abs(audio.samples) >= FULL_SCALE).mean()) if audio.num_samples else 0.0
    problems = (
        (audio.duration_s < checks.least_s, "the sound is too short", f"{audio.duration_s:.2f} s"),
        (audio.duration_s > checks.most_s, "the sound is too long", f"{audio.duration_s:.2f} s"),
        (clipped > checks.most_clipped, "the sound is clipped", f"{100 * clipped:.2f} % of the samples"),
    )
    for wrong, reason, detail in problems:
        if wrong:
            raise Dropped(Failure("sound", reason, detail))
    if loudness_lufs(audio) is None:
        raise Dropped(Failure("sound", "the sound is silent"))
    if (pause := longest_pause_s(audio)) > checks.most_silence_s:
        raise Dropped(Failure("sound", "the sound has a long pause", f"{pause:.2f} s"))


def normalised(audio: Audio, loudness: float, peak_dbfs: float) -> tuple[Audio, float]:
    """The sound at a loudness, or as near to it as its peak allows.

    Returns:
        The sound, and its loudness in LUFS as measured.

    Raises:
        Dropped: at the step `sound`; it has no loudness.
    """
    level = loudness_lufs(audio)
    peak = float(np.abs(audio.samples).max(initial=0.0))
    if level is None or not peak:
        raise Dropped(Failure("sound", "the sound is silent"))
    gain = min(10 ** ((loudness - level) / 20), 10 ** (peak_dbfs / 20) / peak)
    scaled = Audio(audio.samples * np.float32(gain), audio.sample_rate_hz)
    measured = loudness_lufs(scaled)
    if measured is None:
        raise Dropped(Failure("sound", "the sound is too quiet to be normalised"))
    return scaled, measured

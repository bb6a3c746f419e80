"""Checks of spoken audio (length, rate, silence, clipping), and loudness."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.apps.building.item import TryError
from codec_bench.apps.building.recipe_spoken import AudioLimits
from codec_bench.audio.loudness import loudness_lufs
from codec_bench.audio.resample import mono, to_signal
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio

FRAME_S = 0.02
SILENCE_DB = -40.0
"""A frame is silent if its power is this far below the mean power of the audio."""
FULL_SCALE = 32_767 / 32_768
QUIETEST = 0.5 / 32_768
"""Half a step of 16-bit samples; lower values are zero in a file."""


def longest_pause_s(audio: Audio) -> float:
    """Return the longest silence in seconds; silence at the start and end counts."""
    signal = mono(audio.samples).astype(np.float64)
    frame = max(1, round(FRAME_S * audio.sample_rate_hz))
    powers = (signal[: signal.size // frame * frame].reshape(-1, frame) ** 2).mean(axis=1)
    silent = powers <= powers.mean() * 10 ** (SILENCE_DB / 10) if powers.size else np.ones(0, bool)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], silent.astype(np.int8), [0]])))
    return float((edges[1::2] - edges[::2]).max(initial=0)) * frame / audio.sample_rate_hz


def check_sound(audio: Audio, limits: AudioLimits, *, step: str = "sound", subject: str = "sound") -> None:
    """Check sample rate, length, clipping, silence and pauses.

    Args:
        step: the step of the build that counts a failure.
        subject: `sound`, `stem` or `recording`, for the message.

    Raises:
        TryError: a limit is not met.
    """
    seconds = f"{audio.duration_s:.2f} s"
    rate, least = audio.sample_rate_hz, limits.least_rate_hz
    if rate < least:
        detail = Diagnostic("sample_rate_expected", rate_hz=rate, least_hz=least)
        raise TryError(step, Diagnostic("sound_low_rate", subject=subject), detail)
    for wrong, reason in ((audio.duration_s < limits.least_s, "short"), (audio.duration_s > limits.most_s, "long")):
        if wrong:
            raise TryError(step, Diagnostic(f"sound_too_{reason}", subject=subject), seconds)
    check_part(audio, limits, step=step, subject=subject)
    if loudness_lufs(as_mono(audio)) is None:
        raise TryError(step, Diagnostic("sound_silent", subject=subject))
    if (pause := longest_pause_s(audio)) > limits.most_silence_s:
        raise TryError(step, Diagnostic("sound_long_pause", subject=subject), f"{pause:.2f} s")


def check_part(audio: Audio, limits: AudioLimits, *, step: str = "sound", subject: str = "sound") -> None:
    """Check one segment for clipping and silence only; raises TryError.

    Args:
        step, subject: as in `check_sound`.
    """
    levels = np.abs(audio.samples)
    clipped = float((levels >= FULL_SCALE).mean()) if audio.num_samples else 0.0
    if clipped > limits.most_clipped:
        detail = Diagnostic("clipped_share", percent=100 * clipped)
        raise TryError(step, Diagnostic("sound_clipped", subject=subject), detail)
    if not audio.num_samples or float(levels.max()) < QUIETEST:
        raise TryError(step, Diagnostic("sound_silent", subject=subject))


def as_mono(audio: Audio) -> Audio:
    """Average the channels."""
    return audio if audio.channels == 1 else Audio(mono(audio.samples)[None], audio.sample_rate_hz)


def join_sounds(parts: Sequence[Audio], pauses_s: Sequence[float], rate_hz: int) -> Audio:
    """Concatenate audio of any rates in one channel, with a pause between neighbours."""
    pieces: list[np.ndarray] = []
    for number, segment in enumerate(parts):
        if number:
            pieces.append(np.zeros(round(pauses_s[number - 1] * rate_hz), np.float32))
        pieces.append(to_signal(segment, rate_hz))
    return Audio(np.concatenate(pieces)[None], rate_hz)


def level_sounds(parts: Sequence[Audio], loudness: float, peak_dbfs: float) -> list[Audio]:
    """Scale all parts of one voice by one gain, to a loudness in LUFS over all parts.

    Raises:
        TryError: at the step `sound`; they are silent, or together too short to measure.
    """
    full = join_sounds(parts, [0.0] * (len(parts) - 1), parts[0].sample_rate_hz)
    gain = _gain(full, loudness, peak_dbfs)
    return [Audio(segment.samples * np.float32(gain), segment.sample_rate_hz) for segment in parts]


def normalise_loudness(audio: Audio, loudness: float, peak_dbfs: float) -> tuple[Audio, float]:
    """Scale audio to LUFS within a peak limit; return it and the loudness reached."""
    scaled = Audio(audio.samples * np.float32(_gain(audio, loudness, peak_dbfs)), audio.sample_rate_hz)
    measured = loudness_lufs(scaled)
    if measured is None:
        raise TryError("sound", Diagnostic("too_quiet_to_normalise"))
    return scaled, measured


def _gain(audio: Audio, loudness: float, peak_dbfs: float) -> float:
    """Return the factor that brings audio to `loudness` (LUFS), within the peak limit.

    Raises:
        TryError: it is silent or too short to measure.
    """
    level = loudness_lufs(audio)
    peak = float(np.abs(audio.samples).max(initial=0.0))
    if level is None or not peak:
        raise TryError("sound", Diagnostic("no_loudness"), f"{audio.duration_s:.2f} s")
    return min(10 ** ((loudness - level) / 20), 10 ** (peak_dbfs / 20) / peak)

"""Checks of the sound of a spoken text: its length, rate, silence and clipping; and bringing it to one loudness."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.apps.building.item import Dropped, Failure
from codec_bench.apps.building.recipe_spoken import Limits
from codec_bench.audio.loudness import loudness_lufs
from codec_bench.audio.resample import mono, to_signal
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio

FRAME_S = 0.02
SILENCE_DB = -40.0
"""A frame is silent if its power is this far below the mean power of the sound."""
FULL_SCALE = 32_767 / 32_768
QUIETEST = 0.5 / 32_768
"""What lies below half a step of 16-bit samples is zero in a file."""


def longest_pause_s(audio: Audio) -> float:
    """The longest run of silent frames, those at the ends included."""
    signal = mono(audio.samples).astype(np.float64)
    frame = max(1, round(FRAME_S * audio.sample_rate_hz))
    powers = (signal[: signal.size // frame * frame].reshape(-1, frame) ** 2).mean(axis=1)
    silent = powers <= powers.mean() * 10 ** (SILENCE_DB / 10) if powers.size else np.ones(0, bool)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], silent.astype(np.int8), [0]])))
    return float((edges[1::2] - edges[::2]).max(initial=0)) * frame / audio.sample_rate_hz


def check_sound(audio: Audio, limits: Limits, *, step: str = "sound", subject: str = "sound") -> None:
    """Checks what needs no recogniser.

    Args:
        audio: one channel or more. limits: what it must fulfil. step: where a failure counts. subject: what the sound
            is: `sound`, `stem` or `recording`.

    Raises:
        Dropped: at the step.
    """
    seconds = f"{audio.duration_s:.2f} s"
    rate, least = audio.sample_rate_hz, limits.least_rate_hz
    if rate < least:
        raise Dropped(
            Failure(step, Diagnostic("sound_low_rate", subject=subject), f"{rate} Hz; expected at least {least} Hz")
        )
    for wrong, reason in ((audio.duration_s < limits.least_s, "short"), (audio.duration_s > limits.most_s, "long")):
        if wrong:
            raise Dropped(Failure(step, Diagnostic(f"sound_too_{reason}", subject=subject), seconds))
    check_part(audio, limits, step=step, subject=subject)
    if loudness_lufs(as_mono(audio)) is None:
        raise Dropped(Failure(step, Diagnostic("sound_silent", subject=subject)))
    if (pause := longest_pause_s(audio)) > limits.most_silence_s:
        raise Dropped(Failure(step, Diagnostic("sound_long_pause", subject=subject), f"{pause:.2f} s"))


def check_part(audio: Audio, limits: Limits, *, step: str = "sound", subject: str = "sound") -> None:
    """Checks what also holds for a part that is shorter than a loudness can be measured: that it is neither clipped nor
    silent.

    Raises:
        Dropped: at the step.
    """
    levels = np.abs(audio.samples)
    clipped = float((levels >= FULL_SCALE).mean()) if audio.num_samples else 0.0
    if clipped > limits.most_clipped:
        raise Dropped(
            Failure(step, Diagnostic("sound_clipped", subject=subject), f"{100 * clipped:.2f} % of the samples")
        )
    if not audio.num_samples or float(levels.max()) < QUIETEST:
        raise Dropped(Failure(step, Diagnostic("sound_silent", subject=subject)))


def as_mono(audio: Audio) -> Audio:
    """The mean of the channels, which is what all parts of an item are joined in."""
    return audio if audio.channels == 1 else Audio(mono(audio.samples)[None], audio.sample_rate_hz)


def join_sounds(parts: Sequence[Audio], pauses_s: Sequence[float], rate_hz: int) -> Audio:
    """Sounds one after the other in one channel, with a pause behind each but the last one.

    Args:
        parts: at any rates. pauses_s: one for each two neighbours. rate_hz: of the result.
    """
    pieces: list[np.ndarray] = []
    for number, segment in enumerate(parts):
        if number:
            pieces.append(np.zeros(round(pauses_s[number - 1] * rate_hz), np.float32))
        pieces.append(to_signal(segment, rate_hz))
    return Audio(np.concatenate(pieces)[None], rate_hz)


def level_sounds(parts: Sequence[Audio], loudness: float, peak_dbfs: float) -> list[Audio]:
    """Parts of one voice, all scaled by one gain, so that they have a loudness together, or as near to it as their peak
    allows.

    Raises:
        Dropped: at the step `sound`; they are silent, or together shorter than a loudness can be measured.
    """
    full = join_sounds(parts, [0.0] * (len(parts) - 1), parts[0].sample_rate_hz)
    gain = _gain(full, loudness, peak_dbfs)
    return [Audio(segment.samples * np.float32(gain), segment.sample_rate_hz) for segment in parts]


def normalised(audio: Audio, loudness: float, peak_dbfs: float) -> tuple[Audio, float]:
    """The sound at a loudness, or as near to it as its peak allows.

    Returns:
        The sound, and its loudness in LUFS as measured.

    Raises:
        Dropped: at the step `sound`; it has no loudness.
    """
    scaled = Audio(audio.samples * np.float32(_gain(audio, loudness, peak_dbfs)), audio.sample_rate_hz)
    measured = loudness_lufs(scaled)
    if measured is None:
        raise Dropped(Failure("sound", Diagnostic("too_quiet_to_normalise")))
    return scaled, measured


def _gain(audio: Audio, loudness: float, peak_dbfs: float) -> float:
    level = loudness_lufs(audio)
    peak = float(np.abs(audio.samples).max(initial=0.0))
    if level is None or not peak:
        raise Dropped(Failure("sound", Diagnostic("no_loudness"), f"{audio.duration_s:.2f} s"))
    return min(10 ** ((loudness - level) / 20), 10 ** (peak_dbfs / 20) / peak)

"""Whether a sound is silent, and whether an estimate holds what its reference says, judged by levels alone.

It is no measure of quality. It finds estimates of which a measure's value says nothing of a codec: half of the sound is not there, or
it is another utterance, or noise. Coded speech follows the levels of its reference at any bitrate.
"""

from __future__ import annotations

import numpy as np

from codec_bench.types import Audio

FRAME_S = 0.02
SILENT_DBFS = -70.0
"""A sound of which no frame is louder is silent: a codec that is given nothing gives back a few steps of 16 bits."""
LEAST_SHARE = 0.6
"""An estimate that was made elsewhere lacks speech if so little of it is loud, beside the share of its reference that is."""
SPEECH_DB = 25.0
"""Frames of the reference are looked at for what is missing if they are so much below its loud frames, at most."""
MISSING_DB = 25.0
"""A frame is missing if the estimate lies so much below the reference, apart from one gain for the whole item."""
MISSING_SHARE = 0.25
"""An estimate in which a larger share of those frames is missing is not what the reference says."""
LEAST_CORRELATION = 0.6
"""An estimate whose levels correlate less with the reference's does not follow it."""
SAME_WAVEFORM = 0.25
"""An estimate whose waveform correlates with the reference's is that sound, however coarse: its pauses may be full of noise."""
_FLOOR_DB = 50.0
_STEADY_DB = 5.0
_FEWEST = 8
_FEWEST_TO_FOLLOW = 15  # of 366 codings of clips of 0.16 to 0.3 s, 2 follow by less
_FEWEST_OF_SHARE = 50
MISSING, LACKING, NOT_FOLLOWING = "partial", "lacking", "unlike"
"""In which ways an estimate is not what its reference says; `store.rows.NO_SPEECH` says it in words."""


def is_silent(audio: Audio) -> bool:
    """Whether no frame of any channel is louder than `SILENT_DBFS`, without a constant part. A sound below a frame is one frame."""
    rate = audio.sample_rate_hz
    shortest = round(FRAME_S * rate)
    for one in (channel for channel in audio.samples if channel.size):
        turning = one - one.mean(dtype=np.float64).astype(np.float32)
        if levels_db(turning if one.size >= shortest else np.resize(turning, shortest), rate).max() > SILENT_DBFS:
            return False
    return True


def lacks_speech(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> str | None:
    """`LACKING` if much less of an estimate is loud than of its reference, wherever in it that is; else None.

    It does not ask that the estimate follows the reference, which may say another text. None also for what is shorter than a second.

    Args:
        reference, estimate: float32 `(samples,)`. rate_hz: of both.
    """
    levels = [levels_db(signal, rate_hz) for signal in (reference, estimate)]
    if min(one.size for one in levels) < _FEWEST_OF_SHARE:
        return None
    wanted, given = (float(np.mean(one > np.percentile(one, 95) - SPEECH_DB)) for one in levels)
    return LACKING if given < LEAST_SHARE * wanted else None


def unlike(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> str | None:
    """In which way an estimate is not what its reference says, or None. None also for what is shorter than 0.16 s.

    What is shorter than 0.3 s has too few levels to be followed, and is looked at for missing speech alone.

    Args:
        reference, estimate: float32 `(samples,)`. What one is longer than the other is left out.
        rate_hz: of both.
    """
    size = min(reference.size, estimate.size)
    of_reference, of_estimate = (levels_db(signal[:size], rate_hz) for signal in (reference, estimate))
    if of_reference.size < _FEWEST:
        return None
    loud = np.percentile(of_reference, 95)
    speech = of_reference > loud - SPEECH_DB
    change = (of_estimate - of_reference)[speech]
    if np.mean(change < min(np.percentile(change, 90), 0.0) - MISSING_DB) > MISSING_SHARE:
        return MISSING
    heard = np.maximum(of_reference, loud - _FLOOR_DB)
    given = np.maximum(of_estimate, np.percentile(of_estimate, 95) - _FLOOR_DB)
    if heard.size < _FEWEST_TO_FOLLOW or heard.std() < _STEADY_DB:  # a steady sound has no levels to follow
        return None
    if (
        _correlation(heard, given) >= LEAST_CORRELATION
        or abs(_correlation(reference[:size], estimate[:size])) >= SAME_WAVEFORM
    ):
        return None
    return NOT_FOLLOWING


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Pearson's, and 0 where one of them does not vary."""
    spread = float(one.std()) * float(other.std())
    return (float(np.dot(one, other)) / one.size - float(one.mean()) * float(other.mean())) / spread if spread else 0.0


def levels_db(signal: np.ndarray, rate_hz: int) -> np.ndarray:
    """The level of each whole frame, without a constant part of the signal."""
    frame = round(FRAME_S * rate_hz)
    frames = signal[: signal.size // frame * frame].reshape(-1, frame)
    mean = float(signal.mean()) if signal.size else 0.0
    power = np.einsum("ij,ij->i", frames, frames) / frame - mean * (2 * frames.mean(axis=1) - mean)
    return 10 * np.log10(np.maximum(power, 1e-12))

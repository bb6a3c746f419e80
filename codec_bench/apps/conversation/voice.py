"""Change of a model's voice after an interruption, by Full-Duplex-Bench 1.5.

The track is cut at the word in which the event ends, or the next one; the third part is the same conversation without
the event. Of the joined speech by silero-vad (0.5; stretches of 60 ms, silences of 50 ms) it measures Praat's pitch (50
to 600 Hz) and intensity every 10 ms, UTMOSv2, and words per minute. Unvoiced or short parts have no value; theirs have
0 or another scale. Reference implementation: `evaluation/eval_general_before_after.py` of
DanielLin94144/Full-Duplex-Bench; equal on own cases except UTMOSv2, which is unseeded there (paper: arXiv 2507.23159).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.apps.conversation.full_duplex import Word, read_words
from codec_bench.apps.conversation.measures import OFFICIAL_15, VOICE, Value
from codec_bench.apps.conversation.script import Conversation
from codec_bench.apps.conversation.session import Session
from codec_bench.audio.resample import resample
from codec_bench.features import Unavailable, load_feature
from codec_bench.features.speech_activity import RATE_HZ, stretches
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import UserError, optional_package

MIN_SPEECH_MS, MIN_SILENCE_MS = 60, 50
STEP_S, FLOOR_HZ, CEILING_HZ, FLOOR_DB = 0.01, 50.0, 600.0, -200.0
TRIMMED = 0.05


def voice(
    session: Session, folder: Path, talk: Conversation | None, sessions: Mapping[str, Session]
) -> Iterator[Value]:
    """Yield speech rate, pitch, intensity and UTMOSv2 before and after an event.

    They are also measured in the session without the event, if `sessions` has it.
    """
    words = read_words(folder) if session.status == "ok" and talk is not None and talk.clean is not None else None
    if talk is None or talk.clean is None or words is None:
        return
    signal = _signal(session)
    event_s = talk.said[-1].end_s
    cut_s = min(max(0.0, cut_at(event_s, words)), signal.size / RATE_HZ)
    at = round(cut_s * RATE_HZ)
    before, after = [w for w in words if w[1] <= cut_s], [w for w in words if w[1] > cut_s]
    parts = {"pre": (signal[:at], before), "post": (signal[at:], after)}
    clean, folder_of = sessions.get(talk.clean), folder.parent / talk.clean
    if clean is not None and clean.status == "ok" and (theirs := read_words(folder_of)) is not None:
        parts["clean"] = (_signal(clean), theirs)
    for stretch, (samples, words_of) in parts.items():
        for name, result in _measure_part(samples, words_of).items():
            value, reason = (None, result) if isinstance(result, str) else (result, "")
            yield Value(session.id, 0, f"{OFFICIAL_15}/{stretch}/{name}", value, cut_s, reason)


def cut_at(event_s: float, words: Sequence[Word]) -> float:
    """Return the start of the word where an event ends, or of the next, or `event_s`."""
    ordered = sorted(words, key=lambda word: word[0])
    return next(
        (begin for begin, end in ordered if event_s < end or event_s < begin), ordered[-1][1] if ordered else event_s
    )


def words_per_minute(words: Sequence[Word]) -> float:
    """Return words a minute from the first to the last; 0 without words."""
    spoken_s = words[-1][1] - words[0][0] if words else 0.0
    return 60 * len(words) / spoken_s if spoken_s > 0 else 0.0


def speech_alone(signal: np.ndarray) -> np.ndarray:
    """Concatenate the speech of a signal `(samples,)` at 16 kHz; without any, all."""
    spans = stretches(signal, MIN_SPEECH_MS, MIN_SILENCE_MS)
    return np.concatenate([signal[begin:end] for begin, end in spans]) if spans else signal


def pitch(signal: np.ndarray) -> tuple[float, float] | str:
    """Return mean and standard deviation of the voiced frames in Hz, or a reason."""

    def of(sound: Any) -> np.ndarray:
        return sound.to_pitch(time_step=STEP_S, pitch_floor=FLOOR_HZ, pitch_ceiling=CEILING_HZ).selected_array[
            "frequency"
        ]

    return _spread(signal, of, lambda hz: (hz > 0) & (hz <= CEILING_HZ), Diagnostic("nothing_voiced"))


def intensity(signal: np.ndarray) -> tuple[float, float] | str:
    """Return mean and standard deviation of Praat's intensity in dB, or a reason."""
    return _spread(signal, lambda sound: sound.to_intensity(time_step=STEP_S).values.T.flatten(),
        lambda db: db > FLOOR_DB, Diagnostic("digitally_silent"))  # fmt: skip


def _spread(signal: np.ndarray, of: Any, mask: Any, otherwise: Diagnostic) -> tuple[float, float] | str:
    """Return mean and standard deviation of a Praat analysis, or a reason.

    Args:
        of, mask: the analysis, and which of its values count.
        otherwise: the reason if none does.
    """
    missing = UserError("needs_parselmouth")
    parselmouth = optional_package("parselmouth", missing)
    try:
        values = of(parselmouth.Sound(signal.astype(np.float64), sampling_frequency=RATE_HZ)).astype(np.float32)
    except parselmouth.PraatError:
        return Diagnostic("too_short_for_praat")
    values = values[mask(values)]
    if not values.size:
        return otherwise
    return float(np.mean(values)), float(np.std(values, ddof=1)) if values.size > 1 else 0.0


def _measure_part(signal: np.ndarray, words: Sequence[Word]) -> dict[str, float | str]:
    """Return the values of one part of a session by name, each a number or a reason."""
    if not signal.size:
        return dict.fromkeys(VOICE, Diagnostic("nothing_of_part"))
    speech = speech_alone(signal)
    results: dict[str, float | str] = {"utmosv2": _mos(speech), "wpm": words_per_minute(words)}
    for name, of in (("pitch", pitch), ("intensity", intensity)):
        try:
            values = of(speech)
        except UserError as error:
            values = error.message
        mean, deviation = (values, values) if isinstance(values, str) else values
        results |= {f"mean_{name}": mean, f"std_{name}": deviation}
    return results


@cache
def _load_utmos() -> Any:
    """Load UTMOSv2, or return a reason."""
    try:
        feature = load_feature("utmosv2")
        feature.load()
        return feature
    except UserError as error:
        return error.message


def release_utmos() -> None:
    """Release UTMOSv2, which the sessions of a run share."""
    _load_utmos.cache_clear()


def _mos(speech: np.ndarray) -> float | str:
    """Return the UTMOSv2 score of speech, or a reason."""
    feature = _load_utmos()
    if isinstance(feature, str):
        return feature
    (score,) = feature.compute([speech])
    return of_error(score) if isinstance(score, Unavailable) else float(score["mos"])


def trimmed_mean(values: Sequence[float]) -> float:
    """Average the values between the 5th and 95th percentile; all if fewer than three."""
    held = np.asarray(values, np.float64)
    if held.size >= 3:
        low, high = np.percentile(held, [100 * TRIMMED, 100 - 100 * TRIMMED])
        held = held[(held >= low) & (held <= high)]
    return float(held.mean())


def _signal(session: Session) -> np.ndarray:
    return resample(session.output.astype(np.float32) / 32768, session.output_rate_hz, RATE_HZ)

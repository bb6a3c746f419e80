"""How a model's voice changes after somebody spoke into its answer, by the rules of Full-Duplex-Bench 1.5.

The model's track is cut in two where the word begins in which the event ends, or the next one; beside the two parts
stands the same conversation without the event. In each part the speech that silero-vad finds (0.5; stretches of 60 ms,
silences of 50 ms) is put together, and measured: pitch (50 to 600 Hz) and intensity by Praat, every 10 ms, as mean and
standard deviation, and UTMOSv2; the rate of words counts from the first word to the last. Where nothing is voiced, or a
part is too short, theirs has 0 or another scale, and here there is no value.

Reference implementation: `evaluation/eval_general_before_after.py` of DanielLin94144/Full-Duplex-Bench, with what
`evaluate.py` gives it; equal on own cases for all but UTMOSv2, which draws there without a seed (paper: arXiv
2507.23159).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.apps.conversation.measures import OFFICIAL_15, VOICE, Value
from codec_bench.apps.conversation.official import Word, read_words
from codec_bench.apps.conversation.script import Conversation
from codec_bench.apps.conversation.session import Session
from codec_bench.audio.resample import resample
from codec_bench.errors import UserError, optional_package
from codec_bench.features import Unavailable, load_feature
from codec_bench.features.speech_activity import RATE_HZ, stretches

MIN_SPEECH_MS, MIN_SILENCE_MS = 60, 50
STEP_S, FLOOR_HZ, CEILING_HZ, FLOOR_DB = 0.01, 50.0, 600.0, -200.0
TRIMMED = 0.05


def voice(
    session: Session, folder: Path, talk: Conversation | None, sessions: Mapping[str, Session]
) -> Iterator[Value]:
    """The values of a session in a recording with an event, of which the words are known.

    Args:
        folder: of the session. talk: its conversation. sessions: all of the system, by id.
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
        for name, result in _measured(samples, words_of).items():
            value, reason = (None, result) if isinstance(result, str) else (result, "")
            yield Value(session.id, 0, f"{OFFICIAL_15}/{stretch}/{name}", value, cut_s, reason)


def cut_at(event_s: float, words: Sequence[Word]) -> float:
    """Where a track is cut: the beginning of the word in which an event ends or of the next one, else the end of the
    last; without words, the event's.
    """
    ordered = sorted(words, key=lambda word: word[0])
    return next(
        (begin for begin, end in ordered if event_s < end or event_s < begin), ordered[-1][1] if ordered else event_s
    )


def words_per_minute(words: Sequence[Word]) -> float:
    """Words in a minute from the beginning of the first to the end of the last; 0 without words."""
    spoken_s = words[-1][1] - words[0][0] if words else 0.0
    return 60 * len(words) / spoken_s if spoken_s > 0 else 0.0


def speech_alone(signal: np.ndarray) -> np.ndarray:
    """The speech of a signal `(samples,)` at 16 kHz, put together; the whole signal if there is none."""
    spans = stretches(signal, MIN_SPEECH_MS, MIN_SILENCE_MS)
    return np.concatenate([signal[begin:end] for begin, end in spans]) if spans else signal


def pitch(signal: np.ndarray) -> tuple[float, float] | str:
    """Mean and standard deviation of the voiced frames in Hz, or why there are none."""

    def of(sound: Any) -> np.ndarray:
        return sound.to_pitch(time_step=STEP_S, pitch_floor=FLOOR_HZ, pitch_ceiling=CEILING_HZ).selected_array[
            "frequency"
        ]

    return _spread(signal, of, lambda hz: (hz > 0) & (hz <= CEILING_HZ), "nothing in it is voiced")


def intensity(signal: np.ndarray) -> tuple[float, float] | str:
    """Mean and standard deviation of Praat's intensity in dB, or why there is none."""
    return _spread(signal, lambda sound: sound.to_intensity(time_step=STEP_S).values.T.flatten(), lambda db: db > FLOOR_DB, "it is silent")  # fmt: skip


def _spread(signal: np.ndarray, of: Any, mask: Any, otherwise: str) -> tuple[float, float] | str:
    parselmouth = optional_package("parselmouth", UserError("pitch and intensity as Full-Duplex-Bench takes them need the package 'praat-parselmouth'"))  # fmt: skip
    try:
        values = of(parselmouth.Sound(signal.astype(np.float64), sampling_frequency=RATE_HZ)).astype(np.float32)
    except parselmouth.PraatError:
        return "it is too short for Praat"
    values = values[mask(values)]
    if not values.size:
        return otherwise
    return float(np.mean(values)), float(np.std(values, ddof=1)) if values.size > 1 else 0.0


def _measured(signal: np.ndarray, words: Sequence[Word]) -> dict[str, float | str]:
    """The values of a part by name, or why there is none."""
    if not signal.size:
        return dict.fromkeys(VOICE, "there is nothing of this part")
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
def _rates() -> Any:
    """The feature of UTMOSv2, or why there is none."""
    try:
        feature = load_feature("utmosv2")
        feature.load()
        return feature
    except UserError as error:
        return error.message


def give_back() -> None:
    """Forgets UTMOSv2, which the sessions of a run share. A process that goes on would hold it for ever."""
    _rates.cache_clear()


def _mos(speech: np.ndarray) -> float | str:
    feature = _rates()
    if isinstance(feature, str):
        return feature
    (score,) = feature.compute([speech])
    return str(score) if isinstance(score, Unavailable) else float(score["mos"])


def trimmed_mean(values: Sequence[float]) -> float:
    """Their mean over sessions: of the values from the 5th to the 95th percentile; of less than three, of all."""
    held = np.asarray(values, np.float64)
    if held.size >= 3:
        low, high = np.percentile(held, [100 * TRIMMED, 100 - 100 * TRIMMED])
        held = held[(held >= low) & (held <= high)]
    return float(held.mean())


def _signal(session: Session) -> np.ndarray:
    return resample(session.heard.astype(np.float32) / 32768, session.heard_hz, RATE_HZ)

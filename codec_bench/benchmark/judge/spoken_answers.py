"""Check a spoken answer before the judge, which may praise silence.

The flag of the verdict (`detail["flag"]`) is counted and shown like other flags.
"""

from __future__ import annotations

import numpy as np

from codec_bench.audio.resample import to_signal
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio

RATE_HZ = 8_000
SHORTEST_S = 0.3
SILENT_DBFS = -70.0
STEADY_DB = 3.0
"""The level of speech varies from frame to frame by much more than this standard deviation, noise by less."""
SAME = 0.9
LONGEST_S = 60.0
"""How much of both sounds is compared."""
FRAME = RATE_HZ // 50
NO_SPOKEN_ANSWER = {
    problem: Diagnostic(f"spoken_answer_{problem}") for problem in ("short", "silent", "steady", "copy")
}
"""Flags of verdicts on sound that is no answer, by kind."""
TOO_SHORT, SILENT, STEADY, COPY = NO_SPOKEN_ANSWER.values()


def warning_of(answer: Audio, question: Audio | None) -> str | None:
    """Warn of a spoken answer that is short, silent, steady or the question's copy.

    Args:
        answer: the sound for the judge.
        question: the sound of the question, or None.

    Returns:
        The warning; None if nothing is wrong.
    """
    if answer.duration_s < SHORTEST_S:
        return TOO_SHORT
    signal = _signal(answer)
    if _level_db(signal[None])[0] < SILENT_DBFS:
        return SILENT
    inner = _level_db(signal[: signal.size // FRAME * FRAME].reshape(-1, FRAME))[1:-1]
    if inner.std() < STEADY_DB:
        return STEADY
    return COPY if question is not None and _likeness(signal, _signal(question)) > SAME else None


def _signal(audio: Audio) -> np.ndarray:
    return to_signal(audio, RATE_HZ)[: int(LONGEST_S * RATE_HZ)].astype(np.float64)


def _level_db(frames: np.ndarray) -> np.ndarray:
    """The level of each frame relative to full scale, `(frames,)`."""
    return 10.0 * np.log10(np.mean(frames**2, axis=1) + 1e-12)


def _likeness(one: np.ndarray, other: np.ndarray) -> float:
    """The largest correlation of the two sounds over all delays, from 0 to 1."""
    size = 1 << (one.size + other.size - 1).bit_length()
    correlation = np.fft.irfft(np.fft.rfft(one, size) * np.conj(np.fft.rfft(other, size)), size)
    energy = np.sqrt(np.sum(one**2) * np.sum(other**2))
    return float(np.abs(correlation).max() / energy) if energy else 0.0

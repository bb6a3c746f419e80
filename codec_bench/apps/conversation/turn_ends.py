"""Detectors of the end of a user's turn, for models of whole turns.

A rule such as `silero-vad:0.7` or `energy:0.7` names the detector, and the seconds without speech that end a turn. Both
are causal.

Speech activity by energy, in windows of 10 ms.
A window is active if its RMS is above a threshold. Silences shorter than `BRIDGED_S` are bridged, then stretches
shorter than `SHORTEST_S` dropped. Ends are at most one window off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from codec_bench.messages.errors import MissingExtra, UserError

RATE_HZ = 16_000
SPEECH_DBFS = -45.0
"""The level of speech for `energy`."""
SILERO_SAMPLES, SILERO_CONTEXT = 512, 64
SILERO_THRESHOLD = 0.5
WINDOW_S = 0.01
THRESHOLD_DBFS = -50.0
"""Of a model's track: streams without speech may hold low noise."""
BELOW_DB, LEAST_DBFS = 40.0, -60.0
"""Of a user's clean audio: relative to its loudest window, and at least this."""
BRIDGED_S, SHORTEST_S = 0.2, 0.05
PROTOCOL = f"energy-10ms/model{THRESHOLD_DBFS:g}dbfs/user-{BELOW_DB:g}db/bridge{BRIDGED_S:g}s/min{SHORTEST_S:g}s/1"

Stretch = tuple[float, float]


class Detector(Protocol):
    """Finds speech in windows of `window_s`."""

    window_s: float

    def push(self, samples: np.ndarray) -> Iterator[bool]:
        """Take samples `(samples,)`; yield for each completed window if it is speech."""


class _Windows:
    """Cuts audio into windows."""

    def __init__(self, size: int) -> None:
        self.size, self.window_s = size, size / RATE_HZ
        self._rest = np.zeros(0, np.float32)

    def complete(self, samples: np.ndarray) -> Iterator[np.ndarray]:
        """Add samples, and yield complete windows; the rest waits."""
        rest = np.concatenate([self._rest, samples])
        count = rest.size // self.size
        self._rest = rest[count * self.size :]
        yield from rest[: count * self.size].reshape(count, self.size)


class Energy(_Windows):
    """Speech is a window of 10 ms above `SPEECH_DBFS`."""

    def __init__(self) -> None:
        super().__init__(round(WINDOW_S * RATE_HZ))

    def push(self, samples: np.ndarray) -> Iterator[bool]:
        """Implement `Detector.push`."""
        for window in self.complete(samples):
            yield bool(levels_dbfs(window, RATE_HZ)[0] > SPEECH_DBFS)


class Silero(_Windows):
    """The stateful network of silero-vad 6 from faster-whisper, in windows of 32 ms.

    Source: https://github.com/snakers4/silero-vad, licence MIT; equal to faster-whisper's own pass over all audio.

    Raises:
        MissingExtra: faster-whisper or onnxruntime is not installed.
    """

    def __init__(self) -> None:
        super().__init__(SILERO_SAMPLES)
        try:
            from faster_whisper.vad import get_vad_model

            self._session = get_vad_model().session
        except (ImportError, RuntimeError) as error:
            raise MissingExtra("silero-vad", "faster-whisper", "asr", "--end-of-turn energy:0.7 needs none") from error
        self._state = [np.zeros((1, 1, 128), np.float32) for _ in range(2)]
        self._before = np.zeros(SILERO_CONTEXT, np.float32)

    def push(self, samples: np.ndarray) -> Iterator[bool]:
        """Implement `Detector.push`."""
        yield from (share >= SILERO_THRESHOLD for share in self.shares(samples))

    def shares(self, samples: np.ndarray) -> Iterator[float]:
        """Yield the probability of speech in every complete window."""
        for window in self.complete(samples):
            block = np.concatenate([self._before, window])[None]
            out, *self._state = self._session.run(None, {"input": block, "h": self._state[0], "c": self._state[1]})
            self._before = window[-SILERO_CONTEXT:]
            yield float(out.ravel()[0])


DETECTORS: dict[str, Callable[[], Detector]] = {"silero-vad": Silero, "energy": Energy}


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How the end of a user's turn is found: a detector, and seconds of silence."""

    name: str
    silence_s: float

    @classmethod
    def parse(cls, text: str) -> TurnEnd:
        """Parse `DETECTOR:SECONDS`; raises UserError for an unknown name or a bad number."""
        name, _, number = text.partition(":")
        try:
            seconds = float(number)
        except ValueError:
            seconds = math.nan
        if name not in DETECTORS or not 0.05 <= seconds <= 10:
            raise UserError(
                "turn_end_rule", rule=text, known=" or ".join(DETECTORS), hint="--end-of-turn silero-vad:0.7"
            )
        return cls(name, seconds)

    def detector(self) -> Detector:
        """Create a detector for one session. Raises as its class."""
        return DETECTORS[self.name]()

    def __str__(self) -> str:
        return f"{self.name}:{self.silence_s:g}"


def levels_dbfs(samples: np.ndarray, rate_hz: int) -> np.ndarray:
    """Compute the RMS of each window in dB of full scale; the last is zero-padded."""
    size = round(WINDOW_S * rate_hz)
    signal = samples.astype(np.float64) / (32768.0 if samples.dtype == np.int16 else 1.0)
    if signal.size % size:
        signal = np.pad(signal, (0, -signal.size % size))
    windows = signal.reshape(-1, size)
    return 10 * np.log10(np.mean(windows**2, axis=1) + 1e-12)


def user_threshold_dbfs(levels: np.ndarray) -> float:
    """Return the threshold of a user's audio."""
    return max(LEAST_DBFS, float(levels.max(initial=-120.0)) - BELOW_DB)


def stretches(active: np.ndarray, *, bridged_s: float = BRIDGED_S) -> list[Stretch]:
    """Return (begin, end) of speech in s, from flags of active windows `(windows,)`.

    Args:
        bridged_s: shorter gaps are bridged.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], active.astype(np.int8), [0]])))
    runs: list[list[int]] = []
    for begin, end in edges.reshape(-1, 2):
        if runs and begin - runs[-1][1] < round(bridged_s / WINDOW_S):
            runs[-1][1] = int(end)
        else:
            runs.append([int(begin), int(end)])
    least = round(SHORTEST_S / WINDOW_S)
    return [(round(a * WINDOW_S, 6), round(b * WINDOW_S, 6)) for a, b in runs if b - a >= least]


def speech_of_model(samples: np.ndarray, rate_hz: int) -> list[Stretch]:
    """Find speech in a model's track."""
    return stretches(levels_dbfs(samples, rate_hz) > THRESHOLD_DBFS)


def speech_of_user(samples: np.ndarray, rate_hz: int) -> list[Stretch]:
    """Find speech in a user's clean audio."""
    levels = levels_dbfs(samples, rate_hz)
    return stretches(levels > user_threshold_dbfs(levels))

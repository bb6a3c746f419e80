"""Detectors of the end of a user's turn, for models of whole turns.

A rule such as `silero-vad:0.7` or `energy:0.7` names the detector, and the seconds without speech that end a turn. Both
are causal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from codec_bench.apps.conversation.activity import WINDOW_S, levels_dbfs
from codec_bench.errors import MissingExtra, UserError

RATE_HZ = 16_000
SPEECH_DBFS = -45.0
"""The level of speech for `energy`."""
SILERO_SAMPLES, SILERO_CONTEXT = 512, 64
SILERO_THRESHOLD = 0.5


class Detector(Protocol):
    """Finds speech in windows of `window_s`."""

    window_s: float

    def push(self, samples: np.ndarray) -> Iterator[bool]:
        """Yield for every complete window of `(samples,)` whether it is speech."""


class _Windows:
    """Cuts audio into windows."""

    def __init__(self, size: int) -> None:
        self.size, self.window_s = size, size / RATE_HZ
        self._rest = np.zeros(0, np.float32)

    def complete(self, samples: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the complete windows."""
        rest = np.concatenate([self._rest, samples])
        count = rest.size // self.size
        self._rest = rest[count * self.size :]
        yield from rest[: count * self.size].reshape(count, self.size)


class Energy(_Windows):
    """Speech is a window of 10 ms above `SPEECH_DBFS`."""

    def __init__(self) -> None:
        super().__init__(round(WINDOW_S * RATE_HZ))

    def push(self, samples: np.ndarray) -> Iterator[bool]:
        """As `Detector.push`."""
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
        """As `Detector.push`."""
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
    """A detector by name, and the silence that ends a turn."""

    name: str
    silence_s: float

    @classmethod
    def parse(cls, text: str) -> TurnEnd:
        """Parse a rule; raises UserError for an unknown name or a bad number."""
        name, _, number = text.partition(":")
        try:
            seconds = float(number)
        except ValueError:
            seconds = math.nan
        if name not in DETECTORS or not 0.05 <= seconds <= 10:
            raise UserError(
                f"the rule for the end of a turn is '{text}'; expected {' or '.join(DETECTORS)}, a colon, and 0.05 to "
                f"10 seconds",
                hint="--end-of-turn silero-vad:0.7",
            )
        return cls(name, seconds)

    def detector(self) -> Detector:
        """Create a detector for one session. Raises as its class."""
        return DETECTORS[self.name]()

    def __str__(self) -> str:
        return f"{self.name}:{self.silence_s:g}"

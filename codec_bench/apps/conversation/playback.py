"""A model's audible output: audio plays on arrival, or after earlier audio.

Audio that was not played before an interruption is discarded. There is no jitter buffer: late audio leaves a gap.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np

from codec_bench.apps.conversation.turn_ends import THRESHOLD_DBFS, WINDOW_S, levels_dbfs


class TooMuch(Exception):
    """The model sent more audio than a session may contain."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A received packet of audio: arrival in s, start and length in samples, answer."""

    at_s: float
    begin: int
    samples: int
    answer: str


@dataclass(slots=True)
class Playback:
    """The model's track as it grows, up to `most_s`.

    Attributes:
        stops: when the rest was discarded, and its planned end.
        end: of everything played or waiting, in samples.
        discarded: the audio discarded at each stop, 16 bits `(samples,)`.
        complete: whether the service reported the end of the last answer.
    """

    rate_hz: int
    most_s: float
    packets: list[Packet] = field(default_factory=list)
    stops: list[tuple[float, float]] = field(default_factory=list)
    discarded: list[np.ndarray] = field(default_factory=list)
    end: int = 0
    complete: bool = False
    answers: int = 0
    _track: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int16))
    _items: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    _listened: int = 0
    _active: list[int] = field(default_factory=list)

    def add(self, at_s: float, samples: np.ndarray, answer: str, item: str) -> None:
        """Append 16-bit audio that came at `at_s`, to play after earlier audio.

        Raises:
            TooMuch: it ends after `most_s`.
        """
        begin = max(self.end, round(at_s * self.rate_hz))
        end = begin + samples.size
        if end > self.most_s * self.rate_hz:
            raise TooMuch
        if end > self._track.size:
            grown = np.zeros(max(end, 2 * self._track.size), np.int16)
            grown[: self._track.size] = self._track
            self._track = grown
        self._track[begin:end] = samples
        self.end, self.complete = end, False
        self.packets.append(Packet(at_s, begin, samples.size, answer or str(self.answers)))
        self._items.setdefault(item, []).append((begin, end))

    def stop(self, at_s: float) -> tuple[str, float] | None:
        """Discard unplayed audio; return the item that played, and its seconds played.

        None if nothing was left to play.
        """
        now = round(at_s * self.rate_hz)
        if now >= self.end:
            return None
        self.stops.append((at_s, self.end / self.rate_hz))
        item, parts = next((name, parts) for name, parts in reversed(self._items.items()) if parts)
        played = sum(max(0, min(end, now) - begin) for begin, end in parts)
        self.discarded.append(self._track[now : self.end].copy())
        self._track[now : self.end] = 0
        self.end = now
        self._items.clear()
        return item, played / self.rate_hz

    def finish(self) -> None:
        """Note that the service has ended an answer."""
        self.complete, self.answers = True, self.answers + 1

    def analyse_until(self, until_s: float) -> None:
        """Detect speech in the audio played up to a time, in session seconds."""
        size, ready = round(WINDOW_S * self.rate_hz), int(until_s / WINDOW_S + 1e-6)
        if ready > self._listened:
            levels = levels_dbfs(self.track(ready * size, self._listened * size), self.rate_hz)
            self._active += (np.flatnonzero(levels > THRESHOLD_DBFS) + self._listened).tolist()
            self._listened = ready

    def first_speech_s(self, after_s: float) -> float | None:
        """Return when speech first plays after `after_s`, in session seconds; or None."""
        index = bisect_left(self._active, round(after_s / WINDOW_S))
        return self._active[index] * WINDOW_S if index < len(self._active) else None

    def last_speech_end_s(self) -> float:
        """Return when the last speech ended, in session seconds; 0 without any."""
        return (self._active[-1] + 1) * WINDOW_S if self._active else 0.0

    def has_ended(self, now_s: float, ends_s: float) -> bool:
        """Whether the current answer has ended, by the service or by silence."""
        is_marked = self.complete and now_s * self.rate_hz >= self.end
        return is_marked or now_s - self.last_speech_end_s() >= ends_s

    def track(self, end: int, begin: int = 0) -> np.ndarray:
        """Return samples from `begin` to `end`, int16 `(samples,)`, with gaps as silence."""
        out = np.zeros(end - begin, np.int16)
        segment = self._track[begin:end]
        out[: segment.size] = segment
        return out

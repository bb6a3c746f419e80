"""The user's side of a session, frame by frame, timed by the answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from codec_bench.apps.conversation.playback import Playback
from codec_bench.apps.conversation.script import ASIDES, NO_ANSWER, Conversation, Event, Script, random_of
from codec_bench.apps.conversation.turn_ends import Stretch, levels_dbfs, speech_of_user, user_threshold_dbfs
from codec_bench.audio.clip import Clip, clip_content
from codec_bench.audio.resample import to_signal
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import AudioError, UserError, first_of

LEAST_LEFT_S = 0.3
"""The model must have spoken this recently for the user to speak into its answer."""
ASIDE_S = 2.5
"""Minimum rest of a session after an aside, in which the model may take it for a turn (`tau_voice.py`)."""


@dataclass(slots=True)
class UserEvent:
    """An event of the script as it happened.

    Args:
        begin_s, end_s: position in the user's track; None with a `reason`, a `Diagnostic`, if it was not spoken.
    """

    kind: str
    begin_s: float | None = None
    end_s: float | None = None
    speech: list[Stretch] = field(default_factory=list)
    pauses: list[Stretch] = field(default_factory=list)
    reason: str = ""


class User(Protocol):
    """The user's side: `track` as sent, `clean` without background, 16-bit."""

    events: list[UserEvent]

    def frame(self, number: int, playback: Playback) -> np.ndarray | None:
        """Return the 16-bit samples of frame `number` (from 0); None after the last one."""

    def tracks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the sent track, and the clean one, 16 bits `(samples,)`."""

    def least_s(self) -> float:
        """Return the minimum seconds sent, whatever the model says."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """The audio of an event: float32 `(samples,)`, with speech and pauses in seconds."""

    samples: np.ndarray
    speech: list[Stretch]
    pauses: list[Stretch]


class Sounds:
    """The sounds of a script at one sample rate, by id of the data or by path."""

    def __init__(self, source: Iterable[Any] | None, folder: Path, rate_hz: int) -> None:
        self.folder, self.rate_hz = folder, rate_hz
        self._ids: Mapping[str, Any] = {sample.id: sample for sample in source or ()}
        self._read: dict[str, np.ndarray] = {}

    def get(self, name: str) -> np.ndarray:
        """Read a sound as one channel of float32, cached. Raises as `read`."""
        if name not in self._read:
            self._read[name] = self.read(name)
        return self._read[name]

    def read(self, name: str) -> np.ndarray:
        """Read a sound without caching; raises UserError."""
        try:
            audio = self._clip(name).read()
        except AudioError as error:
            raise UserError("script_sound_unreadable", sound=name, cause=error.message) from None
        return to_signal(audio, self.rate_hz)

    def contents(self, talk: Conversation) -> dict[str, str]:
        """Hash the content of a conversation's sounds, by id or path."""
        pieces = [utterance.sound for event in talk.turns for utterance in event.say]
        background = None if talk.background is None or talk.background.sound == "white" else talk.background.sound
        names = {name for name in (*pieces, talk.recording, background) if name}
        return {name: clip_content(self._clip(name)) for name in sorted(names)}

    def _clip(self, name: str) -> Clip:
        return Clip(self._ids[name].audio if name in self._ids else self._find_sound(name), name)

    def _find_sound(self, name: str) -> str:
        """Resolve a sound of the script; raises UserError if it is missing."""
        path = self.folder / os.path.expanduser(name)
        if not path.is_file():
            known = first_of(sorted(self._ids), 4)
            raise UserError(
                "script_sound_unknown",
                sound=name,
                folder=self.folder,
                hint=f"ids of the data: {known}" if known else "the script names no data",
            )
        return str(path)

    def utterance(self, event: Event) -> Utterance:
        """Concatenate an event's sounds and pauses, and mark speech; raises as `get`."""
        parts, speech, gaps, at = [], [], [], 0
        for piece_spec in event.say:
            if piece_spec.pause_s is not None:
                gaps.append(at / self.rate_hz)
                samples = np.zeros(round(piece_spec.pause_s * self.rate_hz), np.float32)
            else:
                samples = self.get(piece_spec.sound or "")
                samples = samples[: round(piece_spec.most_s * self.rate_hz)] if piece_spec.most_s else samples
                offset = at / self.rate_hz
                speech += [(offset + a, offset + b) for a, b in speech_of_user(samples, self.rate_hz)]
            parts.append(samples)
            at += samples.size
        if not speech:
            raise UserError("script_sound_without_speech", sound=event.say[0].sound)
        around = [(max((b for _, b in speech if b <= gap + 1e-6), default=None),
            min((a for a, _ in speech if a >= gap), default=None)) for gap in gaps]  # fmt: skip
        pauses = [(a, b) for a, b in around if a is not None and b is not None]
        return Utterance(np.concatenate(parts), speech, pauses)


class ScriptedUser:
    """A user who follows a script; raises UserError for unreadable audio."""

    def __init__(self, script: Script, talk: Conversation, sounds: Sounds, frame_samples: int) -> None:
        self.script, self.rate_hz, self.size = script, sounds.rate_hz, frame_samples
        self.talk = talk
        self.utterances = [sounds.utterance(event) for event in talk.turns]
        self.events = [UserEvent(event.kind) for event in talk.turns]
        self._background = _background(script, talk, sounds, self.utterances)
        self._clean: list[np.ndarray] = []
        self._sent: list[np.ndarray] = []
        self._next, self._playing = 0, -1

    def frame(self, number: int, playback: Playback) -> np.ndarray | None:
        """Return the 16-bit samples of a frame, and begin due events; None at the end."""
        now_s = number * self.size / self.rate_hz
        if self._is_over(now_s, playback):
            return None
        while self._next < len(self.events) and self._begin_event(now_s, playback):
            self._next += 1
        clean = self._frame_at(number * self.size)
        behind = self._background(number * self.size, self.size)
        self._clean.append(_int16(clean))
        self._sent.append(_int16(clean + behind))
        return self._sent[-1]

    def tracks(self) -> tuple[np.ndarray, np.ndarray]:
        """Implement `User.tracks`."""
        nothing = [np.zeros(0, np.int16)]
        return np.concatenate(self._sent or nothing), np.concatenate(self._clean or nothing)

    def least_s(self) -> float:
        """Implement `User.least_s`."""
        first = self.talk.turns[0].at_s if self.talk.turns else self.talk.silence_s
        return (first or 0.0) + sum(one.samples.size for one in self.utterances) / self.rate_hz

    def _last_end_s(self) -> float:
        return max((event.speech[-1][1] for event in self.events if event.speech), default=0.0)

    def _begin_event(self, now_s: float, playback: Playback) -> bool:
        """Begin the next event if it is due; whether it began, or was skipped."""
        event, before_s = self.talk.turns[self._next], self._last_end_s()
        if event.at_s is not None:
            return now_s >= max(event.at_s, self._sound_end_s()) - 1e-9 and self._start_turn(now_s)
        if now_s < self._sound_end_s():
            return False
        answered_s = playback.first_speech_s(before_s)
        if answered_s is None:
            return now_s - before_s >= self.script.patience_s and self._go_on(event, now_s)
        if event.into_answer_s is not None:
            if now_s < answered_s + event.into_answer_s - 1e-9:
                return False
            if now_s - playback.last_speech_end_s() > LEAST_LEFT_S:
                return self._skip_event(Diagnostic("answer_already_over"))
            return self._start_turn(now_s)
        after_s = playback.last_speech_end_s() + (event.after_answer_s or 0.0)
        return playback.has_ended(now_s, self.script.ends_s) and now_s >= after_s - 1e-9 and self._start_turn(now_s)

    def _sound_end_s(self) -> float:
        return max((event.end_s for event in self.events if event.end_s is not None), default=0.0)

    def _go_on(self, event: Event, now_s: float) -> bool:
        if event.into_answer_s is not None:
            return self._skip_event(Diagnostic("no_answer_within", limit_s=self.script.patience_s))
        return self._start_turn(now_s)

    def _skip_event(self, reason: Diagnostic) -> bool:
        self.events[self._next].reason = reason
        return True

    def _start_turn(self, now_s: float) -> bool:
        """Set the times of the next event to begin at `now_s`, and play it; returns True."""
        utterance, event = self.utterances[self._next], self.events[self._next]
        event.begin_s, event.end_s = now_s, now_s + utterance.samples.size / self.rate_hz
        event.speech = [(round(now_s + a, 6), round(now_s + b, 6)) for a, b in utterance.speech]
        event.pauses = [(round(now_s + a, 6), round(now_s + b, 6)) for a, b in utterance.pauses]
        self._playing = self._next
        return True

    def _frame_at(self, at: int) -> np.ndarray:
        """Return the user's speech in the frame from sample `at`, without background."""
        out = np.zeros(self.size, np.float32)
        begin_s = self.events[self._playing].begin_s if self._playing >= 0 else None
        if begin_s is not None:
            offset = at - round(begin_s * self.rate_hz)
            samples = self.utterances[self._playing].samples[offset : offset + self.size]
            out[: samples.size] = samples
        return out

    def _is_over(self, now_s: float, playback: Playback) -> bool:
        """Whether the script is done and the last answer has ended, or none came in time."""
        if self.talk.silence_s is not None:
            return now_s >= self.talk.silence_s
        if self._next < len(self.events) or now_s < self._sound_end_s():
            return False
        end_s = self._last_end_s()
        kind = self.events[self._playing].kind
        if kind not in NO_ANSWER and playback.first_speech_s(end_s) is None:
            return now_s - end_s >= self.script.patience_s
        if kind in ASIDES and now_s - end_s < ASIDE_S:
            return False
        quiet_s = max(playback.last_speech_end_s(), end_s)
        return now_s - quiet_s >= self.script.ends_s


class ReplayedUser:
    """A user with a stored track, whatever the model says."""

    def __init__(
        self, track: np.ndarray, clean: np.ndarray, events: list[UserEvent], frame_samples: int, rate_hz: int
    ) -> None:
        self.events, self.size, self.rate_hz = events, frame_samples, rate_hz
        self._track, self._clean = track, clean

    def frame(self, number: int, playback: Playback) -> np.ndarray | None:
        """Implement `User.frame`."""
        samples = self._track[number * self.size : (number + 1) * self.size]
        return samples if samples.size == self.size else None

    def tracks(self) -> tuple[np.ndarray, np.ndarray]:
        """Implement `User.tracks`."""
        return self._track, self._clean

    def least_s(self) -> float:
        """Implement `User.least_s`."""
        return self._track.size / self.rate_hz


def recorded_user(talk: Conversation, sounds: Sounds, frame_samples: int) -> ReplayedUser:
    """Create a user from a recording in whole frames; raises UserError."""
    signal = sounds.read(talk.recording or "")  # each recording is sent once
    track = _int16(np.pad(signal, (0, -signal.size % frame_samples)))
    speech = speech_of_user(signal, sounds.rate_hz)
    events = []
    for marked in talk.said:
        parts = [(max(a, marked.begin_s), min(b, marked.end_s)) for a, b in speech]
        spans = [(round(a, 6), round(b, 6)) for a, b in parts if b > a]
        if not spans:
            raise UserError(
                "no_speech_in_span", recording=talk.recording, id=talk.id, begin_s=marked.begin_s, end_s=marked.end_s
            )
        events.append(UserEvent(marked.kind, marked.begin_s, marked.end_s, spans, list(marked.pauses)))
    return ReplayedUser(track, track, events, frame_samples, sounds.rate_hz)


def _background(script: Script, talk: Conversation, sounds: Sounds, utterances: list[Utterance]) -> Any:
    """Return a function of (begin, length) in samples that gives the background noise."""
    background = talk.background
    if background is None:
        return lambda begin, length: np.float32(0.0)
    if background.sound == "white":
        loop = random_of(script.seed, talk.id, "white").standard_normal(20 * sounds.rate_hz).astype(np.float32)
    else:
        loop = sounds.get(background.sound)
    speech_db = _active_dbfs(
        np.concatenate([one.samples for one in utterances]) if utterances else np.zeros(1), sounds.rate_hz
    )
    own_db = 10 * np.log10(float(np.mean(loop.astype(np.float64) ** 2)) + 1e-12)
    loop = loop * np.float32(10 ** ((speech_db - background.snr_db - own_db) / 20))
    return lambda begin, length: np.take(loop, np.arange(begin, begin + length), mode="wrap")


def _active_dbfs(samples: np.ndarray, rate_hz: int) -> float:
    levels = levels_dbfs(samples, rate_hz)
    active = levels[levels > user_threshold_dbfs(levels)]
    return float(10 * np.log10(np.mean(10 ** (active / 10)))) if active.size else -26.0


def _int16(samples: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(samples * 32768.0), -32768, 32767).astype(np.int16)

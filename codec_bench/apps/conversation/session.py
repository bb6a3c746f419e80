"""One conversation on one clock: user frames, and model audio placed on arrival.

Time is the event loop's monotonic clock, in seconds from the user's first sample. As with a microphone, frame n is due
at (n + 1) frames. Audio plays on arrival (`playback.py`). Both tracks are 16 bits and begin at 0. A session is refused
as slower than real time if the 99th percentile of lateness exceeds a frame, or one frame exceeds `STALLED_S`.

A simulated network in both directions, with delays drawn by seed.
A WebSocket runs over TCP: loss is a further delay, and no message overtakes another.
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from codec_bench.apps.conversation.playback import Packet, Playback, TooMuch
from codec_bench.apps.conversation.script import Network, Script, random_of
from codec_bench.apps.conversation.user import User, UserEvent
from codec_bench.messages import Diagnostic, as_reason, from_json, of_error, to_json
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.models.base import Model
from codec_bench.models.endpoints.accounts import Prices
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.retries import Denied, RequestFailed, Retryable

FRAME_S = 0.02
STALLED_S = 0.2
READY_S = 15.0
"""How long a service may take until it accepts audio."""
Status = Literal["ok", "refused", "failed"]
TRACKS = ("user", "clean", "output", "discarded")


@dataclass(slots=True)
class Session:
    """A finished conversation.

    Args:
        status, reason: `ok`; `failed` if incomplete; `refused` if this machine was too slow.
        rate_hz, output_rate_hz: of the user's and the model's track.
        sent_s: when each frame was sent.
        stops: when waiting audio was discarded, and its planned end.
        text: the service's own transcript.
        model: the service's name of the model.
        opening: the messages before the conversation.
        marks_answers: whether audio names its answer, or answers have ends.
        user, clean, output: the tracks, 16 bits `(samples,)`; `clean` is the user without background.
        discarded: audio discarded at the stops, concatenated.
        generation: the number of the command's start that held it, from 1.
    """

    id: str
    rate_hz: int
    output_rate_hz: int
    frame_s: float = FRAME_S
    status: Status = "ok"
    reason: str = ""
    events: list[UserEvent] = field(default_factory=list)
    sent_s: list[float] = field(default_factory=list)
    packets: list[Packet] = field(default_factory=list)
    stops: list[tuple[float, float]] = field(default_factory=list)
    text: str = ""
    model: str | None = None
    usage: dict[str, float] = field(default_factory=dict)
    opening: tuple[str, ...] = ()
    marks_answers: bool = False
    user: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int16))
    clean: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int16))
    output: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int16))
    discarded: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int16))
    generation: int = 0

    @property
    def late_s(self) -> np.ndarray:
        """The lateness of each frame `(frames,)`."""
        return np.asarray(self.sent_s) - self.frame_s * (np.arange(len(self.sent_s)) + 1)

    @property
    def duration_s(self) -> float:
        """Length of both tracks."""
        return self.user.size / self.rate_hz

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values, without the audio tracks."""
        facts = {name: getattr(self, name) for name in self.__slots__ if name not in (*TRACKS, "events", "packets")}
        packets = [[p.at_s, p.begin, p.samples, p.answer] for p in self.packets]
        reason = to_json({"reason": self.reason})
        return {**facts, **reason, "events": [to_json(asdict(event)) for event in self.events], "packets": packets}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any], **tracks: np.ndarray) -> Session:
        """Restore a session from the values of `as_dict`, and its audio tracks."""
        values: dict[str, Any] = {name: facts[name] for name in cls.__slots__ if name in facts}
        values |= from_json({name: facts[name] for name in ("reason", "reason_code") if name in facts})
        session = cls(**{**values, **tracks})
        session.events, session.packets = events_of(facts["events"]), [Packet(*one) for one in facts["packets"]]
        session.stops = [(at_s, end_s) for at_s, end_s in session.stops]
        return session


def events_of(listed: Sequence[Mapping[str, Any]]) -> list[UserEvent]:
    """Parse a user's events from their JSON values."""
    events = [UserEvent(**from_json(event)) for event in listed]
    for event in events:
        event.speech, event.pauses = ([(a, b) for a, b in spans] for spans in (event.speech, event.pauses))
    return events


class _SessionFailed(Exception):
    """A session cannot continue."""


class TooSlow(Exception):
    """The model ran slower than real time on this machine, so its times are invalid."""


@dataclass(frozen=True, slots=True)
class ServiceEvent:
    """One message of a model in a conversation.

    Args:
        ready: audio may be sent from now on.
        sound: 16-bit samples of the answer at `output_rate_hz`.
        text: words of it.
        answer: the service's name of the answer, and `item` the turn that holds it; empty without names.
        stops: discard audio not yet played, because the user speaks.
        ended: `whole` or `cut` with the last message of an answer, else empty.
        usage: of the answer.
    """

    ready: bool = False
    sound: bytes = b""
    text: str = ""
    answer: str = ""
    item: str = ""
    stops: bool = False
    ended: Literal["", "whole", "cut"] = ""
    id: str = ""
    model: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)


class Partner(ABC):
    """A model as the other side of a conversation: a service, or of this process.

    Attributes:
        prices: of a service, else None.
    """

    rate_hz: int
    output_rate_hz: int
    prices: Prices | None = None

    def __init__(self, model: Model) -> None:
        self.model, self.info = model, model.info

    @property
    def identity(self) -> Mapping[str, Any]:
        """Implement `Model.identity`."""
        return self.model.identity

    async def start(self) -> None:
        """Implement `Model.start`."""
        await self.model.start()

    async def close(self) -> None:
        """Implement `Model.close`."""
        await self.model.close()

    @property
    def closed(self) -> tuple[type[Exception], ...]:
        """The exceptions of `send` on a closed connection."""
        return ()

    @abstractmethod
    def conversation(self, instructions: str) -> list[str]:
        """Return the messages that open a conversation."""

    @abstractmethod
    def connected(self) -> AbstractAsyncContextManager[Any]:
        """Open a connection: `send` sends, and iterating yields messages."""

    @abstractmethod
    def frame(self, samples: bytes) -> str | bytes:
        """Return the message for a frame of 16-bit samples at `rate_hz`."""

    @abstractmethod
    def read_message(self, message: Any) -> ServiceEvent:
        """Parse a message."""

    def cut_off(self, item: str, played_s: float) -> str | None:
        """Return the message on seconds played of an interrupted `item`, or None."""
        return None


async def hold_conversation(model: Partner, user: User, name: str, script: Script) -> Session:
    """Run one conversation of a started model and a user in real time.

    Args:
        script: with the model's instructions, the network and the longest session.
        name: the id of the session.

    Raises:
        UserError: the service denies access, or the model does not converse in time; every other session would fail
            too.
    """
    opening = tuple(model.conversation(script.instructions))
    held = Session(name, model.rate_hz, model.output_rate_hz, FRAME_S, events=user.events, opening=opening)
    playback = Playback(model.output_rate_hz, script.longest_s)
    try:
        async with model.connected() as socket:
            await _converse(_Line(model, socket, held, playback, script), user, script.longest_s)
    except _SessionFailed as end:
        held.status, held.reason = "failed", of_error(end)
    except Denied as denied:
        raise UserError(as_reason(denied.reason, "service_refusal"), hint=denied.hint) from None
    except TooSlow as slow:
        held.status, held.reason = "refused", of_error(slow)
    except (Retryable, RequestFailed) as trouble:
        held.status, held.reason = "failed", as_reason(trouble.reason)
    except AudioError as error:
        held.status, held.reason = "failed", as_reason(error.message)
    except TimeoutError:
        held.status, held.reason = "failed", Diagnostic("connection_late")
    _close(held, playback, user)
    return held


def _close(held: Session, playback: Playback, user: User) -> None:
    """Add tracks and packets to a finished session, and refuse it if it was too slow."""
    length = len(held.sent_s) * round(held.frame_s * held.rate_hz)
    held.user, held.clean = (track[:length] for track in user.tracks())
    held.packets, held.stops = playback.packets, playback.stops
    held.output = playback.track(round(held.duration_s * held.output_rate_hz))
    held.discarded = np.concatenate([held.discarded, *playback.discarded])
    if held.status == "ok" and held.text and not playback.packets:
        held.status, held.reason = "failed", Diagnostic("words_without_sound")
    if held.status == "ok" and (reason := too_slow(held.late_s, held.frame_s)):
        held.status, held.reason = "refused", reason


def too_slow(late_s: np.ndarray, frame_s: float) -> Diagnostic | None:
    """Return why late frames disqualify a session; None if they do not."""
    if not late_s.size:
        return None
    p99, most = float(np.quantile(late_s, 0.99)), float(late_s.max())
    if p99 <= frame_s and most <= STALLED_S:
        return None
    return Diagnostic("frames_late", p99_s=p99, most_s=most, frame_s=frame_s, limit_s=STALLED_S)


class _Line:
    """An open connection to a partner, with the state of its session."""

    def __init__(self, model: Partner, socket: Any, held: Session, playback: Playback, script: Script) -> None:
        self.model, self.socket, self.held, self.playback = model, socket, held, playback
        self.ready, self.loop = asyncio.Event(), asyncio.get_running_loop()
        self.start_s: float | None = None
        self._ids: set[str] = set()
        self._done: set[str] = set()
        self._answer = ""
        self._up, self._down = (
            NetworkLink(script.network, random_of(script.seed, held.id, direction), act) if script.network else None
            for direction, act in (("up", socket.send), ("down", self._handle_message))
        )

    def now_s(self) -> float:
        """Return the seconds since the user's first sample; negative before it."""
        return self.loop.time() - (math.inf if self.start_s is None else self.start_s)

    async def send(self, message: str | bytes) -> None:
        """Send a message, over the simulated network if there is one."""
        if self._up is None:
            await self.socket.send(message)
        else:
            self._up.put(message)

    def tasks(self) -> list[asyncio.Task[None]]:
        """Start the tasks that receive and deliver messages; they raise errors."""
        ways = [link.run() for link in (self._up, self._down) if link is not None]
        return [asyncio.create_task(run) for run in (self._listen(), *ways)]

    async def _listen(self) -> None:
        """Handle or queue messages until the connection closes, which is an error."""
        async for message in self.socket:
            if self._down is None:
                await self._handle_message(message)
            else:
                self._down.put(message)
        raise _SessionFailed(Diagnostic("connection_closed", at_s=max(0.0, self.now_s())))

    async def _handle_message(self, message: Any) -> None:
        """Apply one message of the model to the session: audio, text, stops and usage."""
        at_s = max(0.0, self.now_s())
        event = self.model.read_message(message)
        self._check(event)
        self.held.marks_answers |= bool(event.ended or event.answer)
        if event.ready:
            self.ready.set()
        self.held.model = event.model or self.held.model
        self.held.text += event.text
        if event.sound:
            self._play(event, at_s)
        if event.stops and (cut := self.playback.stop(at_s)) is not None:
            if (reply := self.model.cut_off(*cut)) is not None:
                await self.send(reply)
        if event.ended:
            self.playback.finish()
            self._done.add(event.answer)
        for name, count in event.usage.items():
            self.held.usage[name] = self.held.usage.get(name, 0.0) + count

    def _play(self, event: ServiceEvent, at_s: float) -> None:
        """Queue received audio for playback; raises for odd or too much audio."""
        if len(event.sound) % 2:
            raise _SessionFailed(Diagnostic("odd_sound_bytes", bytes=len(event.sound)))
        try:
            self.playback.add(at_s, np.frombuffer(event.sound, "<i2"), event.answer, event.item)
        except TooMuch:
            raise _SessionFailed(Diagnostic("sound_beyond_session", most_s=self.playback.most_s)) from None

    def _check(self, event: ServiceEvent) -> None:
        """Raise `_SessionFailed` for a repeated message, or audio after its answer's end."""
        if event.id and event.id in self._ids:
            raise _SessionFailed(Diagnostic("message_twice", id=clean(event.id)))
        self._ids.add(event.id)
        if event.sound and event.answer and event.answer in self._done:
            raise _SessionFailed(Diagnostic("sound_after_answer", answer=clean(event.answer)))
        if event.sound and event.answer != self._answer:
            self._done |= {self._answer} - {""}
            self._answer = event.answer


async def _converse(line: _Line, user: User, longest_s: float) -> None:
    """Open the session, wait until the model is ready, and send the user's audio."""
    tasks = line.tasks()
    try:
        for message in line.held.opening:
            await line.send(message)
        waiting = asyncio.create_task(line.ready.wait())
        await asyncio.wait({*tasks, waiting}, timeout=READY_S, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        await _raise(tasks)
        if not line.ready.is_set():
            raise _SessionFailed(Diagnostic("session_not_begun", limit_s=READY_S))
        await _send(line, user, tasks, longest_s)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _raise(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done():
            await task


async def _send(line: _Line, user: User, tasks: Sequence[asyncio.Task[None]], longest_s: float) -> None:
    """Send the user's frames in real time until the user ends the session.

    Args:
        tasks: of the connection; their errors are raised here.
        longest_s: a longer session fails.
    """
    frame_s, number = line.held.frame_s, 0
    # Stagger the frames of sessions that begin together.
    line.start_s = line.loop.time() + frame_s * float(random_of(0, line.held.id).random())
    before_s = 0.0
    while True:
        now_s = number * frame_s
        await asyncio.sleep(now_s + frame_s - line.now_s())
        await _raise(tasks)
        line.playback.analyse_until(now_s)
        samples = user.frame(number, line.playback)
        if samples is None:
            return
        if now_s >= longest_s:
            raise _SessionFailed(Diagnostic("session_too_long", longest_s=longest_s))
        try:
            await line.send(line.model.frame(samples.tobytes()))
        except line.model.closed:
            await tasks[0]  # says when it was closed
        sent_s = line.now_s()
        if sent_s < before_s:
            raise _SessionFailed(Diagnostic("clock_went_back", by_s=before_s - sent_s))
        line.held.sent_s.append(round(sent_s, 5))
        before_s, number = sent_s, number + 1


class NetworkLink:
    """One direction; `random` draws per message and transmission, `act` receives."""

    def __init__(self, network: Network, random: np.random.Generator, act: Callable[[Any], Awaitable[None]]) -> None:
        self.network, self.random, self.act = network, random, act
        self._waiting: asyncio.Queue[tuple[float, Any]] = asyncio.Queue()
        self._last_s = 0.0

    def put(self, message: Any) -> None:
        """Send a message, to be received after the simulated delay, jitter and losses."""
        late_s = self.network.delay_s + self.network.jitter_s * self.random.random()
        while self.random.random() < self.network.loss:
            late_s += self.network.again_s
        self._last_s = max(self._last_s, asyncio.get_running_loop().time() + late_s)
        self._waiting.put_nowait((self._last_s, message))

    async def run(self) -> None:
        """Deliver every message at its time, until cancelled."""
        while True:
            when_s, message = await self._waiting.get()
            await asyncio.sleep(when_s - asyncio.get_running_loop().time())
            await self.act(message)

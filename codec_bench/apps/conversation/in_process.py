"""Conversations with models of this process: streaming or of whole turns.

A model of whole turns becomes a cascade: a detector ends the user's turn (`turn_ends.py`), and the spoken response, or
another model's reading of its text, is played. Playback stops when the user speaks for `INTERRUPTS_S`; a response in
progress is cancelled when the user continues.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from codec_bench.apps.conversation.session import FRAME_S, STALLED_S, Partner, ServiceEvent, TooSlow
from codec_bench.apps.conversation.turn_ends import RATE_HZ, TurnEnd
from codec_bench.audio.clip import Clip
from codec_bench.audio.resample import to_signal
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.models.base import Model
from codec_bench.models.endpoints.retries import RequestFailed
from codec_bench.types import Audio, Message, Request, Response

LEAST_S, INTERRUPTS_S = 0.1, 0.2
BEFORE_S = 0.3
"""How much audio before the first speech of a turn the model gets."""


class _ProcessLine(ABC):
    """A connection to a model in this process: takes frames, yields its messages."""

    def __init__(self) -> None:
        self._out: asyncio.Queue[ServiceEvent | BaseException] = asyncio.Queue()
        self._out.put_nowait(ServiceEvent(ready=True))
        self.loop = asyncio.get_running_loop()
        self.instructions = ""

    async def send(self, message: str | bytes) -> None:
        """Send the instructions, or a frame of the user's 16-bit samples."""
        if isinstance(message, str):
            self.instructions = message
        else:
            self.take(message)

    @abstractmethod
    def take(self, frame: bytes) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    def __aiter__(self) -> _ProcessLine:
        return self

    async def __anext__(self) -> ServiceEvent:
        item = await self._out.get()
        if isinstance(item, BaseException):
            raise item
        return item


class _Streamed(_ProcessLine):
    """A streaming model; its steps run in a thread, one after the other."""

    def __init__(self, begin: Callable[[str], Stream]) -> None:
        super().__init__()
        self._begin = begin
        self._waiting: deque[bytes] = deque()
        self._require_ok = asyncio.Event()
        self._work = asyncio.create_task(self._run())

    def take(self, frame: bytes) -> None:
        self._waiting.append(frame)
        self._require_ok.set()
        if len(self._waiting) * FRAME_S > STALLED_S and not self._work.done():
            self._work.cancel()
            self._out.put_nowait(TooSlow(Diagnostic("frames_waiting", frames=len(self._waiting))))

    async def close(self) -> None:
        self._work.cancel()
        with suppress(asyncio.CancelledError):
            await self._work

    async def _run(self) -> None:
        try:
            await self._steps()
        except Exception as error:
            # A user's model may raise anything; only this session fails.
            self._out.put_nowait(_failed(error))

    async def _steps(self) -> None:
        """Step the streaming model on each received frame, and emit the audio it returns."""
        await self._require_ok.wait()
        stream = self._begin(self.instructions)
        while True:
            while self._waiting:
                frame = np.frombuffer(self._waiting[0], "<i2").astype(np.float32) / 32768
                samples = _int16(await asyncio.to_thread(stream.step, frame))
                self._waiting.popleft()
                if samples:
                    self._out.put_nowait(ServiceEvent(sound=samples))
            self._require_ok.clear()
            await self._require_ok.wait()


class _Turns(_ProcessLine):
    """A model that answers complete turns, behind a detector of the turn's end."""

    def __init__(self, cascade: CascadeSession) -> None:
        super().__init__()
        self.cascade = cascade
        self.detector = cascade.rule.detector()
        self._history: tuple[Message, ...] = ()
        self._pending: list[np.ndarray] = []
        self._question: list[np.ndarray] = []
        self._speech_s = self._quiet_s = 0.0
        self._open, self._number, self._playing_until_s = False, 0, 0.0
        self._answer: asyncio.Task[None] | None = None

    def take(self, frame: bytes) -> None:
        """Receive one frame of the user; detects speech, and the end of a turn."""
        samples = np.frombuffer(frame, "<i2").astype(np.float32) / 32768
        self._pending.append(samples)
        for speech in self.detector.push(samples):
            self._speech() if speech else self._add_silence()
        if not self._open:
            del self._pending[: max(0, len(self._pending) - round((BEFORE_S + LEAST_S) / FRAME_S))]

    async def close(self) -> None:
        if self._answer is not None:
            self._answer.cancel()
            with suppress(asyncio.CancelledError):
                await self._answer

    def _speech(self) -> None:
        """Handle a window of user speech: open the turn, cancel the answer, stop playback."""
        self._speech_s += self.detector.window_s
        self._quiet_s = 0.0
        if self._speech_s < LEAST_S:
            return
        self._open = True
        if self._answer is not None and not self._answer.done():
            self._answer.cancel()
            self._pending = self._question + self._pending
            self._answer = None
        if self._speech_s >= INTERRUPTS_S and self.loop.time() < self._playing_until_s:
            self._playing_until_s = 0.0
            self._out.put_nowait(ServiceEvent(stops=True, ended="cut"))

    def _add_silence(self) -> None:
        """Count a silent window; after enough of them, send the turn."""
        self._speech_s = 0.0
        self._quiet_s += self.detector.window_s
        if self._open and self._quiet_s >= self.cascade.rule.silence_s:
            self._open = False
            self._question, self._pending = self._pending, []
            self._number += 1
            self._answer = asyncio.create_task(self._send(np.concatenate(self._question)))

    async def _send(self, samples: np.ndarray) -> None:
        """Request an answer; a failure is queued like audio."""
        try:
            await self._answer_turn(samples)
        except RequestFailed as trouble:
            self._out.put_nowait(trouble)
        except Exception as error:
            # As in `_Streamed._run`.
            self._out.put_nowait(_failed(error))

    async def _answer_turn(self, samples: np.ndarray) -> None:
        """Request the model's answer to the samples of a user turn, and emit its audio."""
        turn = Message("user", (Clip(Audio(samples[None], RATE_HZ), f"turn {self._number}"),))
        system_message = (Message("system", (self.instructions,)),) if self.instructions else ()
        response, sound = await self.cascade.spoken(f"turn-{self._number}", (*system_message, *self._history, turn))
        content = (response.text,) if response.text else (Clip(sound),)
        self._history = (*self._history, turn, Message("assistant", content))
        signal = _int16(to_signal(sound, self.cascade.output_rate_hz))
        seconds = len(signal) / 2 / self.cascade.output_rate_hz
        self._playing_until_s = max(self._playing_until_s, self.loop.time()) + seconds
        event = ServiceEvent(sound=signal, text=response.text or "", answer=f"answer-{self._number}", ended="whole")
        self._out.put_nowait(replace(event, model=response.served.get("model"), usage=response.usage))


class InProcess(Partner):
    """A model of this process as a partner of a conversation."""

    def conversation(self, instructions: str) -> list[str]:
        """Return the instructions, the only message before the first frame."""
        return [instructions] if instructions else []

    def frame(self, samples: bytes) -> bytes:
        """Return the frame unchanged."""
        return samples

    def read_message(self, message: Any) -> ServiceEvent:
        """Return the event unchanged."""
        return message

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[_ProcessLine]:
        """Open a line for one session, for the `with` block."""
        line = self.line()
        try:
            yield line
        finally:
            await line.close()

    @abstractmethod
    def line(self) -> _ProcessLine:
        """Open a line for a session."""


class Streaming(InProcess):
    """A streaming model."""

    def __init__(self, model: StreamingModel) -> None:
        super().__init__(model)
        self.rate_hz, self.output_rate_hz = model.rate_hz, model.output_rate_hz
        self._open = model.open

    def line(self) -> _ProcessLine:
        """Implement `InProcess.line`."""
        return _Streamed(self._open)


class CascadeSession(InProcess):
    """A model that answers complete turns, as a partner of a conversation.

    Args:
        speaks: reads text responses aloud; None if responses are audio.

    Raises:
        UserError: the model does not take audio, or nobody speaks.
    """

    rate_hz, output_rate_hz = RATE_HZ, 24_000

    def __init__(self, model: Model, speaks: Model | None, rule: TurnEnd) -> None:
        super().__init__(model)
        if "audio" not in model.info.inputs or model.info.reads != "messages":
            raise UserError(
                "takes_no_conversation_sound",
                model=model.info.name,
                hint="put a recogniser before it, with a config of the kind cascade",
            )
        if speaks is None and "audio" not in model.info.outputs:
            raise UserError("text_unspoken", model=model.info.name, hint="--speaks NAME names a model that does")
        if speaks is not None and "audio" not in speaks.info.outputs:
            raise UserError("does_not_speak", model=speaks.info.name, hint="codec-bench list models")
        self.speaks, self.rule = speaks, rule
        self._places = asyncio.Semaphore(model.concurrency)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Model, speaker and detector."""
        speaks = dict(self.speaks.identity) if self.speaks is not None else None
        return {**self.model.identity, "end_of_turn": str(self.rule), "speaks": speaks}

    async def start(self) -> None:
        """Start both models."""
        await self.model.start()
        if self.speaks is not None:
            await self.speaks.start()

    async def close(self) -> None:
        """Close both models."""
        await self.model.close()
        if self.speaks is not None:
            await self.speaks.close()

    def line(self) -> _ProcessLine:
        """Implement `InProcess.line`."""
        return _Turns(self)

    async def spoken(self, name: str, messages: tuple[Message, ...]) -> tuple[Response, Audio]:
        """Return the model's response, and its audio, which is synthesised from a text.

        Raises:
            RequestFailed: there is no response or no audio.
        """
        async with self._places:
            request = Request(name, messages, wants="text" if self.speaks is not None else "audio")
            response = _require_ok(await self.model.ask(request), "turn_not_answered")
            if self.speaks is None:
                sound = response.audio
            else:
                read = await self.speaks.ask(Request(name, fields={"text": response.text or ""}, wants="audio"))
                sound = _require_ok(read, "answer_not_read").audio
        if sound is None:
            raise RequestFailed(Diagnostic("no_answer_sound"))
        return response, sound


def _failed(error: Exception) -> RequestFailed:
    return RequestFailed(Diagnostic("model_raised", type=type(error).__name__, message=error))


def _require_ok(response: Response, code: str) -> Response:
    if response.status != "ok":
        raise RequestFailed(Diagnostic(code, status=response.status, cause=response.reason))
    return response


def _int16(samples: np.ndarray) -> bytes:
    return np.clip(np.rint(np.asarray(samples, np.float32) * 32768.0), -32768, 32767).astype("<i2").tobytes()


class Stream(Protocol):
    """One conversation with a model."""

    def step(self, frame: np.ndarray) -> np.ndarray:
        """Take one frame of the user's audio, and return the model's audio.

        Args:
            frame: float32 `(samples,)` in [-1, 1] at the model's `rate_hz`; 20 ms.

        Returns:
            float32 `(samples,)` at the model's `output_rate_hz`, of any length; longer audio is queued.
        """
        ...


class StreamingModel(Model):
    """A model that takes audio frame by frame and may speak at any time."""

    rate_hz: int = 24_000
    output_rate_hz: int = 24_000

    @abstractmethod
    def open(self, instructions: str) -> Stream:
        """Begin a conversation; `step` is called by one thread at a time."""

    async def ask(self, request: Request) -> Response:
        """Refuse the request: the model has no single responses."""
        return Response.refused(Diagnostic("converses_only", model=self.info.name))

"""OpenAI's Live models over a WebSocket: audio in and out at once, in real time.

Source: https://developers.openai.com/api/docs/guides/voice-websockets and `openai.types.live` of openai 3.54, read on
2026-11-22. A session is a stream without turns or an end of the answer. So silence follows the question, and the answer
is complete after `QUIET_S` without speech.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from codec_bench.audio.clip import Clip
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import AudioError
from codec_bench.models.audio_payloads import from_base64, pcm16_base64, pcm16_pieces
from codec_bench.models.base import ModelInfo
from codec_bench.models.endpoints.bodies import optional_text
from codec_bench.models.endpoints.openai_chat import ChatReply
from codec_bench.models.endpoints.openai_realtime import trouble_of
from codec_bench.models.endpoints.retries import Retryable
from codec_bench.models.endpoints.sockets import UNSUPPORTED, SocketModel, Step
from codec_bench.types import Audio, Request

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

RATE_HZ = 24_000
PIECE_S = 0.1
QUIET_S = 3.0
"""Seconds without speech after which an answer is complete."""
UNHEARD_S = 20.0
"""The model must begin to speak within so many seconds after the question."""
CLOSING_S = 10.0
PACE = 1.0
"""Seconds of waiting per second of sent audio."""
AUDIBLE = 100
"""Louder 16-bit samples are speech, not the silence within a stream."""


class OpenAiLive(SocketModel):
    """A full-duplex model. A written answer is the transcript of its spoken answer.

    Each question takes its own and its answer's duration.

    Args:
        connection: as `RemoteModel`; `rate_hz` is always 24 kHz.
    """

    checked: ClassVar[str] = "the types of the package openai 3.54; 2026-11-22"
    sound_last: ClassVar[bool] = True
    changes_answers: ClassVar[tuple[str, ...]] = ("voice",)
    words: ClassVar[Mapping[str, str | None]] = dict.fromkeys(("max_tokens", *UNSUPPORTED))

    def __init__(self, info: ModelInfo, *, voice: str | None = "marin", **connection: Any) -> None:
        defaults = {"base_url": "wss://api.openai.com/v1/live/sessions", "key_env": "OPENAI_API_KEY"}
        super().__init__(info, **{**defaults, **connection, "rate_hz": RATE_HZ})
        self.voice = voice

    def encode(self, request: Request) -> list[str]:
        """Return the messages of a session: its start, the last turn's audio in chunks."""
        self.named_parameters(request)  # notes unsupported parameters
        sounds = [item for m in request.messages for item in m.content if not isinstance(item, str)]
        pieces = [append_message(chunk) for sound in sounds for chunk in pcm16_pieces(sound, PIECE_S)]
        return [self.session_start(request), *pieces]

    def session_start(self, request: Request) -> str:
        """Return the message that starts a session, with the written turns of a request."""
        words = [(m.role, "".join(p for p in m.content if isinstance(p, str))) for m in request.messages]
        system = "\n".join(text for role, text in words if role == "system" and text)
        kinds = {"assistant": "output_text"}
        history = [
            {"type": "message", "role": role, "content": [{"type": kinds.get(role, "input_text"), "text": text}]}
            for role, text in words
            if role != "system" and text
        ]
        audio: dict[str, Any] = {"format": {"type": "audio/pcm", "rate": RATE_HZ}}
        if self.voice is not None:
            audio["output"] = {"voice": self.voice}
        session: dict[str, Any] = {"model": self.model, "audio": audio, **({"instructions": system} if system else {})}
        if history:
            session["input"] = history
        return json.dumps({"type": "session.start", "session": session})

    def enter(self, event: Mapping[str, Any], written: ChatReply, began: float) -> Step:
        """Add an event of the service to the answer so far (`written`).

        Returns `ready` when the session has started, `done` when it is closed, else "".
        """
        kind = event["type"]
        if kind == "error":
            raise trouble_of(event["error"])
        if kind == "session.started":
            written.model = optional_text(event["session"], "model") or written.model
            return "ready"
        if kind == "session.output_transcript.delta":
            written.transcript.append(event["delta"])
        if kind == "session.output_audio.delta":
            written.audio.append(event["delta"])
        if kind.startswith("session.output_") and kind.endswith(".delta") and written.first_s is None:
            written.first_s = time.monotonic() - began
        if kind != "session.closed":
            return ""
        written.finish = {"content": "content_filter", "close_requested": "stop"}.get(event["reason"], event["reason"])
        written.usage = {"session_s": float(event["usage"]["seconds"])}
        return "done"

    async def talk(self, socket: ClientConnection, events: list[str], began: float) -> ChatReply:
        """Send the question at the pace of speech while receiving; return the answer."""
        written, started, spoke = ChatReply(), asyncio.Event(), _Spoke()

        async def listen() -> None:
            async for message in socket:
                before = len(written.transcript), len(written.audio)
                step = self.step(message, written, began)
                spoke.note(written.transcript[before[0] :], written.audio[before[1] :])
                if step == "ready":
                    started.set()
                if step == "done":
                    return
            raise Retryable(Diagnostic("closed_before_answer"))

        listener = asyncio.create_task(listen())
        try:
            await socket.send(events[0])
            await _wait_ready(listener, started.wait())
            for chunk in events[1:]:
                await self._send(socket, chunk, listener, spoke)
            spoke.question_s = spoke.sent_s
            while not spoke.is_over():
                await self._send(socket, _SILENCE, listener, spoke)
            if not listener.done():
                await socket.send(json.dumps({"type": "session.close"}))
                await asyncio.wait({listener}, timeout=CLOSING_S)
            if not listener.done():
                raise Retryable(Diagnostic("session_not_closed"))
            await listener
            return written
        finally:
            listener.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await listener

    async def _send(self, socket: ClientConnection, chunk: str, listener: asyncio.Task[None], spoke: _Spoke) -> None:
        """Send one chunk of audio, and wait for its duration.

        Errors of the task that receives (`listener`) are raised. Sent seconds go to `spoke`.
        """
        if listener.done():
            await listener  # raises its error
            spoke.ended = True
            return
        await socket.send(chunk)
        spoke.sent_s += PIECE_S
        await asyncio.sleep(PIECE_S * PACE)


class _Spoke:
    """The speaking times of the model, in seconds of sent audio.

    Attributes:
        sent_s: audio sent until now.
        last_s: when it spoke last, or None.
        ended: whether the service ended the session by itself.
    """

    def __init__(self) -> None:
        self.sent_s = self.question_s = 0.0
        self.last_s: float | None = None
        self.ended = False

    def note(self, words: list[str], sounds: list[str]) -> None:
        """Note received text and audio."""
        if any(words) or any(map(_is_audible, sounds)):
            self.last_s = self.sent_s

    def is_over(self) -> bool:
        """Whether the answer is complete, or too much time has passed without one."""
        if self.ended:
            return True
        # Speech during the question may be a backchannel.
        if self.last_s is None or self.last_s < self.question_s:
            return self.sent_s - self.question_s >= UNHEARD_S
        return self.sent_s - self.last_s >= QUIET_S


async def _wait_ready(listener: asyncio.Task[None], ready: Any) -> None:
    """Wait until ready; raises Retryable if the session ends before."""
    waiting = asyncio.ensure_future(ready)
    await asyncio.wait({listener, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if listener.done():
        waiting.cancel()
        await listener
        raise Retryable(Diagnostic("session_closed_early"))


def _is_audible(sound: str) -> bool:
    """Whether base64-coded PCM has a sample above the threshold."""
    try:
        data = from_base64(sound)
    except AudioError:
        return False
    samples = np.frombuffer(data[: len(data) // 2 * 2], "<i2")
    return bool(samples.size and np.abs(samples.astype(np.int32)).max() > AUDIBLE)


def append_message(data: str) -> str:
    """Return the message that carries base64 audio."""
    return json.dumps({"type": "session.input_audio.append", "audio": data})


_SILENCE = append_message(pcm16_base64(Clip(Audio(np.zeros(int(PIECE_S * RATE_HZ), np.float32), RATE_HZ))))

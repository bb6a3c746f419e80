"""What all models behind a WebSocket share: one connection for each request or conversation, errors in words, repeated
attempts.

Conventions
    A request is a list of messages. The first `opening` of them are sent at once, and the others when the service has
    said that the session is ready. Audio that arrives is samples without a header. A conversation in time
    (`conversation`, `frame`, `read_message`) is a session to which sound is sent at the speed of speech, and in which the
    service finds the ends of turns. `apps/conversation` holds its clock.
"""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from codec_bench.errors import MissingExtra, UserError
from codec_bench.messages import Diagnostic
from codec_bench.models.audio_payloads import audio_of, from_pieces
from codec_bench.models.base import EMPTY
from codec_bench.models.endpoints.bodies import understood
from codec_bench.models.endpoints.error_texts import is_daily, wait_of
from codec_bench.models.endpoints.json_text import parse_json
from codec_bench.models.endpoints.keys import check_headers, check_url, clean
from codec_bench.models.endpoints.openai_chat import Written
from codec_bench.models.endpoints.remote import RemoteModel
from codec_bench.models.endpoints.replies import MAX_BYTES, error_of
from codec_bench.models.endpoints.retries import Again, Denied, Persistence, RequestFailed, is_crowded, is_temporary
from codec_bench.types import Request, Response

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

CONNECT_S = 15.0
Step = Literal["", "ready", "done"]
# What a session cannot be told of how answers are decoded.
UNSUPPORTED = ("reasoning_tokens", "temperature", "repetition_penalty", "top_p", "stop", "seed")
# websockets logs the headers of its handshake, and the key is one of them. This logger writes nothing.
_SILENT = logging.Logger("codec_bench.models.endpoints.sockets", logging.CRITICAL + 1)


@dataclass(frozen=True, slots=True)
class ServiceEvent:
    """What one message of a service says in a conversation in time.

    Args:
        ready: whether sound may be sent from now on.
        sound: 16-bit samples of the answer at `output_rate_hz`. text: words of it.
        answer: what the service calls the answer, and `item` the turn of the conversation that holds it; empty if it
        has no names.
        stops: whether what was sent and not yet played must not be played, because the user was heard to speak.
        ended: `whole` or `cut` with the last message of an answer, else empty.
        id: what the service calls the message. model: that answers. usage: of the answer.
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


class SocketModel(RemoteModel):
    """A model that is asked over a WebSocket. Arguments as `RemoteModel`."""

    opening: ClassVar[int | None] = None
    """How many messages are sent before the service says that the session is ready; None for all."""
    output_rate_hz: ClassVar[int] = 24_000
    """Sample rate of spoken answers."""
    sound_last: ClassVar[bool] = False
    """Whether sound is taken in the last turn only."""

    def connect(self) -> None:
        """Makes `client`, which repeats attempts. Every attempt opens its own connection.

        Raises:
            UserError: the URL or the headers are wrong, or hold a key.
        """
        check_url(self.base_url, ("ws", "wss"))
        check_headers(self.headers)
        self.client = Persistence(self.ceiling, self.patience)
        self._send_headers: dict[str, str] = {}
        self._secrets: tuple[str, ...] = ()

    async def start(self) -> None:
        """Reads the key; opens no connection. Raises as `Client.start`."""
        secret = self.key.read()
        self._secrets = (secret,) if secret else ()
        self._send_headers = {**self.socket_headers(), **self.headers, **self.key.headers()}
        try:
            import websockets  # noqa: F401
        except ImportError as error:
            raise MissingExtra("a model behind a WebSocket", "websockets", "api") from error

    def check(self, request: Request) -> str | None:
        """Why the model does not take a request; None if it does."""
        turns = [m for m in request.messages if m.role != "system"]
        if self.sound_last and any(not isinstance(item, str) for m in turns[:-1] for item in m.content):
            return f"the model '{self.info.name}' takes sound in the last turn only"
        return super().check(request)

    def socket_headers(self) -> Mapping[str, str]:
        """The headers of the handshake beside the user's own and the key."""
        return {}

    def url(self) -> str:
        """The URL of a connection."""
        return self.base_url

    @abstractmethod
    def encode(self, request: Request) -> list[str]:
        """The messages of a request as JSON."""

    @abstractmethod
    def enter(self, event: Mapping[str, Any], written: Written, began: float) -> Step:
        """Adds a message of the service to the answer; says whether the session is ready, or the answer complete.

        Raises:
            Again, RequestFailed, Denied: the message is an error.
        """

    async def answer(self, request: Request, body: list[str]) -> Response:
        """One answer."""
        reply = await self.client.insist(lambda: self._attempt(body))
        written: Written = reply.value
        about: dict[str, Any] = {
            "usage": written.usage,
            "finish": written.finish,
            "first_s": written.first_s,
            "served": reply.served(model=written.model, revision=written.revision),
            "latency_s": reply.latency_s,
            "attempts": reply.attempts,
        }
        text = "".join(written.text)
        if written.finish == "content_filter":
            return Response.refused(Diagnostic("content_filter"), text=text or None, **about)
        note = ("the text is the service's own transcript of the spoken answer",) if not written.text else ()
        spoken = "".join(written.text or written.transcript)
        if not written.audio or request.wants == "text":
            return Response(text=spoken, notes=(note if spoken else (EMPTY,)), **about)
        sound = audio_of(from_pieces(written.audio), "pcm", self.output_rate_hz)
        return Response(text=spoken or None, audio=sound, notes=note, **about)

    async def talk(self, socket: ClientConnection, events: list[str], began: float) -> Written:
        """The answer over an open connection.

        Args:
            socket: the connection. events: the messages of the request. began: when the attempt began
                (`time.monotonic`).

        Raises:
            Again, RequestFailed, Denied: there is no answer.
        """
        written = Written()
        for event in events[: self.opening]:
            await socket.send(event)
        rest = events[len(events) if self.opening is None else self.opening :]
        async for message in socket:
            step = self.step(message, written, began)
            if step == "done":
                return written
            if step == "ready":
                for event in rest:
                    await socket.send(event)
                rest = []
        raise Again("the connection was closed before the answer was complete")

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[ClientConnection]:
        """An open connection, for as long as the `with` block lasts.

        Raises:
            Again, RequestFailed, Denied: the service cannot be reached, turns the connection down or breaks it; without the
                key.
        """
        from websockets import exceptions
        from websockets.asyncio.client import connect

        try:
            async with connect(
                self.url(),
                additional_headers=self._send_headers,
                max_size=MAX_BYTES,
                open_timeout=CONNECT_S,
                logger=_SILENT,
                user_agent_header="codec-bench",
            ) as socket:
                yield socket
        except exceptions.InvalidStatus as error:
            raise self._error(error.response.status_code, bytes(error.response.body or b"")) from None
        except exceptions.WebSocketException as error:
            raise Again(f"the connection to {self.base_url} broke: {clean(str(error), self._secrets)}") from None
        except OSError as error:
            if isinstance(error, TimeoutError):  # the time limit of the attempt or of the handshake
                raise
            raise Again(f"nothing answers at {self.base_url}: {clean(str(error))}", disconnected=True) from None
        except (Again, RequestFailed) as trouble:
            trouble.reason = clean(trouble.reason, self._secrets)
            raise

    @property
    def closed(self) -> tuple[type[Exception], ...]:
        """What sending over a closed connection raises."""
        from websockets.exceptions import ConnectionClosed

        return (ConnectionClosed,)

    def conversation(self, instructions: str) -> list[str]:
        """What is sent at the beginning of a conversation in time, in which the service finds the ends of turns.

        Raises:
            UserError: models of this kind do not converse in time.
        """
        raise UserError(
            f"the model '{self.info.name}' does not converse in time",
            hint="models of the kinds openai-realtime, openai-live and gemini-live do",
        )

    def frame(self, samples: bytes) -> str:
        """The message that carries a frame of sound: 16-bit samples at `rate_hz`."""
        raise NotImplementedError

    def read_event(self, event: Mapping[str, Any]) -> ServiceEvent:
        """What a message of the service says during a conversation in time.

        Raises:
            Again, RequestFailed, Denied: the message is an error.
        """
        raise NotImplementedError

    def cut_off(self, item: str, played_s: float) -> str | None:
        """The message that tells the service how much of an interrupted answer was played; None if it is not told.

        Args:
            item: what the service calls the answer. played_s: seconds of it that were heard.
        """
        return None

    def read_message(self, message: str | bytes) -> ServiceEvent:
        """Reads one message of a conversation in time; as `read_event`."""
        return self._read(message, self.read_event)

    async def _attempt(self, events: list[str]) -> Written:
        began = time.monotonic()
        async with self.connected() as socket:
            return await self.talk(socket, events, began)

    def step(self, message: str | bytes, written: Written, began: float) -> Step:
        """Reads one message; as `enter`."""
        return self._read(message, lambda event: self.enter(event, written, began))

    @staticmethod
    def _read(message: str | bytes, read: Callable[[Mapping[str, Any]], Any]) -> Any:
        try:
            event = parse_json(message)
        except ValueError:
            raise Again(f"an event is not JSON: {clean(str(message))}") from None
        return understood(read, event, "event")

    def _error(self, status: int, body: bytes) -> Exception:
        message = clean(error_of(body.decode("utf-8", "replace"))[0], self._secrets)
        reason = f"{self.base_url} answered {status}" + (f": {message}" if message else "")
        if is_temporary(status):
            crowded = is_crowded(status)
            return Again(reason, wait_s=wait_of({}, message), crowded=crowded, daily=crowded and is_daily(message))
        hint = f"is the key in the environment variable {self.key.env} right, and the model's name?"
        return Denied(
            reason,
            hint if self.key.env else "does it need a key (key_env=NAME), and is base_url right?",
            final=status in (401, 402),
        )

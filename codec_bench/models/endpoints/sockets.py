"""The base of models behind a WebSocket: a connection per request, with retries.

A request is a list of messages. The first `opening` are sent at once, the others when the session is ready. Received
audio is samples without a header.
"""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra
from codec_bench.models.audio_payloads import audio_of, from_pieces
from codec_bench.models.base import EMPTY
from codec_bench.models.endpoints.bodies import parse_reply
from codec_bench.models.endpoints.error_texts import is_daily, wait_of
from codec_bench.models.endpoints.json_text import parse_json
from codec_bench.models.endpoints.keys import check_headers, check_url, clean, clean_reason
from codec_bench.models.endpoints.openai_chat import ChatReply
from codec_bench.models.endpoints.remote import RemoteModel
from codec_bench.models.endpoints.replies import MAX_BYTES, error_of
from codec_bench.models.endpoints.retries import Denied, RequestFailed, Retryable, RetryPolicy, is_crowded, is_temporary
from codec_bench.types import Request, Response

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

CONNECT_S = 15.0
Step = Literal["", "ready", "done"]
Read = TypeVar("Read")
# Decoding parameters that sessions do not have.
UNSUPPORTED = ("reasoning_tokens", "temperature", "repetition_penalty", "top_p", "stop", "seed")
# websockets logs its handshake headers, and so the key. This logger writes nothing.
_SILENT = logging.Logger("codec_bench.models.endpoints.sockets", logging.CRITICAL + 1)


def read_event(message: str | bytes, read: Callable[[Mapping[str, Any]], Read]) -> Read:
    """Parse a message of a service and read it.

    Raises:
        Retryable: it is not JSON. Retryable, RequestFailed, Denied: as `read`.
    """
    try:
        event = parse_json(message)
    except ValueError:
        raise Retryable(Diagnostic("event_not_json", text=clean(str(message)))) from None
    return parse_reply(read, event, "event")


class SocketModel(RemoteModel):
    """A model behind a WebSocket. Arguments as `RemoteModel`."""

    opening: ClassVar[int | None] = None
    """How many messages are sent before the session is ready; None for all."""
    output_rate_hz: ClassVar[int] = 24_000
    """Sample rate of spoken answers."""
    sound_last: ClassVar[bool] = False
    """Whether only the last turn may hold audio."""

    def connect(self) -> None:
        """Check the address, and create the retry policy (`client`); open no connection."""
        check_url(self.base_url, ("ws", "wss"))
        check_headers(self.headers)
        self.client = RetryPolicy(self.ceiling, self.patience)
        self._send_headers: dict[str, str] = {}
        self._secrets: tuple[str, ...] = ()

    async def start(self) -> None:
        """Read the key; open no connection. Raises as `Client.start`."""
        secret = self.key.read()
        self._secrets = (secret,) if secret else ()
        self._send_headers = {**self.socket_headers(), **self.headers, **self.key.headers()}
        try:
            import websockets  # noqa: F401
        except ImportError as error:
            raise MissingExtra("websocket", "websockets", "api") from error

    def check(self, request: Request) -> str | None:
        """Return why the model does not accept a request, or None."""
        turns = [m for m in request.messages if m.role != "system"]
        if self.sound_last and any(not isinstance(item, str) for m in turns[:-1] for item in m.content):
            return Diagnostic("sound_in_last_turn_only", model=self.info.name)
        return super().check(request)

    def socket_headers(self) -> Mapping[str, str]:
        """Return the handshake headers besides the user's and the key."""
        return {}

    def url(self) -> str:
        """Return the URL of a connection."""
        return self.base_url

    @abstractmethod
    def encode(self, request: Request) -> list[str]:
        """Return the messages of a request as JSON."""

    @abstractmethod
    def enter(self, event: Mapping[str, Any], written: ChatReply, began: float) -> Step:
        """Add a message of the service to the answer; return its state.

        Args:
            event: the parsed message.
            written: the answer so far.
            began: start of the request by `time.monotonic`.

        Raises:
            Retryable, RequestFailed, Denied: the message is an error.
        """

    async def answer(self, request: Request, body: list[str]) -> Response:
        """Send a request over a new connection, and return the service's answer."""
        reply = await self.client.run(lambda: self._attempt(body))
        written: ChatReply = reply.value
        about = reply.about(model=written.model, revision=written.revision)
        about |= {"usage": written.usage, "finish": written.finish, "first_s": written.first_s}
        text = "".join(written.text)
        if written.finish == "content_filter":
            return Response.refused(Diagnostic("content_filter"), text=text or None, **about)
        note = (Diagnostic("transcript_of_service"),) if not written.text else ()
        spoken = "".join(written.text or written.transcript)
        if not written.audio or request.wants == "text":
            return Response(text=spoken, notes=(note if spoken else (EMPTY,)), **about)
        sound = audio_of(from_pieces(written.audio), "pcm", self.output_rate_hz)
        return Response(text=spoken or None, audio=sound, notes=note, **about)

    async def talk(self, socket: ClientConnection, events: list[str], began: float) -> ChatReply:
        """Send messages over an open connection, and collect the answer.

        Args:
            events: the messages; those after `opening` wait until the service is ready.
            began: start of the attempt (`time.monotonic`).

        Raises:
            Retryable, RequestFailed, Denied: there is no answer.
        """
        written = ChatReply()
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
        raise Retryable(Diagnostic("closed_before_answer"))

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[ClientConnection]:
        """Open a connection for the `with` block.

        Raises:
            Retryable, RequestFailed, Denied: the service is unreachable, rejects or breaks the connection; the key is
                masked.
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
            raise Retryable(
                Diagnostic("connection_broke", url=self.base_url, cause=clean(str(error), self._secrets))
            ) from None
        except OSError as error:
            if isinstance(error, TimeoutError):  # the time limit of the attempt or of the handshake
                raise
            raise Retryable(
                Diagnostic("nothing_answers", url=self.base_url, cause=clean(str(error))), disconnected=True
            ) from None
        except (Retryable, RequestFailed) as trouble:
            trouble.reason = clean_reason(trouble.reason, self._secrets)
            raise

    async def _attempt(self, events: list[str]) -> ChatReply:
        began = time.monotonic()
        async with self.connected() as socket:
            return await self.talk(socket, events, began)

    def step(self, message: str | bytes, written: ChatReply, began: float) -> Step:
        """Read one message, as `enter`."""
        return read_event(message, lambda event: self.enter(event, written, began))

    def _error(self, status: int, body: bytes) -> Exception:
        """Convert an HTTP error of the handshake to an exception: retry or deny."""
        message = clean(error_of(body.decode("utf-8", "replace"))[0], self._secrets)
        reason = Diagnostic("service_status", url=self.base_url, status=status, message=message)
        if is_temporary(status):
            crowded = is_crowded(status)
            return Retryable(reason, wait_s=wait_of({}, message), crowded=crowded, daily=crowded and is_daily(message))
        hint = f"is the key in the environment variable {self.key.env} right, and the model's name?"
        return Denied(
            reason,
            hint if self.key.env else "does it need a key (key_env=NAME), and is base_url right?",
            final=status in (401, 402),
        )

"""OpenAI's realtime models over a WebSocket, with a new conversation for each request.

Source: https://platform.openai.com/docs/api-reference/realtime. Sound is sent and received as 16-bit samples at 24 kHz.
Sessions and events have two layouts: `beta` for the preview models, `ga` for later models. Answers in both are read in
the same way.
Checked against the types of the package openai 3.54 on 2026-11-22.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from codec_bench.errors import MissingExtra
from codec_bench.models.base import EMPTY, ModelInfo
from codec_bench.models.endpoints.accounts import openai_usage
from codec_bench.models.endpoints.bodies import named, understood
from codec_bench.models.endpoints.client import MAX_BYTES, error_of
from codec_bench.models.endpoints.delays import is_daily, wait_of
from codec_bench.models.endpoints.json_text import parse_json
from codec_bench.models.endpoints.keys import check_headers, check_url, clean
from codec_bench.models.endpoints.openai_chat import Written
from codec_bench.models.endpoints.persistence import Again, Denied, GivenUp, Persistence, is_crowded, is_temporary
from codec_bench.models.endpoints.remote import RemoteModel, check_choice
from codec_bench.models.sound import audio_of, from_pieces, pcm16_base64
from codec_bench.types import Message, Request, Response

RATE_HZ = 24_000
CONNECT_S = 15.0
# websockets logs the headers of its handshake, and the key is one of them. This logger writes nothing.
_SILENT = logging.Logger("codec_bench.models.endpoints.openai_realtime", logging.CRITICAL + 1)


class OpenAiRealtime(RemoteModel):
    """A model that listens and speaks over a WebSocket.

    Args:
        info: the facts of the model; audio is asked for when a benchmark needs it.
        layout: the layout of sessions and events, `beta` or `ga`.
        voice: the voice of spoken answers.
        connection: as `RemoteModel`; `parameters` go into the session; `rate_hz` is always 24 kHz.
    """

    changes_answers: ClassVar[tuple[str, ...]] = ("layout", "voice")
    # A session has a limit and nothing else of how answers are decoded.
    words: ClassVar[Mapping[str, str | None]] = dict.fromkeys(
        ("reasoning_tokens", "temperature", "repetition_penalty", "top_p", "stop", "seed")
    )

    def __init__(
        self,
        info: ModelInfo,
        *,
        layout: Literal["beta", "ga"] = "ga",
        voice: str | None = "alloy",
        **connection: Any,
    ) -> None:
        check_choice(info, "layout", layout, ("beta", "ga"))
        self.layout, self.voice = layout, voice
        rename = {"max_tokens": "max_response_output_tokens" if layout == "beta" else "max_output_tokens"}
        own = {"base_url": "wss://api.openai.com/v1/realtime", "key_env": "OPENAI_API_KEY", "rename": rename}
        super().__init__(info, **{**own, **connection, "rate_hz": RATE_HZ})

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
        """Reads the key; opens no connection.

        Raises:
            UserError: the variable that should hold the key is not set.
            MissingExtra: websockets is not installed.
        """
        secret = self.key.read()
        self._secrets = (secret,) if secret else ()
        beta = {"OpenAI-Beta": "realtime=v1"} if self.layout == "beta" else {}
        self._send_headers = {**beta, **self.headers, **self.key.headers()}
        try:
            import websockets  # noqa: F401
        except ImportError as error:
            raise MissingExtra("a model behind a WebSocket", "websockets", "api") from error

    def encode(self, request: Request) -> list[str]:
        """The events of the conversation as JSON."""
        return [json.dumps(event) for event in self._events(request)]

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
            return Response.refused("a content filter stopped the answer", text=text or None, **about)
        if not written.audio:
            return Response(text=text, notes=() if text else (EMPTY,), **about)
        note = ("the text is the service's own transcript of the spoken answer",) if not written.text else ()
        spoken = "".join(written.text or written.transcript) or None
        return Response(text=spoken, audio=audio_of(from_pieces(written.audio), "pcm", RATE_HZ), notes=note, **about)

    def _events(self, request: Request) -> list[dict[str, Any]]:
        kinds = ["audio"] if request.wants == "audio" else ["text"]
        system = "\n".join(p for m in request.messages if m.role == "system" for p in m.content if isinstance(p, str))
        session: dict[str, Any] = {"instructions": system} if system else {}
        session |= self.named_parameters(request)
        speaks = {"voice": self.voice} if self.voice and request.wants == "audio" else {}
        if self.layout == "beta":
            modalities = ["text", *kinds] if kinds == ["audio"] else kinds
            sound = {"input_audio_format": "pcm16", "output_audio_format": "pcm16", "turn_detection": None}
            session |= {"modalities": modalities, **sound, **speaks}
        else:
            pcm = {"type": "audio/pcm", "rate": RATE_HZ}
            audio = {"input": {"format": pcm, "turn_detection": None}, "output": {"format": pcm, **speaks}}
            session |= {"type": "realtime", "output_modalities": kinds, "audio": audio}
        items = [self._item(m) for m in request.messages if m.role != "system"]
        creates = [{"type": "conversation.item.create", "item": item} for item in items]
        return [{"type": "session.update", "session": session}, *creates, {"type": "response.create"}]

    def _item(self, message: Message) -> dict[str, Any]:
        said = "output_text" if self.layout == "ga" else "text"
        text = "input_text" if message.role == "user" else said
        parts = [
            {"type": text, "text": part}
            if isinstance(part, str)
            else {"type": "input_audio", "audio": pcm16_base64(part)}
            for part in message.content
        ]
        return {"type": "message", "role": message.role, "content": parts}

    async def _attempt(self, events: list[str]) -> Written:
        from websockets import exceptions
        from websockets.asyncio.client import connect

        began = time.monotonic()
        url = f"{self.base_url}{'&' if '?' in self.base_url else '?'}model={quote(self.model)}"
        try:
            async with connect(
                url,
                additional_headers=self._send_headers,
                max_size=MAX_BYTES,
                open_timeout=CONNECT_S,
                logger=_SILENT,
                user_agent_header="codec-bench",
            ) as socket:
                written = Written()
                for event in events:
                    await socket.send(event)
                async for message in socket:
                    if self._is_last(message, written, began):
                        return written
            raise Again("the connection was closed before the answer was complete")
        except exceptions.InvalidStatus as error:
            raise self._error(error.response.status_code, bytes(error.response.body or b"")) from None
        except exceptions.WebSocketException as error:
            raise Again(f"the connection to {self.base_url} broke: {clean(str(error), self._secrets)}") from None
        except OSError as error:
            if isinstance(error, TimeoutError):  # the time limit of the attempt or of the handshake
                raise
            raise Again(f"nothing answers at {self.base_url}: {clean(str(error))}", lost=True) from None
        except (Again, GivenUp) as trouble:
            trouble.reason = clean(trouble.reason, self._secrets)
            raise

    def _error(self, status: int, body: bytes) -> Exception:
        said = clean(error_of(body.decode("utf-8", "replace"))[0], self._secrets)
        reason = f"{self.base_url} answered {status}" + (f": {said}" if said else "")
        if is_temporary(status):
            crowded = is_crowded(status)
            return Again(reason, wait_s=wait_of({}, said), crowded=crowded, daily=crowded and is_daily(said))
        hint = f"is the key in the environment variable {self.key.env} right, and the model's name?"
        return Denied(
            reason,
            hint if self.key.env else "does it need a key (key_env=NAME), and is base_url right?",
            final=status in (401, 402),
        )

    def _is_last(self, message: str | bytes, written: Written, began: float) -> bool:
        """Adds an event to the answer; returns whether the answer is complete."""
        try:
            event = parse_json(message)
        except ValueError:
            raise Again(f"an event is not JSON: {clean(str(message))}") from None
        return understood(lambda event: self._enter(event, written, began), event, "event")

    def _enter(self, event: Mapping[str, Any], written: Written, began: float) -> bool:
        kind = event["type"]
        if kind == "error":
            raise _trouble(event["error"])
        if kind in ("session.created", "session.updated"):
            written.model = named(event.get("session"), "model") or written.model
        if kind == "response.done":
            self._finish(event["response"], written)
            return True
        if kind.startswith("response.") and kind.endswith(".delta"):
            name = kind.removeprefix("response.").removesuffix(".delta").removeprefix("output_")
            if name in ("text", "audio", "audio_transcript") and written.first_s is None:
                written.first_s = time.monotonic() - began
            if name == "text":
                written.text.append(event["delta"])
            elif name == "audio_transcript":
                written.transcript.append(event["delta"])
            elif name == "audio":
                written.audio.append(event["delta"])
        return False

    def _finish(self, response: Mapping[str, Any], written: Written) -> None:
        written.usage = openai_usage(response.get("usage"))
        details = response.get("status_details") or {}
        status = response.get("status", "completed")
        if status == "failed":
            raise _trouble(details.get("error") or {})
        if status == "cancelled":
            raise Again(f"the service cancelled its answer: {clean(str(details.get('reason')))}")
        reason = details.get("reason") if status == "incomplete" else None
        written.finish = {None: "stop", "max_output_tokens": "length"}.get(reason, reason)


def _trouble(error: Mapping[str, Any]) -> Exception:
    kind = f"{error.get('type', '')} {error.get('code', '')}"
    reason = f"the service reported an error: {clean(str(error.get('message') or kind))}"
    if "rate_limit" in kind:
        return Again(reason, wait_s=wait_of({}, reason), crowded=True, daily=is_daily(reason))
    if "insufficient_quota" in kind:
        return Denied(reason, "the account has no credit left or is not active", final=True)
    if "invalid_api_key" in kind or "authentication" in kind:
        return Denied(reason, "is the key right?", final=True)
    if "model_not_found" in kind:
        return Denied(reason, "is the name of the model right?")
    return GivenUp(reason, refused=True, said=json.dumps(error)) if "invalid_request" in kind else Again(reason)


__all__ = ["RATE_HZ", "OpenAiRealtime"]

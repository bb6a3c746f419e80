"""Reads bodies, audio, JSON, errors, and server-sent events (WHATWG HTML 9.2)."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from codec_bench.messages import Diagnostic
from codec_bench.models.endpoints.json_text import parse_json
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.retries import RequestFailed, Retryable

if TYPE_CHECKING:
    import aiohttp

# The longest reply that is read. An hour of speech as base64 of 16-bit samples at 24 kHz is 230 MB.
MAX_BYTES = 256 << 20


def error_of(text: str) -> tuple[str, set[str]]:
    """Return the message and codes of an error body, in any of several layouts.

    A body that is not JSON is its own message.
    """
    try:
        body = parse_json(text)
    except ValueError:
        return text, set()
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return text, set()
    error = body.get("error")
    inner: dict[str, Any] = error if isinstance(error, dict) else body
    listed = inner.get("details")
    details = [d for d in listed if isinstance(d, dict)] if isinstance(listed, list) else []
    codes = {str(d[key]) for d in [inner, *details] for key in ("code", "type", "reason", "status") if d.get(key)}
    for key in ("message", "detail", "error", "msg"):
        if inner.get(key):
            message = inner[key]
            return message if isinstance(message, str) else json.dumps(message, ensure_ascii=False), codes
    return text, codes


async def parts_of(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the chunks of a response body as they arrive."""
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > MAX_BYTES:
            raise RequestFailed(Diagnostic("reply_too_large", most_mib=MAX_BYTES >> 20))
        yield chunk


async def read_bytes(response: aiohttp.ClientResponse) -> bytes:
    """Return the complete body; a body over `MAX_BYTES` raises RequestFailed."""
    return b"".join([chunk async for chunk in parts_of(response)])


def is_text(response: aiohttp.ClientResponse) -> bool:
    """Whether a reply declares text or JSON."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    return bool(kind.startswith("text/") or kind.endswith("json"))


def _is_binary(data: bytes) -> bool:
    try:
        return "\0" in data[: len(data) - len(data) % 4 - 4].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start < len(data) - 8  # a character may be cut at the end


async def read_sound(response: aiohttp.ClientResponse) -> bytes:
    """Return the complete body of an audio reply.

    Raises:
        Retryable: it is an HTML page, such as that of a proxy.
        RequestFailed: it is another text, or too long.
    """
    data = await read_bytes(response)
    # Some services declare the wrong type; audio has bytes that no text has.
    if is_text(response) and not _is_binary(data[:4096]):
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        trouble = Retryable if kind == "text/html" else RequestFailed
        text = clean(data.decode("utf-8", "replace"))
        raise trouble(Diagnostic("reply_not_audio", found=clean(kind), text=text))
    return data


async def read_json(response: aiohttp.ClientResponse, _began: float = 0.0) -> Any:
    """Return the body as JSON. Can be the `read` of `Client.send`.

    Raises:
        Retryable: the body is not JSON (the page of a proxy, or a body that was cut off).
    """
    body = await read_bytes(response)
    try:
        return parse_json(body)
    except ValueError:
        kind, text = clean(response.headers.get("content-type", "")), clean(body.decode("utf-8", "replace"))
        if "json" in kind and text.startswith(("{", "[")):
            raise Retryable(Diagnostic("reply_json_damaged", kind=kind, text=text)) from None
        if not kind:
            raise Retryable(Diagnostic("reply_untyped", text=text)) from None
        raise Retryable(Diagnostic("reply_not_json", found=kind, text=text or "nothing")) from None


class EventLines:
    """Splits bytes, cut anywhere, into the data of server-sent events."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line_parts: list[str] = []
        self._break = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[str]:
        """Return the data of each event that these bytes complete."""
        text = self._break + self._decoder.decode(data)
        # A carriage return at the end may be the first half of a line break.
        self._break = "\r" if text.endswith("\r") else ""
        # Not splitlines: it would also split at U+2028 and others, which JSON may hold.
        *lines, rest = re.split(r"\r\n|\n|\r", text[: len(text) - len(self._break)])
        if lines:
            lines[0] = "".join([*self._line_parts, lines[0]])
            self._line_parts.clear()
        self._line_parts.append(rest)
        return [event for line in lines if (event := self._line(line)) is not None]

    def finish(self) -> list[str]:
        """Return the event that the end of the stream completes, in a list; or none."""
        lines = ["".join(self._line_parts), ""]
        self._line_parts.clear()
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: str) -> str | None:
        """Add a line to the current event; return the event's data if the line ends it."""
        if line:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            return None
        if not self._data:
            return None
        event, self._data = "\n".join(self._data), []
        return event


async def read_events(response: aiohttp.ClientResponse) -> AsyncIterator[Any]:
    """Yield the JSON of each server-sent event up to `[DONE]`.

    Raises:
        Retryable: an event is not JSON, or the reply is not a stream of events.
        RequestFailed: the stream is longer than `MAX_BYTES`.
    """
    kind = response.headers.get("content-type", "")
    if "text/event-stream" not in kind:
        text = clean((await read_bytes(response)).decode("utf-8", "replace"))
        raise Retryable(Diagnostic("stream_expected", kind=clean(kind), text=text))
    lines, done = EventLines(), False
    async for chunk in parts_of(response):  # read to the end, so that the connection can be reused
        for event in lines.feed(chunk):
            done = done or event.strip() == "[DONE]"
            if not done:
                yield _parsed(event)
    for event in lines.finish():
        if not done and event.strip() != "[DONE]":
            yield _parsed(event)


def _parsed(event: str) -> Any:
    try:
        return parse_json(event)
    except ValueError:
        raise Retryable(Diagnostic("event_not_json", text=clean(event))) from None

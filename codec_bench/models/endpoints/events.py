"""Reads streamed answers: server-sent events (WHATWG HTML 9.2) that hold JSON, as chat endpoints send them."""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from codec_bench.models.endpoints.client import parts_of, read_bytes
from codec_bench.models.endpoints.json_text import parse_json
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.persistence import Again

if TYPE_CHECKING:
    import aiohttp


class EventLines:
    """Splits a stream of bytes into the data of its server-sent events. The bytes may be cut anywhere."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[str]:
        """The data of each event that these bytes complete."""
        text = self._rest + self._decoder.decode(data)
        # A carriage return at the end may be the first half of a line break.
        held = "\r" if text.endswith("\r") else ""
        # Not splitlines: it would also split at U+2028 and others, which JSON may hold.
        *lines, rest = re.split(r"\r\n|\n|\r", text[: len(text) - len(held)])
        self._rest = rest + held
        return [event for line in lines if (event := self._line(line)) is not None]

    def finish(self) -> list[str]:
        """The data of an event that the stream ended in. Some servers leave out the empty line after the last event."""
        lines = [self._rest.rstrip("\r"), ""]
        self._rest = ""
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: str) -> str | None:
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
    """The JSON of each server-sent event up to `[DONE]`.

    Raises:
        Again: an event is not JSON, or the reply is not a stream of events.
        GivenUp: the stream is longer than `MAX_BYTES`.
    """
    kind = response.headers.get("content-type", "")
    if "text/event-stream" not in kind:
        said = clean((await read_bytes(response)).decode("utf-8", "replace"))
        raise Again(f"expected a stream of events, got {clean(kind) or 'no content type'}: {said}")
    lines, done = EventLines(), False
    async for part in parts_of(response):  # read to the end, so that the connection can be reused
        for event in lines.feed(part):
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
        raise Again(f"an event of the stream is not JSON: {clean(event)}") from None


__all__ = ["EventLines", "read_events"]

"""A service without a connection: the client's requests reach it in this process, which saves half of their time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any


class DirectSession:
    """In place of a client's `aiohttp.ClientSession`: a function of a request's JSON gives the reply.

        monkeypatch.setattr("codec_bench.models.endpoints.client.open_session", lambda *_: DirectSession(answer))

    Requests and replies are bytes, as over a connection. Every GET is answered 404.
    """

    def __init__(self, answer: Callable[[Mapping[str, Any]], Any]) -> None:
        self._answer = answer

    @asynccontextmanager
    async def request(self, method: str, url: Any, *, allow_redirects: bool, **sent: Any) -> AsyncIterator[DirectReply]:
        """Answers a request."""
        if method == "POST":
            yield DirectReply(200, self._answer(json.loads(sent["data"])))
        else:
            yield DirectReply(404, {})

    def get(self, url: Any, *, allow_redirects: bool) -> Any:
        """Answers 404."""
        return self.request("GET", url, allow_redirects=allow_redirects)

    async def close(self) -> None:
        """There is nothing to close."""


class DirectReply:
    """What a client reads of an `aiohttp.ClientResponse`."""

    headers: Mapping[str, str] = {"content-type": "application/json"}

    def __init__(self, status: int, value: Any) -> None:
        self.status, self.content = status, self
        self._body = json.dumps(value).encode()

    async def iter_any(self) -> AsyncIterator[bytes]:
        """The body, as one chunk."""
        yield self._body

"""Real local servers that answer as badly as real ones do, and clients that do not wait."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest

from codec_bench.audio.clip import Clip
from codec_bench.types import Audio, Message, Request


@dataclass
class Seen:
    """A request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class Service:
    """A local HTTP server: `handle(seen, writer)` writes raw bytes, or returns them."""

    handle: object
    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    busy: int = 0
    most_busy: int = 0

    async def talk(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").split("\r\n")
                method, path, _ = lines[0].split(" ")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:] if line)}
                body = await self.body(reader, headers)
                request = Seen(method, path, headers, body)
                self.seen.append(request)
                self.busy += 1
                self.most_busy = max(self.most_busy, self.busy)
                try:
                    out = await self.handle(request, writer)
                finally:
                    self.busy -= 1
                if out is None:
                    break
                writer.write(out)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @staticmethod
    async def body(reader, headers):
        if "content-length" in headers:
            return await reader.readexactly(int(headers["content-length"]))
        if headers.get("transfer-encoding") != "chunked":
            return b""
        parts = []
        while size := int(await reader.readline(), 16):
            parts.append(await reader.readexactly(size))
            await reader.readline()
        await reader.readline()
        return b"".join(parts)


def reply(body=b"", status=200, kind="application/json", **headers):
    """A whole HTTP reply; a body that is no bytes is sent as JSON."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chat(text="hello", finish="stop", **message):
    """A chat completion."""
    return {
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
        ],
        "usage": {"prompt_tokens": 120, "completion_tokens": 7, "prompt_tokens_details": {"audio_tokens": 100}},
    }


@asynccontextmanager
async def serving(handle):
    """Runs a `Service` in this event loop."""
    service = Service(handle)
    server = await asyncio.start_server(service.talk, "127.0.0.1", 0, limit=1 << 26)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield service
    finally:
        server.close()


class Clock:
    """A clock whose time passes only while something sleeps."""

    def __init__(self):
        self.now = 0.0
        self.slept = []

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def unhurried(model, clock=None):
    """Makes a model's client wait by a clock that stands still but for sleeping; returns the clock."""
    clock = clock or Clock()
    client = model.client
    client._clock, client._sleep, client._rng = clock, clock.sleep, random.Random(7)
    client.gate._clock, client.gate._sleep = clock, clock.sleep
    return clock


@asynccontextmanager
async def started(model):
    await model.start()
    try:
        yield model
    finally:
        await model.close()


async def live(handle, name, path, request, process_request=None, **options):
    """What the model `name` answers to a request, with a WebSocket at `path` that `handle` serves.

    `process_request` is as the websockets library takes it; `options` are the model's.
    """
    from websockets.asyncio.server import serve

    from codec_bench.models import load_model

    async with serve(handle, "127.0.0.1", 0, process_request=process_request) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}{path}"
        model = load_model(name, {"base_url": url, "attempts": 1, **options})
        unhurried(model)
        async with started(model):
            return await model.ask(request)


def tone(seconds=0.5, rate=16_000, hz=440.0):
    """A tone at half of full scale."""
    at = np.arange(int(seconds * rate)) / rate
    return Audio((0.5 * np.sin(2 * np.pi * hz * at)).astype(np.float32), rate)


def question(text="What is said?", audio=None, wants="text", id="q1", **more):
    """A turn with a sound and words."""
    parts = (*((Clip(audio),) if audio is not None else ()), text)
    return Request(id, (Message("user", parts),), wants=wants, **more)


@pytest.fixture
def kit():
    """Helpers that the tests of this folder share, because modules beside a test cannot be imported."""
    from types import SimpleNamespace

    shared = (serving, reply, chat, Clock, unhurried, started, live, tone, question)
    return SimpleNamespace(**{one.__name__: one for one in shared})


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    """Hides the API keys of the person who runs the tests."""
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "DASHSCOPE_API_KEY"):
        monkeypatch.delenv(name, raising=False)

"""The HTTP service of a warm scorer.

Errors have a status and `{"error": {"code", "message"}}`: 401 no or a wrong token, 404 an unknown path or reference,
408 a slow body, 413 too large, 415 a compressed body, 422 an item that cannot be scored, 503 with Retry-After a full
queue, 504 a time limit.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
import os
import resource
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from codec_bench.apps.serving.items import MOST_BYTES, BadItem, Item, QueueFull, Result, too_large
from codec_bench.apps.serving.page import LATENCIES, service_page
from codec_bench.apps.serving.rewards import NoReward, RewardSpec, compute_reward
from codec_bench.apps.serving.scorer import Scorer, unknown_reference
from codec_bench.apps.serving.wire import audio_of, item_of, parse_json, result_json, verl_item, verl_reply
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

BODY_BYTES = 2 * (MOST_BYTES * 4 // 3) + (1 << 20)
"""Of a request: an item and its reference in base64."""
ALL_BODIES_BYTES = 4 << 30
"""Limit of all open bodies; unknown lengths count as the longest, streams as read."""
BODY_S = 60.0
"""Seconds for the body of a request."""
HEAD_S = 30.0
"""Seconds for the head of the first request of a connection."""
MOST_CONNECTIONS = 4_096
"""Open at a time, and at most a sixth of the process's file limit."""
CLIENT_GONE = 499
"""The status in `/metrics` of requests whose client left, as in nginx."""
DRAIN_S = 30.0
"""Seconds for open items when the service ends."""
_MALFORMED = (ValueError, AssertionError, HttpProcessingError, web.RequestPayloadError)
"""aiohttp's errors for a body that contradicts its headers."""
T = TypeVar("T")
AT_ONCE = 64
"""Concurrent items of one stream."""
PARTS = ("audio", "reference", "item", "text", "language", "id", "reference_id")
"""Of a multipart request, each once."""
STATUSES = {
    "unknown_reference": 404, "too_large": 413, "bad_json": 400, "too_many_references": 409, "unauthorised": 401,
    "slow_body": 408, "compressed": 415,
}  # fmt: skip
STREAM = "/v1/scores"
HEADERS = {503: {"Retry-After": "1"}, 401: {"WWW-Authenticate": 'Basic realm="codec-bench", charset="UTF-8"'}}
"""Of errors, by status."""


class _WithoutBadRequests(logging.Filter):
    """Excludes non-HTTP input from the log, where its sender could write."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


LOG = logging.getLogger(__name__)
LOG.addFilter(_WithoutBadRequests())


@dataclass(slots=True)
class Service:
    """A running service; `reward` is what `/v1/reward` computes."""

    scorer: Scorer
    reward: RewardSpec | None = None
    token: str | None = None
    time_limit_s: float = 300.0
    started: float = field(default_factory=monotonic)
    requests: dict[str, int] = field(default_factory=dict)
    latencies: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=LATENCIES))
    errors: deque[tuple[float, str, str]] = field(default_factory=lambda: deque(maxlen=20))
    draining: bool = False
    body_bytes: int = 0
    silent: set[Any] = field(default_factory=set)  # connections that have sent no request

    def application(self) -> web.Application:
        """Build the aiohttp application with all routes."""
        app = web.Application(middlewares=[self._guard], client_max_size=BODY_BYTES)
        app.add_routes(
            [
                web.post("/v1/score", self.score),
                web.post(STREAM, self.scores),
                web.post("/v1/reward", self.reward_of),
                web.post("/reward/verl-omni", self.verl),
                web.put("/v1/references/{id}", self.put_reference),
                web.delete("/v1/references/{id}", self.drop_reference),
                web.get("/v1/metrics", self.metrics),
                web.get("/healthz", self.health),
                web.get("/readyz", self.ready),
                web.get("/metrics", self.prometheus),
                web.get("/", self.page),
            ]
        )
        return app

    async def score(self, request: web.Request) -> web.Response:
        """Score one item."""
        return web.json_response(result_json(await self._result(await _timed(_read_item(request)))))

    async def scores(self, request: web.Request) -> web.StreamResponse:
        """Score a body of JSON lines, and stream a line per item once it is scored."""
        reply = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await reply.prepare(request)
        lock, open_bytes = asyncio.Lock(), 0

        async def one(number: int, line: bytes, take: Callable[[int], None]) -> None:
            """Score the item of one line, and write its line of the reply."""
            nonlocal open_bytes
            answer: dict[str, Any] = {"line": number}
            try:
                value = parse_json(line)
                answer["id"] = value.get("id")
                answer |= result_json(await self._result(item_of(value), wait=True))
            except (UserError, TimeoutError) as error:
                answer |= _error(error)[1]
            finally:
                open_bytes -= len(line)
                take(-len(line))
            async with lock:
                await reply.write(json.dumps(answer).encode() + b"\n")

        running: set[asyncio.Task[None]] = set()
        number = 0
        with self._room() as take:
            try:
                async for line in _lines(request, take):
                    number += 1
                    if self.draining:
                        raise QueueFull("shutting_down_at_line", line=number)
                    while running and (len(running) >= AT_ONCE or open_bytes + len(line) > BODY_BYTES):
                        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    open_bytes += len(line)
                    task = asyncio.create_task(one(number, line, take))
                    running.add(task)
                    task.add_done_callback(running.discard)
                await asyncio.gather(*running)
            except (BadItem, QueueFull) as error:
                await asyncio.gather(*running)
                at = number + isinstance(error, BadItem)
                await reply.write(json.dumps({"line": at, **_error(error)[1]}).encode() + b"\n")
            except BaseException:
                for task in running:
                    task.cancel()
                raise
        await reply.write_eof()
        return reply

    async def reward_of(self, request: web.Request) -> web.Response:
        """Return the reward of one item, with its terms and the values of metrics."""
        reward = await self._reward(await _timed(_read_item(request)))
        value = {**reward.values, "terms": dict(reward.terms), "missing": dict(reward.missing)}
        return web.json_response({**value, "score": reward.score})

    async def verl(self, request: web.Request) -> web.Response:
        """Return the reward of one item, in verl-omni's protocol."""
        return web.json_response(verl_reply(await self._reward(verl_item(parse_json(await _body(request))))))

    async def put_reference(self, request: web.Request) -> web.Response:
        """Store the reference audio of a body, as a file, multipart or JSON."""
        if request.content_type.startswith("multipart/"):
            parts = await _timed(_read_parts(request))
            data = parts.get("reference", parts.get("audio", b""))
        else:
            data = await _body(request)
        if request.content_type == "application/json":
            data = audio_of(parse_json(data), "reference")
        await self._keep_reference(request.match_info["id"], data)
        return web.json_response({"id": request.match_info["id"]}, status=201)

    async def drop_reference(self, request: web.Request) -> web.Response:
        """Delete a reference."""
        if not await self._drop_reference(request.match_info["id"]):
            raise unknown_reference(request.match_info["id"])
        return web.Response(status=204)

    async def metrics(self, request: web.Request) -> web.Response:
        """List the scored metrics with protocol and direction."""
        better = self.scorer.higher_is_better
        metrics = [{"name": n, "protocol": p, "higher_is_better": better[n]} for n, p in self.scorer.protocols.items()]
        return web.json_response({"metrics": metrics})

    async def health(self, request: web.Request) -> web.Response:
        """Report that the process runs."""
        return web.json_response({"status": "ok"})

    async def ready(self, request: web.Request) -> web.Response:
        """Report whether requests are accepted."""
        if self.draining or not self.scorer.is_running:
            return web.json_response({"status": "draining" if self.draining else "ended"}, status=503)
        return web.json_response({"status": "ready"})

    async def prometheus(self, request: web.Request) -> web.Response:
        """Report counters in Prometheus' text format."""
        scorer = self.scorer
        lines = [
            "# TYPE codec_bench_items_total counter", f"codec_bench_items_total {scorer.finished}",
            "# TYPE codec_bench_items_failed_total counter", f"codec_bench_items_failed_total {scorer.failed}",
            "# TYPE codec_bench_audio_seconds_total counter", f"codec_bench_audio_seconds_total {scorer.audio_s:.3f}",
            "# TYPE codec_bench_workers_replaced_total counter",
            f"codec_bench_workers_replaced_total {scorer.replaced}",
            "# TYPE codec_bench_items_waiting gauge", f"codec_bench_items_waiting {scorer.waiting}",
            "# TYPE codec_bench_requests_total counter",
            *(f'codec_bench_requests_total{{status="{code}"}} {n}' for code, n in sorted(self.requests.items())),
        ]  # fmt: skip
        return web.Response(text="\n".join(lines) + "\n", content_type="text/plain")

    async def page(self, request: web.Request) -> web.Response:
        """Render a page with load, throughput and the latest errors."""
        text = service_page(self.scorer, self.started, self.requests, list(self.latencies), list(self.errors))
        return web.Response(body=text.encode("utf-8", "replace"), content_type="text/html", charset="utf-8")

    async def _keep_reference(self, id: str, data: bytes) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.scorer.put_reference, id, data)

    async def _drop_reference(self, id: str) -> bool:
        return self.scorer.drop_reference(id)

    async def _reward(self, item: Item) -> Any:
        """Compute the reward of an item; raises BadItem without one."""
        if self.reward is None:
            raise BadItem(Diagnostic("no_reward_computed"), code="no_reward", hint="start it with --reward")
        try:
            return compute_reward(self.reward, (await self._result(item)).scores)
        except NoReward as error:
            raise BadItem(error.message, code="no_value") from error

    async def _result(self, item: Item, *, wait: bool = False) -> Result:
        """Score an item within the time limit; with `wait`, wait for room in the queue."""
        while True:
            try:
                result = await asyncio.wait_for(self.scorer.score_async(item), self.time_limit_s)
                break
            except QueueFull:
                if not wait:
                    raise
                await asyncio.sleep(0.05)
        self.latencies.append((monotonic(), result.seconds))
        if result.unreadable is not None:
            raise BadItem(result.unreadable, code="unreadable")
        return result

    @contextmanager
    def _room(self) -> Iterator[Callable[[int], None]]:
        """Yield a counter of a request's bytes; all are freed at the end.

        It takes the bytes to add, and raises QueueFull if all requests together have too many.
        """
        held = 0

        def take(size: int) -> None:
            """Count bytes, or free them if negative; raises QueueFull."""
            nonlocal held
            if size > 0 and self.body_bytes and self.body_bytes + size > ALL_BODIES_BYTES:
                raise QueueFull("no_room_for_bodies")
            self.body_bytes += size
            held += size

        try:
            yield take
        finally:
            self.body_bytes -= held

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Handle each request: check its token and size, and convert errors to JSON."""
        self.silent.discard(request.protocol)
        try:
            if self.token is not None and request.path not in ("/healthz", "/readyz"):
                token = _token_of(request.headers.get("Authorization", ""))
                if not hmac.compare_digest(token, self.token.encode("utf-8", "replace")):
                    raise BadItem(Diagnostic("token_needed"), code="unauthorised")
            if self.draining and request.method in ("POST", "PUT"):
                raise QueueFull("shutting_down")
            with self._room() as take:
                take(_check_body(request))
                reply = await handler(request)
        except (UserError, TimeoutError, web.HTTPException, *_MALFORMED) as error:
            status, value = _error(error)
            self.errors.append((monotonic(), value["error"]["code"], value["error"]["message"]))
            reply = web.json_response(value, status=status, headers=HEADERS.get(status))
        except ConnectionError:  # the client went away
            reply = web.Response(status=CLIENT_GONE)
        self.requests[str(reply.status)] = self.requests.get(str(reply.status), 0) + 1
        return reply


def _token_of(header: str) -> bytes:
    """Return the token of a `Bearer` or the password of a `Basic` header; or empty."""
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except ValueError:
            return b""
    return value.encode("utf-8", "replace") if scheme.lower() == "bearer" else b""


def _check_body(request: web.Request) -> int:
    """Return the declared size of a body, or the limit if unknown; 0 for a stream.

    Raises:
        BadItem: it is compressed or too large.
    """
    if "Content-Encoding" in request.headers:
        raise BadItem(Diagnostic("body_compressed"), code="compressed")
    if request.path == STREAM or not request.can_read_body:
        return 0
    size = BODY_BYTES if request.content_length is None else request.content_length
    if size > BODY_BYTES:
        raise too_large("request", size, BODY_BYTES)
    return size


def _error(error: BaseException) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status and JSON body of an error."""
    if isinstance(error, web.HTTPException):
        code = {404: "not_found", 405: "not_allowed", 413: "too_large"}.get(error.status, "bad_request")
        return error.status, {"error": {"code": code, "message": error.reason}}
    if isinstance(error, QueueFull):
        return 503, {"error": {"code": "queue_full", "message": error.message}}
    if isinstance(error, BadItem):
        facts = {"code": error.code, "message": error.message, "hint": error.hint}
        return STATUSES.get(error.code, 422), {"error": facts}
    if isinstance(error, _MALFORMED):
        return 400, {"error": {"code": "bad_request", "message": "the body of the request is malformed"}}
    if isinstance(error, TimeoutError):
        return 504, {"error": {"code": "time_limit", "message": "the item was not scored within the time limit"}}
    return 503, {"error": {"code": "unavailable", "message": str(error)}}


async def _body(request: web.Request) -> bytes:
    return await _timed(request.read())


async def _timed(reading: Coroutine[Any, Any, T]) -> T:
    try:
        return await asyncio.wait_for(reading, BODY_S)
    except TimeoutError as error:
        raise BadItem(Diagnostic("body_late", limit_s=BODY_S), code="slow_body") from error


async def _read_item(request: web.Request) -> Item:
    """Read an item from a multipart or a JSON request."""
    if request.content_type.startswith("multipart/"):
        parts = await _read_parts(request)
        if "audio" not in parts:
            raise BadItem(Diagnostic("no_audio_part"), code="no_audio")
        value = parse_json(parts["item"]) if "item" in parts else {}
        for name in ("text", "language", "id", "reference_id"):
            if name in parts:
                value[name] = parts[name].decode("utf-8", "replace")
        return item_of(value, parts["audio"], parts.get("reference"))
    return item_of(parse_json(await request.read()))


async def _read_parts(request: web.Request) -> dict[str, bytes]:
    """Read the parts of a multipart request, by name; raises BadItem for others."""
    parts: dict[str, bytes] = {}
    size = 0
    async for field_part in await request.multipart():
        if not isinstance(field_part, BodyPartReader) or field_part.name not in PARTS or field_part.name in parts:
            raise BadItem(Diagnostic("parts_once", parts=PARTS), code="bad_item")
        data = bytearray()
        while chunk := await field_part.read_chunk(1 << 18):
            data += chunk
            size += len(chunk)
            if size > BODY_BYTES:
                raise too_large("request", size, BODY_BYTES)
        parts[field_part.name] = bytes(data)
    return parts


async def _lines(request: web.Request, take: Callable[[int], None]) -> AsyncIterator[bytes]:
    """Yield the lines of a body as they arrive, without blank ones.

    Args:
        take: called with the number of bytes read, and with a negative one for bytes freed.
    """
    parts, size = list[bytes](), 0
    async for chunk in request.content.iter_chunked(1 << 16):
        *ends, rest = chunk.split(b"\n")
        take(len(chunk) - len(ends))
        for end in ends:
            line = b"".join([*parts, end])
            parts, size = [], 0
            if line.strip():
                yield line
            else:
                take(-len(line))
        parts.append(rest)
        size += len(rest)
        if size > BODY_BYTES:
            raise too_large("line", size, BODY_BYTES)
    if (line := b"".join(parts)).strip():
        yield line


def check_port(host: str, port: int) -> None:
    """Check that a port is free, before networks are loaded."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise _unusable_port(host, port, error) from error


def _unusable_port(host: str, port: int, error: OSError) -> UserError:
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    return UserError("port_unusable", port=port, host=host, cause=reason, hint="--port 0 takes a free one")


async def run_service(
    service: Service, host: str, port: int, *, on_ready: Callable[[str], None], stop: Awaitable[Any]
) -> None:
    """Serve until `stop` is done, then finish open items.

    Args:
        port: 0 takes a free one.
        on_ready: called with the address.

    Raises:
        UserError: the port cannot be used.
    """
    runner = web.AppRunner(
        service.application(), access_log=None, handle_signals=False, handler_cancellation=True, shutdown_timeout=2.0,
        auto_decompress=False, logger=LOG,
    )  # fmt: skip
    await runner.setup()
    try:
        try:
            listener = await asyncio.get_running_loop().create_server(_protocols(service, runner), host, port)
        except OSError as error:
            raise _unusable_port(host, port, error) from error
        bound = listener.sockets[0].getsockname()[1]
        on_ready(f"http://{'127.0.0.1' if host in ('0.0.0.0', '::') else host}:{bound}")
        await stop
        service.draining = True
        until = monotonic() + DRAIN_S
        while service.scorer.waiting and service.scorer.is_running and monotonic() < until:
            await asyncio.sleep(0.05)
        listener.close()
    finally:
        await runner.cleanup()


def _protocols(service: Service, runner: web.AppRunner) -> Callable[[], asyncio.BaseProtocol]:
    """Build the listener's protocol factory, which limits connections and idle time."""
    server, loop = runner.server, asyncio.get_running_loop()
    assert server is not None
    most = min(MOST_CONNECTIONS, max(64, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 6))

    def end_silent(handler: Any) -> None:
        if handler in service.silent:
            service.silent.remove(handler)
            handler.force_close()

    def new_protocol() -> asyncio.BaseProtocol:
        """Create the protocol of a connection; it closes at once beyond the limit."""
        if len(server.connections) >= most:
            return asyncio.StreamReaderProtocol(asyncio.StreamReader(), lambda _, writer: writer.close())
        handler = server()
        service.silent.add(handler)
        loop.call_later(HEAD_S, end_silent, handler)
        return handler

    return new_protocol

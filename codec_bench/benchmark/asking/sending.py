"""Send many concurrent requests to a model, after a lookup in the response cache.

Memory does not grow with the number of requests. All runs share answers if the model's identity identifies a checkpoint
(local weights, a dated name at a vendor). Otherwise only the same run reuses an answer, unless the caller shares: such
a run finds the answers of all runs.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from inspect import isawaitable
from time import monotonic
from typing import TYPE_CHECKING, Any

from codec_bench.benchmark.asking.spending import Spending
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import AudioError, RunMismatch, UserError
from codec_bench.models.base import Model
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.retries import HELD_SLOTS, HeldSlots
from codec_bench.models.likelihood import pair_likelihoods
from codec_bench.store.answers import AnswerWriter
from codec_bench.types import Audio, Request, Response

if TYPE_CHECKING:
    from codec_bench.models.cache import ResponseCache

Pair = tuple[Request, Response]
SendRequests = Callable[..., AsyncGenerator[Pair, None]]
"""Sends requests to a model and yields each with its response, as `send_requests` does."""
AskSome = Callable[..., AsyncGenerator[tuple[Request, Response | None], None]]
"""As `SendRequests`, but yields None for a request whose answer comes later."""

Claimed = asyncio.Future[Request | None]

BATCH = 256
"""How many requests are looked up in the cache at once."""
AHEAD = 512
"""How many requests may be read and unanswered, at least."""
GATHER_S = 0.05
"""How long a batch is gathered at most."""


async def send_requests(
    model: Model,
    requests: Iterable[Request],
    *,
    cache: ResponseCache | None = None,
    identity: Mapping[str, Any] | None = None,
    alias: Mapping[str, Any] | None = None,
    spending: Spending | None = None,
    on_stored: Callable[[], None] | None = None,
    then: Callable[[Request], Request | None] | None = None,
) -> AsyncGenerator[Pair, None]:
    """Yield every request with its response, in the order of completion.

    Args:
        model: a started model, which stays open. `model.concurrency` requests are in flight.
        requests: read on demand in the event loop's thread, at most twice the concurrency or `AHEAD` beyond the
            yielded.
        cache: the model gets no request whose answer is in it. New answers go into it; failures do not.
        identity: the cache's key for the model; None for `model.identity`.
        alias: a second key under which other callers find these answers; None for none.
        spending: the budget; at its limit nothing more is sent, and requests in flight are still yielded.
        on_stored: called after answers are yielded, to write them to disk; before that, a model that charges gets no
            request in their places. Answers of one turn of the event loop are written together.
        then: called with a yielded request; returns the next request of its conversation, or None.

    Iterate within `contextlib.aclosing`: leaving early then cancels everything in flight.

    Raises:
        UserError: the model cannot be used at all. Earlier answers are yielded first.
    """
    room = asyncio.Semaphore(max(AHEAD, 2 * model.concurrency))
    lookup = Lookup(cache, model, identity, alias) if cache is not None else None
    flight = _RequestsInFlight(model, lookup, spending, then is not None)
    running = asyncio.create_task(flight.run(_batches(requests, room, BATCH if lookup is not None else 1)))
    try:
        while (items := await flight.next_responses())[0] is not None:
            for item in items:
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item[0]
            if on_stored is not None:
                on_stored()
            for (request, _), claimed in (item for item in items if isinstance(item, tuple)):
                following = None if then is None else then(request)
                if following is None:
                    room.release()
                # It is cancelled if another request failed while the caller had this answer.
                if not claimed.done():
                    claimed.set_result(following)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        if lookup is not None:
            await lookup.close()


class Lookup:
    """A model's response cache in a thread; the disk never blocks the event loop."""

    def __init__(
        self, cache: ResponseCache, model: Model, identity: Mapping[str, Any] | None, alias: Mapping[str, Any] | None
    ) -> None:
        self._cache, self._identity, self._alias = cache, model.identity if identity is None else identity, alias
        self._model_name = model.info.name
        self._thread = ThreadPoolExecutor(1, "response-cache")

    async def find(self, batch: list[Request]) -> list[tuple[str | None, Response | None]]:
        """Return each request's cache key, and its response if it is cached."""
        return await self._call(self._cache.look_up, self._identity, batch)

    async def put(self, key: str, request: Request, response: Response) -> None:
        """Store an answer."""
        await self._call(self._put, key, request, response)

    def _put(self, key: str, request: Request, response: Response) -> None:
        alias = None if self._alias is None else self._cache.key_of(self._alias, request)
        self._cache.put(key, response, self._model_name, alias)

    async def close(self) -> None:
        """Flush to disk and end the thread; the cache stays open."""
        await self._call(self._cache.flush)
        self._thread.shutdown(wait=True)

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)


class _RequestsInFlight:
    """The requests between the caller's iterator and its loop over the answers.

    Args:
        in_rounds: whether a request may be followed by another in the same place. Each answer is then awaited, and
            looked up in its place.

    Attributes:
        finished: answered requests, each with a future of the request that follows (or None); then the error that ended
            the flight, if any; then None.
    """

    def __init__(self, model: Model, lookup: Lookup | None, spending: Spending | None, in_rounds: bool) -> None:
        self._model, self._lookup, self._spending, self._in_rounds = model, lookup, spending, in_rounds
        self._waiting: asyncio.Queue[tuple[str | None, Request] | None] = asyncio.Queue()
        self.finished: asyncio.Queue[tuple[Pair, Claimed] | BaseException | None] = asyncio.Queue()

    async def run(self, batches: AsyncGenerator[list[Request], None]) -> None:
        """Send everything; an error goes into `finished`."""
        try:
            async with asyncio.TaskGroup() as group:
                feed = group.create_task(self._feed(batches))
                workers = [group.create_task(self._work()) for _ in range(self._model.concurrency)]
                await asyncio.wait(workers)
                feed.cancel()  # workers end before the feed only if nothing more may be sent
        except BaseExceptionGroup as several:
            # Only one of several errors is raised, preferably one that the user can fix.
            causes = sorted(several.exceptions, key=lambda e: not isinstance(e, UserError))
            self.finished.put_nowait(causes[0])
        finally:
            self.finished.put_nowait(None)

    async def next_responses(self) -> list[tuple[Pair, Claimed] | BaseException | None]:
        """Wait for the next finished request; for a paid model, return all finished ones.

        Returns:
            Items of `finished`.
        """
        items = [await self.finished.get()]
        if self._model.charges and items[0] is not None:
            await asyncio.sleep(0)
            while not self.finished.empty():
                items.append(self.finished.get_nowait())
        return items

    async def _feed(self, batches: AsyncGenerator[list[Request], None]) -> None:
        """Queue the requests for the workers; finish at once those in the cache."""
        async with aclosing(batches):
            async for batch in batches:
                ahead = self._lookup is not None and not self._in_rounds
                cached = await self._lookup.find(batch) if ahead and self._lookup else [(None, None)] * len(batch)
                for request, (key, response) in zip(batch, cached):
                    if response is not None:
                        self._finish(request, checked(response))
                    else:
                        self._waiting.put_nowait((key, request))
        for _ in range(self._model.concurrency):
            self._waiting.put_nowait(None)

    async def _work(self) -> None:
        """Send queued requests one after another until the queue ends."""
        while (item := await self._waiting.get()) is not None:
            places = HeldSlots()
            HELD_SLOTS.set(places if self._model.charges else None)
            try:
                if not await self._send_in_turn(*item):
                    break
            finally:
                places.release_all()
            # The reader takes the answer, and whoever waits for the place precedes the next item.
            await asyncio.sleep(0)

    def _finish(self, request: Request, response: Response) -> Claimed:
        claimed: Claimed = asyncio.get_running_loop().create_future()
        self.finished.put_nowait(((request, response), claimed))
        return claimed

    async def _send_in_turn(self, key: str | None, request: Request) -> bool:
        """Send a request, then its follow-ups; returns False if the run may send no more.

        Args:
            key: of the request in the response cache; None without a cache or a readable sound.
        """
        following: Request | None = request
        while following is not None:
            request, response = following, None
            if self._in_rounds and self._lookup is not None:
                ((key, stored),) = await self._lookup.find([request])
                response = None if stored is None else checked(stored)
            if response is None and (response := await self._send_uncached(key, request)) is None:
                return False
            claimed = self._finish(request, response)
            # The caller writes the answer before the next request in its place.
            following = await claimed if self._model.charges or self._in_rounds else None
        return True

    async def _send_uncached(self, key: str | None, request: Request) -> Response | None:
        """Send a request to the model; None if the budget allows no more."""
        if self._spending is not None and not await self._spending.begin():
            return None
        response = await send_request(self._model, request)
        if self._spending is not None:
            self._spending.end(response)
        if self._lookup is not None and key is not None and response.status == "ok":
            await self._lookup.put(key, request, response)
        return response


async def send_request(model: Model, request: Request) -> Response:
    """Get one answer. Model errors fail this request alone, unless it is unusable."""
    try:
        by_likelihood = request.wants == "likelihood" and not model.weighs
        coming = pair_likelihoods(model, request) if by_likelihood else model.ask(request)
        if not isawaitable(coming):
            kind = type(coming).__name__
            return Response.failed(Diagnostic("ask_is_not_async", kind=kind))
        result = await coming
        if isinstance(result, Response):
            return checked(result)
        return Response.failed(Diagnostic("no_response", type=type(result).__name__))
    except AudioError as error:  # a sound that cannot be read fails its own question only
        return Response.failed(error.message)
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # a custom model may raise anything, and other requests go on
        unread = isinstance(error, KeyError) and error.args[:1] in _NAMED and not request.fields
        code = "model_raised_on_messages" if unread else "model_raised"
        return Response.failed(Diagnostic(code, type=type(error).__name__, message=clean(str(error))))


_NAMED = [(name,) for name in ("text", "instruction", "audio", "prompt_audio", "prompt_text")]
"""Fields that speech synthesis and transcription prompts name, and requests in messages lack."""


def checked(response: Response) -> Response:
    """Return a response that fits the record: types, audio, and usage as counts.

    One with a wrong type or audio is returned as failed. Usage that is no 64-bit count is dropped with a note.
    """
    for name, (expected, fits) in _FIELDS.items():
        if not fits(entry := getattr(response, name)):
            return Response.failed(
                Diagnostic("response_field", name=name, value=clean(repr(entry)[:60]), expected=expected)
            )
    if response.audio is not None:
        try:
            response.audio.check("audio of the answer")
        except AudioError as error:
            return replace(response, status="failed", reason=error.message, audio=None)
    strange = {name: value for name, value in response.usage.items() if not _is_count(value)}
    if not strange:
        return response
    named = ", ".join(f"{name} {str(value)[:40]}" for name, value in strange.items())
    counts = {name: value for name, value in response.usage.items() if name not in strange}
    return replace(response, usage=counts, notes=(*response.notes, Diagnostic("usage_not_counts", usage=named)))


def _is_seconds(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _is_text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(one, str) for one in value)


_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "status": ("'ok', 'failed' or 'refused'", lambda value: value in ("ok", "failed", "refused")),
    **dict.fromkeys(("reason", "text", "finish", "reasoning"), ("a text or None", _is_text_or_none)),
    "audio": ("an Audio or None", lambda value: value is None or isinstance(value, Audio)),
    **dict.fromkeys(("usage", "served"), ("a mapping", lambda value: isinstance(value, Mapping))),
    **dict.fromkeys(
        ("latency_s", "first_s", "sound_s"), ("seconds or None", lambda value: value is None or _is_seconds(value))
    ),
    "cut_s": ("seconds", _is_seconds),
    "attempts": ("a whole number", lambda value: isinstance(value, int)),
    "notes": ("a tuple of texts", _is_texts),
}
"""What a custom model may get wrong: each field of a response, its expected value, and a test of it."""


def _is_count(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and 0 <= value < 2**63


async def _batches(
    requests: Iterable[Request], room: asyncio.Semaphore, most: int
) -> AsyncGenerator[list[Request], None]:
    """Group requests in lists of at most `most`; the first lists are shorter.

    A list is gathered for about `GATHER_S` seconds. Each request takes a place in `room`, which the reader releases.
    """
    batch: list[Request] = []
    size, since, breath = min(8, most), 0.0, monotonic()
    source = iter(requests)
    while True:
        if batch and (len(batch) >= size or room.locked() or monotonic() - since > GATHER_S):
            yield batch
            batch, size = [], min(most, 2 * size)
        await room.acquire()
        request = next(source, None)
        if request is None:
            break
        # Other jobs run in between, however long a row takes to read.
        if monotonic() - breath > GATHER_S / 5:
            await asyncio.sleep(0)
            breath = monotonic()
        since = since if batch else monotonic()
        batch.append(request)
    if batch:
        yield batch


class Answering:
    """Sends the requests of one run to one model.

    Args:
        begin: starts the model; awaited before the first question of each run.
        identity: every known fact that changes an answer, before the model is started.
        shared: whether to reuse answers of other runs although the service may serve another checkpoint now.
        noted_as: the record's entry for the facts of the service; each judge has its own.
        unit: of a request: a question or a verdict.
    """

    def __init__(
        self,
        model: Model,
        begin: Callable[[], Awaitable[None]],
        writer: AnswerWriter,
        cache: ResponseCache | None,
        identity: Mapping[str, Any],
        *,
        shared: bool = False,
        spending: Spending | None = None,
        noted_as: str = "service",
        unit: str = "question",
    ) -> None:
        self.spending, self._noted_as, self._unit = spending, noted_as, unit
        self.model, self._begin, self.writer, self._cache = model, begin, writer, cache
        self._identity, self._shared = dict(identity), shared or model.tells_apart
        self._alias: dict[str, Any] | None = None

    async def start(self) -> None:
        """Start the model and record what its service reports.

        Raises:
            RunMismatch: the service serves another model than at the start of the run.
            UserError: the model cannot be started.
        """
        await self._begin()
        facts = dict(await self.model.describe())
        if facts:
            self._identity["service"] = facts.get("model", {})
        if not self._shared:
            self._alias = dict(self._identity)
            self._identity["run"] = self._token()
        if not facts:
            return
        before = self.writer.meta(self._noted_as) or []
        if before:
            self._check_model(before[-1], facts)
        if not before or {**before[-1], "when": None} != {**facts, "when": None}:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self.writer.set_meta(**{self._noted_as: [*before, {**facts, "when": now}]})

    def open_lookup(self) -> Lookup | None:
        """The stored answers for this model; None without a cache. The caller closes it."""
        return None if self._cache is None else Lookup(self._cache, self.model, self._identity, self._alias)

    async def send_requests(
        self,
        model: Model,
        requests: Iterable[Request],
        *,
        on_stored: Callable[[], None] | None = None,
        then: Callable[[Request], Request | None] | None = None,
    ) -> AsyncGenerator[Pair, None]:
        """As the function `send_requests`, with this model's cache and budget.

        Raises:
            UserError: as the function `send_requests`, or a limit is reached. Earlier answers are yielded first.
        """
        spending, source = self.spending, iter(requests)
        read = answered = 0

        def counted() -> Iterator[Request]:
            nonlocal read
            for request in source:
                read += 1
                yield request

        def following(request: Request) -> Request | None:
            """Call `then`; a request with a follow-up does not count as answered."""
            nonlocal answered
            next_request = None if then is None else then(request)
            answered -= next_request is not None
            return next_request

        pairs = send_requests(
            model,
            counted(),
            cache=self._cache,
            identity=self._identity,
            alias=self._alias,
            spending=spending,
            on_stored=on_stored,
            then=None if then is None else following,
        )
        async with aclosing(pairs):
            async for pair in pairs:
                answered += 1
                yield pair
        if spending is not None and spending.budget.stop_reason is not None:
            read += sum(1 for _ in source)
            raise spending.budget.limit_error(read - answered, self._unit)

    def _token(self) -> str:
        """The run's random token, created once and stored in its record."""
        token = self.writer.meta("token")
        if token is None:
            token = secrets.token_hex(16)
            self.writer.set_meta(token=token)
        return str(token)

    def _check_model(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Raise RunMismatch if facts of the served model differ from the run's."""
        was, is_now = before.get("model", {}), now.get("model", {})
        changed = [f"{n} was {was[n]!r}, now {is_now[n]!r}" for n in was if n in is_now and was[n] != is_now[n]]
        if changed:
            raise RunMismatch(
                "other_model_behind_name",
                folder=self.writer.folder,
                changes="; ".join(changed),
                hint="use another --out, or serve the model of the run",
            )

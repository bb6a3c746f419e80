"""Asks a model many requests: as many at once as it takes, from the cache first, in memory that does not grow with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from time import monotonic
from typing import TYPE_CHECKING

from codec_bench.errors import AudioError, UserError
from codec_bench.models.base import Model
from codec_bench.models.keys import clean
from codec_bench.types import Request, Response

if TYPE_CHECKING:
    from codec_bench.models.cache import ResponseCache

Pair = tuple[Request, Response]
# Requests that are looked up in the cache together, and the longest time in which they are gathered.
BATCH = 256
GATHER_S = 0.05


async def ask_all(
    model: Model,
    requests: Iterable[Request] | AsyncIterable[Request],
    *,
    cache: ResponseCache | None = None,
    ahead: int | None = None,
    on_response: Callable[[Request, Response], None] | None = None,
) -> AsyncIterator[Pair]:
    """Yields every request with its response, in the order in which they are finished.

    Args:
        model: started; it is not closed. `model.concurrency` requests are kept in flight.
        requests: read as they are needed, never more than `ahead` beyond what was yielded; a synchronous iterator is read in
            the event loop's own thread, so that it may share state with the caller.
        cache: answers that are in it are not asked for; what is answered is put into it, failures are not.
        ahead: how many requests may be read and not yet yielded; by default twice the model's concurrency, and at least 512.
        on_response: called with each pair as soon as it is finished, before it is yielded.

    Iterate within `contextlib.aclosing`: leaving early then cancels what is in flight, and nothing of it is left behind.

    Raises:
        UserError: the model cannot be used at all. What was answered before is yielded first.
    """
    room = asyncio.Semaphore(ahead if ahead is not None else max(512, 2 * model.concurrency))
    waiting: asyncio.Queue[tuple[str | None, Request] | None] = asyncio.Queue()
    finished: asyncio.Queue[Pair | BaseException | None] = asyncio.Queue()
    thread = ThreadPoolExecutor(1, "response-cache") if cache is not None else None
    loop = asyncio.get_running_loop()

    def finish(request: Request, response: Response) -> None:
        if on_response is not None:
            on_response(request, response)
        finished.put_nowait((request, response))

    async def look_up(batch: list[Request]) -> None:
        if cache is None:
            for request in batch:
                waiting.put_nowait((None, request))
            return
        found = await loop.run_in_executor(thread, cache.look_up, model.identity, batch)
        for request, (key, response) in zip(batch, found):
            if response is not None:
                finish(request, response)
            else:
                waiting.put_nowait((key, request))

    async def feed() -> None:
        async with aclosing(_batches(requests, room, BATCH if cache is not None else 1)) as batches:
            async for batch in batches:
                await look_up(batch)
        for _ in range(model.concurrency):
            waiting.put_nowait(None)

    async def work() -> None:
        while (item := await waiting.get()) is not None:
            key, request = item
            response = await _asked(model, request)
            if key is not None and response.status == "ok":
                await loop.run_in_executor(thread, cache.put, key, response)
            finish(request, response)
            await asyncio.sleep(0)  # a model that never waits must not keep its answers from the reader

    async def run() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(feed())
                for _ in range(model.concurrency):
                    group.create_task(work())
        except BaseExceptionGroup as several:
            # Of several that failed alike one is told; what a caller can mend goes before what nobody can.
            causes = sorted(several.exceptions, key=lambda e: not isinstance(e, UserError))
            finished.put_nowait(causes[0])
        finally:
            finished.put_nowait(None)

    running = asyncio.create_task(run())
    try:
        while (item := await finished.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
            room.release()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        if thread is not None:
            await loop.run_in_executor(thread, cache.flush)
            thread.shutdown(wait=True)


async def _asked(model: Model, request: Request) -> Response:
    try:
        said = await model.ask(request)
        if isinstance(said, Response):
            return said
        return Response.failed(f"the model gave {type(said).__name__}; expected a Response")
    except AudioError as error:  # a sound that cannot be read is that question's failure
        return Response.failed(error.message)
    except UserError:
        raise
    except Exception as error:  # a model of one's own may raise anything; one request must not take the others with it
        return Response.failed(f"the model raised {type(error).__name__}: {clean(str(error))}")


async def _batches(
    requests: Iterable[Request] | AsyncIterable[Request], room: asyncio.Semaphore, most: int
) -> AsyncIterator[list[Request]]:
    """Requests in lists of at most `most`, the first ones short and none gathered for long, each with a place in `room`."""
    batch: list[Request] = []
    size, since, breath = min(8, most), 0.0, monotonic()
    coming: asyncio.Future[Request | None] | None = None
    source = aiter(requests) if isinstance(requests, AsyncIterable) else iter(requests)
    try:
        while True:
            if batch and (len(batch) >= size or room.locked() or monotonic() - since > GATHER_S):
                yield batch
                batch, size = [], min(most, 2 * size)
            await room.acquire()
            if isinstance(source, Iterator):
                request = next(source, None)
                if (
                    monotonic() - breath > GATHER_S / 5
                ):  # answers are taken in between, however long a row takes to read
                    await asyncio.sleep(0)
                    breath = monotonic()
            else:
                coming = asyncio.ensure_future(anext(source, None))
                if batch and not (await asyncio.wait({coming}, timeout=GATHER_S))[0]:
                    yield batch
                    batch = []
                request = await coming
            if request is None:
                break
            since = since if batch else monotonic()
            batch.append(request)
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        if hasattr(source, "aclose"):
            await source.aclose()
    if batch:
        yield batch


__all__ = ["BATCH", "ask_all"]

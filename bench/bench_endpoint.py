"""Requests to a local chat endpoint with a latency of 200 ms and 64 slots, and answers read from the cache.

The endpoint runs in a process of its own and answers 429 to whoever comes while its slots are taken. Ideal: requests over slots
times latency. Every answer is checked against its question. `known`: the model's ceiling is the number of slots; `found`: it is
four times that, and the client finds the slots by trying. With sound the client's work is most of the time on a busy machine:
rows say its CPU time and the load when they began. From the cache: the same questions again, sounds in files included.

    python bench/bench_endpoint.py [--requests 1000] [--latency 0.2] [--repeats 3] [--cached 5000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import numpy as np
from common import append_rows, row

from codec_bench.audio.clip import Clip
from codec_bench.audio.encode import write_flac
from codec_bench.benchmark.asking.requests import ask_all
from codec_bench.models import load_model
from codec_bench.models.cache import ResponseCache
from codec_bench.types import Audio, Message, Request, Response

SLOTS = 64
SOUND_S, RATE = 5.0, 16_000


def repeat(asked: str) -> str:
    """What the endpoint says: the question again."""
    return asked


def serve(port: multiprocessing.Queue, latency_s: float, slots: int, say: Callable[[str], str] = repeat) -> None:
    """A chat endpoint that answers after a while. `say` makes the answer of the last text of a request."""
    busy = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal busy
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                if head.startswith("get "):  # what the service says of its model, and this one says nothing
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    continue
                body = await reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0]))
                if busy >= slots:
                    status, answer = "429 Too Many Requests", {"error": {"message": "no slot is free"}}
                else:
                    busy += 1
                    await asyncio.sleep(latency_s)
                    busy -= 1
                    content = json.loads(body)["messages"][-1]["content"]
                    said = content if isinstance(content, str) else content[-1]["text"]
                    status, answer = (
                        "200 OK",
                        {
                            "choices": [{"message": {"content": say(said)}, "finish_reason": "stop"}],
                            "usage": {"prompt_tokens": 9, "completion_tokens": 3},
                        },
                    )
                data = json.dumps(answer).encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
                    + data
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=1 << 26)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def questions(folder: Path, count: int, sound: bool = True) -> list[Request]:
    """Questions in words, and about one of ten sounds of five seconds in files."""
    rng = np.random.default_rng(0)
    files = [folder / f"{n}.flac" for n in range(10 if sound else 0)]
    for file in files:
        write_flac(file, Audio(rng.normal(0, 0.1, int(SOUND_S * RATE)).astype(np.float32), RATE))
    clips = [(Clip(str(file)),) for file in files] or [()]
    turns = [Message("user", (*clips[n % len(clips)], f"question {n}")) for n in range(count)]
    return [Request(f"q{n}", (turn,)) for n, turn in enumerate(turns)]


async def ask(
    base_url: str, ceiling: int, requests: list[Request], cache: ResponseCache | None = None
) -> tuple[float, int, int]:
    """Seconds for all, most attempts, and the limit that was found."""
    model = load_model("openai-chat", {"base_url": base_url, "model": "m", "concurrency": ceiling})
    await model.start()
    attempts, right = 0, 0
    start = time.perf_counter()
    async with aclosing(ask_all(model, requests, cache=cache)) as pairs:
        async for request, response in pairs:
            attempts += response.attempts
            right += response.text == f"question {request.id[1:]}"
    seconds = time.perf_counter() - start
    await model.close()
    if right != len(requests):
        raise SystemExit(f"{len(requests) - right} of {len(requests)} answers are wrong")
    return seconds, attempts, int(model.client.gate.limit)


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=0.2, help="of the endpoint, in seconds")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cached", type=int, default=5000)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    port = context.Queue()
    server = context.Process(target=serve, args=(port, options.latency, SLOTS), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{port.get()}/v1"
    ideal = options.requests / SLOTS * options.latency
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        spoken = questions(Path(folder), max(options.requests, options.cached))
        asyncio.run(ask(url, SLOTS, spoken[: 2 * SLOTS]))
        for kind, requests in (
            ("words", questions(Path(folder), options.requests, sound=False)),
            ("5 s of sound", spoken),
        ):
            for variant, ceiling in (("known", SLOTS), ("found", 4 * SLOTS)):
                cpu, load = time.process_time(), os.getloadavg()[0]
                runs = [asyncio.run(ask(url, ceiling, requests[: options.requests])) for _ in range(options.repeats)]
                cpu_ms = (time.process_time() - cpu) / options.repeats / options.requests * 1000
                seconds = np.asarray([run[0] for run in runs])
                ratio = float(np.median(seconds)) / ideal
                note = (
                    f"ideal {ideal:.3f} s; {max(run[1] for run in runs)} attempts at most; limit at the end {runs[-1][2]}; "
                    f"{cpu_ms:.2f} ms of CPU a request; load {load:.1f}"
                )
                case = f"{options.requests} requests, {kind}, {SLOTS} slots, {options.latency * 1000:g} ms"
                right = "every answer is its question's"
                rows.append(row(case, variant, seconds, n=options.requests, ratio=ratio, agreement=right, note=note))
                print(f"{kind}, {variant}: {np.median(seconds):.3f} s, {ratio:.3f} of the ideal; {note}")
        rows += from_cache(Path(folder), url, spoken[: options.cached], options.repeats)
    server.terminate()
    append_rows("endpoint", rows, ("aiohttp",))


def from_cache(folder: Path, url: str, requests: list[Request], repeats: int) -> list[dict[str, object]]:
    """Answers that were given before: through the whole loop, and by key alone."""
    cache = ResponseCache(folder / "responses.sqlite")
    model = load_model("openai-chat", {"base_url": url, "model": "m", "concurrency": SLOTS})
    for request, (key, _) in zip(requests, cache.look_up(model.identity, requests)):
        usage = {"input_tokens": 9.0, "output_tokens": 3.0}
        cache.put(key, Response(text=f"question {request.id[1:]}", usage=usage, finish="stop"))
    cache.close()
    loop, keyed = [], []
    for _ in range(repeats):
        cache = ResponseCache(folder / "responses.sqlite")
        loop.append(asyncio.run(ask(url, SLOTS, requests, cache))[0])
        if cache.hits != len(requests):  # the model was asked for the others
            raise SystemExit(f"{cache.hits} of {len(requests)} answers came from the cache")
        keys = [key for key, _ in cache.look_up(model.identity, requests)]
        start = time.perf_counter()
        found = cache.get_many(keys)
        keyed.append(time.perf_counter() - start)
        if len(found) != len(requests):
            raise SystemExit("the cache lost answers")
        cache.close()
    rows = []
    for variant, seconds in (("asked again", loop), ("by key", keyed)):
        rate = len(requests) / float(np.median(seconds))
        rows.append(
            row(
                f"{len(requests)} answers from the cache",
                variant,
                np.asarray(seconds),
                n=len(requests),
                agreement="every answer is its question's",
                note=f"{rate:.0f} answers a second",
            )
        )
        print(f"from the cache, {variant}: {rate:.0f} answers a second")
    return rows


if __name__ == "__main__":
    main()

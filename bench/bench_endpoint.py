"""Requests to a local chat endpoint of 200 ms and 64 slots, against the ideal.

The endpoint runs in a separate process and answers 429 to whoever comes while its slots are taken. Ideal: requests
over slots times latency. Every answer is checked against its question. With sound the client's work is most of the time
on a busy machine: rows say its CPU time and the load when they began.

    python bench/bench_endpoint.py [--requests 1000] [--latency 0.2] [--repeats 3]
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import tempfile
import time
from contextlib import aclosing
from pathlib import Path

import numpy as np
from common import Cases, Options, bench, row, served

from codec_bench import Audio, Message, Request
from codec_bench.audio.clip import Clip
from codec_bench.audio.encode import write_flac
from codec_bench.benchmark.asking.sending import send_requests
from codec_bench.models import load_model

SLOTS = 64
SOUND_S, RATE = 5.0, 16_000


def serve(port: multiprocessing.Queue, latency_s: float, slots: int) -> None:
    """A chat endpoint that says the last text of a request again, after a while."""
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
                    text = content if isinstance(content, str) else content[-1]["text"]
                    choice = {"message": {"content": text}, "finish_reason": "stop"}
                    usage = {"prompt_tokens": 9, "completion_tokens": 3}
                    status, answer = "200 OK", {"choices": [choice], "usage": usage}
                data = json.dumps(answer).encode()
                head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
                writer.write(head.encode() + data)
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


async def ask(base_url: str, requests: list[Request]) -> tuple[float, int]:
    """Seconds for all, and attempts."""
    model = load_model("openai-chat", {"base_url": base_url, "model": "m", "concurrency": SLOTS})
    await model.start()
    attempts, right = 0, 0
    start = time.perf_counter()
    async with aclosing(send_requests(model, requests, cache=None)) as pairs:
        async for request, response in pairs:
            attempts += response.attempts
            right += response.text == f"question {request.id[1:]}"
    seconds = time.perf_counter() - start
    await model.close()
    if right != len(requests):
        raise SystemExit(f"{len(requests) - right} of {len(requests)} answers are wrong")
    return seconds, attempts


@bench("aiohttp", requests=1000, latency=0.2, repeats=3)
def main(options: Options) -> Cases:
    """Questions in words, and with sound."""
    ideal = options.requests / SLOTS * options.latency
    with tempfile.TemporaryDirectory() as folder, served(serve, options.latency, SLOTS) as port:
        url = f"http://127.0.0.1:{port}/v1"
        for kind, sound in (("words", False), ("5 s of sound", True)):
            requests = questions(Path(folder), options.requests, sound)
            asyncio.run(ask(url, requests[: 2 * SLOTS]))
            cpu, load = time.process_time(), os.getloadavg()[0]
            runs = [asyncio.run(ask(url, requests)) for _ in range(options.repeats)]
            cpu_ms = (time.process_time() - cpu) / options.repeats / options.requests * 1000
            seconds = np.asarray([run[0] for run in runs])
            ratio = float(np.median(seconds)) / ideal
            most = max(attempts for _, attempts in runs)
            note = f"ideal {ideal:.3f} s; {most} attempts at most; {cpu_ms:.2f} ms of CPU a request; load {load:.1f}"
            case = f"{options.requests} requests, {kind}, {SLOTS} slots, {options.latency * 1000:g} ms"
            print(f"{kind}: {np.median(seconds):.3f} s, {ratio:.3f} of the ideal; {note}")
            agreement = "every answer is its question's"
            yield [row(case, "known", seconds, n=options.requests, ratio=ratio, agreement=agreement, note=note)]

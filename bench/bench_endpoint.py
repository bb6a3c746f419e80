"""Requests to a local chat endpoint of 200 ms and 64 slots, against the ideal.

    python bench/bench_endpoint.py [--requests 1000] [--latency 0.2] [--repeats 3]

The endpoint is a separate process and answers 429 while its slots are taken. Ideal: requests over slots times
latency. Every answer is checked against its question.
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
from aiohttp import web
from common import RATE_HZ, Cases, Options, bench, row

from codec_bench import Audio, Message, Request
from codec_bench.audio.clip import Clip
from codec_bench.audio.encode import write_flac
from codec_bench.benchmark.asking.sending import send_requests
from codec_bench.models import load_model

SLOTS = 64
SOUND_S = 5.0


def serve(port: multiprocessing.Queue, latency_s: float) -> None:
    """A chat endpoint that repeats the last text of a request after a while."""
    busy = 0

    async def complete(request: web.Request) -> web.Response:
        nonlocal busy
        body = await request.read()
        if busy >= SLOTS:
            return web.json_response({"error": {"message": "no slot is free"}}, status=429)
        busy += 1
        await asyncio.sleep(latency_s)
        busy -= 1
        content = json.loads(body)["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[-1]["text"]
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}})

    async def main() -> None:
        application = web.Application(client_max_size=1 << 26)
        application.router.add_post("/v1/chat/completions", complete)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port.put(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(main())


def questions(folder: Path, count: int, sound: bool = True) -> list[Request]:
    """Questions in words, and about one of ten sounds of five seconds in files."""
    rng = np.random.default_rng(0)
    files = [folder / f"{n}.flac" for n in range(10 if sound else 0)]
    for file in files:
        write_flac(file, Audio(rng.normal(0, 0.1, int(SOUND_S * RATE_HZ)).astype(np.float32), RATE_HZ))
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
    context = multiprocessing.get_context("spawn")
    port = context.Queue()
    context.Process(target=serve, args=(port, options.latency), daemon=True).start()
    url = f"http://127.0.0.1:{port.get()}/v1"
    with tempfile.TemporaryDirectory() as folder:
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

"""A benchmark from the cache: questions read, prompts rendered, answers found, parsed, scored and written, samples a second.

A local endpoint answers every question once; the second run, into another folder, finds all answers in the response cache.
Both runs must give the same numbers. The floor beside it is the same number of rows written to the record with answers and
scores that were there already, nothing read, rendered or parsed.

    python bench/bench_runner.py [--questions 20000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from common import append_rows, row

DEFINITION = """\
version: 1
title: Sums
summary: Small sums.
category: QA
kind: qa
language: en
data: {path: rows.jsonl, id: id, columns: {question: question, reference: answer, level: level}}
prompt: {messages: [{role: user, content: [{text: "Answer with a JSON object. {{ question }}"}]}]}
postprocess: ["json-field[content]"]
metrics: ["accuracy[exact]", "wer[answer]@by-language"]
primary: "accuracy[exact]"
subsets: {level: level}
"""


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection of an endpoint that can only add."""
    while head := await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b"":
        if head.startswith(b"GET "):  # the run asks what the service says of its model, and this one says nothing
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
            continue
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        request = json.loads(await reader.readexactly(length))
        content = request["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        first, second = (int(word) for word in text.rstrip("?").split() if word.isdigit())
        said = json.dumps({"content": str(first + second + (first % 7 == 0))})
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        body = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        )
        await writer.drain()


def serve() -> int:
    """Starts the endpoint in a thread; returns its port."""
    ready: list[int] = []
    started = threading.Event()

    async def run() -> None:
        server = await asyncio.start_server(quietly, "127.0.0.1", 0)
        ready.append(server.sockets[0].getsockname()[1])
        started.set()
        await server.serve_forever()

    async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    started.wait()
    return ready[0]


def measure(questions: int) -> dict[str, tuple[float, float]]:
    """Seconds (wall, CPU) of the first run, of the run from the cache, and of the floor."""
    from codec_bench.api.run_benchmark import run_benchmark
    from codec_bench.benchmark.run import Terms
    from codec_bench.stats.summary import summarise
    from codec_bench.store.answers import AnswerWriter, exchanges

    folder = Path(tempfile.mkdtemp())
    os.environ["CODEC_BENCH_CACHE"] = str(folder / "cache")
    (folder / "sums").mkdir()
    (folder / "sums" / "benchmark.yaml").write_text(DEFINITION)
    with (folder / "sums" / "rows.jsonl").open("w") as rows:
        for n in range(questions):
            asked = {
                "id": f"q{n}",
                "question": f"What is {n} plus {n % 97} ?",
                "answer": str(n + n % 97),
                "level": n % 5,
            }
            rows.write(json.dumps({**asked, "level": str(asked["level"])}) + "\n")
    options = {"openai-chat": {"base_url": f"http://127.0.0.1:{serve()}/v1", "model": "adder"}}
    seconds, values = {}, []
    for name in ("first run", "from the cache"):
        start = now()
        outcome = run_benchmark(
            benchmark=str(folder / "sums"),
            model="openai-chat",
            out=folder / name,
            options=options,
            page=False,
            terms=Terms(reuse_answers=True),
        )
        seconds[name] = since(start)
        run = next(iter(outcome.runs.values()))
        metrics = summarise(run)["systems"]["openai-chat"]["metrics"]
        values.append([(entry["value"], entry["n"], entry["failed"]) for entry in metrics.values()])
        cached = run.query("SELECT SUM(cached) FROM answers")[0][0]
        if cached != (questions if name == "from the cache" else 0):
            raise SystemExit(f"{name}: {cached} of {questions} answers came from the cache")
    compare(values, questions)
    pairs = [(e.question, e.answer) for e in exchanges(run)]
    start = now()
    writer = AnswerWriter(folder / "floor", {})
    writer.write_answers(pairs)
    writer.close()
    seconds["floor: rows written"] = since(start)
    return seconds


def compare(values: list[list[tuple[float, int, int]]], questions: int) -> None:
    """Stops where the two runs have other values, or other ones than the endpoint's answers ask for."""
    right = sum(n % 7 != 0 for n in range(questions)) / questions
    if values[0] != values[1] or values[0][0] != (right, questions, 0):
        raise SystemExit(f"{values[0]} first, {values[1]} from the cache; expected {right} of {questions}")


def now() -> tuple[float, float]:
    """The clock and this process's CPU time."""
    return time.perf_counter(), time.process_time()


def since(start: tuple[float, float]) -> tuple[float, float]:
    """Seconds since then."""
    return time.perf_counter() - start[0], time.process_time() - start[1]


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=20_000)
    questions = parser.parse_args().questions
    seconds = measure(questions)
    rows = []
    for name, (wall_s, cpu_s) in seconds.items():
        note = f"{questions / wall_s:.0f} samples/s; {cpu_s:.3g} s of CPU, {questions / cpu_s:.0f} samples per second of it"
        rows.append(
            row(f"{questions} questions", name, np.array([wall_s]), n=questions, agreement="same values", note=note)
        )
        sys.stdout.write(f"{name:20s} {wall_s:8.2f} s  {note}\n")
    append_rows("runner", rows, ("codec-bench", "aiohttp"))


if __name__ == "__main__":
    main()

"""Answers that a judge rates: 10,000 of them by a local scripted judge with a latency of 200 ms and 64 slots.

The judge runs in a process of its own and answers 429 to whoever comes while its slots are taken. The answers are in the record
before the clock starts. What is timed is the second phase of `run`: answers read, rubrics rendered, the judge asked, replies read,
ratings written. Ideal: ratings over slots times latency. Every rating must be the one that the judge has for that answer. With
two judges each answer is rated twice, and each judge has slots of its own. The CPU time is that of the command alone.

    python bench/bench_judging.py [--answers 10000] [--latency 0.2] [--judges 1]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_endpoint import SLOTS, serve
from common import append_rows, row

DEFINITION = """\
version: 1
title: Questions with worth
summary: Questions whose answers say what they are worth.
category: QA
kind: qa
language: en
data: {path: rows.jsonl, id: id, columns: {question: question, reference: answer}}
prompt: {messages: [{role: user, content: [{text: "{{ question }}"}]}]}
metrics: ["rating[audiobench-0-5]"]
primary: "rating[audiobench-0-5]"
"""
MODEL = """\
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Known(Model):
    info = ModelInfo("known")
    identity = {"known": "1"}

    async def ask(self, request):
        return Response(text=request.messages[-1].content[-1].replace("How much is", "The worth of"))
"""


def rate(asked: str) -> str:
    """The judge's reply: the answer says what it is worth, after its question and the reference."""
    return f"As the reference says.\nRating: {re.findall('is worth ([0-5])', asked)[-1]}"


def worth(number: int) -> int:
    """What the answer to a question is worth."""
    return (number * 7 + number // 11) % 6


def write_answers(folder: Path, count: int) -> None:
    """The benchmark and a run folder with an answer to each of its questions."""
    from codec_bench.api.run_benchmark import run_benchmark

    (folder / "worth").mkdir()
    (folder / "worth" / "benchmark.yaml").write_text(DEFINITION)
    (folder / "model.py").write_text(MODEL)
    with (folder / "worth" / "rows.jsonl").open("w") as rows:
        for n in range(count):
            asked = f"How much is item {n}? It is worth {worth(n)} of five, says whoever sold it."
            rows.write(json.dumps({"id": f"q{n}", "question": asked, "answer": f"item {n}"}) + "\n")
    run_benchmark(
        benchmark=str(folder / "worth"), model=f"{folder / 'model.py'}:Known", out=folder / "run", phase="answers",
        page=False, cache=False,
    )  # fmt: skip


def judged(folder: Path, urls: list[str], count: int) -> tuple[float, float]:
    """Seconds (wall, CPU) in which every answer is rated by every judge; stops at a wrong rating."""
    from codec_bench.api.run_benchmark import run_benchmark

    judges = ["openai-chat", "transformers-serve"][: len(urls)]
    options = {judge: {"base_url": url, "model": "scripted", "concurrency": SLOTS} for judge, url in zip(judges, urls)}
    wall, cpu = time.perf_counter(), time.process_time()
    outcome = run_benchmark(
        benchmark=str(folder / "worth"), model=f"{folder / 'model.py'}:Known", out=folder / "run", phase="scores",
        judge=judges, options=options, page=False, rescore=True, cache=False,
    )  # fmt: skip
    seconds = time.perf_counter() - wall, time.process_time() - cpu
    (run,) = outcome.runs.values()
    for metric in run.metrics:
        check({score.id: score.value for score in run.scores("known", metric)}, count, metric)
    if len(run.metrics) != len(urls):
        raise SystemExit(f"{len(run.metrics)} judges rated; expected {len(urls)}")
    return seconds


def check(ratings: dict[str, float | None], count: int, what: str) -> None:
    """Stops unless every answer has its own rating."""
    wrong = [n for n in range(count) if ratings.get(f"q{n}") != worth(n)]
    if wrong or len(ratings) != count:
        raise SystemExit(f"{what}: {len(wrong)} of {count} ratings are wrong, such as that of q{(wrong or [0])[0]}")


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=10_000)
    parser.add_argument("--latency", type=float, default=0.2, help="of the judge, in seconds")
    parser.add_argument("--judges", type=int, default=1, choices=(1, 2))
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    urls = []
    for _ in range(options.judges):
        port = context.Queue()
        context.Process(target=serve, args=(port, options.latency, SLOTS, rate), daemon=True).start()
        urls.append(f"http://127.0.0.1:{port.get()}/v1")
    ideal = options.answers / SLOTS * options.latency
    with tempfile.TemporaryDirectory() as name:
        os.environ["CODEC_BENCH_CACHE"] = f"{name}/cache"
        write_answers(Path(name), options.answers)
        load = os.getloadavg()[0]
        wall, cpu = judged(Path(name), urls, options.answers)
    each_ms = cpu / options.answers / options.judges * 1000
    note = f"ideal {ideal:.3f} s; {each_ms:.2f} ms of CPU a rating; load {load:.1f}"
    case = f"{options.answers} answers, {SLOTS} slots, {options.latency * 1000:g} ms"
    variant = "one judge" if options.judges == 1 else f"{options.judges} judges at once"
    right = "every rating is its answer's"
    append_rows("judging", [row(case, variant, np.array([wall]), n=options.answers, ratio=wall / ideal, agreement=right, note=note)], ("codec-bench", "aiohttp"))  # fmt: skip
    print(f"{variant}: {wall:.2f} s, {wall / ideal:.3f} of the ideal; {note}")


if __name__ == "__main__":
    main()

"""Times a model of transformers in this process, asked in batches, against itself asked one request at a time.

    python bench/bench_inprocess.py [--clips N] [--repeats N] [--threads N]
    python bench/bench_inprocess.py --weights Qwen/Qwen2-Audio-7B-Instruct --device cuda:0 --dtype bfloat16 --clips 256

Without `--weights` the model is a small Qwen2-Audio with random weights. The clips are cut from the embedded speech,
their lengths drawn like those of read sentences. Both sides are asked the same questions through the same code; what differs is
how many share a pass. Every answer of a batch is compared with the one alone, text, end and tokens: in float32 all must
be equal, or the bench fails.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from common import append_rows, interleaved, parsed, row, stand_in

from codec_bench.audio.clip import Clip
from codec_bench.audio.resample import prepare
from codec_bench.data import open_source
from codec_bench.models.base import ModelInfo
from codec_bench.models.in_process.transformers_model import TransformersModel
from codec_bench.types import Audio, Message, Request, Response

RATE_HZ = 16_000
PACKAGES = ("codec-bench", "transformers", "torch", "numpy")


def questions(count: int) -> list[Request]:
    """Requests about clips of 1 to 20 s, 6 s in the mean."""
    rng = np.random.default_rng(0)
    speech = np.concatenate([prepare(Audio.read(sample.audio), RATE_HZ) for sample in open_source("embedded")])
    seconds = np.clip(rng.lognormal(1.6, 0.6, count), 1.0, 20.0)
    starts = rng.uniform(0, speech.size / RATE_HZ - seconds)
    clips = [Clip(Audio(speech[int(a * RATE_HZ) : int((a + s) * RATE_HZ)], RATE_HZ)) for a, s in zip(starts, seconds)]
    return [Request(str(k), (Message("user", (clip, "What is said?")),)) for k, clip in enumerate(clips)]


def alone(model: TransformersModel, requests: list[Request]) -> list[Response]:
    """Every request by itself."""
    return [model.answer([request])[0] for request in requests]


def together(model: TransformersModel, requests: list[Request]) -> list[Response]:
    """All requests at once, as a run asks them."""

    async def run() -> list[Response]:
        answers = await asyncio.gather(*map(model.ask, requests))
        batches, model._batches = model._batches, None
        await batches.close()
        return answers

    return asyncio.run(run())


def compare(first: list[Response], second: list[Response], exact: bool) -> str:
    """How many answers of a batch are those alone; stops where one failed, or (if they must be exact) one differs."""
    both = list(zip(first, second, strict=True))
    if any(answer.status != "ok" for pair in both for answer in pair):
        raise SystemExit("a request failed: nothing was timed")
    same = sum((a.text, a.finish, a.usage) == (b.text, b.finish, b.usage) for a, b in both)
    said = f"{same} of {len(both)} answers equal"
    if exact and same < len(both):
        raise SystemExit(f"{said}: nothing was timed")
    return said


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", help="a folder or hub id of a real checkpoint in place of the small one")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--clips", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--batch-s", type=float, default=240.0)
    options = parsed(parser, repeats=3, threads=1)
    with tempfile.TemporaryDirectory() as folder:
        weights = options.weights
        if weights is None:
            stand_in("tiny_audio_models").write_qwen2_audio(Path(folder), layers=4, width=128)
            weights = folder
        model = TransformersModel(
            ModelInfo("bench"), weights=weights, device=options.device, dtype=options.dtype, batch_s=options.batch_s,
            parameters={"max_tokens": options.tokens},
        )  # fmt: skip
        model.load()
        requests = questions(options.clips)
        second = together(model, requests)
        said = compare(alone(model, requests), second, exact=options.dtype == "float32")
        times = interleaved(
            {"one by one": lambda: alone(model, requests), "batched": lambda: together(model, requests)},
            repeats=options.repeats,
            warmup=0,
        )
    case = f"{options.weights or 'small qwen2-audio'}, {options.device}, {options.dtype}"
    seconds = sum(clip.read().duration_s for request in requests for clip in request.messages[0].content[:1])
    tokens = sum(answer.usage["output_tokens"] for answer in second)
    note = f"{len(requests)} clips, {seconds:.0f} s, {tokens:.0f} new tokens, {options.threads} thread(s)"
    base = np.median(times["one by one"])
    rows = [
        row(case, name, taken, n=len(requests), ratio=float(base / np.median(taken)), agreement=said if name == "batched" else "", note=note)
        for name, taken in times.items()
    ]  # fmt: skip
    for name, taken in times.items():
        sys.stdout.write(f"{name:>12} {np.median(taken):8.3f} s {base / np.median(taken):6.2f}x\n")
    sys.stdout.write(f"{said}\n")
    if not torch.cuda.is_available() and options.weights is None:
        rows.append({"case": "Qwen/Qwen2-Audio-7B-Instruct, cuda:0, bfloat16", "variant": "batched", "note": "not measured: no GPU"})  # fmt: skip
    sys.stdout.write(f"rows in {os.path.relpath(append_rows('inprocess', rows, PACKAGES))}\n")


if __name__ == "__main__":
    main()

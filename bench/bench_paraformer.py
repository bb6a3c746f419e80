"""Times Paraformer on batches against FunASR one file at a time, and checks that the tokens are the same.

    python bench/bench_paraformer.py [--size tiny|small|full] [--model paraformer-zh|seaco-paraformer-zh] [--clips N]
        [--device cuda:0] [--threads N]

The weights are random: the architecture is the published one, `full` its size (220 million parameters). The clips are
cut from the embedded speech, 2 to 8 s long. FunASR gets arrays, so that reading files does not count against it. The
floor is the multiplications of encoder and decoder at the rate that one large matrix product reaches on the same
machine.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from common import append_rows, interleaved, parsed, row

from codec_bench.audio.resample import prepare
from codec_bench.data import open_source
from codec_bench.features.recognisers.paraformer import Paraformer
from codec_bench.types import Audio

sys.path.append(str(Path(__file__).parents[1] / "tests" / "golden"))
from tiny_funasr import COEFFICIENTS, SIZES, write_paraformer

RATE_HZ = 16_000
MODELS = {
    "paraformer-zh": ("Paraformer", "CifPredictorV2"),
    "seaco-paraformer-zh": ("SeacoParaformer", "CifPredictorV3"),
}


def clips(count: int) -> list[np.ndarray]:
    """Pieces of the embedded speech at 16 kHz, of seeded lengths from 2 to 8 s."""
    speech = np.concatenate([prepare(Audio.read(sample.audio), RATE_HZ) for sample in open_source("embedded")])
    rng = np.random.default_rng(0)
    lengths = (rng.uniform(2, 8, count) * RATE_HZ).astype(int)
    starts = rng.integers(0, speech.size - lengths)
    return [speech[start : start + length].copy() for start, length in zip(starts, lengths)]


def reference(folder: Path, device: str, threads: int):
    """FunASR's AutoModel, silent, as a function of one signal."""
    level, handlers = logging.root.level, list(logging.root.handlers)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        from funasr import AutoModel

        model = AutoModel(model=str(folder), device=device, disable_update=True, disable_pbar=True, ncpu=threads)
    logging.root.setLevel(level)
    logging.root.handlers[:] = handlers

    def recognise(signal: np.ndarray) -> str:
        torch.manual_seed(0)
        found = model.generate(input=signal)
        return found[0]["text"] if found else ""

    return recognise


def multiplications(size: str, frames: list[int], tokens: list[int]) -> float:
    """Multiplications of encoder and decoder, padding left out."""
    of = SIZES[size]
    width, units = of["size"], of["units"]
    total = 0.0
    for t, n in zip(frames, tokens):
        per_frame = of["encoder_layers"] * (4 * width**2 + 2 * width * units) + 3 * width * (COEFFICIENTS - width)
        total += t * (per_frame + 3 * width**2) + of["encoder_layers"] * 2 * t**2 * width
        per_token = of["decoder_layers"] * (2 * width * units + 2 * width**2) + width * of["words"]
        total += n * per_token + of["decoder_layers"] * (2 * t * width**2 + 2 * n * t * width)
    return total


def rate_of_products(device: str) -> float:
    """Multiplications per second of a large product in single precision, without TensorFloat-32."""
    a = torch.randn((2048, 2048), device=device)

    def product() -> None:
        a @ a
        if device.startswith("cuda"):
            torch.cuda.synchronize()

    return 2048**3 / float(np.median(interleaved({"product": product}, repeats=5, warmup=2)["product"]))


def compare(found: list[str], expected: list[str], few: int) -> int:
    """How many texts are not FunASR's; stops where they are more than a few, or where no text has a word."""
    differ = sum(text != other for text, other in zip(found, expected, strict=True))
    if differ > few or not any(expected):
        raise SystemExit(f"{differ} of {len(expected)} texts are not FunASR's, {sum(map(bool, expected))} have words")
    return differ


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--full", action="store_const", const="full", dest="size", help="the published size")
    parser.add_argument("--model", choices=MODELS, default="seaco-paraformer-zh")
    parser.add_argument("--clips", type=int, default=32)
    options = parsed(parser, repeats=3, threads=1, device="cuda:0" if torch.cuda.is_available() else "cpu")
    signals = clips(options.clips)
    duration_s = sum(x.size for x in signals) / RATE_HZ
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_paraformer(Path(temporary), *MODELS[options.model], size=options.size)
        ours = Paraformer(device=options.device, weights=str(folder), model=options.model)
        theirs = reference(folder, options.device, options.threads)
        torch.set_num_threads(options.threads)
        found = ours.compute(signals)
        # Random weights have near ties; on a CPU none has been seen, on a GPU products are added in another order.
        few = 0 if options.device == "cpu" else len(signals) // 20
        differ = compare([result["transcript"] for result in found], [theirs(signal) for signal in signals], few)
        frames = [-(-(1 + (x.size - 400) // 160) // 6) for x in signals]
        work = multiplications(options.size, frames, [result["tokens"].size for result in found])
        floor_s = work / rate_of_products(options.device)
        seconds = interleaved(
            {
                "funasr one by one": lambda: [theirs(signal) for signal in signals],
                "codec-bench one by one": lambda: [ours.compute([signal]) for signal in signals],
                "codec-bench batched": lambda: ours.compute(signals),
            },
            repeats=options.repeats,
        )
    case = f"{options.model} {options.size}, {options.device.split(':')[0]}"
    note = (
        f"{duration_s:.0f} s of embedded speech, {options.threads} thread(s); {work / 1e9:.1f} G multiplications, "
        f"floor {floor_s:.3f} s; random weights"
    )
    sys.stdout.write(f"{case}: {note}\n{'variant':>24} {'p50 s':>8} {'ratio':>6}  agreement\n")
    rows = []
    for variant, times in seconds.items():
        ratio = float(np.median(seconds["funasr one by one"] / times))
        agreement = f"{len(signals) - differ} of {len(signals)} texts equal" if "batched" in variant else ""
        rows.append(row(case, variant, times, n=len(signals), ratio=ratio, agreement=agreement, note=note))
        sys.stdout.write(f"{variant:>24} {np.median(times):>8.3f} {ratio:>6.2f}  {agreement}\n")
    if not torch.cuda.is_available():
        rows.append({"case": f"{options.model} full, cuda", "variant": "codec-bench batched", "note": "not measured"})
        sys.stdout.write("on a GPU: not measured\n")
    path = append_rows("paraformer", rows, ("codec-bench", "funasr", "torch", "numpy"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()

"""Times the codecs that are masked layer by layer: batches against one item at a time, with the same codes and waves.

    python bench/bench_masked_codecs.py [--codecs wavtokenizer-large-speech-75token bigcodec ...] [--weights random-full]

Encoding and decoding together, of real speech. Codes must be equal (at least 99.99 %; one near tie is let pass) and waves of
equal codes agree within 1e-4, or the bench stops. The floor is the same number of samples cut into items of one length: a batch without a sample of padding.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from bench_codecs import as_arrays
from bench_encodec import items_of, ours
from common import append_rows, codes_and_waves, interleaved, parsed, row

from codec_bench import Audio
from codec_bench.codecs import load_codec

CODECS = ("wavtokenizer-large-speech-75token", "bigcodec", "snac-24khz", "speechtokenizer-4k")


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of one codec."""
    codec = load_codec(name, device=options.device, weights=options.weights)
    items = items_of(options.recordings, codec.info.sample_rates_hz[0], 1, options.seconds)
    seconds = sum(item.duration_s for item in items)
    base = as_arrays(*ours(codec, [[item] for item in items]))
    calls: dict[str, Callable[[], object]] = {"one by one": partial(ours, codec, [[item] for item in items])}
    said = {"one by one": "the baseline"}
    for size in options.batches:
        groups = [items[k : k + size] for k in range(0, len(items), size)]
        said[f"batches of {size}"] = codes_and_waves(*as_arrays(*ours(codec, groups)), base)
        calls[f"batches of {size}"] = partial(ours, codec, groups)
    calls["floor"] = partial(ours, codec, _even(items, options.batches[-1]))
    said["floor"] = f"no padding, batches of {options.batches[-1]}"
    sys.stdout.write(f"{name}: {len(items)} items, {seconds:.1f} s of audio\n")
    times = interleaved(calls, repeats=options.repeats)
    case, rows = f"encode and decode, {name}", []
    for variant, taken in times.items():
        ratio = float(np.median(times["one by one"]) / np.median(taken))
        speed = seconds / float(np.median(taken))
        note = f"{seconds:.1f} s of audio, {options.threads} threads, {options.device}, weights {options.weights}"
        rows.append(row(case, variant, taken, n=len(items), ratio=ratio, agreement=said[variant], note=note))
        sys.stdout.write(
            f"{variant:>16} {np.median(taken):8.3f} s {speed:7.1f} x real time {ratio:6.2f}  {said[variant]}\n"
        )
    return rows


def _even(items: Sequence[Audio], size: int) -> list[list[Audio]]:
    whole = np.concatenate([item.samples for item in items], axis=1)
    length = whole.shape[1] // len(items)
    even = [Audio(whole[:, k * length : (k + 1) * length], items[0].sample_rate_hz) for k in range(len(items))]
    return [even[k : k + size] for k in range(0, len(even), size)]


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--codecs", nargs="+", default=list(CODECS))
    parser.add_argument("--weights", default="random", help="random, or random-full for networks of the published size")
    parser.add_argument("--recordings", default=os.environ.get("CODEC_BENCH_TEST_RECORDINGS"))
    parser.add_argument("--seconds", type=float, default=30.0, help="of audio in all")
    parser.add_argument("--batches", type=int, nargs="+", default=[4, 16])
    options = parsed(parser, repeats=3, threads=2)
    if not torch.cuda.is_available():
        sys.stdout.write("GPU: not measured, there is none\n")
    for name in options.codecs:
        append_rows("masked_codecs", measure(name, options), packages=("torch", "snac", "numpy"))


if __name__ == "__main__":
    main()

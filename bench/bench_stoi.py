"""Times STOI and ESTOI, resampling included, against pystoi on one thread, and checks that the numbers are the same.

    python bench/bench_stoi.py [--recordings DIR]

Without real recordings (a folder with a manifest.jsonl, also taken from CODEC_BENCH_TEST_RECORDINGS) it uses the
embedded speech. The floor is the Fourier transforms that the definition asks for, by NumPy, and nothing else.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings

import numpy as np
from common import append_rows, clips, interleaved, row, worst
from pystoi import stoi as pystoi
from threadpoolctl import threadpool_limits

from codec_bench.kernels.stoi.cpu import envelopes
from codec_bench.metrics import Inputs, build_metric

TOLERANCE = {"stoi": 1e-6, "estoi": 1e-4}


def transforms(counts: list[int]) -> None:
    """As many 512-point transforms of 256 samples as the clips have frames, in blocks, both signals at once."""
    block = np.ones((2, 128, 256))
    for count in counts:
        for _ in range(count // 128):
            np.fft.rfft(block, 512)
        np.fft.rfft(block[:, : count % 128 or 1], 512)


def compare(found: list[float | None], expected: list[float], tolerance: float, what: str) -> float:
    """How far the numbers are from pystoi's, which gives 1e-5 where there is none; stops where that is too far."""
    both = list(zip(expected, found, strict=True))
    if any((ours is None) != (theirs == 1e-5) for theirs, ours in both):
        raise SystemExit(f"{what}: not the items that pystoi has no number for")
    return worst([pair for pair in both if pair[1] is not None], tolerance, what)


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", default=os.environ.get("CODEC_BENCH_TEST_RECORDINGS"))
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    threadpool_limits(1)  # pystoi's matrix products would take every core
    warnings.simplefilter("ignore")  # pystoi's, of clips that are too short
    material, references = clips(options.recordings)
    rng = np.random.default_rng(0)
    pairs = [(x, (x + 0.01 * rng.standard_normal(x.size)).astype(np.float32)) for x in references]
    cases = {"all clips": pairs, "clips over 8 s": [pair for pair in pairs if pair[0].size > 8 * 16_000]}
    rows = []
    sys.stdout.write(
        f"{material}\n{'measure':>7} {'clips':>15} {'audio s':>8} {'variant':>12} {'p50 s':>8} {'ratio':>6}\n"
    )
    for name, tolerance in TOLERANCE.items():
        metric, extended = build_metric(name), name == "estoi"
        for case, chosen in cases.items():
            if not chosen:
                continue
            items = [Inputs(str(index), 16_000, y, x) for index, (x, y) in enumerate(chosen)]
            found = [score.value for score in metric.compute(items)]
            expected = [pystoi(x, y, 16_000, extended=extended) for x, y in chosen]
            apart = compare(found, expected, tolerance, f"{name}, {case}")
            kept = [envelopes(x, y, 16_000) for x, y in chosen]
            counts = [k.shape[2] for k in kept if k is not None]
            seconds = interleaved(
                {
                    "pystoi": lambda c=chosen, e=extended: [pystoi(x, y, 16_000, extended=e) for x, y in c],
                    "codec-bench": lambda m=metric, i=items: m.compute(i),
                    "floor": lambda n=counts: transforms(n),
                },
                repeats=options.repeats,
                warmup=2,
            )
            duration_s = sum(x.size for x, _ in chosen) / 16_000
            for variant, times in seconds.items():
                ratio = float(np.median(seconds["pystoi"]) / np.median(times))
                agreement = f"within {apart:.1e}" if variant == "codec-bench" else ""
                note = f"{duration_s:.1f} s of {material}, one thread"
                rows.append(
                    row(f"{name}, {case}", variant, times, n=len(chosen), ratio=ratio, agreement=agreement, note=note)
                )
                sys.stdout.write(
                    f"{name:>7} {case:>15} {duration_s:>8.1f} {variant:>12} {np.median(times):>8.4f} {ratio:>6.1f}  {agreement}\n"
                )
    path = append_rows("stoi", rows, ("codec-bench", "pystoi", "numba", "numpy", "scipy"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()

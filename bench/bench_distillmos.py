"""DistillMOS against its package, one signal at a time and in batches, with the published weights.

    python bench/bench_distillmos.py [--clips 12] [--threads 1] [--repeats 3] [--device cuda:0]

The package takes one signal; a batch of ours takes all. The material is recordings (CODEC_BENCH_TEST_RECORDINGS), or the embedded speech. The
weights are those of the installed package. The network is small, and most signals are shorter than its crop of 7.68 s, which the
package fills with silence and computes in full.
"""

from __future__ import annotations

import argparse
import os
import sys

import numpy as np
import torch
from common import append_rows, clips, interleaved, parsed, row, waited, worst

from codec_bench.features import load_feature

AGREEMENT = 1e-4
SPREAD = 0.3
"""Between the scores: where they hardly differ, their agreement shows nothing."""


def compare(found: dict[str, np.ndarray], expected: np.ndarray) -> dict[str, float]:
    """How far each variant's scores are from the package's; stops where that is too far, or all signals score alike."""
    if not np.ptp(expected) >= SPREAD:
        raise SystemExit(f"the scores hardly differ, so their agreement shows nothing: {expected}")
    return {name: worst([(expected, values)], AGREEMENT, name) for name, values in found.items()}


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", default=os.environ.get("CODEC_BENCH_TEST_RECORDINGS"))
    parser.add_argument("--clips", type=int, default=12)
    parser.add_argument("--dry", action="store_true", help="write no rows")
    options = parsed(parser, repeats=3, threads=1, device="cuda:0" if torch.cuda.is_available() else "cpu")
    from distillmos import ConvTransformerSQAModel

    material, signals = clips(options.recordings, options.clips)
    device = torch.device(options.device)
    package = ConvTransformerSQAModel().eval().to(device)
    feature = load_feature("distillmos", device=options.device)

    def theirs() -> np.ndarray:
        with torch.inference_mode():
            return np.array([package(torch.from_numpy(signal)[None].to(device)).item() for signal in signals])

    def one_by_one() -> np.ndarray:
        return np.array([feature.compute([signal])[0]["mos"] for signal in signals])

    def batched() -> np.ndarray:
        return np.array([one["mos"] for one in feature.compute(signals)])

    variants = {"distillmos": theirs, "one by one": one_by_one, "batched": batched}
    found = {name: call() for name, call in variants.items()}
    apart = compare(found, found["distillmos"])
    seconds = interleaved({name: waited(call, device) for name, call in variants.items()}, options.repeats)
    base = np.median(seconds["distillmos"])
    audio_s = sum(map(len, signals)) / 16_000
    case = f"{len(signals)} clips, {options.threads} threads" if device.type == "cpu" else f"{len(signals)} clips, GPU"
    rows = []
    for name, times in seconds.items():
        ratio = float(base / np.median(times))
        sys.stdout.write(f"{case}: {name:<11} {np.median(times):.2f} s, {ratio:.2f}x, within {apart[name]:.1e}\n")
        agreement = "" if name == "distillmos" else f"within {apart[name]:.1e}"
        rows.append(row(case, name, times, n=len(signals), ratio=ratio, agreement=agreement, note=f"{audio_s:.0f} s of {material}"))  # fmt: skip
    if not options.dry:
        append_rows("distillmos", rows, ("distillmos", "torch"))


if __name__ == "__main__":
    main()

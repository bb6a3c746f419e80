"""Times GE2E embeddings of a batch against Resemblyzer one by one, and checks that the embeddings are the same.

    python bench/bench_ge2e.py [--recordings DIR] [--threads N]

Without real recordings (a folder with a manifest.jsonl, also taken from CODEC_BENCH_TEST_RECORDINGS) it uses the
embedded speech. The floor is the recurrent network alone, all partials in one call.
"""

from __future__ import annotations

import argparse
import os
import sys
import types
import warnings

import numpy as np
import torch
from common import append_rows, clips, interleaved, row, worst
from scipy.ndimage import binary_dilation

from codec_bench.features import load_feature
from codec_bench.features.speakers.ge2e import PARTIAL_FRAMES, mel_spectrograms, partial_starts, raised


def resemblyzer() -> types.ModuleType:
    """The real package; its import wants two modules that embedding never calls."""
    for name in ("webrtcvad", "scipy.ndimage.morphology"):
        sys.modules.setdefault(name, types.ModuleType(name)).binary_dilation = binary_dilation
    import resemblyzer.audio

    return resemblyzer


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", default=os.environ.get("CODEC_BENCH_TEST_RECORDINGS"))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    material, signals = clips(options.recordings)
    package, feature = resemblyzer(), load_feature("ge2e")
    encoder = package.VoiceEncoder("cpu", verbose=False)

    def one_by_one() -> list[np.ndarray]:
        loud = [package.audio.normalize_volume(x, -30, increase_only=True) for x in signals]
        return [encoder.embed_utterance(x) for x in loud]

    found = [result["embedding"] for result in feature.compute(signals)]
    apart = worst(zip(one_by_one(), found, strict=True), 1e-4, "Resemblyzer's embeddings")
    mels = [(mel_spectrograms([raised(x)])[0], partial_starts(x.size)) for x in signals]
    partials = torch.stack([mel[s : s + PARTIAL_FRAMES] for mel, starts in mels for s in starts])

    def network_alone() -> None:
        with torch.inference_mode():
            encoder.lstm(partials)

    seconds = interleaved(
        {"resemblyzer": one_by_one, "codec-bench": lambda: feature.compute(signals), "floor": network_alone},
        repeats=options.repeats,
        warmup=2,
    )
    duration_s = sum(x.size for x in signals) / 16_000
    note = f"{duration_s:.1f} s of {material}, {options.threads} thread(s)"
    rows = []
    sys.stdout.write(f"{note}\n{'variant':>12} {'p50 s':>8} {'ratio':>6}  agreement\n")
    for variant, times in seconds.items():
        ratio = float(np.median(seconds["resemblyzer"]) / np.median(times))
        agreement = f"within {apart:.1e}" if variant == "codec-bench" else ""
        rows.append(row("all clips", variant, times, n=len(signals), ratio=ratio, agreement=agreement, note=note))
        sys.stdout.write(f"{variant:>12} {np.median(times):>8.4f} {ratio:>6.1f}  {agreement}\n")
    path = append_rows("ge2e", rows, ("codec-bench", "Resemblyzer", "torch", "librosa", "numpy"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()

"""Times GE2E embeddings of a batch against Resemblyzer one by one, and checks that the embeddings are the same.

    python bench/bench_ge2e.py [--recordings DIR] [--threads N]

The floor is the recurrent network alone, all partials in one call.
"""

from __future__ import annotations

import sys
import types
import warnings

import numpy as np
import torch
from common import Cases, Options, bench, clips, race, worst
from scipy.ndimage import binary_dilation

from codec_bench.features import load_feature
from codec_bench.features.speakers.ge2e import PARTIAL_FRAMES, mel_spectrograms, partial_starts, raised


def resemblyzer() -> types.ModuleType:
    """The real package; its import wants two modules that embedding never calls."""
    for name in ("webrtcvad", "scipy.ndimage.morphology"):
        sys.modules.setdefault(name, types.ModuleType(name)).binary_dilation = binary_dilation
    import resemblyzer.audio

    return resemblyzer


@bench("codec-bench", "Resemblyzer", "torch", "librosa", "numpy", recordings=None, repeats=7, threads=1)
def main(options: Options) -> Cases:
    """All clips."""
    warnings.simplefilter("ignore")
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

    calls = {"resemblyzer": one_by_one, "codec-bench": lambda: feature.compute(signals), "floor": network_alone}
    note, said = f"{material}, {options.threads} thread(s)", {"codec-bench": f"within {apart:.1e}"}
    yield race("all clips", calls, n=len(signals), repeats=options.repeats, warmup=2, note=note, agreement=said)

"""Batches of WavLM whose shapes were seen before: by torch's own attention, as in a run, and by cuDNN's. Stops where
they do not agree.

    python bench/gpu_attention.py [--device cuda:0] [--reduced]

`--reduced` tries the bench itself on a CPU, and writes no rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from common import Cases, Options, bench, interleaved, ranked, worst
from reduced_scorers import FullSpeaker, ReducedSpeaker

APART = 1e-2
"""The greatest distance between embeddings in float16, relative to the largest number."""


@bench("codec-bench", "torch", "triton", device="cuda:0", reduced=False)
def main(options: Options) -> Cases:
    """Both ways in turns."""
    kind = ReducedSpeaker if options.reduced else FullSpeaker
    rng, count = np.random.default_rng(0), 3 if options.reduced else 24
    batches = [[rng.normal(0, 0.1, 6_000 + 400 * k).astype(np.float32)] * (2 + k % 5) for k in range(count)]

    def embeddings(feature: Any, by_cudnn: bool) -> np.ndarray:
        torch.backends.cuda.enable_cudnn_sdp(by_cudnn)
        return np.stack([one["embedding"] for batch in batches for one in feature.compute(batch)])

    calls = {
        name: partial(embeddings, kind(options.device, None, "float16"), by_cudnn)
        for name, by_cudnn in (("torch's own", False), ("cuDNN's", True))
    }
    own, other = (call() for call in calls.values())
    apart = worst([(own, other)], APART * float(np.abs(own).max()), "embeddings by the two ways")
    seconds = interleaved(calls, repeats=1 if options.reduced else 3, warmup=0)
    each_s = {name: taken / count for name, taken in seconds.items()}
    rows = ranked(f"{count} batches, again", each_s, n=1, agreement={"cuDNN's": f"within {apart:.1e}"})
    if not options.reduced:
        yield rows

"""Batches of WavLM whose shapes were not seen before, and the same again: by torch's own attention, as in a run, and by cuDNN's.

    python bench/gpu_attention.py [--device cuda:0] [--reduced]

`--reduced` tries the bench itself on a CPU, and writes no rows. Exit code 1 where the two ways do not agree.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from common import append_rows, asked, row
from reduced_scorers import FullSpeaker, ReducedSpeaker

APART = 1e-2
"""The greatest distance between embeddings in float16, relative to the largest number."""


def main() -> int:
    """Times both ways and compares what they give."""
    options = asked(__doc__, device="cuda:0", reduced=False)
    kind = ReducedSpeaker if options.reduced else FullSpeaker
    rng, count = np.random.default_rng(0), 3 if options.reduced else 24
    batches = [[rng.normal(0, 0.1, 6_000 + 400 * k).astype(np.float32)] * (2 + k % 5) for k in range(count)]
    embeddings: dict[str, np.ndarray] = {}
    rows = []
    for name, by_cudnn in (("torch's own", False), ("cuDNN's", True)):
        torch.backends.cuda.enable_cudnn_sdp(by_cudnn)
        feature = kind(options.device, None, "float16")
        feature.compute(batches[0][:1])
        for times, passes in (("new shapes", 1), ("again", 1 if options.reduced else 3)):
            seconds = []
            for _ in range(passes):
                begun = time.perf_counter()
                results = [feature.compute(batch) for batch in batches]
                seconds.append((time.perf_counter() - begun) / count)
            print(f"attention {name}, {times}: {np.median(seconds):.4f} s a batch", flush=True)
            rows.append(row(f"{count} batches, {times}", name, np.array(seconds), n=1))
        embeddings[name] = np.stack([one["embedding"] for result in results for one in result])
    if not options.reduced:
        append_rows("gpu_attention", rows, ("codec-bench", "torch", "triton"))
    one, other = embeddings.values()
    distance = float(np.abs(one - other).max() / np.abs(one).max())
    print(f"the two ways are {distance:.1e} apart", flush=True)
    return 0 if distance <= APART else 1  # not a number fails, too


if __name__ == "__main__":
    sys.exit(main())

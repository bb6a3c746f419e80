"""Time STOI and ESTOI with resampling against pystoi, on one thread.

    python bench/bench_stoi.py [--recordings DIR]

Floor: the Fourier transforms of the definition, by NumPy.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from common import Cases, Options, bench, clips, noisy_pairs, race, worst
from pystoi import stoi as pystoi
from threadpoolctl import threadpool_limits

from codec_bench.kernels.stoi.cpu import envelopes
from codec_bench.metrics import Inputs, build_metric

TOLERANCE = {"stoi": 1e-6, "estoi": 1e-4}


def transforms(counts: list[int]) -> None:
    """As many 512-point transforms as the clips have frames, in blocks."""
    block = np.ones((2, 128, 256))
    for count in counts:
        for _ in range(count // 128):
            np.fft.rfft(block, 512)
        np.fft.rfft(block[:, : count % 128 or 1], 512)


def compare(actual: list[float | None], expected: list[float], tolerance: float, label: str) -> float:
    """Distance of the numbers from pystoi's; stops if it is too large."""
    both = list(zip(expected, actual, strict=True))
    if any((ours is None) != (theirs == 1e-5) for theirs, ours in both):
        raise SystemExit(f"{label}: not the items that pystoi has no number for")
    return worst([pair for pair in both if pair[1] is not None], tolerance, label)


@bench("codec-bench", "pystoi", "numba", "numpy", "scipy", recordings=None, repeats=7)
def main(options: Options) -> Cases:
    """All clips, and the same with a little noise."""
    threadpool_limits(1)  # pystoi's matrix products would take every core
    warnings.simplefilter("ignore")  # pystoi's, of clips that are too short
    material, references = clips(options.recordings)
    pairs = noisy_pairs(references)
    items = [Inputs(str(index), 16_000, y, x) for index, (x, y) in enumerate(pairs)]
    framed = [envelopes(x, y, 16_000) for x, y in pairs]
    for name, tolerance in TOLERANCE.items():
        metric, case = build_metric(name), f"{name}, all clips"

        def package(extended: bool = name == "estoi") -> list[float]:
            return [pystoi(x, y, 16_000, extended=extended) for x, y in pairs]

        apart = compare([score.value for score in metric.compute(items)], package(), tolerance, case)
        calls = {
            "pystoi": package,
            "codec-bench": partial(metric.compute, items),
            "floor": partial(transforms, [k.shape[2] for k in framed if k is not None]),
        }
        agreement, note = {"codec-bench": f"within {apart:.1e}"}, f"{material}, one thread"
        yield race(case, calls, n=len(pairs), repeats=options.repeats, warmup=2, note=note, agreement=agreement)

"""Time metrics and a recogniser against other packages, on the same clips.

    python bench/bench_peers.py [--recordings DIR] [--count 24]

Each side runs on one thread. A peer that is not installed has no row. `codec-bench` checks audio as `load_metric` does
(silence, other audio in place of the estimate); `codec-bench, the metric alone` does not. Whisper has the shape of
`tiny` and the same random weights on all sides.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from common import RATE_HZ, Cases, Options, Rows, bench, clips, each, noisy_pairs, race, worst
from threadpoolctl import threadpool_limits
from whisper_folder import GREEDY, SIZES, TOKENS, write

from codec_bench import Audio, load_metric
from codec_bench.features import load_feature
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs

CLIPS = 8  # of the recogniser
ALIKE = 0.9  # the least share of clips on which torch writes the same text: near ties may differ
Pairs = list[tuple[np.ndarray, np.ndarray]]


def torchmetrics(pairs: Pairs) -> list[float]:
    """The functional SI-SDR of torchmetrics, clip by clip."""
    import torch
    from torchmetrics.functional.audio import scale_invariant_signal_distortion_ratio as measure

    return [float(measure(torch.from_numpy(y), torch.from_numpy(x), zero_mean=False)) for x, y in pairs]


def pesq(pairs: Pairs) -> list[float]:
    """The package pesq, wide-band."""
    from pesq import pesq as measure

    return [measure(RATE_HZ, x, y, "wb") for x, y in pairs]


def asem(pairs: Pairs) -> list[float]:
    """The package asem, in torch."""
    import asem as package
    import torch

    measure = package.PESQ(sample_rate=RATE_HZ, use_gpu=False)
    return [measure(torch.from_numpy(x)[None], torch.from_numpy(y)[None])[0]["PESQ"] for x, y in pairs]


PEERS: dict[str, tuple[str, str, Callable[[Pairs], list[float]], float]] = {
    "si_sdr, torchmetrics": ("si_sdr", "torchmetrics", torchmetrics, 1e-4),
    "pesq_wb, pesq": ("pesq_wb", "pesq", pesq, 1e-4),
    "pesq_wb, asem": ("pesq_wb", "asem", asem, 0.5),
}
"""By case: our metric, the peer's package, its values, and how far they may be apart."""
WHISPER = "whisper-tiny, faster-whisper"


def compare(case: str, pairs: Pairs, material: str, repeats: int) -> Rows:
    """The rows of one peer."""
    name, package, peer, tolerance = PEERS[case]
    metric = load_metric(name, device="cpu")
    sides = [[Audio(samples, RATE_HZ) for samples in both] for both in zip(*pairs)]

    def ours() -> list[float | None]:
        return [one[name].value for one in metric(reference=sides[0], estimate=sides[1])]

    theirs = partial(peer, pairs)
    apart = worst(zip(theirs(), ours(), strict=True), tolerance, case)
    agreement = {"codec-bench": f"at most {apart:.1e} apart"}
    calls = {package: theirs, "codec-bench": ours}
    if name == "si_sdr":
        alone = build_metric(name)
        items = [Inputs(str(k), RATE_HZ, reference=x, estimate=y) for k, (x, y) in enumerate(pairs)]
        calls["codec-bench, the metric alone"] = lambda: [score.value for score in alone.compute(items)]
    about = {"n": len(pairs), "note": f"{material}, one thread"}
    return race(case, calls, repeats=repeats, warmup=0, agreement=agreement, **about)


def whisper(signals: list[np.ndarray], material: str, repeats: int) -> Rows:
    """The rows of faster-whisper, and how many texts are equal."""
    import ct2_whisper
    from faster_whisper import WhisperModel

    os.environ["OMP_NUM_THREADS"] = "1"  # of CTranslate2 in this project's workers
    with tempfile.TemporaryDirectory() as folder:
        converted = write(Path(folder) / "ct2", SIZES["tiny"], tokens=TOKENS)
        model = WhisperModel(str(converted), device="cpu", compute_type="float32", cpu_threads=1, local_files_only=True)
        layouts = {"ct2": converted, "torch": ct2_whisper.write_transformers(converted, Path(folder) / "torch")}
        features = {by: load_feature("whisper-tiny", weights=str(layout)) for by, layout in layouts.items()}
        for feature in features.values():
            feature.load()

    def theirs() -> list[str]:
        segments = (model.transcribe(signal, language="en", **GREEDY)[0] for signal in signals)
        return ["".join(segment.text for segment in one).strip() for one in segments]

    def ours(by: str) -> list[str]:
        return [result["transcript"] for result in features[by].compute(signals, ["en"] * len(signals))]

    texts, agreement = theirs(), {}
    if len(set(texts)) < len(texts) / 2:
        raise SystemExit("most texts are the same, so their agreement shows nothing")
    for by, least in (("ct2", 1.0), ("torch", ALIKE)):
        equal = sum(one == other for one, other in zip(texts, ours(by), strict=True))
        if equal < least * len(texts):
            raise SystemExit(f"{by} writes {equal} of {len(texts)} texts as faster-whisper does")
        agreement[f"codec-bench, {by}"] = f"{equal} of {len(texts)} texts equal"
    calls = {"faster-whisper": theirs, **{f"codec-bench, {by}": partial(ours, by) for by in features}}
    note = f"{material}, {TOKENS} tokens, one thread"
    return race(WHISPER, calls, repeats=repeats, warmup=0, agreement=agreement, n=len(signals), note=note)


@bench(
    "codec-bench", "torchmetrics", "pesq", "asem", "faster-whisper", "ctranslate2", "torch",
    recordings=None, count=24, repeats=3, threads=1,
)  # fmt: skip
def main(options: Options) -> Cases:
    """Every peer that is installed."""
    threadpool_limits(1)
    warnings.simplefilter("ignore")
    material, references = clips(options.recordings, options.count, RATE_HZ)
    pairs = noisy_pairs(references)
    packages = {case: package for case, (_, package, *_) in PEERS.items()} | {WHISPER: "faster_whisper"}

    def measure(case: str) -> Rows:
        if case == WHISPER:
            material_s, signals = clips(options.recordings, CLIPS, RATE_HZ)
            return whisper(signals, material_s, options.repeats)
        return compare(case, pairs, material, options.repeats)

    yield from each([case for case, package in packages.items() if importlib.util.find_spec(package)], measure)

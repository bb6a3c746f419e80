"""Times signal metrics next to the packages that people use, on the same clips, and checks how far the numbers are apart.

    python bench/bench_peers.py [--recordings DIR] [--count 24]

Each side runs on one thread. A peer that is not installed has no row.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from common import Cases, Options, Rows, bench, clips, each, race, worst

from codec_bench import Audio, load_metric

RATE = 16_000
Pairs = list[tuple[np.ndarray, np.ndarray]]


def torchmetrics(name: str, **options: object) -> Callable[[Pairs], list[float]]:
    """A functional metric of torchmetrics, clip by clip."""

    def measure(pairs: Pairs) -> list[float]:
        import torch
        from torchmetrics.functional import audio

        call = getattr(audio, name)
        return [float(call(torch.from_numpy(y), torch.from_numpy(x), **options)) for x, y in pairs]

    return measure


def pystoi(extended: bool, pairs: Pairs) -> list[float]:
    """The package pystoi."""
    from pystoi import stoi

    return [stoi(x, y, RATE, extended=extended) for x, y in pairs]


def pesq(pairs: Pairs) -> list[float]:
    """The package pesq, wide-band."""
    from pesq import pesq as measure

    return [measure(RATE, x, y, "wb") for x, y in pairs]


def speechmos(pairs: Pairs) -> list[float]:
    """The package speechmos: its overall score of the estimates."""
    from speechmos import dnsmos

    return [dnsmos.run(np.clip(y, -1, 1), RATE)["ovrl_mos"] for _, y in pairs]


def asem(name: str, key: str, pairs: Pairs) -> list[float]:
    """The package asem, in torch."""
    import asem as package
    import torch

    measure = getattr(package, name)(sample_rate=RATE, use_gpu=False)
    return [measure(torch.from_numpy(x)[None], torch.from_numpy(y)[None])[0][key] for x, y in pairs]


PEERS: dict[str, tuple[str, str, Callable[[Pairs], list[float]], float]] = {
    "si_sdr, torchmetrics": (
        "si_sdr", "torchmetrics", torchmetrics("scale_invariant_signal_distortion_ratio", zero_mean=False), 1e-4
    ),
    "stoi, pystoi": ("stoi", "pystoi", partial(pystoi, False), 1e-4),
    "estoi, pystoi": ("estoi", "pystoi", partial(pystoi, True), 1e-4),
    "pesq_wb, pesq": ("pesq_wb", "pesq", pesq, 1e-4),
    "pesq_wb, asem": ("pesq_wb", "asem", partial(asem, "PESQ", "PESQ"), 0.5),
    "stoi, asem": ("stoi", "asem", partial(asem, "STOI", "STOI"), 0.01),
    "dnsmos_ovrl, speechmos": ("dnsmos", "speechmos", speechmos, 1e-3),
}  # fmt: skip
"""By case: our metric, the peer's package, its values, and how far they may be apart."""


def compare(case: str, pairs: Pairs, material: str, repeats: int) -> Rows:
    """The rows of one peer."""
    name, package, peer, tolerance = PEERS[case]
    metric, key = load_metric(name, device="cpu"), case.partition(",")[0]
    sides = [[Audio(samples, RATE) for samples in both] for both in zip(*pairs)]

    def ours() -> list[float | None]:
        return [one[key].value for one in metric(reference=sides[0], estimate=sides[1])]

    theirs = partial(peer, pairs)
    apart = worst(zip(theirs(), ours(), strict=True), tolerance, case)
    agreement = {"codec-bench": f"at most {apart:.1e} apart"}
    calls = {package: theirs, "codec-bench": ours}
    return race(
        case, calls, repeats=repeats, warmup=0, agreement=agreement, n=len(pairs), note=f"{material}, one thread"
    )


@bench(
    "codec-bench", "torchmetrics", "pystoi", "pesq", "speechmos", "asem", "onnxruntime", "torch",
    recordings=None, count=24, repeats=3, threads=1,
)  # fmt: skip
def main(options: Options) -> Cases:
    """Every peer that is installed."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    warnings.simplefilter("ignore")
    material, references = clips(options.recordings, options.count, RATE)
    rng = np.random.default_rng(0)
    pairs = [(x, (x + 0.01 * rng.standard_normal(x.size)).astype(np.float32)) for x in references]
    cases = [case for case, (_, package, *_) in PEERS.items() if importlib.util.find_spec(package) is not None]
    yield from each(cases, lambda case: compare(case, pairs, material, options.repeats))

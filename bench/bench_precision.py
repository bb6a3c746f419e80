"""Differences of WavLM-large and UTMOS in half precision from float32.

    python bench/bench_precision.py [--clips N] [--seconds S] [--recordings DIR]

The networks have seeded weights of the published size. Each clip is embedded and scored alone in float32, alone in half
precision, and in half precision in one padded batch with all others; similarities are those of each clip with itself
under noise, and with the clip before it. Products of half-precision numbers are summed in float32 and rounded once, as
tensor cores do it: few CPUs multiply float16 themselves. The check stops the bench where a drift exceeds what the
documentation promises.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from common import Cases, Options, Rows, bench, clips, figures, worst
from torch.overrides import TorchFunctionMode

from codec_bench.features.precision_names import BY_WEIGHTS
from codec_bench.metrics.sim import cosine_of
from codec_bench.networks.ecapa import SpeakerNet
from codec_bench.networks.half_precision import HALF, reduce_weights
from codec_bench.networks.precision import computing
from codec_bench.networks.speech_config import WAV2VEC2_BASE, WAVLM_LARGE
from codec_bench.networks.speech_encoder import padded, standardised
from codec_bench.networks.utmos import HIDDEN, PROJECTION, UtmosNet

POINTS = tuple(point for point, precision in BY_WEIGHTS.items() if precision in HALF)
PROMISED = {
    "float16": {"angle": 1e-5, "similarity": 5e-4, "score": 5e-3},
    "bfloat16": {"angle": 5e-4, "similarity": 5e-3, "score": 5e-2},
}
"""The greatest drifts that are let pass: 1 less the cosine of two embeddings, a similarity, and a score of UTMOS."""
SPREAD = 1e-2
"""Between the values in float32: where they hardly differ, a small drift shows nothing."""
NOISE_DB = 20.0
Embeddings = list[np.ndarray]


class TensorCores(TorchFunctionMode):
    """Products of numbers in half precision, summed in float32 and rounded once."""

    PRODUCTS = (
        F.linear, F.conv1d, F.scaled_dot_product_attention, torch.addmm, torch.matmul, torch.Tensor.matmul,
        torch.Tensor.__matmul__,
    )  # fmt: skip

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Calls the function, of a product in half precision with its operands in float32."""
        named = kwargs or {}
        kinds = {x.dtype for x in (*args, *named.values()) if isinstance(x, torch.Tensor)} & set(HALF.values())
        if not kinds or (func not in self.PRODUCTS and func is not torch.Tensor.addmm_):
            return func(*args, **named)
        wide = [x.float() if isinstance(x, torch.Tensor) else x for x in args]
        named = {name: x.float() if isinstance(x, torch.Tensor) else x for name, x in named.items()}
        if func is torch.Tensor.addmm_:
            return args[0].copy_(torch.addmm(*wide, **named))
        return func(*wide, **named).to(kinds.pop())


def noisy(signals: list[np.ndarray]) -> list[np.ndarray]:
    """The signals with noise that is 20 dB weaker."""
    rng = np.random.default_rng(0)
    scale = 10 ** (-NOISE_DB / 20)
    return [(x + rng.normal(0, scale * x.std(), x.size)).astype(np.float32) for x in signals]


def similarities(embeddings: Embeddings) -> np.ndarray:
    """Each signal's similarity with the one before, then with itself under noise."""
    half = len(embeddings) // 2
    clean, under_noise = embeddings[:half], embeddings[half:]
    pairs = [*zip(clean, under_noise, strict=True), *zip(clean[1:], clean[:-1], strict=True)]
    return np.array([cosine_of(*pair) for pair in pairs])


def drifts(
    exact: np.ndarray | Embeddings, actual: np.ndarray | Embeddings, limits: dict[str, float], subject: str
) -> dict[str, np.ndarray]:
    """Distance of values from exact ones: embeddings by angle and similarity.

    Raises:
        SystemExit: further than the limits, no numbers, or the exact values hardly differ among each other.
    """
    if isinstance(exact, np.ndarray):
        right, apart = exact, {"score": np.abs(exact - np.asarray(actual))}
    else:
        right = similarities(exact)
        apart = {"angle": np.array([1 - cosine_of(a, b) for a, b in zip(exact, actual, strict=True)])}
        apart["similarity"] = np.abs(right - similarities(list(actual)))
    if not np.ptp(right) >= SPREAD:
        raise SystemExit(f"{subject}: the values hardly differ between clips, so their drift shows nothing: {right}")
    for name, values in apart.items():
        worst([(np.zeros_like(values), values)], limits[name], f"{subject}, {name}")
    return apart


def measured(
    net: torch.nn.Module, run: Callable[[torch.nn.Module, list[np.ndarray]], Any], signals: list[np.ndarray]
) -> dict[str, dict[str, np.ndarray]]:
    """The drifts of a network against float32 weights, by what is compared."""
    exact = joined([run(net, [x]) for x in signals])
    out = {}
    for point in POINTS:
        half = reduce_weights(copy.deepcopy(net), BY_WEIGHTS[point])
        with TensorCores():
            alone = joined([run(half, [x]) for x in signals])
            together = run(half, signals)
        out[f"{point} against float32"] = drifts(exact, alone, PROMISED[point], point)
        out[f"{point}, batch against alone"] = drifts(alone, together, PROMISED[point], f"{point}, batch")
    return out


def joined(parts: list[Any]) -> Any:
    """The results of single signals as that of all."""
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else [x for array in parts for x in array]


def rows_of(case: str, drift: dict[str, dict[str, np.ndarray]], note: str) -> Rows:
    """A row for each drift."""
    units = {"angle": "1 - cosine", "similarity": "cosine", "score": "MOS"}
    rows: Rows = []
    for variant, apart in drift.items():
        for name, values in apart.items():
            p20, p50, p80 = np.percentile(values, [20, 50, 80])
            about = {"case": f"{case}, {name}", "variant": variant, "n": values.size, "note": note}
            spread = {"p20": f"{p20:.3g}", "p80": f"{p80:.3g}", "agreement": f"at most {values.max():.2g}"}
            rows += figures({units[name]: p50}, **about, **spread)
    return rows


def seed_weights(net: torch.nn.Module) -> None:
    """Draw weights large enough that a signal's content reaches its score."""
    for name, values in net.named_parameters():
        if values.dim() >= 2 and not name.endswith("weight_g"):
            torch.nn.init.normal_(values, std=values[0].numel() ** -0.5)
        elif "bias" in name:
            torch.nn.init.normal_(values, std=0.1)


def embed(net: torch.nn.Module, batch: list[np.ndarray]) -> Embeddings:
    """WavLM's embeddings of a batch."""
    with computing("cpu", "float32"):
        waves, lengths = padded(batch, "cpu")
        return [*net(standardised(waves, lengths, 1e-5), lengths).numpy()]


def score(net: torch.nn.Module, batch: list[np.ndarray]) -> np.ndarray:
    """UTMOS's scores of a batch."""
    with computing("cpu", "float32"):
        return net(*padded(batch, "cpu")).numpy()


@bench("codec-bench", "torch", recordings=None, clips=6, seconds=4.0, threads=2)
def main(options: Options) -> Cases:
    """Both networks."""
    torch.manual_seed(0)
    material, signals = clips(options.recordings, options.clips)
    signals = [x[: round(options.seconds * 16_000)] for x in signals]
    note = (
        f"{len(signals)} clips of at most {options.seconds:g} s from {material}, and the same at {NOISE_DB:g} dB of "
        f"noise; "
        f"seeded weights; products as on tensor cores"
    )
    signals += noisy(signals)
    networks = {
        "WavLM-large, full size": (SpeakerNet(WAVLM_LARGE), embed),
        "UTMOS, full size": (UtmosNet(WAV2VEC2_BASE, HIDDEN, PROJECTION), score),
    }
    for case, (net, run) in networks.items():
        seed_weights(net.eval())
        yield rows_of(case, measured(net, run, signals), note)

"""Time the search of residual quantisers against transformers, with equal codes.

    python bench/bench_rvq.py [--seconds 600] [--items 16] [--device cuda:0]

Both sides compute in float32, on the same device and threads; on a GPU transformers also with its default, convolutions
in TF32. Codebooks and latents are noise of the published shapes. Floor: the products at the rate of torch's.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from common import Cases, Options, Rows, add_tf32, bench, cores, each, product_rate, race, same_codes

from codec_bench.kernels.rvq import dispatch
from codec_bench.networks.precision import computing

# Name, frames a second, width of the latents, codebooks searched.
CASES = (
    ("encodec 24 kHz @ 6 kbps", "encodec", 75.0, 128, 8),
    ("dac 44 kHz", "dac", 86.0, 1024, 9),
    ("mimi @ 1.1 kbps", "mimi", 12.5, 512, 8),
)


def quantizer(family: str) -> torch.nn.Module:
    """transformers' quantiser with noise for weights."""
    from transformers import DacConfig, EncodecConfig, MimiConfig
    from transformers.models.dac.modeling_dac import DacResidualVectorQuantizer
    from transformers.models.encodec.modeling_encodec import EncodecResidualVectorQuantizer
    from transformers.models.mimi.modeling_mimi import MimiSplitResidualVectorQuantizer

    torch.manual_seed(0)
    if family == "encodec":
        net = EncodecResidualVectorQuantizer(EncodecConfig())
        for layer in net.layers:
            layer.codebook.embed.normal_()
    elif family == "dac":
        net = DacResidualVectorQuantizer(DacConfig())
    else:
        net = MimiSplitResidualVectorQuantizer(MimiConfig())
        for half in (net.semantic_residual_vector_quantizer, net.acoustic_residual_vector_quantizer):
            for layer in half.layers:
                layer.codebook.embed_sum.normal_()
    return net.eval()


def theirs(net: torch.nn.Module, family: str, latents: torch.Tensor, codebooks: int) -> torch.Tensor:
    """Codes `(items, codebooks, frames)` by transformers."""
    if family == "dac":
        return net(latents)[1]
    return net.encode(latents, codebooks * 0.75 if family == "encodec" else codebooks).transpose(0, 1)


def operations(quantiser: dispatch.Quantiser, codebooks: int) -> float:
    """Floating-point operations of the products that a search of one frame needs."""
    if isinstance(quantiser, dispatch.Split):
        first, second = quantiser.parts
        return operations(first, first.codebooks) + operations(second, codebooks - first.codebooks)
    _, entries, dims = quantiser.embed.shape
    total = 2.0 * codebooks * entries * dims
    if isinstance(quantiser, dispatch.Factorised):
        total += 2.0 * codebooks * dims * quantiser.project.shape[2]
    elif quantiser.project is not None:
        total += 2.0 * quantiser.project.numel()
    return total


def streams(codes: torch.Tensor) -> list[list[np.ndarray]]:
    """Codes `(items, codebooks, frames)` as `frames_apart` takes them."""
    return [[item] for item in codes.cpu().numpy()]


def measure(case: tuple[str, str, float, int, int], options: Options, rate: float) -> Rows:
    """The rows of one quantiser, all of whose products are in true float32."""
    name, family, frame_rate, hidden, codebooks = case
    net = quantizer(family).to(options.device)
    ours = dispatch.adopt(net)
    frames = round(options.seconds * frame_rate)
    noise = torch.randn(options.items, hidden, frames, generator=torch.Generator().manual_seed(1))
    latents = noise.to(options.device)
    with computing(options.device, "float32"):
        expected = streams(theirs(net, family, latents, codebooks))
        result = dispatch.search(latents, ours, codebooks)
        ours_name = f"codec-bench ({result.implementation})"
        agreement = {ours_name: same_codes(streams(result.value), expected)}
        calls = {
            "transformers": partial(theirs, net, family, latents, codebooks),
            ours_name: partial(dispatch.search, latents, ours, codebooks),
        }
        if options.device != "cpu":
            add_tf32(calls, agreement, "transformers", streams, expected)
        flops = operations(ours, codebooks) * frames * options.items
        note = f"{options.threads} threads; "
        note += f"floor {flops / rate:.3g} s: {flops / 1e9:.3g} GFLOP at {rate / 1e9:.0f} GFLOP/s"
        about = {"n": frames * options.items, "repeats": options.repeats, "device": options.device}
        return race(f"{name} search", calls, **about, note=note, agreement=agreement)


@bench(
    "codec-bench", "torch", "triton", "transformers", "numpy", seconds=10.0, items=2, repeats=5, threads=cores(),
    device="cpu"
)  # fmt: skip
def main(options: Options) -> Cases:
    """Every quantiser."""
    return each(CASES, partial(measure, options=options, rate=product_rate(options.device)))

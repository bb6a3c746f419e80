"""Times the search of residual quantisers against transformers' own, and checks that the codes are the same.

    python bench/bench_rvq.py                 reduced: 20 s of audio
    python bench/bench_rvq.py --seconds 600 --items 16

Both sides run on the device given, in float32 and with the same threads; on a GPU transformers' search also as it comes, with
convolutions in TF32, and the frames that have other codes then are counted. Codebooks and latents are noise of the published shapes.
Floors, measured in the same run: a copy of as many bytes as must move (latents, codes and codebooks, once), and the time of the
products at the rate of torch's float32 matrix product.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import torch
from common import AS_IT_COMES, append_rows, as_it_comes, asked, cores, product_rate, race, waited

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
    if family == "encodec":
        return net.encode(latents, codebooks * 0.75).transpose(0, 1)
    if family == "dac":
        return net(latents)[1]
    return net.encode(latents, codebooks).transpose(0, 1)


def copy_of(size: int, device: torch.device) -> Callable[[], object]:
    """A copy that reads and writes `size` bytes together."""
    source = torch.ones(max(1, size // 8), device=device)
    return partial(torch.empty_like(source).copy_, source)


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


def codebook_bytes(quantiser: dispatch.Quantiser, codebooks: int) -> int:
    """Bytes of the codewords of so many codebooks."""
    if isinstance(quantiser, dispatch.Split):
        first, second = quantiser.parts
        return codebook_bytes(first, first.codebooks) + codebook_bytes(second, codebooks - first.codebooks)
    return quantiser.embed[:codebooks].nbytes


def compare_codes(name: str, codes: torch.Tensor, expected: torch.Tensor) -> float:
    """The part of the frames with other codes; stops where it is more than one frame in 10,000, or than one frame."""
    if codes.shape != expected.shape:
        raise SystemExit(f"{name}: codes of shape {tuple(codes.shape)} for {tuple(expected.shape)}")
    other = (codes != expected).any(1).float()
    if float(other.mean()) > max(1e-4, 1.5 / other.numel()):
        raise SystemExit(f"{name}: {float(other.mean()):.2%} of the frames have other codes")
    return float(other.mean())


def measure(
    name: str, family: str, frame_rate: float, hidden: int, codebooks: int, options: argparse.Namespace, rate: float
) -> list[dict[str, object]]:
    """The rows of one quantiser, all of whose products are in true float32."""
    device = torch.device(options.device)
    net = quantizer(family).to(device)
    ours = dispatch.adopt(net)
    frames = round(options.seconds * frame_rate)
    latents = torch.randn(options.items, hidden, frames, generator=torch.Generator().manual_seed(1)).to(device)
    expected = theirs(net, family, latents, codebooks)
    found = dispatch.search(latents, ours, codebooks)
    differing = compare_codes(name, found.value, expected)
    count = frames * options.items
    flops = operations(ours, codebooks) * count
    size = latents.nbytes + found.value.nbytes + codebook_bytes(ours, codebooks)
    own = f"codec-bench ({found.implementation})"
    calls: dict[str, Callable[[], object]] = {
        "transformers": lambda: theirs(net, family, latents, codebooks),
        own: lambda: dispatch.search(latents, ours, codebooks),
        "floor": copy_of(size, device),
    }
    said = {own: f"{differing:.2g} of the frames differ"}
    if device.type == "cuda":
        calls[AS_IT_COMES] = as_it_comes(calls["transformers"])
        other = (calls[AS_IT_COMES]() != expected).any(1).float()
        said[AS_IT_COMES] = f"{float(other.mean()):.2%} of {other.numel()} frames have other codes than in float32"
    calls = {variant: waited(call, device) for variant, call in calls.items()}
    note = (
        f"{options.threads} threads; the floor is a copy of {size / 1e6:.2g} MB; "
        f"{flops / 1e9:.3g} GFLOP, {flops / rate:.3g} s at {rate / 1e9:.0f} GFLOP/s"
    )
    return race(f"{name} search", calls, n=count, repeats=options.repeats, note=note, agreement=said)


def main() -> None:
    """Runs the bench and appends its rows."""
    options = asked(__doc__, seconds=10.0, items=2, repeats=5, threads=cores(), device="cpu")
    rate = product_rate(torch.device(options.device))
    rows, wrong = [], []
    for case in CASES:
        try:
            with computing(options.device, "float32"):
                rows += measure(*case, options, rate)
        except SystemExit as error:  # the next quantiser may be right
            wrong.append(str(error))
    if rows:
        append_rows("rvq", rows, ("codec-bench", "torch", "triton", "transformers", "numpy"))
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()

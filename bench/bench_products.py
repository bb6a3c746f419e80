"""A large matrix product on a CPU, through oneDNN and through torch's own way, which is MKL on a processor of Intel or AMD.

    python bench/bench_products.py [--threads 1] [--repeats 15]

The sizes are those of speech encoders: the widths of the base and large sizes, as many rows as a clip of three seconds has frames and
as a batch of half a minute has, and the widest convolution of the encoders. On processors of AMD the networks take oneDNN's product.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch
import torch.nn.functional as F
from common import append_rows, interleaved, parsed, row, worst

from codec_bench.networks import products

SIZES = [
    (150, 768, 768),
    (150, 768, 3072),
    (150, 3072, 768),
    (1500, 768, 3072),
    (150, 1024, 4096),
    (1500, 1024, 4096),
    (4800, 1024, 512),
]
"""Rows, inputs and outputs."""
TOLERANCE = 1e-5


def compare(found: torch.Tensor, rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, what: str) -> float:
    """How far a product is from that in float64, in units of its greatest number; stops where that is too far."""
    exact = rows.double() @ weight.double().T + bias.double()
    scale = float(exact.abs().max())
    return worst([(exact.numpy() / scale, found.double().numpy() / scale)], TOLERANCE, what)


def measure(size: tuple[int, int, int], options: argparse.Namespace) -> list[dict[str, object]]:
    """The rows of one size."""
    count, inputs, outputs = size
    generator = torch.Generator().manual_seed(0)
    rows, weight, bias = (
        torch.randn(shape, generator=generator) for shape in ((count, inputs), (outputs, inputs), (outputs,))
    )
    variants = {
        "torch": lambda: F.linear(rows, weight, bias),
        "oneDNN": lambda: products.linear_of_onednn(rows, weight, bias),
    }
    apart = {name: compare(call(), rows, weight, bias, f"{size}, {name}") for name, call in variants.items()}
    seconds = interleaved(variants, options.repeats)
    base = float(np.median(seconds["torch"]))
    case = f"{count} x {inputs} x {outputs}, {options.threads} threads"
    found = []
    for name, times in seconds.items():
        ratio, agreement = base / float(np.median(times)), f"within {apart[name]:.1e} of float64"
        sys.stdout.write(f"{case}: {name:<7} {1000 * np.median(times):7.2f} ms, {ratio:.2f}x, {agreement}\n")
        found.append(row(case, name, times, n=count, ratio=ratio, agreement=agreement))
    return found


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry", action="store_true", help="write no rows")
    options = parsed(parser, repeats=15, threads=1)
    with torch.inference_mode():
        rows = [one for size in SIZES for one in measure(size, options)]
    if not options.dry:
        append_rows("products", rows, ("torch",))


if __name__ == "__main__":
    main()

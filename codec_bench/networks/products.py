"""The large matrix products of a network on a CPU: through oneDNN on AMD's processors, through torch elsewhere.

torch multiplies float32 matrices on a CPU with MKL. On AMD's processors MKL is slower than oneDNN, which torch has too and uses for
convolutions (`bench/bench_products.py`). On Intel's processors the two were not compared. torch opens oneDNN's product for compiled
networks only, under a private name, so every other case takes torch's own product. This module imports torch: import it inside
functions.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

LEAST_WEIGHTS = 1 << 18
"""From this many weights on a product is large. The rows do not decide, so that an item has the same result in every batch."""
_CPU = Path("/proc/cpuinfo")


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`rows @ weight.T + bias`, `(..., inputs)` to `(..., outputs)`, in the type of the weights.

    Args:
        weight: `(outputs, inputs)`. bias: `(outputs,)`, or None.
    """
    rows = rows.to(weight.dtype)
    if _large_on_cpu(rows, weight) and through_onednn():
        return linear_of_onednn(rows, weight, bias)
    return F.linear(rows, weight, bias)


def add_linear(total: Tensor, rows: Tensor, weight: Tensor) -> None:
    """Adds `rows @ weight.T` to `total` in its place.

    Args:
        total: `(rows, outputs)`. rows: `(rows, inputs)`, in the type of the weights. weight: `(outputs, inputs)`.
    """
    if _large_on_cpu(rows, weight) and through_onednn():
        total += linear(rows, weight, None)
    else:
        total.addmm_(rows, weight.T)


def linear_of_onednn(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """As `linear`, of float32 numbers on a CPU, by oneDNN."""
    return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")


@cache
def through_onednn() -> bool:
    """Whether this machine's large products go through oneDNN."""
    try:
        amd = "AuthenticAMD" in _CPU.read_text("ascii", "replace")
    except OSError:  # not Linux
        return False
    return amd and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _large_on_cpu(rows: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN may compute this product: it has no gradients, and empty inputs stay with torch."""
    return (
        rows.device.type == "cpu"
        and weight.dtype == torch.float32
        and weight.numel() >= LEAST_WEIGHTS
        and rows.numel() > 0
        and not torch.is_grad_enabled()
    )

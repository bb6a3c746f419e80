"""How often each code and each pair of codes occurs: `ref` is the specification, `cpu` numba, `gpu` Triton and torch.

    counts, implementation = histogram(codes, 1024, lengths)          # implementation: "numba", "triton" or "torch"
    (keys, counts), implementation = pairs(codes, 1024, lengths)

Codes are a NumPy array or a tensor `(items, codebooks, frames)`; tensors on a GPU are counted there, and only counts
ever need to leave it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import torch

Implementation = Literal["numba", "triton", "torch"]


class Ran(NamedTuple):
    """A result and the implementation that gave it."""

    value: Any
    implementation: Implementation


def histogram(
    codes: np.ndarray | torch.Tensor, cardinality: int, lengths: np.ndarray | torch.Tensor | None = None
) -> Ran:
    """Counts of every code in every codebook.

    Args:
        codes: integers `(items, codebooks, frames)`.
        cardinality: entries per codebook.
        lengths: frames of each item, `(items,)`; what lies beyond is not counted. None for all.

    Returns:
        int64 `(codebooks, cardinality + 1)` where the codes are; the last column counts codes outside [0, cardinality).
    """
    if _on_gpu(codes):
        from codec_bench.kernels.codebook import gpu

        triton = codes.device.type == "cuda" and find_spec("triton") is not None
        count = gpu.histogram if triton else gpu.histogram_plain
        return Ran(count(codes, cardinality, lengths), "triton" if triton else "torch")
    from codec_bench.kernels.codebook import cpu

    return Ran(cpu.histogram(_numpy(codes), cardinality, _numpy(lengths)), "numba")


def pairs(
    codes: np.ndarray | torch.Tensor,
    cardinality: int,
    lengths: np.ndarray | torch.Tensor | None = None,
    *,
    along: Literal["codebooks", "frames"] = "codebooks",
) -> Ran:
    """Counts of every pair of neighbouring codes that occurs, sparse: a square table would hold cardinality² numbers.

    Args:
        codes: integers `(items, codebooks, frames)`.
        cardinality: entries per codebook.
        lengths: frames of each item, `(items,)`; what lies beyond is not counted. None for all.
        along: `codebooks` pairs codebook q with q + 1 in the same frame, `frames` pairs frame t with t + 1 of the same
            codebook and item.

    Returns:
        Two int64 arrays `(pairs,)` where the codes are: keys in rising order, `(place * cardinality + first) *
        cardinality + second` with `place` the first one's codebook, and how often each occurs. A pair with a code
        outside [0, cardinality) is left out.
    """
    if _on_gpu(codes):
        from codec_bench.kernels.codebook import gpu

        return Ran(gpu.pairs(codes, cardinality, lengths, along == "frames"), "torch")
    from codec_bench.kernels.codebook import cpu

    return Ran(cpu.pairs(_numpy(codes), cardinality, _numpy(lengths), along == "frames"), "numba")


def _on_gpu(codes: np.ndarray | torch.Tensor) -> bool:
    return getattr(codes, "is_cpu", True) is False


def _numpy(values: np.ndarray | torch.Tensor | None) -> np.ndarray | None:
    return values.numpy(force=True) if hasattr(values, "is_cpu") else values

"""Counts how often each code and each pair of codes occurs: `ref` is the specification, `cpu` uses numba, `gpu` Triton.

    counts, implementation = histogram(codes, 1024, lengths)          # implementation: "numba", "triton" or "torch"
    (keys, counts), implementation = pairs(codes, 1024, lengths)

Codes are a NumPy array or a tensor `(items, codebooks, frames)`. Tensors on a GPU are counted there, so that only the
counts have to be copied from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard

import numpy as np

from codec_bench.kernels.first_launch import triton_works

if TYPE_CHECKING:
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
        lengths: frames of each item, `(items,)`; later frames are not counted. None counts all frames.

    Returns:
        int64 `(codebooks, cardinality + 1)`, on the device of the codes. The last column counts codes outside
        [0, cardinality).
    """
    if _on_gpu(codes):
        from codec_bench.kernels.codebook import gpu

        triton = triton_works(codes.device)
        count = gpu.histogram if triton else gpu.histogram_plain
        return Ran(count(codes, cardinality, lengths), "triton" if triton else "torch")
    from codec_bench.kernels.codebook import cpu

    return Ran(cpu.histogram(_numpy(codes), cardinality, None if lengths is None else _numpy(lengths)), "numba")


def pairs(
    codes: np.ndarray | torch.Tensor,
    cardinality: int,
    lengths: np.ndarray | torch.Tensor | None = None,
    *,
    along: Literal["codebooks", "frames"] = "codebooks",
) -> Ran:
    """Counts of every pair of neighbouring codes that occurs. A full table would hold cardinality² numbers.

    Args:
        codes: integers `(items, codebooks, frames)`.
        cardinality: entries per codebook.
        lengths: frames of each item, `(items,)`; later frames are not counted. None counts all frames.
        along: `codebooks` pairs codebook q with q + 1 in the same frame, `frames` pairs frame t with t + 1 of the same
            codebook and item.

    Returns:
        Two int64 arrays `(pairs,)` on the device of the codes: keys in rising order, `(place * cardinality + first) *
        cardinality + second`, where `place` is the codebook of the first code; and how often each pair occurs. A pair
        with a code outside [0, cardinality) is left out.
    """
    if _on_gpu(codes):
        from codec_bench.kernels.codebook import gpu

        return Ran(gpu.pairs(codes, cardinality, lengths, along == "frames"), "torch")
    from codec_bench.kernels.codebook import cpu

    own = None if lengths is None else _numpy(lengths)
    return Ran(cpu.pairs(_numpy(codes), cardinality, own, along == "frames"), "numba")


def _on_gpu(codes: np.ndarray | torch.Tensor) -> TypeGuard[torch.Tensor]:
    return getattr(codes, "is_cpu", True) is False


def _numpy(values: np.ndarray | torch.Tensor) -> np.ndarray:
    return values if isinstance(values, np.ndarray) else values.numpy(force=True)

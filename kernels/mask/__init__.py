"""An activation with zeros beyond items: `ref`, `cpu` torch, `gpu` Triton.

    y, implementation = activate(x, lengths, "snake", alpha)          # implementation: "torch" or "triton"

A convolution reads beyond an item's end; zeros there make a batch equal its items one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from codec_bench.kernels.first_launch import KernelResult, triton_works

if TYPE_CHECKING:
    import torch

Activation = Literal["identity", "elu", "snake"]


def activate(
    x: torch.Tensor, lengths: torch.Tensor, activation: Activation = "identity", alpha: torch.Tensor | None = None
) -> KernelResult:
    """Apply the activation to each item's own frames and write zeros to all others.

    Args:
        x: float32 `(items, channels, frames)`, which is not changed.
        lengths: int64 `(items,)`, frames of each item, on the same device.
        activation: `identity`; `elu`: x, or exp(x) - 1 below zero; or `snake`: x + sin²(alpha x) / (alpha + 1e-9).
        alpha: one per channel, in any shape with that number of elements; only for `snake`.

    Returns:
        float32 `(items, channels, frames)`, contiguous, and the implementation that ran.

    Raises:
        ValueError: another activation, or an alpha that is missing, superfluous or of another size.
    """
    if activation not in ("identity", "elu", "snake"):
        raise ValueError(f"there is no activation '{activation}'; there are identity, elu and snake")
    if (alpha is not None) != (activation == "snake"):
        raise ValueError(f"{activation} takes {'one' if activation == 'snake' else 'no'} alpha per channel")
    if alpha is not None and alpha.numel() != x.shape[1]:
        raise ValueError(f"alpha has {alpha.numel()} elements; expected one for each of {x.shape[1]} channels")
    if triton_works(x.device):
        from codec_bench.kernels.mask import gpu

        return KernelResult(gpu.activate(x, lengths, activation, alpha), "triton")
    from codec_bench.kernels.mask import cpu

    return KernelResult(cpu.activate(x, lengths, activation, alpha), "torch")

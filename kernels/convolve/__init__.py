"""A float32 convolution over time: `ref`, `cpu` torch, `gpu` Triton.

    taps = arranged(layer.weight)
    y, implementation = convolve(x, taps, bias, padding=3, dilation=1)          # implementation: "torch" or "triton"

A tensor core multiplies numbers of 11 binary digits (TensorFloat-32). Every float32 is split into two of them; three of
the four products are added in float32, and the fourth is below its last digit. The order of sums is fixed, so an item
has the same bits alone and in any batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codec_bench.kernels.first_launch import KernelResult, triton_works

if TYPE_CHECKING:
    import torch

CAPABILITY = 9
"""Compute capability of the GPUs measured to beat cuDNN: Hopper's. For others it depends on their tensor cores."""


def arranged(weight: torch.Tensor) -> torch.Tensor:
    """`Conv1d` weights `(outputs, channels, kernel)` as `(kernel, outputs, channels)`."""
    return weight.detach().permute(2, 0, 1).contiguous()


def convolve(
    x: torch.Tensor, taps: torch.Tensor, bias: torch.Tensor | None = None, *, padding: int = 0, dilation: int = 1
) -> KernelResult:
    """Convolve each item over its frames with a stride of one.

    Args:
        x: float32 `(items, channels, frames)`. taps: float32, from `arranged`. bias: float32 `(outputs,)`, or None.
        padding: zeros before and after each item's frames. dilation: in frames.

    Returns:
        float32 `(items, outputs, frames + 2 padding - dilation (kernel - 1))`, and the implementation that ran.

    Raises:
        ValueError: `x` and `taps` differ in channels, or the kernel is longer than the padded frames.
    """
    if x.shape[1] != taps.shape[2]:
        raise ValueError(f"x has {x.shape[1]} channels; the taps read {taps.shape[2]}")
    reach = dilation * (len(taps) - 1) + 1
    if x.shape[2] + 2 * padding < reach:
        raise ValueError(
            f"the kernel reaches over {reach} frames; there are {x.shape[2]} and {padding} zeros on each side"
        )
    if triton_works(x.device):
        from codec_bench.kernels.convolve import gpu

        return KernelResult(gpu.convolve(x, taps, bias, padding, dilation), "triton")
    from codec_bench.kernels.convolve import cpu

    return KernelResult(cpu.convolve(x, taps, bias, padding, dilation), "torch")

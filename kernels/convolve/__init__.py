"""A convolution over time in float32: `ref` is the specification, `cpu` torch, `gpu` Triton on the tensor cores.

    taps = arranged(layer.weight)
    y, implementation = convolve(x, taps, bias, padding=3, dilation=1)          # implementation: "torch" or "triton"

A tensor core multiplies numbers of 11 binary digits (TensorFloat-32). Every float32 number is split into two of those,
and three of the four products of the parts are added in float32; the fourth is below float32's last digit. A tensor
core does three times the work so, and is still faster than cuDNN's float32 and not less exact (`docs/speed.md`). The
numbers are added in one order whatever the batch and the length, so that an item gets the same bits alone and in any
batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from codec_bench.kernels.first_launch import triton_works

if TYPE_CHECKING:
    import torch

Implementation = Literal["torch", "triton"]
CAPABILITY = 9
"""The compute capability, without the point, of the GPUs on which it was measured to be faster than cuDNN: Hopper's.

Which others gain from it depends on how much faster than float32 their tensor cores are.
"""


class Ran(NamedTuple):
    """A result and the implementation that gave it."""

    value: torch.Tensor
    implementation: Implementation


def arranged(weight: torch.Tensor) -> torch.Tensor:
    """The weight of `torch.nn.Conv1d`, `(outputs, channels, kernel)`, as `(kernel, outputs, channels)`, contiguous."""
    return weight.detach().permute(2, 0, 1).contiguous()


def convolve(
    x: torch.Tensor, taps: torch.Tensor, bias: torch.Tensor | None = None, *, padding: int = 0, dilation: int = 1
) -> Ran:
    """Convolves each item over its frames with a stride of one.

    Args:
        x: float32 `(items, channels, frames)`.
        taps: float32, the weight as `arranged` gives it.
        bias: float32 `(outputs,)`, or None.
        padding: zeros before and after each item's frames. dilation: frames from one place of the kernel to the next.

    Returns:
        float32 `(items, outputs, frames + 2 padding - dilation (kernel - 1))`, and the implementation that ran.

    Raises:
        ValueError: the channels of `x` and `taps` are not as many, or the kernel is longer than the padded frames.
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

        return Ran(gpu.convolve(x, taps, bias, padding, dilation), "triton")
    from codec_bench.kernels.convolve import cpu

    return Ran(cpu.convolve(x, taps, bias, padding, dilation), "torch")

"""Float32 convolutions over time on tensor cores (`kernels/convolve`).

That holds for a stride of one, one group, zero padding, at least 64 channels on both sides, and the measured GPUs.
"""

from __future__ import annotations

from typing import TypeVar

import torch

from codec_bench.kernels.convolve import CAPABILITY, arranged, convolve
from codec_bench.kernels.first_launch import triton_works

Network = TypeVar("Network", bound=torch.nn.Module)

CHANNELS, FRAMES = 64, 256
"""The fewest channels and frames. Measured gains had 96 channels and 9,200 frames and more; below is a guess."""


class TensorCoreConv1d(torch.nn.Conv1d):
    """`torch.nn.Conv1d` in float32 on tensor cores; torch's own for few frames."""

    _taps: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve `(items, in, frames)`: `(items, out, frames)` less the kernel's span."""
        if x.ndim != 3 or x.shape[2] < FRAMES or x.dtype != torch.float32:
            return super().forward(x)
        padding, dilation = int(self.padding[0]), self.dilation[0]
        return convolve(x, self._taps, self.bias, padding=padding, dilation=dilation).value


def on_tensor_cores(net: Network) -> Network:
    """Change a network's convolutions in place where its device gains from it.

    Args:
        net: in eval mode, on its device. Its weights may not change afterwards.
    """
    for layer in net.modules():
        if isinstance(layer, torch.nn.Conv1d) and _gains(layer):
            taps = arranged(layer.weight)
            layer.__class__ = TensorCoreConv1d
            layer._taps = taps
    return net


def _gains(layer: torch.nn.Conv1d) -> bool:
    """Whether this convolution is known to be faster on the tensor cores of its GPU."""
    if type(layer) is not torch.nn.Conv1d or not _measured(layer.weight.device):
        return False
    plain = layer.stride == (1,) and layer.groups == 1 and layer.padding_mode == "zeros"
    plain = plain and isinstance(layer.padding, tuple)  # else it is a word, and may mean unequal sides
    wide = min(layer.in_channels, layer.out_channels) >= CHANNELS and layer.kernel_size[0] > 1
    return plain and wide and layer.weight.dtype == torch.float32


def _measured(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == CAPABILITY and triton_works(device)

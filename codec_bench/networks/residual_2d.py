"""Residual blocks over frequency and time, exact in padded batches."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.fbank import masked
from codec_bench.networks.half_precision import BatchNorm2d, Conv2d


class PlaneBlock(nn.Module):
    """Two convolutions and a skip, under the names of the published ResNets."""

    def __init__(self, inputs: int, outputs: int, stride: tuple[int, int]) -> None:
        super().__init__()
        self.conv1 = Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = BatchNorm2d(outputs)
        self.conv2 = Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != (1, 1) or inputs != outputs:
            self.shortcut = nn.Sequential(Conv2d(inputs, outputs, 1, stride=stride, bias=False), BatchNorm2d(outputs))

    def forward(self, x: Tensor, before: Tensor | None, after: Tensor | None) -> Tensor:
        """Map `(batch, inputs, bands, frames)` to the block's result.

        Args:
            before, after: 1 on own frames of the input and of the result, or None (`fbank.valid`).
        """
        inner = F.relu(self.bn1(self.conv1(masked(x, before))))
        return F.relu(self.bn2(self.conv2(masked(inner, after))) + self.shortcut(x))

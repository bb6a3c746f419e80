"""A grouped convolution over frames as matrix products.

cuDNN takes 17 ms of an H200 for wav2vec 2.0's positional convolution over 14,700 frames in half precision (128 taps, 16
groups of 48 channels), the work of a large product of 0.3 ms. Here `BLOCK` frames of a group's result are one row: the
product of `BLOCK + kernel - 1` frames of its input, contiguous once the groups follow each other, with a matrix that
holds the kernel `BLOCK` times, each a frame lower, and zeros. For 128 taps:

    BLOCK   copied input   operations   the kernel in memory
    1       128 times      1.00         1 time
    4       33 times       1.02         4.1 times (77 MB in float32 for wav2vec 2.0 base, 137 MB for WavLM-large)
    8       17 times       1.05         8.4 times

With 1, the copy and a product 48 wide take 4.8 ms there. With 4, the copy is 0.75 GB in half precision: 0.4 ms at 4
TB/s (estimate), twice that in float32, where the product takes 2.7 ms at 45 TFLOP/s.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.half_precision import Reducible
from codec_bench.networks.speech_extractor import Folding

BLOCK = 4
ENTRIES = 1 << 28
"""Entries of the windows at a time (1 GiB in float32): bounds the memory of long signals."""


class GroupedConv(Folding, Reducible):
    """A grouped convolution that keeps channels and frames.

    Args:
        kernel: in frames; an even one reads one more frame before a result than behind it.
    """

    def __init__(self, width: int, kernel: int, groups: int) -> None:
        super().__init__()
        self.kernel, self.groups = kernel, groups
        self.weight = nn.Parameter(torch.empty(width, width // groups, kernel))
        self.bias = nn.Parameter(torch.zeros(width))
        nn.init.kaiming_normal_(self.weight)

    def taps(self) -> tuple[Tensor, Tensor]:
        """Weights `(width, width / groups, kernel)` and bias, in products' type."""
        return self.weight, self.bias

    def fold(self) -> tuple[Tensor, Tensor]:
        """Arrange the weights as one matrix per group that computes BLOCK frames at once.

        Returns:
            Matrices `(groups, (BLOCK + kernel - 1) * inputs, BLOCK * outputs)`, and the bias.
        """
        weight, bias = self.taps()
        taps = weight.unflatten(0, (self.groups, -1)).permute(0, 3, 2, 1)
        blocks = taps.new_zeros(self.groups, BLOCK + self.kernel - 1, taps.shape[2], BLOCK, taps.shape[3])
        for index in range(BLOCK):
            blocks[:, index : index + self.kernel, :, index] = taps
        return blocks.flatten(3).flatten(1, 2), bias.view(self.groups, 1, -1).repeat(1, 1, BLOCK)

    def forward(self, frames: Tensor) -> Tensor:
        """Map `(batch, frames, width)` to the same shape."""
        blocks, bias = self.folded()
        length, count, before = frames.shape[1], -(-frames.shape[1] // BLOCK), self.kernel // 2
        behind = count * BLOCK - length + self.kernel - 1 - before
        padded = F.pad(frames.to(blocks.dtype), (0, 0, before, behind)).unflatten(2, (self.groups, -1))
        runs = padded.permute(2, 0, 1, 3).flatten(2)
        # 16 bytes at a time where a frame is a multiple: a GPU computes an address for every number that it copies.
        wide = torch.complex128 if padded.shape[3] * padded.itemsize % 16 == 0 else padded.dtype
        each = wide.itemsize // padded.itemsize
        windows = runs.view(wide).unfold(2, blocks.shape[1] // each, BLOCK * padded.shape[3] // each)
        at_once = max(1, ENTRIES // (len(frames) * blocks[..., 0].numel()))
        parts = [
            torch.baddbmm(bias, chunk.flatten(1, 2).view(padded.dtype), blocks).unflatten(1, chunk.shape[1:3])
            for chunk in windows.split(at_once, 2)
        ]
        rows = parts[0] if len(parts) == 1 else torch.cat(parts, 2)
        return rows.unflatten(3, (BLOCK, -1)).permute(1, 2, 3, 0, 4).flatten(3).flatten(1, 2)[:, :length]

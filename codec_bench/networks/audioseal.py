"""AudioSeal's detector: watermark per sample and message bits, ragged.

Reference implementation: the package audioseal 0.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.ragged import WholeSignal, each, inside, on_device, uploaded, zero_beyond
from codec_bench.networks.seanet import SkippedLSTM
from codec_bench.networks.weight_norm import fold_weight_norm

CHANNELS, WIDTH, OUTPUTS = 32, 128, 32
RATIOS = (2, 4, 5, 8)
HOP = 320
BITS = 16
THRESHOLD = 0.5
"""A sample is marked from this probability on."""


def _strided(length: Any, stride: int) -> Any:
    """Return a length, or all as a tensor, behind a layer of this stride."""
    return -(-length // stride)


class _AudioSealConv(nn.Module):
    """A convolution to ceil(length / stride) frames, with zeros beyond both ends."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.ModuleDict({"conv": nn.Conv1d(inputs, outputs, kernel, stride)})
        self.stride, self.right = stride, (kernel - stride) // 2
        self.left = kernel - stride - self.right

    def forward(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        """Map `(items, inputs, time)` to `(items, outputs, ceil(time / stride))`."""
        filled = -x.shape[2] % self.stride
        return self.conv["conv"](F.pad(zero_beyond(x, lengths), (self.left, self.right + filled)))


class _AudioSealBlock(nn.Module):
    """Two convolutions with half of the channels between them, added to the input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = channels // 2
        self.block = nn.ModuleList(
            [nn.ELU(), _AudioSealConv(channels, inner, 3), nn.ELU(), _AudioSealConv(inner, channels, 1)]
        )

    def forward(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        """Map `x` to the same shape."""
        return x + self.block[3](F.elu(self.block[1](F.elu(x), lengths)), lengths)


class _AudioSealEncoder(nn.Module):
    """From samples to features of samples, under the published names."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [_AudioSealConv(1, channels, 7)]
        for ratio in RATIOS:
            layers += [_AudioSealBlock(channels), nn.ELU(), _AudioSealConv(channels, 2 * channels, 2 * ratio, ratio)]
            channels *= 2
        layers += [SkippedLSTM(channels, 2, bidirectional=False), nn.ELU(), _AudioSealConv(channels, width, 7)]
        self.model = nn.ModuleList(layers)
        self.reverse_convolution = nn.ConvTranspose1d(width, OUTPUTS, HOP, HOP)

    def forward(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        """Map `(items, 1, samples)` to `(items, outputs, samples)`."""
        samples = x.shape[2]
        for layer in self.model:
            if isinstance(layer, nn.ELU):
                x = layer(x)
                continue
            x = layer(x, lengths)
            lengths = each(lengths, partial(_strided, stride=getattr(layer, "stride", 1)))
        return self.reverse_convolution(x)[..., :samples]


class AudioSealNet(WholeSignal, nn.Module):
    """The whole network."""

    at_once = (30 * 16_000, 600 * 16_000)
    """Samples per pass on a CPU and a GPU. They bound the first convolution's memory: 2 MB per second."""

    def __init__(self, channels: int = CHANNELS, width: int = WIDTH) -> None:
        super().__init__()
        self.detector = nn.ModuleList([_AudioSealEncoder(channels, width), nn.Conv1d(OUTPUTS, 2 + BITS, 1)])

    @staticmethod
    def translated(state: Mapping[str, Any]) -> dict[str, Any]:
        """Rename published tensors, of this version of the package or an older one."""
        return fold_weight_norm({name.replace(".inner_conv.", "."): value for name, value in state.items()})

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Compute the share of marked samples and the bits: `(items, 1 + bits)`.

        Args:
            waves: float32 `(items, samples)` at 16 kHz. lengths: the samples of each item.
        """
        lengths = uploaded(lengths, waves.device)
        detected = self.detector[1](self.detector[0](waves[:, None], lengths))
        mask = inside(lengths, detected.shape[2], waves.device)[:, None]
        count = on_device(lengths, waves.device)[:, None]
        marked = (detected[:, :2].softmax(1)[:, 1:] > THRESHOLD) & mask
        bits = detected[:, 2:].masked_fill(~mask, 0.0).sum(2) / count
        return torch.cat([marked.sum(2) / count, bits.sigmoid()], dim=1)

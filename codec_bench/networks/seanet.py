"""SEANet with reflecting convolutions that are not causal, for ragged batches.

In every layer, the few samples that a convolution reads beyond an item are written from the item's own reflection, so a
batch equals its items one by one. Hidden states are float32 `(items, channels, time)`, arbitrary beyond an item's
length; `lengths` are those at a layer's input, on host and device (`ragged.py`). Paper: Défossez et al., High Fidelity
Neural Audio Compression, https://arxiv.org/abs/2210.13438.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from codec_bench.networks.ragged import each, full, inside, on_device, uploaded
from codec_bench.networks.recurrent import BothWays

# Of every published model: taps of the first, last and residual convolutions, and layers of the LSTM.
_KERNEL_SIZE, _RESIDUAL_KERNEL_SIZE, _LSTM_LAYERS = 7, 3, 2


class ReflectedConv(nn.Module):
    """A convolution with reflected ends, giving ceil(length / stride) frames.

    An item too short to be reflected is extended with zeros first, as in EnCodec.
    """

    def __init__(self, inputs: int, outputs: int, kernel_size: int, stride: int = 1, dilation: int = 1) -> None:
        super().__init__()
        self.conv = nn.ModuleDict({"conv": nn.Conv1d(inputs, outputs, kernel_size, stride, dilation=dilation)})
        reach = (kernel_size - 1) * dilation + 1 - stride
        self.stride, self.right = stride, reach // 2
        self.left = reach - self.right

    def length(self, before: Any) -> Any:
        """Return a length, or all as a tensor, behind this layer."""
        return -(-before // self.stride)

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Map `(items, inputs, time)` to `(items, outputs, ceil(time / stride))`."""
        if self.left or self.right or self.stride > 1:
            x = reflect(x, lengths, self.left, self.right, self.stride)
        return self.conv["conv"](x)


class TrimmedTransposedConv(nn.Module):
    """A transposed convolution of two strides, cut to length x stride samples."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.convtr = nn.ModuleDict({"convtr": nn.ConvTranspose1d(inputs, outputs, 2 * stride, stride)})
        self.stride, self.left = stride, stride - stride // 2

    def length(self, before: Any) -> Any:
        """Return a length, or all as a tensor, behind this layer."""
        return before * self.stride

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Map `(items, inputs, time)` to `(items, outputs, time x stride)`."""
        time = x.shape[-1]
        if not full(lengths, time):
            x = x * inside(lengths, time, x.device)[:, None]
        return self.convtr["convtr"](x)[..., self.left : self.left + time * self.stride]


class ResidualBlock(nn.Module):
    """Two convolutions with half of the channels, added to one of one tap."""

    def __init__(self, channels: int, kernel_size: int) -> None:
        super().__init__()
        inner = channels // 2
        self.block = nn.ModuleList(
            [nn.ELU(), ReflectedConv(channels, inner, kernel_size), nn.ELU(), ReflectedConv(inner, channels, 1)]
        )
        self.shortcut: nn.Module = ReflectedConv(channels, channels, 1)

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Map `x` to the same shape."""
        hidden = self.block[1](F.elu(x), lengths)
        return self.shortcut(x, lengths) + self.block[3](F.elu(hidden), lengths)


class Codebook(nn.Module):
    """Codewords under their published name."""

    embed: torch.Tensor

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.register_buffer("embed", torch.zeros(shape))


class SkippedLSTM(nn.Module):
    """An LSTM with its input added to its output, of each direction if bidirectional."""

    def __init__(self, channels: int, layers: int, bidirectional: bool) -> None:
        super().__init__()
        self.lstm: nn.LSTM = (
            BothWays(channels, channels, layers)
            if bidirectional
            else nn.LSTM(channels, channels, layers, batch_first=True)
        )

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Map `(items, channels, time)` to that, or twice the channels if bidirectional."""
        x = x.transpose(1, 2)
        if isinstance(self.lstm, BothWays):
            return (self.lstm.over(x, lengths) + torch.cat([x, x], dim=2)).transpose(1, 2)
        return (self.lstm(x)[0] + x).transpose(1, 2)


class SeanetEncoder(nn.Module):
    """Waves to latents, ceil(samples / hop) frames.

    Args:
        ratios: strides as published, in the decoder's order.
        filters: channels after the first convolution; each stride doubles them. dimension: channels of the latents.
        bidirectional: whether the LSTM also runs backwards.
    """

    def __init__(self, ratios: Sequence[int], filters: int, dimension: int, *, bidirectional: bool = False) -> None:
        super().__init__()
        layers: list[nn.Module] = [ReflectedConv(1, filters, _KERNEL_SIZE)]
        for ratio in reversed(ratios):
            layers += [
                ResidualBlock(filters, _RESIDUAL_KERNEL_SIZE),
                nn.ELU(),
                ReflectedConv(filters, 2 * filters, 2 * ratio, ratio),
            ]
            filters *= 2
        layers.append(SkippedLSTM(filters, _LSTM_LAYERS, bidirectional))
        width = 2 * filters if bidirectional else filters
        self.model = nn.ModuleList([*layers, nn.ELU(), ReflectedConv(width, dimension, _KERNEL_SIZE)])

    def forward(self, waves: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Encode waves `(items, 1, samples)` to latents `(items, dimension, frames)`."""
        return _through(self.model, waves, lengths)


class SeanetDecoder(nn.Module):
    """Latents to waves, frames x hop samples."""

    def __init__(self, ratios: Sequence[int], filters: int, dimension: int) -> None:
        super().__init__()
        width = filters * 2 ** len(ratios)
        layers: list[nn.Module] = [ReflectedConv(dimension, width, _KERNEL_SIZE)]
        layers.append(SkippedLSTM(width, _LSTM_LAYERS, bidirectional=False))
        for ratio in ratios:
            layers += [
                nn.ELU(),
                TrimmedTransposedConv(width, width // 2, ratio),
                ResidualBlock(width // 2, _RESIDUAL_KERNEL_SIZE),
            ]
            width //= 2
        self.model = nn.ModuleList([*layers, nn.ELU(), ReflectedConv(width, 1, _KERNEL_SIZE)])

    def forward(self, latents: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Decode latents `(items, dimension, frames)` to waves `(items, 1, samples)`."""
        return _through(self.model, latents, lengths)


def reflect(x: torch.Tensor, lengths: Sequence[int], left: int, right: int, stride: int) -> torch.Tensor:
    """Reflect items of `(items, channels, time)` by `left` and `right` samples.

    At the end, further samples are added up to a multiple of the stride.

    Returns:
        `(items, channels, left + longest + right)`, where longest is the longest length, rounded up to the stride.
    """
    longest = max(lengths)
    behind = right + -longest % stride
    if full(lengths, longest) and longest > max(left, behind):
        return F.pad(x[..., :longest], (left, behind), mode="reflect")
    out = x.new_zeros(*x.shape[:2], left + longest + behind)
    out[..., left : left + longest] = x[..., :longest]
    counts = on_device(lengths, x.device)[:, None]
    to, source = reflection(counts, left, right, stride)
    rows, real = torch.arange(len(x), device=x.device)[:, None], (source >= 0) & (source < counts)
    out[rows, :, to] = x[rows, :, source.clamp(0, x.shape[-1] - 1)] * real[..., None]
    return out


def reflection(counts: torch.Tensor, left: int, right: int, stride: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the copies that reflect items of a padded batch at their ends.

    Args:
        counts: length of each item, `(items, 1)`.
        left, right, stride: as for `reflect`.

    Returns:
        Two tensors `(items, samples)`: the column of the extended array, and the index of the sample to copy, outside
        the item for a zero.
    """
    front = torch.arange(1, left + 1, device=counts.device).expand(len(counts), -1)
    behind = right + -counts % stride
    appended = (behind.clamp(min=left) + 1 - counts).clamp(min=0)
    # An item that needs fewer samples than another writes its last one several times.
    back = counts + torch.minimum(torch.arange(right + stride - 1, device=counts.device), behind - 1)
    mirrored = torch.where(back < counts + appended, -1, 2 * (counts + appended - 1) - back)
    to = torch.cat([left - front, left + back], dim=1)
    return to, torch.cat([front, torch.where(back < counts, back, mirrored)], dim=1)


def _through(layers: nn.ModuleList, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
    """Run layers in order on `(items, channels, time)`, and track the items' lengths.

    Args:
        lengths: of each item, as input of the first layer.
    """
    lengths = uploaded(lengths, x.device)
    for layer in layers:
        if isinstance(layer, nn.ELU):
            x = layer(x)
            continue
        x = layer(x, lengths)
        if isinstance(layer, (ReflectedConv, TrimmedTransposedConv)):
            lengths = each(lengths, layer.length)
    return x

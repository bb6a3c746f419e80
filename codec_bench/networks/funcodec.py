"""FunCodec's network: EnCodec's SEANet, with a normalisation over the whole utterance after every convolution, and a
residual quantiser.

In the toolkit's published models no convolution is causal. Each is followed by a group normalisation with one group:
mean and variance are taken over all channels and all time. In a batch they are taken over each item's own length; after
a transposed convolution, over its whole output, before both ends are cut off.

Conventions
    Hidden states are float32 `(items, channels, time)`. `lengths` are the items' own lengths at a layer's input
    (`ragged.py`). Names of tensors are those of the published checkpoints. This module imports torch: import it inside
    functions.

Paper: Du et al., FunCodec, https://arxiv.org/abs/2309.07405. Reference: modelscope/FunCodec (MIT), whose codes and
waves are equal to these within float32 noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from codec_bench.networks.ragged import Bounded, each, full, on_device, zero_beyond
from codec_bench.networks.seanet import (
    Codebook,
    ReflectedConv,
    ResidualBlock,
    SeanetDecoder,
    SeanetEncoder,
    TrimmedTransposedConv,
)


@dataclass(frozen=True)
class Shape:
    """The sizes of one model.

    Args:
        ratios: strides in the decoder's order.
        filters, dimension: channels of encoder and decoder, see `SeanetEncoder`.
        residual_layers: number of residual blocks at each rate. Block k has the dilation `dilation` to the power of k.
        true_skip: whether the blocks add their input as it is, instead of a convolution of it.
        codebooks, entries: sizes of the quantiser.
    """

    ratios: tuple[int, ...]
    filters: int = 32
    dimension: int = 128
    residual_layers: int = 1
    dilation: int = 2
    true_skip: bool = False
    codebooks: int = 32
    entries: int = 1024


class UtteranceNorm(nn.GroupNorm):
    """Normalisation over all channels and each item's own time, with a gain and an offset per channel.

    Sums are taken in float64, so that mean and spread do not depend on the order of adding: an item in a batch, an item
    alone, the CPU and a GPU have the same ones. A codeword that is nearly a tie would else be chosen by the batch.

    Args:
        channels: number of channels.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(1, channels)

    # torch's own signature has no lengths, but the norm of a batch needs those of its items.
    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:  # type: ignore[override]
        """The same shape as `x`, which it may change. Values beyond an item's end are arbitrary."""
        if not x.is_cpu or isinstance(lengths, Bounded) or full(lengths, x.shape[-1]):
            return self._normed(x, lengths)
        out = torch.zeros_like(x)
        for row, item, length in zip(out, x, lengths):
            row[:, :length] = self._normed(item[None, :, :length], [length])[0]
        return out

    def _normed(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        count = x.shape[1] * on_device(lengths, x.device)[:, None, None]
        x = zero_beyond(x, lengths)
        mean = x.sum((1, 2), keepdim=True, dtype=torch.float64) / count
        centred = zero_beyond(x - mean.to(x.dtype), lengths)
        power = centred.square().sum((1, 2), keepdim=True, dtype=torch.float64) / count
        spread = (power + self.eps).rsqrt().to(x.dtype)
        return torch.addcmul(self.bias[:, None], centred * spread, self.weight[:, None])


class NormedConv(ReflectedConv):
    """A convolution with reflected ends, followed by the normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel_size: int, stride: int = 1, dilation: int = 1) -> None:
        super().__init__(inputs, outputs, kernel_size, stride, dilation)
        self.conv["norm"] = UtteranceNorm(outputs)

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """`(items, outputs, ceil(time / stride))` of `(items, inputs, time)`."""
        return self.conv["norm"](super().forward(x, lengths), each(lengths, self.length))


class NormedTransposedConv(TrimmedTransposedConv):
    """A transposed convolution twice as long as its stride, the normalisation of its output, and a cut at both ends."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__(inputs, outputs, stride)
        self.convtr["norm"] = UtteranceNorm(outputs)

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """`(items, outputs, time x stride)` of `(items, inputs, time)`."""
        time = x.shape[-1]
        output = self.convtr["convtr"](zero_beyond(x, lengths))
        output = self.convtr["norm"](output, each(lengths, lambda length: (length + 1) * self.stride))
        return output[..., self.left : self.left + time * self.stride]


class NormedBlock(ResidualBlock):
    """A dilated convolution and one of one tap, added to the input or to a convolution of it; all are normalised."""

    def __init__(self, channels: int, kernel_size: int, dilation: int, true_skip: bool) -> None:
        super().__init__(channels, kernel_size)
        inner = channels // 2
        self.block[1] = NormedConv(channels, inner, kernel_size, dilation=dilation)
        self.block[3] = NormedConv(inner, channels, 1)
        self.shortcut = _Itself() if true_skip else NormedConv(channels, channels, 1)


class _Itself(nn.Module):
    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        return x


class FunCodecNet(nn.Module):
    """The whole codec in the sizes of `shape`: `encoder` and `decoder`, and the codewords."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.encoder = SeanetEncoder(shape.ratios, shape.filters, shape.dimension)
        self.decoder = SeanetDecoder(shape.ratios, shape.filters, shape.dimension)
        for coder in (self.encoder, self.decoder):
            coder.model = nn.ModuleList([new for layer in coder.model for new in _normed(layer, shape)])
        self.quantizer = nn.ModuleDict(
            {"rq": nn.ModuleDict({"model": Codebook(shape.codebooks, shape.entries, shape.dimension)})}
        )

    @property
    def codebooks(self) -> torch.Tensor:
        """The codewords, `(codebooks, entries, dimension)`."""
        rq: Any = self.quantizer["rq"]
        return rq["model"].embed


def _normed(layer: nn.Module, shape: Shape) -> list[nn.Module]:
    """The layer that replaces a layer of SEANet; a layer without a convolution stays as it is."""
    if isinstance(layer, ResidualBlock):
        inner: Any = layer.block[1]
        first = inner.conv["conv"]
        sizes = first.in_channels, first.kernel_size[0]
        return [NormedBlock(*sizes, shape.dilation**k, shape.true_skip) for k in range(shape.residual_layers)]
    if isinstance(layer, ReflectedConv):
        conv: Any = layer.conv["conv"]
        return [NormedConv(conv.in_channels, conv.out_channels, conv.kernel_size[0], conv.stride[0])]
    if isinstance(layer, TrimmedTransposedConv):
        conv = layer.convtr["convtr"]
        return [NormedTransposedConv(conv.in_channels, conv.out_channels, conv.stride[0])]
    return [layer]

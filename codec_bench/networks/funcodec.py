"""FunCodec's network: SEANet with utterance norms, a residual quantiser.

Published models have no causal convolution. A group norm with one group follows each: mean and variance over all
channels and each item's own time, after a transposed convolution before both ends are cut. Hidden states are float32
`(items, channels, time)`; `lengths` are those at a layer's input (`ragged.py`). Reference: modelscope/FunCodec (MIT):
the same codes and waves within float32 noise.
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
class FunCodecShape:
    """The sizes of one model.

    Args:
        ratios: strides in the decoder's order. filters, dimension: see `SeanetEncoder`.
        residual_layers: blocks at each rate. Block k has the dilation `dilation` to the power of k.
        true_skip: whether the blocks add their input as it is, instead of a convolution of it.
        codebooks, entries: of the quantiser.
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
    """Normalisation over all channels and own time, with gain and offset per channel.

    Sums are in float64, so mean and spread are the same in a batch, alone, on a CPU and a GPU.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(1, channels)

    # torch's own signature has no lengths, but the norm of a batch needs those of its items.
    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:  # type: ignore[override]
        """Normalise each item of `(items, channels, time)` over its own steps.

        `x` may be overwritten; the result is arbitrary beyond an item's end.
        """
        if not x.is_cpu or isinstance(lengths, Bounded) or full(lengths, x.shape[-1]):
            return self._normed(x, lengths)
        out = torch.zeros_like(x)
        for row, item, length in zip(out, x, lengths):
            row[:, :length] = self._normed(item[None, :, :length], [length])[0]
        return out

    def _normed(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Normalise items by mean and variance over channels and their own steps."""
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
        """Map `(items, inputs, time)` to `(items, outputs, ceil(time / stride))`."""
        return self.conv["norm"](super().forward(x, lengths), each(lengths, self.length))


class NormedTransposedConv(TrimmedTransposedConv):
    """A transposed convolution of two strides, its norm, and a cut at both ends."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__(inputs, outputs, stride)
        self.convtr["norm"] = UtteranceNorm(outputs)

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Map `(items, inputs, time)` to `(items, outputs, time x stride)`."""
        time = x.shape[-1]
        output = self.convtr["convtr"](zero_beyond(x, lengths))
        output = self.convtr["norm"](output, each(lengths, lambda length: (length + 1) * self.stride))
        return output[..., self.left : self.left + time * self.stride]


class NormedBlock(ResidualBlock):
    """A dilated and a one-tap convolution, added to the input, all normalised."""

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
    """The whole codec: `encoder`, `decoder` and the codewords."""

    def __init__(self, shape: FunCodecShape) -> None:
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


def _normed(layer: nn.Module, shape: FunCodecShape) -> list[nn.Module]:
    """Return the layers with norms that replace a layer of SEANet, in a list.

    A layer of another kind is returned as it is.
    """
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

"""WavTokenizer: SEANet's encoder, one codebook, attention, and Vocos.

The decoder's group norms and attention use an item's own frames only, so a batch equals its items one by one.
Reference: jishengpeng/WavTokenizer (MIT): the same codes and waves within float32 noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from codec_bench.networks.ragged import ragged_lengths
from codec_bench.networks.seanet import Codebook, SeanetEncoder
from codec_bench.networks.vocos import ISTFTHead, VocosBackbone

_GROUPS = 32
_EPS = 1e-6
_CONDITIONS = 4
_CONDITION = 0  # the published models were trained with four conditions that are equal; the first is used


@dataclass(frozen=True)
class WavTokenizerShape:
    """The sizes of one variant.

    Args:
        ratios: strides of the encoder, in the decoder's order; their product is the hop.
        filters, latent_dim: channels of the encoder. entries: codewords. dim, intermediate_dim, layers: of the decoder.
        window: window length of the decoder's transform.
    """

    ratios: tuple[int, ...]
    window: int
    filters: int = 32
    latent_dim: int = 512
    entries: int = 4096
    dim: int = 768
    intermediate_dim: int = 2304
    layers: int = 12

    @property
    def hop(self) -> int:
        """Samples per frame."""
        return math.prod(self.ratios)


class GroupNorm(nn.GroupNorm):
    """Group normalisation over channels and an item's own frames."""

    def __init__(self, channels: int) -> None:
        super().__init__(_GROUPS, channels, _EPS)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Normalise `(items, channels, frames)`; where a mask is 0, the result is zero."""
        if mask is None:
            return super().forward(x)
        grouped, inside = x.unflatten(1, (self.num_groups, -1)), mask[:, None]
        count = mask.sum(dim=(1, 2))[:, None, None, None] * grouped.shape[2]
        centred = (grouped - (grouped * inside).sum(dim=(2, 3), keepdim=True) / count) * inside
        variance = centred.square().sum(dim=(2, 3), keepdim=True) / count
        normal = (centred * torch.rsqrt(variance + self.eps)).flatten(1, 2)
        return (normal * self.weight[:, None] + self.bias[:, None]) * mask


class WavTokenizerBlock(nn.Module):
    """Group norm, SiLU and a convolution of three taps, twice, added to the input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = GroupNorm(channels), GroupNorm(channels)
        self.conv1, self.conv2 = (nn.Conv1d(channels, channels, 3, padding=1) for _ in range(2))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Map `x` `(items, channels, frames)` to the same shape."""
        hidden = self.conv1(F.silu(self.norm1(x, mask)))
        return x + self.conv2(F.silu(self.norm2(hidden, mask)))


class AttentionBlock(nn.Module):
    """One head of attention over all frames of an item, added to the input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = GroupNorm(channels)
        self.q, self.k, self.v, self.proj_out = (nn.Conv1d(channels, channels, 1) for _ in range(4))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Map `x` `(items, channels, frames)` to the same shape."""
        hidden = self.norm(x, mask)
        q, k, v = (layer(hidden).transpose(1, 2)[:, None] for layer in (self.q, self.k, self.v))
        keys = None if mask is None else mask[:, None].bool()
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=keys)
        return x + self.proj_out(attended[:, 0].transpose(1, 2))


class PositionNet(nn.ModuleList):
    """Residual blocks around attention, and a group norm, before the ConvNeXt blocks."""

    def __init__(self, channels: int) -> None:
        super().__init__(
            [
                WavTokenizerBlock(channels),
                WavTokenizerBlock(channels),
                AttentionBlock(channels),
                WavTokenizerBlock(channels),
                WavTokenizerBlock(channels),
                GroupNorm(channels),
            ]
        )

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Map `x` `(items, channels, frames)` to the same shape."""
        for layer in self:
            x = layer(x, mask)
        return x


class WavTokenizerNet(nn.Module):
    """The whole codec."""

    def __init__(self, shape: WavTokenizerShape) -> None:
        super().__init__()
        layer = nn.ModuleDict({"_codebook": Codebook(shape.entries, shape.latent_dim)})
        quantizer = nn.ModuleDict({"vq": nn.ModuleDict({"layers": nn.ModuleList([layer])})})
        encoder = SeanetEncoder(shape.ratios, shape.filters, shape.latent_dim)
        encodec = nn.ModuleDict({"encoder": encoder, "quantizer": quantizer})
        self.feature_extractor = nn.ModuleDict({"encodec": encodec})
        self.backbone = VocosBackbone(
            shape.latent_dim, shape.dim, shape.intermediate_dim, shape.layers, _CONDITIONS, PositionNet(shape.dim)
        )
        self.head = ISTFTHead(shape.dim, shape.window, shape.hop)

    @property
    def embed(self) -> torch.Tensor:
        """The codewords, `(entries, latent_dim)`."""
        encodec: Any = self.feature_extractor["encodec"]
        return encodec["quantizer"]["vq"]["layers"][0]["_codebook"].embed

    def latents(self, waves: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Encode waves `(items, 1, samples)` to `(items, latent_dim, frames)`."""
        encodec: Any = self.feature_extractor["encodec"]
        return encodec["encoder"](waves, lengths)

    def waves(self, codes: torch.Tensor, frames: Sequence[int]) -> torch.Tensor:
        """Decode codes `(items, frames)` to waves `(items, samples)`, zero-padded."""
        lengths = ragged_lengths(frames, codes.device)
        latents = F.embedding(codes, self.embed).transpose(1, 2)
        return self.head(self.backbone(latents, lengths, _CONDITION), lengths)

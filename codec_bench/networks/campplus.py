"""CAM++: a dense time-delay network with context masks, exact in batches.

Masked are the convolutions over time, both means of each context-aware mask, and the pooled statistics. Reference
implementation: modelscope/3D-Speaker at 09e7806 (Apache-2.0), whose parameter names these are; none of its code is
used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.fbank import Fbank, halved, masked, valid
from codec_bench.networks.half_precision import BatchNorm1d, BatchNorm2d, Conv1d, Conv2d
from codec_bench.networks.kaldi import HOP
from codec_bench.networks.ragged import each, on_device, uploaded
from codec_bench.networks.residual_2d import PlaneBlock
from codec_bench.networks.xvector import masked_statistics

SEGMENT = 100
"""Frames of a mask's local mean."""


@dataclass(frozen=True, slots=True)
class CamConfig:
    """The architecture.

    Args:
        bands: of the filter bank. planes: channels of the residual network.
        channels: of the first time-delay layer. growth: channels that each dense layer adds.
        bottleneck: channels inside a dense layer, in multiples of the growth. embedding: dimensions of the result.
    """

    bands: int = 80
    planes: int = 32
    channels: int = 128
    growth: int = 32
    bottleneck: int = 4
    layers: tuple[int, ...] = (12, 24, 16)
    dilations: tuple[int, ...] = (1, 2, 2)
    embedding: int = 192


@dataclass(frozen=True, slots=True, eq=False)
class FrameMask:
    """The items' own frames.

    Args:
        valid: 1 on own frames, `(batch, 1, frames)`, or None if all are. counts: own frames, `(batch, 1, 1)`.
        segments: own frames in each segment, at least 1, `(batch, 1, segments)`.
    """

    valid: Tensor | None
    counts: Tensor
    segments: Tensor

    @classmethod
    def of(cls, counts: Sequence[int], time: int, like: Tensor) -> FrameMask:
        """Build the mask of a padded batch.

        Args:
            counts: frames of each item.
            time: frames of the batch.
            like: a tensor with the mask's device and dtype.
        """
        frame_counts = on_device(counts, like.device)[:, None, None]
        starts = torch.arange(0, time, SEGMENT, device=like.device)
        return cls(valid(counts, time, like), frame_counts, (frame_counts - starts).clamp(1, SEGMENT))


def segment_sums(x: Tensor) -> Tensor:
    """Sum 100-frame segments of `(batch, channels, frames)`; the last is short."""
    return F.pad(x, (0, -x.shape[2] % SEGMENT)).unflatten(2, (-1, SEGMENT)).sum(3)


class NormRelu(nn.Module):
    """A batch norm, and ReLU.

    Args:
        affine: whether the norm has learnt scales, and a ReLU after it.
    """

    def __init__(self, channels: int, affine: bool = True) -> None:
        super().__init__()
        self.batchnorm = BatchNorm1d(channels, affine=affine)
        self.affine = affine

    def forward(self, x: Tensor) -> Tensor:
        """Normalise `(batch, channels, frames)` or `(batch, channels)`, as float32."""
        x = self.batchnorm(x)
        return x.relu_() if self.affine else x


class Planes(nn.Module):
    """The network over frequency and time; reduces bands to an eighth."""

    def __init__(self, planes: int) -> None:
        super().__init__()
        self.conv1 = Conv2d(1, planes, 3, padding=1, bias=False)
        self.conv1.exact = True
        self.bn1 = BatchNorm2d(planes)
        self.layer1, self.layer2 = (
            nn.ModuleList(PlaneBlock(planes, planes, (stride, 1)) for stride in (2, 1)) for _ in range(2)
        )
        self.conv2 = Conv2d(planes, planes, 3, stride=(2, 1), padding=1, bias=False)
        self.bn2 = BatchNorm2d(planes)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map `(batch, bands, frames)` to `(batch, planes * bands / 8, frames)`, masked."""
        x = self.bn1(self.conv1(x[:, None])).relu_()
        for block in (*self.layer1, *self.layer2):
            x = block(x, mask, mask)
        return self.bn2(self.conv2(masked(x, mask))).relu_().flatten(1, 2)


class ContextMask(nn.Module):
    """A dilated convolution with channels weighted by item and segment."""

    def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
        super().__init__()
        self.linear_local = Conv1d(inputs, outputs, 3, padding=dilation, dilation=dilation, bias=False)
        self.linear1 = Conv1d(inputs, inputs // 2, 1)
        self.linear2 = Conv1d(inputs // 2, outputs, 1)

    def forward(self, x: Tensor, mask: FrameMask) -> Tensor:
        """Map zero-padded `(batch, inputs, frames)` to float32 `(batch, outputs, frames)`."""
        sums = segment_sums(x)
        context = sums.sum(2, keepdim=True) / mask.counts + sums / mask.segments
        weight = torch.sigmoid(self.linear2(F.relu(self.linear1(context))).float())
        local = self.linear_local(x).float()
        return local * weight.repeat_interleave(SEGMENT, dim=2)[..., : x.shape[2]]


class DenseLayer(nn.Module):
    """One layer of a dense block."""

    def __init__(self, inputs: int, config: CamConfig, dilation: int) -> None:
        super().__init__()
        inner = config.bottleneck * config.growth
        self.nonlinear1 = NormRelu(inputs)
        self.linear1 = Conv1d(inputs, inner, 1, bias=False)
        self.nonlinear2 = NormRelu(inner)
        self.cam_layer = ContextMask(inner, config.growth, dilation)

    def forward(self, x: Tensor, mask: FrameMask) -> Tensor:
        """Map `(batch, inputs, frames)` to the channels that the layer adds."""
        return self.cam_layer(masked(self.nonlinear2(self.linear1(self.nonlinear1(x))), mask.valid), mask)


class Projection(nn.Module):
    """A convolution before or after a norm, under the published names.

    Args:
        kernel: in frames; above 1 it also halves the number of frames.
        norm_first: whether the norm comes first. affine: as for `NormRelu`.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int = 1, norm_first: bool = False, affine: bool = True
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.linear = Conv1d(inputs, outputs, kernel, stride=1 + (kernel > 1), padding=kernel // 2, bias=False)
        self.nonlinear = NormRelu(inputs if norm_first else outputs, affine)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(batch, inputs, frames)` to `(batch, outputs, frames)`."""
        return self.linear(self.nonlinear(x)) if self.norm_first else self.nonlinear(self.linear(x))


class CamPlusPlus(nn.Module):
    """The whole network, with its front end."""

    step = HOP
    """Hop of the front end in samples."""

    def __init__(self, config: CamConfig) -> None:
        super().__init__()
        self.fbank = Fbank(config.bands)
        self.head = Planes(config.planes)
        self.xvector = nn.ModuleDict({"tdnn": Projection(config.planes * config.bands // 8, config.channels, kernel=5)})
        channels = config.channels
        for number, (layers, dilation) in enumerate(zip(config.layers, config.dilations, strict=True), 1):
            widths = range(channels, channels + layers * config.growth + 1, config.growth)
            self.xvector[f"block{number}"] = nn.ModuleDict(
                {
                    f"tdnnd{index}": DenseLayer(width, config, dilation)
                    for index, (width, _) in enumerate(pairwise(widths), 1)
                }
            )
            channels = widths[-1] // 2
            self.xvector[f"transit{number}"] = Projection(widths[-1], channels, norm_first=True)
        self.xvector["out_nonlinear"] = NormRelu(channels)
        self.xvector["dense"] = Projection(2 * channels, config.embedding, affine=False)
        dense = self.xvector["dense"].get_submodule("linear")
        assert isinstance(dense, Conv1d)
        dense.exact = True
        self.blocks = len(config.layers)

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Embed waves `(batch, samples)` at 16 kHz as float32 `(batch, embedding)`."""
        bands, counts = self.fbank(waves, uploaded(lengths, waves.device))
        frames = valid(counts, bands.shape[2], bands)
        x = self.xvector["tdnn"](masked(self.head(bands, frames), frames))
        counts = each(counts, halved)
        mask = FrameMask.of(counts, x.shape[2], x)
        for index in range(1, self.blocks + 1):
            block = self.xvector[f"block{index}"]
            assert isinstance(block, nn.ModuleDict)
            for layer in block.values():
                x = torch.cat([x, layer(x, mask)], dim=1)
            x = self.xvector[f"transit{index}"](x)
        pooled = masked_statistics(self.xvector["out_nonlinear"](x), counts)
        return self.xvector["dense"](pooled[..., None])[..., 0].float()

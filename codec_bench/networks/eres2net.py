"""ERes2Net: a Res2Net that fuses its scales by attention, exact in ragged batches.

Masked are the convolutions over time and the pooled statistics. Reference implementation: modelscope/3D-Speaker at
09e7806 (Apache-2.0), whose parameter names these are; none of its code is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.fbank import Fbank, halved, masked, valid
from codec_bench.networks.half_precision import BatchNorm2d, Conv2d
from codec_bench.networks.kaldi import HOP
from codec_bench.networks.ragged import each, uploaded
from codec_bench.networks.xvector import masked_statistics

CEILING = 20.0
"""The upper limit of a block's rectifier."""
VARIANCE_EPS = 1e-8
ATTENTION_SHARE = 4
"""Reduction of the channels inside an attention."""


@dataclass(frozen=True, slots=True)
class ERes2NetConfig:
    """The architecture.

    Args:
        bands: of the filter bank, a multiple of 8. channels: of the first convolution. blocks: of each of the four
            stages.
        base_width: channels of a block's group, in 64ths of the stage's planes. scale: groups of a block.
        expansion: channels of a block's result, in multiples of the planes. embedding: dimensions of the result.
    """

    bands: int = 80
    channels: int = 32
    blocks: tuple[int, int, int, int] = (3, 4, 6, 3)
    base_width: int = 32
    scale: int = 2
    expansion: int = 2
    embedding: int = 192


class Fusion(nn.Module):
    """Two maps of one shape, added with attention weights over both."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = channels // ATTENTION_SHARE
        self.local_att = nn.Sequential(
            Conv2d(2 * channels, inner, 1),
            BatchNorm2d(inner),
            nn.SiLU(),
            Conv2d(inner, channels, 1),
            BatchNorm2d(channels),
        )

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Fuse two maps `(batch, channels, bands, frames)`."""
        weight = torch.tanh(self.local_att(torch.cat([x, y], dim=1)))
        return torch.addcmul(x + y, weight, x - y)  # x * (1 + weight) + y * (1 - weight) with fewer passes


class Res2Block(nn.Module):
    """A residual block whose groups are convolved with the previous group's result.

    Args:
        planes: of the stage. stride: over frequency and time. fuses: whether groups are fused by attention, else added.
    """

    def __init__(self, inputs: int, planes: int, stride: int, config: ERes2NetConfig, fuses: bool) -> None:
        super().__init__()
        width, outputs = planes * config.base_width // 64, planes * config.expansion
        self.conv1 = Conv2d(inputs, width * config.scale, 1, stride=stride, bias=False)
        self.bn1 = BatchNorm2d(width * config.scale)
        self.convs = nn.ModuleList(Conv2d(width, width, 3, padding=1, bias=False) for _ in range(config.scale))
        self.bns = nn.ModuleList(BatchNorm2d(width) for _ in range(config.scale))
        self.fuse_models = nn.ModuleList(Fusion(width) for _ in range(config.scale - 1)) if fuses else None
        self.conv3 = Conv2d(width * config.scale, outputs, 1, bias=False)
        self.bn3 = BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(Conv2d(inputs, outputs, 1, stride=stride, bias=False), BatchNorm2d(outputs))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map `(batch, inputs, bands, frames)` to `outputs` channels.

        `mask` is 1 on an item's own frames and 0 on padding; None without padding.
        """
        groups = self.bn1(self.conv1(x)).clamp_(0, CEILING).chunk(len(self.convs), dim=1)
        done: list[Tensor] = []
        for index, (group, conv, norm) in enumerate(zip(groups, self.convs, self.bns, strict=True)):
            if done and self.fuse_models is not None:
                group = self.fuse_models[index - 1](done[-1], group)
            elif done:
                group = done[-1] + group
            done.append(norm(conv(masked(group, mask))).clamp_(0, CEILING))
        return self.bn3(self.conv3(torch.cat(done, dim=1))).add_(self.shortcut(x)).clamp_(0, CEILING)


class ERes2Net(nn.Module):
    """The whole network, with its front end, under the published names."""

    step = HOP
    """Hop of the front end in samples."""

    def __init__(self, config: ERes2NetConfig) -> None:
        super().__init__()
        self.fbank = Fbank(config.bands)
        self.conv1 = Conv2d(1, config.channels, 3, padding=1, bias=False)
        self.conv1.exact = True
        self.bn1 = BatchNorm2d(config.channels)
        inputs = config.channels
        for stage, blocks in enumerate(config.blocks):
            planes, layers = config.channels << stage, nn.ModuleList()
            for index in range(blocks):
                stride = 2 if stage and not index else 1
                layers.append(Res2Block(inputs, planes, stride, config, fuses=stage > 1))
                inputs = planes * config.expansion
            self.add_module(f"layer{stage + 1}", layers)
        outputs = [config.channels * config.expansion << stage for stage in range(4)]
        for stage, names in enumerate(accumulate("1234")):
            if stage:
                self.add_module(f"fuse_mode{names}", Fusion(outputs[stage]))
                down = Conv2d(outputs[stage - 1], outputs[stage], 3, stride=2, padding=1, bias=False)
                self.add_module(f"layer{stage}_downsample", down)
        self.seg_1 = nn.Linear(2 * config.bands // 8 * outputs[-1], config.embedding)

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Embed waves `(batch, samples)` at 16 kHz as float32 `(batch, embedding)`."""
        bands, counts = self.fbank(waves, uploaded(lengths, waves.device))
        mask = valid(counts, bands.shape[2], bands)
        x = F.relu(self.bn1(self.conv1(bands[:, None])))
        fused = x
        for stage, names in enumerate(accumulate("1234")):
            before = mask
            if stage:
                counts = each(counts, halved)
                mask = valid(counts, halved(x.shape[3]), bands)
            for block in self.get_submodule(f"layer{stage + 1}").children():
                x = block(x, mask)
            if stage:
                down = self.get_submodule(f"layer{stage}_downsample")(masked(fused, before))
                fused = self.get_submodule(f"fuse_mode{names}")(x, down)
            else:
                fused = x
        return self.seg_1(masked_statistics(fused.flatten(1, 2).float(), counts, VARIANCE_EPS)).float()

"""WeSpeaker's r-vector: a ResNet over frequency and time, exact in ragged batches.

Masked are the convolutions over time and the pooled statistics. Reference implementation: wenet-e2e/wespeaker at
dfa7419 (Apache-2.0), whose parameter names these are; none of its code is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.fbank import Fbank, halved, valid
from codec_bench.networks.half_precision import BatchNorm2d, Conv2d
from codec_bench.networks.kaldi import HOP
from codec_bench.networks.ragged import each, uploaded
from codec_bench.networks.residual_2d import PlaneBlock
from codec_bench.networks.xvector import masked_statistics

VARIANCE_EPS = 1e-7
FULL_SCALE = 32_768.0


@dataclass(frozen=True, slots=True)
class ResNetConfig:
    """The architecture.

    Args:
        bands: of the filter bank, a multiple of 8. channels: of the first convolution. blocks: of each of the four
            stages.
    """

    bands: int = 80
    channels: int = 32
    blocks: tuple[int, int, int, int] = (3, 4, 6, 3)
    embedding: int = 256


class ResNet(nn.Module):
    """The whole network, with its front end, under the published names."""

    step = HOP
    """Hop of the front end in samples."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        self.fbank = Fbank(config.bands, "hamming", FULL_SCALE)
        self.conv1 = Conv2d(1, config.channels, 3, padding=1, bias=False)
        self.conv1.exact = True
        self.bn1 = BatchNorm2d(config.channels)
        inputs = config.channels
        for stage, blocks in enumerate(config.blocks):
            layers, outputs = nn.ModuleList(), config.channels << stage
            for index in range(blocks):
                layers.append(PlaneBlock(inputs, outputs, (2, 2) if stage and not index else (1, 1)))
                inputs = outputs
            self.add_module(f"layer{stage + 1}", layers)
        self.seg_1 = nn.Linear(2 * config.bands // 8 * inputs, config.embedding)

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Embed waves `(batch, samples)` at 16 kHz as float32 `(batch, embedding)`."""
        bands, counts = self.fbank(waves, uploaded(lengths, waves.device))
        x = F.relu(self.bn1(self.conv1(bands[:, None])))
        after = valid(counts, x.shape[3], bands)
        for stage in range(4):
            before = after
            if stage:
                counts = each(counts, halved)
                after = valid(counts, halved(x.shape[3]), bands)
            for block in self.get_submodule(f"layer{stage + 1}").children():
                x = block(x, before, after)
                before = after
        return self.seg_1(masked_statistics(x.flatten(1, 2).float(), counts, VARIANCE_EPS)).float()

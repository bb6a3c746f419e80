"""UTMOS22's strong learner: a wav2vec 2.0 encoder, a BiLSTM and two linear layers.

Reference implementation: SpeechMOS 1.2.0 `utmos22_strong` (MIT).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from codec_bench.networks.ragged import inside, on_device
from codec_bench.networks.recurrent import BothWays
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder

CONDITION = 128
"""The length of each of the constant vectors for a listening test and a listener."""
HIDDEN, PROJECTION = 512, 2048
SCALE, OFFSET = 2.0, 3.0
"""From the network's scale, ratings in [-1, 1], to that of opinion scores."""


class UtmosNet(nn.Module):
    """The whole network."""

    def __init__(self, encoder: EncoderConfig, hidden: int = HIDDEN, projection: int = PROJECTION) -> None:
        super().__init__()
        self.wav2vec2 = SpeechEncoder(encoder)
        self.domain_emb, self.judge_emb = (nn.Parameter(torch.zeros(1, CONDITION)) for _ in range(2))
        self.blstm = BothWays(encoder.width + 2 * CONDITION, hidden)
        self.projection = nn.Sequential(nn.Linear(2 * hidden, projection), nn.ReLU(), nn.Linear(projection, 1))

    def forward(self, waves: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Score each item of a padded batch, float32 `(items,)`.

        Args:
            waves: float32 `(items, samples)` at 16 kHz. lengths: the number of samples of each item.
        """
        frames, counts = self.wav2vec2(waves, lengths)
        # Half precision would save little time here, and a mean over hundreds of recurrent frames needs float32.
        with torch.autocast(waves.device.type, enabled=False):
            frames = frames.float()
            conditions = torch.cat([self.domain_emb, self.judge_emb], 1).expand(*frames.shape[:2], -1)
            states = self.blstm.over(torch.cat([frames, conditions], 2), counts)
            opinions = self.projection(states)[..., 0]
            mask = inside(counts, opinions.shape[1], waves.device)
            total = opinions.masked_fill(~mask, 0.0).sum(1)
            return total / on_device(counts, waves.device) * SCALE + OFFSET

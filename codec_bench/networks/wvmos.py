"""WV-MOS: a wav2vec 2.0 encoder and two linear layers, averaged over time.

Reference implementation: github.com/AndreevP/wvmos over transformers' `Wav2Vec2Model`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from codec_bench.networks.ragged import inside, on_device, uploaded
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder, standardised

WAVE_EPS = 1e-7
"""The addend to a variance in transformers' front end."""
HIDDEN = 128


class WvmosNet(nn.Module):
    """The whole network."""

    def __init__(self, encoder: EncoderConfig) -> None:
        super().__init__()
        self.encoder = SpeechEncoder(encoder)
        # The third layer was a dropout in training; it counts in the published names.
        self.dense = nn.Sequential(nn.Linear(encoder.width, HIDDEN), nn.ReLU(), nn.Identity(), nn.Linear(HIDDEN, 1))

    def forward(self, waves: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Score each item, float32 `(items,)`.

        Args:
            waves: float32 `(items, samples)` at 16 kHz. lengths: the number of samples of each item.
        """
        lengths = uploaded(lengths, waves.device)
        frames, counts = self.encoder(standardised(waves, lengths, WAVE_EPS), lengths)
        with torch.autocast(waves.device.type, enabled=False):
            scores = self.dense(frames.float())[..., 0]
        total = scores.masked_fill(~inside(counts, scores.shape[1], waves.device), 0.0).sum(1)
        return total / on_device(counts, waves.device)

"""SCOREQ and NOMAD: wav2vec 2.0, normalised mean, a linear layer.

Reference implementations: github.com/alessandroragano/scoreq and github.com/alessandroragano/nomad (fairseq's encoder).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from codec_bench.networks.ragged import inside, on_device, uploaded
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder

NOMAD_WIDTH = 256


class ScoreqNet(nn.Module):
    """The whole network; `rates` selects the opinion score, else the embedding."""

    def __init__(self, encoder: EncoderConfig, *, rates: bool) -> None:
        super().__init__()
        self.ssl_model = SpeechEncoder(encoder)
        self.mos_layer = nn.Linear(encoder.width, 1) if rates else None

    def forward(self, waves: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Compute opinion scores `(items,)`, or unit embeddings `(items, width)`.

        Args:
            waves: float32 `(items, samples)` at 16 kHz. lengths: the number of samples of each item.
        """
        embedding = F.normalize(self._mean(waves, lengths), dim=1)
        return embedding if self.mos_layer is None else self.mos_layer(embedding)[:, 0]

    def _mean(self, waves: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Average the encoder's last hidden state over each item's own frames."""
        frames, counts = self.ssl_model(waves, uploaded(lengths, waves.device))
        mask = inside(counts, frames.shape[1], waves.device)
        total = frames.float().masked_fill(~mask[..., None], 0.0).sum(1)
        return total / on_device(counts, waves.device)[:, None]


class NomadNet(ScoreqNet):
    """NOMAD: the same encoder, and a linear layer before normalisation."""

    def __init__(self, encoder: EncoderConfig) -> None:
        super().__init__(encoder, rates=False)
        self.embedding_layer = nn.Sequential(nn.ReLU(), nn.Linear(encoder.width, NOMAD_WIDTH))

    def forward(self, waves: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Compute embeddings `(items, 256)`, of length 1; waves and lengths as for SCOREQ."""
        return F.normalize(self.embedding_layer(self._mean(waves, lengths)), dim=1)

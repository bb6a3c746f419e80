"""SCOREQ: a wav2vec 2.0 encoder whose mean over time is a point on a sphere, and one linear layer, for padded batches.

The encoder and the mean use each item's own frames only, so that a batch equals its items one by one. Names of tensors
are those of the published checkpoints. This module imports torch: import it inside functions.

Paper: A. Ragano, J. Skoglund, A. Hines, "SCOREQ: Speech Quality Assessment with Contrastive Regression", NeurIPS 2024.
Reference implementation: github.com/alessandroragano/scoreq (fairseq's encoder).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from codec_bench.networks.ragged import inside, on_device, uploaded
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder


class ScoreqNet(nn.Module):
    """The whole network.

    Args:
        encoder: the architecture of the speech encoder.
        rates: whether it gives an opinion score; else the embedding.
    """

    def __init__(self, encoder: EncoderConfig, *, rates: bool) -> None:
        super().__init__()
        self.ssl_model = SpeechEncoder(encoder)
        self.mos_layer = nn.Linear(encoder.width, 1) if rates else None

    def forward(self, waves: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """The opinion score of each item, float32 `(items,)`, or the embeddings, `(items, width)`, of length 1.

        Args:
            waves: float32 `(items, samples)` at 16 kHz. lengths: the number of samples of each item.
        """
        frames, counts = self.ssl_model(waves, uploaded(lengths, waves.device))
        mask = inside(counts, frames.shape[1], waves.device)
        total = frames.float().masked_fill(~mask[..., None], 0.0).sum(1)
        embedding = F.normalize(total / on_device(counts, waves.device)[:, None], dim=1)
        return embedding if self.mos_layer is None else self.mos_layer(embedding)[:, 0]

"""Arousal, dominance, valence: wav2vec 2.0, mean and two linear layers.

Paper: J. Wagner et al., "Dawn of the Transformer Era in Speech Emotion Recognition", TPAMI 2023. Reference
implementation: the model card's `EmotionModel` over transformers 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from codec_bench.networks.mean_pooled_encoder import MeanOverTime
from codec_bench.networks.ragged import WholeSignal
from codec_bench.networks.speech_config import WAV2VEC2_LARGE_12, EncoderConfig
from codec_bench.networks.speech_encoder import fairseq_name

PREFIX = "wav2vec2."


class EmoVadNet(WholeSignal, nn.Module):
    """The whole network."""

    at_once = (16_000 * 30, 16_000 * 240)

    def __init__(self, encoder: EncoderConfig = WAV2VEC2_LARGE_12) -> None:
        super().__init__()
        self.pooled = MeanOverTime(encoder)
        self.dense = nn.Linear(encoder.width, encoder.width)
        self.out_proj = nn.Linear(encoder.width, 3)

    @staticmethod
    def translated(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Rename the published tensors."""
        return {
            f"pooled.encoder.{fairseq_name(name.removeprefix(PREFIX), 'layer_norm')}"
            if name.startswith(PREFIX)
            else name.removeprefix("classifier."): value
            for name, value in state.items()
        }

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Compute arousal, dominance and valence, float32 `(items, 3)`.

        Args:
            waves: float32 `(items, samples)` at 16 kHz. lengths: the number of samples of each item.
        """
        return self.out_proj(torch.tanh(self.dense(self.pooled(waves, lengths))))

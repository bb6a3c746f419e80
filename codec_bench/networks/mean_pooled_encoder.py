"""A speech encoder's last hidden state averaged over time, exact in batches.

Paper: A. Baevski et al., "wav2vec 2.0", NeurIPS 2020. Reference implementation: the mean over time of
`last_hidden_state` of transformers' Wav2Vec2Model, each item alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from codec_bench.networks.ragged import inside, on_device, uploaded
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder, standardised

WAVE_EPS = 1e-7
"""Wav2Vec2FeatureExtractor's addend to a variance."""


class MeanOverTime(nn.Module):
    """Standardises waves and averages the last hidden state over own frames."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.encoder = SpeechEncoder(config)

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Map waves `(items, samples)` at 16 kHz to float32 `(items, width)`."""
        lengths = uploaded(lengths, waves.device)
        last, frames = self.encoder(standardised(waves, lengths, WAVE_EPS), lengths)
        mask = inside(frames, last.shape[1], last.device)[..., None]
        return last.float().masked_fill(~mask, 0.0).sum(1) / on_device(frames, last.device)[:, None]

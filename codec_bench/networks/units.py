"""Discrete units: the nearest cluster to each HuBERT frame, in batches.

Reference implementation: transformers 5 `HubertModel` and `KMeans.predict` of scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import torch
from torch import Tensor, nn

from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder

NOT_A_UNIT = -1
"""The unit of a frame that is not finite."""


class UnitsNet(nn.Module):
    """An encoder, and the centres for its hidden states.

    Args:
        centres: float32 `(clusters, width)`.
        layers: the hidden states in rising order; 0 is the input of the first block. Later blocks do not run.
    """

    centres: Tensor
    norms: Tensor

    def __init__(self, encoder: EncoderConfig, centres: Tensor, layers: Sequence[int]) -> None:
        super().__init__()
        self.encoder = SpeechEncoder(encoder)
        self.register_buffer("centres", centres)
        self.register_buffer("norms", centres.square().sum(1))
        self._layers = tuple(layers)

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Nearest centres, int16 `(items, frames, layers)`, or `NOT_A_UNIT`.

        Args:
            waves: float32 `(items, samples)` at 16 kHz. lengths: the number of samples of each item.
        """
        states = islice(self.encoder.hidden_states(waves, lengths), self._layers[-1] + 1)
        return torch.stack([self._nearest(state) for layer, state in enumerate(states) if layer in self._layers], dim=2)

    def _nearest(self, frames: Tensor) -> Tensor:
        # The squared distance less the frame's own square, which is the same for every centre.
        distances = self.norms - 2 * frames.float() @ self.centres.T
        return torch.where(distances.isfinite().all(-1), distances.argmin(-1), NOT_A_UNIT).to(torch.int16)

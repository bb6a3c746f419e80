"""Discrete units of speech: the nearest cluster to each frame of a HuBERT, for padded batches.

Every frame depends on its own item only, so that a batch equals its items one by one. This module imports torch: import
it inside functions.

Paper: W.-N. Hsu et al., "HuBERT", TASLP 2021; K. Lakhotia et al., "On Generative Spoken Language Modeling from Raw
Audio", TACL
2021. Reference implementation: transformers 5 `HubertModel` and `KMeans.predict` of scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import torch
from torch import Tensor, nn

from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder

NOT_A_UNIT = -1
"""Stands for a frame that is not a finite number."""


class UnitsNet(nn.Module):
    """An encoder, and the centres to which its hidden states are compared.

    Args:
        encoder: the architecture of the encoder.
        centres: float32 `(clusters, width)`.
        layers: the hidden states that are compared, in rising order. 0 is the input of the first block.
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
        """The number of the nearest centre of each frame, int16 `(items, frames, layers)`; `NOT_A_UNIT` for a frame
        that is not finite.

        Blocks after the last of the layers are not computed.

        Args:
            waves: float32 `(items, samples)` at 16 kHz. lengths: the number of samples of each item.
        """
        states = islice(self.encoder.hidden_states(waves, lengths), self._layers[-1] + 1)
        return torch.stack([self._nearest(state) for layer, state in enumerate(states) if layer in self._layers], dim=2)

    def _nearest(self, frames: Tensor) -> Tensor:
        # The squared distance without the square of the frame, which is the same for every centre.
        apart = self.norms - 2 * frames.float() @ self.centres.T
        return torch.where(apart.isfinite().all(-1), apart.argmin(-1), NOT_A_UNIT).to(torch.int16)

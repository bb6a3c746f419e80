"""SQUIM: STOI, PESQ, SI-SDR without a reference; opinion with any clean one.

The networks are torchaudio's own classes. Reference implementation: torchaudio 2.11 `SQUIM_OBJECTIVE` and
`SQUIM_SUBJECTIVE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torchaudio.models import squim_objective_base, squim_subjective_base

from codec_bench.networks.ragged import WholeSignal


class SquimNet(WholeSignal, nn.Module):
    """The whole network, for one signal at a time."""

    at_once = (1, 1)

    def __init__(self) -> None:
        super().__init__()
        self.model = squim_objective_base()

    @staticmethod
    def translated(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Rename the published tensors."""
        return {f"model.{name}": value for name, value in state.items()}

    def forward(self, waves: Tensor, lengths: object) -> Tensor:
        """STOI, PESQ and SI-SDR, `(items, 3)`, of waves `(items, samples)` at 16 kHz."""
        return torch.stack(self.model(waves), dim=1)


class SquimSubjectiveNet(WholeSignal, nn.Module):
    """The network up to where both signals meet, for one signal at a time.

    The predictor pools frames by attention and is linear before and after, so each signal adds its own part.
    """

    at_once = (1, 1)
    translated = staticmethod(SquimNet.translated)

    def __init__(self, model: nn.Module | None = None) -> None:
        super().__init__()
        self.model: Any = model or squim_subjective_base()

    def forward(self, waves: Tensor, lengths: object) -> Tensor:
        """Map waves `(items, samples)` at 16 kHz to `(items, frames, 12)`.

        Each frame has its attention and five numbers as the reference, then as the estimate.
        """
        frames = self.model.projector(self.model.ssl_model.extract_features(waves)[0][-1])
        pool = self.model.predictor.att_pool_layer
        weight = torch.cat([pool.linear1.weight, pool.linear2.weight])  # 6 numbers of both signals' frames
        reference, estimate = weight.chunk(2, dim=1)
        bias = torch.cat([torch.zeros_like(pool.linear1.bias), pool.linear2.bias])
        return torch.cat([frames @ reference.T, frames @ estimate.T + bias], dim=2)

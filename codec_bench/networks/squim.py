"""SQUIM Objective: STOI, PESQ and SI-SDR that a dual-path recurrent network predicts without a reference.

The network is torchaudio's own class. This module imports torch: import it inside functions.

Paper: A. Kumar et al., "TorchAudio-Squim", ICASSP 2023. Reference implementation: torchaudio 2.11
`SQUIM_OBJECTIVE`.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torchaudio.models import squim_objective_base

from codec_bench.networks.ragged import WholeSignal


class SquimNet(WholeSignal, nn.Module):
    """The whole network, for signals of one length."""

    at_once = (1, 16_000 * 60)

    def __init__(self) -> None:
        super().__init__()
        self.model = squim_objective_base()

    @staticmethod
    def translated(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The published tensors under this module's names."""
        return {f"model.{name}": value for name, value in state.items()}

    def forward(self, waves: Tensor, lengths: object) -> Tensor:
        """STOI, PESQ and SI-SDR of each item, float32 `(items, 3)`, from waves `(items, samples)` at 16 kHz."""
        return torch.stack(self.model(waves), dim=1)

"""NORESQA-MOS per signal: wav2vec 2.0 base and a linear layer.

The predictor pools the frames of both signals by attention and is linear before and after, so each signal adds its own
part.

Reference implementation: github.com/facebookresearch/Noresqa, `NORESQA` with `metric_type` 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from codec_bench.networks.ragged import Lengths, WholeSignal
from codec_bench.networks.speech_config import WAV2VEC2_BASE, EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder

ENCODER = "main_model.ssl_model."
UNUSED = ("preference.", "encoder.quantizer.", "encoder.project_q.", "encoder.final_proj.")
WIDTH, CLASSES = 32, 5


class NoresqaNet(WholeSignal, nn.Module):
    """The network."""

    at_once = (1, 1)

    def __init__(self, encoder: EncoderConfig = WAV2VEC2_BASE) -> None:
        super().__init__()
        self.encoder = SpeechEncoder(encoder)
        self.linear_layer = nn.Linear(encoder.width, WIDTH)
        self.quantification: Any = nn.ModuleDict(
            {"linear1": nn.Linear(2 * WIDTH, 1), "linear2": nn.Linear(2 * WIDTH, CLASSES)}
        )

    @staticmethod
    def translated(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Rename the published tensors, without those of training."""
        named = {name.removeprefix("module.").replace(ENCODER, "encoder."): value for name, value in state.items()}
        return {name: value for name, value in named.items() if not name.startswith(UNUSED)}

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Map waves `(items, samples)` at 16 kHz to `(items, frames, 12)`.

        Of each frame the attention and five numbers as the reference, then the same as the estimate. All items have one
        length.
        """
        # The signals of a pass have one length, which a fill on the device states without an upload.
        on_both = Lengths(lengths, torch.full((len(lengths),), lengths[0], device=waves.device))
        frames = self.linear_layer(self.encoder(waves, on_both)[0].float())
        linear1, linear2 = self.quantification.values()
        reference, estimate = torch.cat([linear1.weight, linear2.weight]).chunk(2, dim=1)
        bias = torch.cat([torch.zeros_like(linear1.bias), linear2.bias])
        return torch.cat([frames @ reference.T, frames @ estimate.T + bias], dim=2)

"""Audiobox Aesthetics: mixed WavLM states and a small network per axis.

Windows are 10 s, zero-padded. As in the reference, the zeros count for the encoder's group norm and are masked in
attention, so windows do not depend on each other. Reference implementation:
github.com/facebookresearch/audiobox-aesthetics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from codec_bench.networks.ragged import inside, on_device, uploaded
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder

AXES = ("CE", "CU", "PC", "PQ")
"""Content enjoyment, content usefulness, production complexity, production quality."""


@dataclass(frozen=True, slots=True)
class Head:
    """The small networks of a checkpoint's configuration.

    Args:
        norms: whether a layer norm follows each layer but the last. drops: whether training had a dropout, an idle step
            here.
        normalises: whether the mean over time is brought to length 1.
    """

    layers: int
    norms: bool
    drops: bool
    normalises: bool


class AudioboxNet(nn.Module):
    """The whole network."""

    def __init__(self, encoder: EncoderConfig, head: Head) -> None:
        super().__init__()
        self.head = head
        self.wavlm_model = SpeechEncoder(encoder)
        self.proj_layer = nn.ModuleDict({axis: _projection(encoder.width, head) for axis in AXES})
        states = encoder.layers + 1
        self.layer_weights = nn.ParameterDict({axis: nn.Parameter(torch.zeros(states)) for axis in AXES})

    def forward(self, waves: torch.Tensor, samples: Sequence[int]) -> torch.Tensor:
        """Compute the four scores of each window, `(windows, 4)`, before denormalisation.

        Args:
            waves: float32 `(windows, samples)` at 16 kHz, zero beyond a window's own samples. samples: a window's own.
        """
        config = self.wavlm_model.config
        length = waves.shape[1]
        frames = config.frames(length)
        # A frame is masked where all samples of its hop are padding. The last hop has no frame.
        frame_counts = uploaded([min(frames, -(-count // config.hop)) for count in samples], waves.device)
        states = self.wavlm_model.hidden_states(waves, [length] * len(samples), frame_counts)
        mask = inside(frame_counts, frames, waves.device)[..., None]
        counts = on_device(frame_counts, waves.device)[:, None]
        means = torch.stack([state.float().masked_fill(~mask, 0.0).sum(1) / counts for state in states])
        return torch.cat([self._axis(axis, means) for axis in AXES], dim=1)

    def _axis(self, axis: str, means: torch.Tensor) -> torch.Tensor:
        """Compute one score from all states' means over time, `(states, windows, width)`."""
        mixed = torch.einsum("lbc,l->bc", means, torch.softmax(self.layer_weights[axis], 0))
        return self.proj_layer[axis](F.normalize(mixed, dim=-1) if self.head.normalises else mixed)


def _projection(width: int, head: Head) -> nn.Sequential:
    """Build the network of one score: linear layers, GELU, and norms if configured."""
    layers: list[nn.Module] = []
    for _ in range(head.layers - 1):
        layers += [nn.Linear(width, width), *([nn.LayerNorm(width)] if head.norms else []), nn.GELU()]
        layers += [nn.Identity()] if head.drops else []  # so that the steps after it keep their numbers
    return nn.Sequential(*layers, nn.Linear(width, 1))

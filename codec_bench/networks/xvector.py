"""The x-vector head over a speech encoder, exact in batches.

Its convolutions have no padding, so own frames never depend on others; only the pooled statistics are masked. Reference
implementation: transformers' WavLMForXVector, whose parameter names the head has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.half_precision import HalfLinear
from codec_bench.networks.ragged import each, on_device, uploaded
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder


@dataclass(frozen=True, slots=True)
class XVectorConfig:
    """The head's architecture.

    Args:
        widths, kernels, dilations: of each time-delay layer. embedding: dimensions of the result.
        mixes: whether learnt weights mix the hidden states; else the last one is used.
    """

    widths: tuple[int, ...] = (512, 512, 512, 512, 1500)
    kernels: tuple[int, ...] = (5, 3, 3, 1, 1)
    dilations: tuple[int, ...] = (1, 2, 3, 1, 1)
    embedding: int = 512
    mixes: bool = True

    @property
    def reach(self) -> int:
        """Frames by which the output is shorter than the input."""
        return sum((kernel - 1) * dilation for kernel, dilation in zip(self.kernels, self.dilations, strict=True))


class TimeDelay(nn.Module):
    """A dilated convolution without padding, and ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.taps, self.dilation = kernel, dilation
        self.kernel = HalfLinear(inputs * kernel, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(batch, inputs, frames)` to `(batch, outputs, fewer frames)`."""
        weight = self.kernel.weight.unflatten(1, (self.taps, -1)).transpose(1, 2)
        return F.relu(F.conv1d(x.to(weight.dtype), weight, self.kernel.bias, dilation=self.dilation))


class XVectorNet(nn.Module):
    """An encoder and the head that reads its output."""

    def __init__(self, encoder: EncoderConfig, head: XVectorConfig) -> None:
        super().__init__()
        self.head = head
        self.wavlm = SpeechEncoder(encoder)
        self.layer_weights = nn.Parameter(torch.zeros(encoder.layers + 1)) if head.mixes else None
        self.projector = HalfLinear(encoder.width, head.widths[0])
        inputs = (head.widths[0], *head.widths[:-1])
        self.tdnn = nn.ModuleList(
            TimeDelay(*shape) for shape in zip(inputs, head.widths, head.kernels, head.dilations, strict=True)
        )
        self.feature_extractor = nn.Linear(2 * head.widths[-1], head.embedding)

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Embed waves `(batch, samples)` as float32 `(batch, embedding)`."""
        lengths = uploaded(lengths, waves.device)
        counts = each(lengths, lambda samples: self.wavlm.config.frames(samples) - self.head.reach)
        x = self.projector(self._mixed(waves, lengths)).transpose(1, 2)
        for layer in self.tdnn:
            x = layer(x)
        return self.feature_extractor(masked_statistics(x.float(), counts)).float()

    def _mixed(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        if self.layer_weights is None:
            return self.wavlm(waves, lengths)[0]
        return self.wavlm.mixed(waves, lengths, self.layer_weights.float().softmax(0))


def masked_statistics(x: Tensor, counts: Sequence[int], eps: float = 0.0) -> Tensor:
    """Compute mean and (unbiased) standard deviation over each item's own frames.

    Args:
        x: `(batch, channels, frames)`. counts: frames of each item, at least 2. eps: added to the variance.

    Returns:
        `(batch, 2 * channels)`, means first.
    """
    frame_counts = on_device(counts, x.device)[:, None, None]
    valid = (torch.arange(x.shape[2], device=x.device) < frame_counts).to(x.dtype)
    mean = (x * valid).sum(2, keepdim=True) / frame_counts
    variance = ((x - mean) * valid).square().sum(2) / (frame_counts[..., 0] - 1)
    return torch.cat([mean[..., 0], (variance + eps).sqrt()], dim=1)

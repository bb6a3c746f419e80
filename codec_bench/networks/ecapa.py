"""ECAPA-TDNN's head over a speech encoder, exact in batches.

Masked are the instance norm, the wide convolutions, the mean of squeeze-and-excitation, the softmax over time and the
pooled statistics. Reference implementation: the small variant of microsoft/UniSpeech's downstreams/speaker_verification
(CC-BY-SA-3.0), whose parameter names these are; none of its code is used.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.half_precision import BatchNorm1d, Conv1d
from codec_bench.networks.ragged import each, on_device, uploaded
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder

VARIANCE_FLOOR = 1e-9
INSTANCE_NORM_EPS = 1e-5
OFFSET = 1e-6
"""Added to the mixed hidden states before the instance norm, as in the reference."""


class ConvReluNorm(nn.Module):
    """A "same"-padded convolution, ReLU and batch norm."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1) -> None:
        super().__init__()
        self.conv = Conv1d(inputs, outputs, kernel, padding=kernel // 2)
        self.bn = BatchNorm1d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(batch, inputs, frames)` to `(batch, outputs, frames)`.

        Unless the kernel is 1, the input must be zero beyond each item's end.
        """
        return self.bn(F.relu(self.conv(x)))


class Res2Conv(nn.Module):
    """Groups of channels, each convolved with the previous group's result."""

    def __init__(self, channels: int, dilation: int, groups: int) -> None:
        super().__init__()
        width = channels // groups
        self.convs = nn.ModuleList(
            Conv1d(width, width, 3, padding=dilation, dilation=dilation) for _ in range(groups - 1)
        )
        self.bns = nn.ModuleList(BatchNorm1d(width) for _ in range(groups - 1))

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """Map `(batch, channels, frames)` to the same shape; `valid` is 0 on padding."""
        *parts, last = x.chunk(len(self.convs) + 1, dim=1)
        done: list[Tensor] = []
        for group, conv, norm in zip(parts, self.convs, self.bns, strict=True):
            step = group + done[-1] if done else group
            done.append(norm(F.relu(conv(step * valid))))
        return torch.cat([*done, last], dim=1)


class SqueezeExcite(nn.Module):
    """Channels weighted by a function of their means over time."""

    def __init__(self, channels: int, bottleneck: int) -> None:
        super().__init__()
        self.linear1 = nn.Linear(channels, bottleneck)
        self.linear2 = nn.Linear(bottleneck, channels)

    def forward(self, x: Tensor, valid: Tensor, counts: Tensor) -> Tensor:
        """Map `(batch, channels, frames)` to itself; `counts` is each item's frames."""
        mean = (x.float() * valid).sum(2) / counts
        return x * torch.sigmoid(self.linear2(F.relu(self.linear1(mean)))).unsqueeze(2)


class EcapaRes2Block(nn.Module):
    """A residual block of the time-delay network, under the published names."""

    def __init__(self, channels: int, dilation: int, groups: int, bottleneck: int) -> None:
        super().__init__()
        self.Conv1dReluBn1 = ConvReluNorm(channels, channels)
        self.Res2Conv1dReluBn = Res2Conv(channels, dilation, groups)
        self.Conv1dReluBn2 = ConvReluNorm(channels, channels)
        self.SE_Connect = SqueezeExcite(channels, bottleneck)

    def forward(self, x: Tensor, valid: Tensor, counts: Tensor) -> Tensor:
        """Map `(batch, channels, frames)` to the same shape."""
        inner = self.Conv1dReluBn2(self.Res2Conv1dReluBn(self.Conv1dReluBn1(x), valid))
        return x + self.SE_Connect(inner, valid, counts)


class AttentivePooling(nn.Module):
    """Mean and deviation over time, weighted by attention per channel."""

    def __init__(self, channels: int, bottleneck: int) -> None:
        super().__init__()
        self.linear1 = Conv1d(channels, bottleneck, 1)
        self.linear2 = Conv1d(bottleneck, channels, 1)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """Pool `(batch, channels, frames)` to float32 `(batch, 2 * channels)`.

        `valid` is 1 on an item's own frames and 0 on padding, `(batch, 1, frames)`.
        """
        score = self.linear2(torch.tanh(self.linear1(x))).float()
        weight = score.masked_fill(valid == 0, -torch.inf).softmax(dim=2)
        x = x.float()
        mean = (weight * x).sum(2)
        variance = (weight * x.square()).sum(2) - mean.square()
        return torch.cat([mean, variance.clamp(min=VARIANCE_FLOOR).sqrt()], dim=1)


class EcapaTdnn(nn.Module):
    """The head: frames to a speaker embedding."""

    def __init__(self, features: int, channels: int = 512, pooled: int = 1536, embedding: int = 256) -> None:
        super().__init__()
        self.layer1 = ConvReluNorm(features, channels, kernel=5)
        self.layer2, self.layer3, self.layer4 = (
            EcapaRes2Block(channels, dilation, groups=8, bottleneck=128) for dilation in (2, 3, 4)
        )
        self.conv = Conv1d(3 * channels, pooled, 1)
        self.pooling = AttentivePooling(pooled, 128)
        self.bn = nn.BatchNorm1d(2 * pooled)
        self.linear = nn.Linear(2 * pooled, embedding)

    def embed(self, frames: Tensor, counts: Sequence[int]) -> Tensor:
        """Embed `(batch, frames, features)` as `(batch, embedding)`; two frames at least."""
        frame_counts = on_device(counts, frames.device)[:, None]
        valid = (torch.arange(frames.shape[1], device=frames.device) < frame_counts).to(frames.dtype)[:, None]
        x = instance_norm(frames.transpose(1, 2), valid, frame_counts[..., None])
        first = self.layer1(x)
        second = self.layer2(first, valid, frame_counts)
        third = self.layer3(second, valid, frame_counts)
        fourth = self.layer4(third, valid, frame_counts)
        joined = F.relu(self.conv(torch.cat([second, third, fourth], dim=1)))
        return self.linear(self.bn(self.pooling(joined, valid))).float()


class SpeakerNet(EcapaTdnn):
    """An encoder with mixed hidden states, and the head over the mixture."""

    def __init__(self, config: EncoderConfig, channels: int = 512, pooled: int = 1536, embedding: int = 256) -> None:
        super().__init__(config.width, channels, pooled, embedding)
        self.feature_weight = nn.Parameter(torch.zeros(config.layers + 1))
        self.feature_extract = nn.ModuleDict({"model": SpeechEncoder(config)})

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Embed standardised waves `(batch, samples)` as float32 `(batch, embedding)`."""
        encoder = self.feature_extract["model"]
        assert isinstance(encoder, SpeechEncoder)
        lengths = uploaded(lengths, waves.device)
        frames = encoder.mixed(waves, lengths, self.feature_weight.float().softmax(0))
        return self.embed(frames + OFFSET, each(lengths, encoder.config.frames))


def instance_norm(x: Tensor, valid: Tensor, counts: Tensor) -> Tensor:
    """Normalise channels to mean 0 and (biased) variance 1 over an item's own frames.

    The padding becomes zero.

    Args:
        x: `(batch, channels, frames)`. valid: 1 on an item's own frames, `(batch, 1, frames)`.
        counts: number of each item's frames, `(batch, 1, 1)`.
    """
    mean = (x * valid).sum(2, keepdim=True) / counts
    centred = (x - mean) * valid
    variance = centred.square().sum(2, keepdim=True) / counts
    return centred * (variance + INSTANCE_NORM_EPS).rsqrt()

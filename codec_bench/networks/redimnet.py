"""ReDimNet: blocks over frequency and time, and time, exact in batches.

Masked are the frames at an item's end, which mirror its own samples, the convolutions over time, attention, the means
of squeeze-and-excitation, and the pooled statistics. Reference implementation: IDRnD/ReDimNet at dd9f519 (MIT), whose
parameter names these are; none of its code is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.fbank import masked, valid
from codec_bench.networks.half_precision import BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, HalfLinear
from codec_bench.networks.ragged import each, inside, on_device, uploaded
from codec_bench.networks.xvector import masked_statistics

RATE_HZ = 16_000
WINDOW, SPECTRUM = 400, 512
LOWEST_HZ, HIGHEST_HZ = 20.0, 7600.0
PREEMPHASIS = 0.97
FLOOR = 1e-6
NORM_EPS = 1e-6
VARIANCE_EPS = 1e-7
HEADS = 4
KERNELS = (7, 19, 31, 59)
"""Kernels of the convolutions over time in each block over time."""
ATTENTION = 128
"""Width of the pooling's attention."""


@dataclass(frozen=True, slots=True)
class ReDimNetStage:
    """One stage.

    Args:
        stride: over frequency. blocks: over frequency and time. expansion: of their channels.
        reduction: of the channels of the block over time.
    """

    stride: int
    blocks: int
    expansion: int
    reduction: int


@dataclass(frozen=True, slots=True)
class ReDimNetConfig:
    """The architecture; by default that of `b5`.

    Args:
        bands: mel bands. channels: of the first convolution. group: channels of a group of a grouped convolution.
        hop: samples from one frame to the next. embedding: dimensions of the result.
    """

    bands: int = 72
    channels: int = 32
    group: int = 16
    hop: int = 240
    stages: tuple[ReDimNetStage, ...] = (
        ReDimNetStage(1, 4, 2, 48), ReDimNetStage(2, 4, 2, 48), ReDimNetStage(1, 6, 2, 48),
        ReDimNetStage(2, 6, 1, 32), ReDimNetStage(1, 8, 1, 24), ReDimNetStage(2, 4, 1, 16),
    )  # fmt: skip
    embedding: int = 192

    @property
    def width(self) -> int:
        """Channels of a frame."""
        return self.bands * self.channels


class MelFrontEnd(nn.Module):
    """Waves to mel bands in centred frames, mirrored at both ends."""

    window: Tensor
    bands: Tensor

    def __init__(self, bands: int, hop: int) -> None:
        from torchaudio.functional import melscale_fbanks

        super().__init__()
        self.hop = hop
        margin = (SPECTRUM - WINDOW) // 2
        self.register_buffer("window", F.pad(torch.hamming_window(WINDOW), (margin, margin)), persistent=False)
        shape = melscale_fbanks(SPECTRUM // 2 + 1, LOWEST_HZ, HIGHEST_HZ, bands, RATE_HZ)
        self.register_buffer("bands", shape, persistent=False)

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> tuple[Tensor, Sequence[int]]:
        """Compute `(batch, bands, frames)`, zero-padded, and each item's frames.

        Args:
            waves: float32 `(batch, samples)`. lengths: samples of each item, more than half a frame.
        """
        counts = each(lengths, lambda samples: 1 + samples // self.hop)
        before = F.pad(waves[:, None], (1, 0), mode="reflect")[:, 0, :-1]
        mirrored = self._mirrored(waves - PREEMPHASIS * before, lengths)
        spectra = torch.fft.rfft(mirrored.unfold(1, SPECTRUM, self.hop) * self.window)
        power = spectra.real.square() + spectra.imag.square()
        logs = (power @ self.bands + FLOOR).log().transpose(1, 2)
        mask = inside(counts, logs.shape[2], waves.device)[:, None]
        mean = logs.masked_fill(~mask, 0.0).sum(2, keepdim=True) / on_device(counts, waves.device)[:, None, None]
        return (logs - mean).masked_fill(~mask, 0.0), counts

    @staticmethod
    def _mirrored(waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Extend each item by half a frame of its mirror image at both ends."""
        half = SPECTRUM // 2
        last = on_device(lengths, waves.device)[:, None] - 1
        position = torch.arange(-half, waves.shape[1] + half, device=waves.device).abs()
        position = torch.where(position > last, 2 * last - position, position).clamp(min=0)
        return waves.gather(1, position.minimum(last))


class ChannelNorm(nn.LayerNorm):
    """A layer norm over the second axis, in float32."""

    def forward(self, x: Tensor) -> Tensor:
        """Map `(batch, channels, ...)` to the same shape."""
        return super().forward(x.float().movedim(1, -1)).movedim(-1, 1)


class FrequencyExcite(nn.Module):
    """Frequencies weighted by a function of their means over channels and time."""

    def __init__(self, bands: int, inner: int) -> None:
        super().__init__()
        self.squeeze, self.exitation = nn.Linear(bands, inner), nn.Linear(inner, bands)

    def forward(self, x: Tensor, frame_mask: Tensor | None, counts: Tensor) -> Tensor:
        """Map `(batch, channels, bands, frames)` to itself; `counts` are own frames."""
        mean = masked(x, frame_mask).sum((1, 3)) / (counts * x.shape[1])
        return x * torch.sigmoid(self.exitation(F.relu(self.squeeze(mean))))[:, None, :, None]


class ReDimNetBlock(nn.Module):
    """A residual block over frequency and time: grouped and pointwise convolutions."""

    def __init__(self, channels: int, group: int, bands: int) -> None:
        super().__init__()
        groups = channels // group
        self.conv1 = Conv2d(channels, channels, 3, padding=1, bias=False, groups=groups)
        self.conv1pw = Conv2d(channels, channels, 1)
        self.bn1 = BatchNorm2d(channels)
        self.conv2 = Conv2d(channels, channels, 3, padding=1, bias=False, groups=groups)
        self.conv2pw = Conv2d(channels, channels, 1)
        self.bn2 = BatchNorm2d(channels)
        self.se = FrequencyExcite(bands, min(64, max(channels, 32)))

    def forward(self, x: Tensor, frame_mask: Tensor | None, counts: Tensor) -> Tensor:
        """Map `(batch, channels, bands, frames)` to the same shape.

        Args:
            frame_mask: 1 on an item's own frames, or None without padding.
            counts: frames of each item.
        """
        inner = self.bn1(F.relu(self.conv1pw(self.conv1(masked(x, frame_mask)))))
        inner = self.bn2(self.conv2pw(self.conv2(masked(inner, frame_mask))))
        return F.relu(self.se(inner, frame_mask, counts) + x)


class TimeConv(nn.Module):
    """A residual depthwise convolution over time."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.dwconvs = nn.ModuleList([Conv1d(channels, channels, kernel, padding=kernel // 2, groups=channels)])
        self.norm = BatchNorm1d(channels)
        self.pwconv1 = Conv1d(channels, channels, 1)

    def forward(self, x: Tensor, frame_mask: Tensor | None) -> Tensor:
        """Map `(batch, channels, frames)` to the same shape."""
        return x + self.pwconv1(F.gelu(self.norm(self.dwconvs[0](masked(x, frame_mask)))))


class ReDimNetAttention(nn.Module):
    """A block of a transformer, which normalises its outputs."""

    def __init__(self, width: int) -> None:
        super().__init__()
        names = ("q_proj", "k_proj", "v_proj", "out_proj")
        self.attention = nn.ModuleDict({name: HalfLinear(width, width) for name in names})
        self.layer_norm = nn.LayerNorm(width, eps=NORM_EPS)
        self.feed_forward = nn.ModuleDict(
            {"intermediate_dense": HalfLinear(width, width), "output_dense": HalfLinear(width, width)}
        )
        self.final_layer_norm = nn.LayerNorm(width, eps=NORM_EPS)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map `(batch, width, frames)` to itself; `mask` is minus infinity on padding."""
        x = x.transpose(1, 2)
        q, k, v = (
            self.attention[name](x).unflatten(2, (HEADS, -1)).transpose(1, 2) for name in ("q_proj", "k_proj", "v_proj")
        )
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.to(q.dtype)).transpose(1, 2).flatten(2)
        x = self.layer_norm((x + self.attention["out_proj"](attended)).float())
        inner = F.gelu(self.feed_forward["intermediate_dense"](x), approximate="tanh")
        return self.final_layer_norm((x + self.feed_forward["output_dense"](inner)).float()).transpose(1, 2)


class TimeBlock(nn.Module):
    """A residual block over time with `inner` channels, under the published names."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.red_dim_conv = nn.Sequential(Conv1d(width, inner, 1), ChannelNorm(inner, eps=NORM_EPS))
        self.tcm = nn.ModuleList([*(TimeConv(inner, kernel) for kernel in KERNELS), ReDimNetAttention(inner)])
        self.exp_dim_conv = Conv1d(inner, width, 1)

    def forward(self, x: Tensor, frame_mask: Tensor | None, mask: Tensor) -> Tensor:
        """Map `(batch, width, frames)` to the same shape; both masks exclude padding."""
        inner = self.red_dim_conv(x)
        *convs, attention = self.tcm
        for conv in convs:
            inner = conv(inner, frame_mask)
        return x + self.exp_dim_conv(attention(inner, mask))


class ReDimNetMixture(nn.Module):
    """The sum of the outputs so far, each channel of each scaled by a learnt weight."""

    def __init__(self, outputs: int, width: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(1, outputs, width if outputs > 1 else 1, 1))

    def forward(self, outputs: Sequence[Tensor]) -> Tensor:
        """Mix tensors `(batch, width, frames)` into one by learnt weights."""
        weights = self.w.softmax(dim=1)
        total = outputs[0] * weights[:, 0]
        for index, output in enumerate(outputs[1:], 1):
            total = torch.addcmul(total, output, weights[:, index])
        return total


class ReDimStage(nn.ModuleDict):
    """One stage, under the published numbers."""

    def __init__(self, number: int, stage: ReDimNetStage, planes: int, bands: int, config: ReDimNetConfig) -> None:
        wide = stage.stride * planes * stage.expansion
        step = (stage.stride, 1)
        parts: list[tuple[int, nn.Module]] = [
            (0, ReDimNetMixture(number + 1, config.width)),
            (2, Conv2d(planes, wide, step, stride=step)),
        ]
        after = bands // stage.stride
        for index in range(3, 3 + stage.blocks):
            parts.append((index, nn.ModuleDict({"conv_block": ReDimNetBlock(wide, config.group, after)})))
        end = 3 + stage.blocks
        if stage.expansion != 1:
            narrow = stage.stride * planes
            grouped = Conv2d(wide, narrow, 3, padding=1, groups=narrow // config.group)
            squeeze = (grouped, BatchNorm2d(narrow, eps=NORM_EPS), nn.GELU(), Conv2d(narrow, narrow, 1))
            parts.append((end, nn.Sequential(*squeeze)))
            end += 1
        parts.append((end + 1, TimeBlock(config.width, config.width // stage.reduction)))
        super().__init__({str(index): module for index, module in parts})
        self.planes, self.bands = planes, bands

    def forward(self, outputs: Sequence[Tensor], frame_mask: Tensor | None, counts: Tensor, mask: Tensor) -> Tensor:
        """Map the outputs of all stages so far, `(batch, width, frames)`, to one more."""
        mixture, widen, *parts, time = self.values()
        x = mixture(outputs).unflatten(1, (self.bands, self.planes)).transpose(1, 2)
        x = widen(x).float()
        for module in parts:
            if isinstance(module, nn.ModuleDict):
                x = module["conv_block"](x, frame_mask, counts)
            else:
                x = module(masked(x, frame_mask)).float()
        return time(x.transpose(1, 2).flatten(1, 2), frame_mask, mask)


class StatisticsPooling(nn.Module):
    """Mean and deviation over time, weighted by attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear1, self.linear2 = Conv1d(3 * width, ATTENTION, 1), Conv1d(ATTENTION, width, 1)

    def forward(self, x: Tensor, counts: Sequence[int], mask: Tensor) -> Tensor:
        """Pool float32 `(batch, width, frames)` to `(batch, 2 * width)`.

        `mask` is minus infinity on padding.
        """
        context = masked_statistics(x, counts, VARIANCE_EPS)[..., None].expand(-1, -1, x.shape[2])
        score = self.linear2(torch.tanh(self.linear1(torch.cat([x, context], dim=1)))).float()
        weight = (score + mask[:, :, 0]).softmax(dim=2)
        mean = (weight * x).sum(2)
        variance = (weight * x.square()).sum(2) - mean.square()
        return torch.cat([mean, variance.clamp(min=VARIANCE_EPS).sqrt()], dim=1)


class ReDimNet(nn.Module):
    """The whole network, with its front end."""

    def __init__(self, config: ReDimNetConfig) -> None:
        super().__init__()
        self.front = MelFrontEnd(config.bands, config.hop)
        self.step = config.hop
        first = Conv2d(1, config.channels, 3, padding=1)
        first.exact = True
        self.backbone = nn.ModuleDict({"stem": nn.Sequential(first, ChannelNorm(config.channels, eps=NORM_EPS))})
        planes, bands = config.channels, config.bands
        for index, stage in enumerate(config.stages):
            self.backbone[f"stage{index}"] = ReDimStage(index, stage, planes, bands, config)
            planes, bands = planes * stage.stride, bands // stage.stride
        self.backbone["fin_wght1d"] = ReDimNetMixture(len(config.stages) + 1, config.width)
        self.stages = len(config.stages)
        self.pool = StatisticsPooling(config.width)
        self.bn = nn.BatchNorm1d(2 * config.width)
        self.linear = nn.Linear(2 * config.width, config.embedding)

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Embed waves `(batch, samples)` at 16 kHz as float32 `(batch, embedding)`."""
        bands, counts = self.front(waves, uploaded(lengths, waves.device))
        frame_mask, there = valid(counts, bands.shape[2], bands), on_device(counts, waves.device)[:, None]
        is_padding = ~inside(counts, bands.shape[2], waves.device)
        mask = torch.zeros(is_padding.shape, device=waves.device).masked_fill_(is_padding, -torch.inf)[:, None, None]
        outputs = [self.backbone["stem"](bands[:, None]).transpose(1, 2).flatten(1, 2)]
        for index in range(self.stages):
            outputs.append(self.backbone[f"stage{index}"](outputs, frame_mask, there, mask))
        x = self.backbone["fin_wght1d"](outputs)
        return self.linear(self.bn(self.pool(x.float(), counts, mask))).float()

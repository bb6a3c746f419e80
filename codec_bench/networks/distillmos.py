"""DistillMOS: convolutions, transformer and pooling per crop of 7.68 s.

Every crop has one length, so crops of many signals pass together. A short crop ends in silence, where all columns of
the convolutions' output are equal. So the convolutions read the signal's own frames and a little silence, and that
column is repeated for the transformer. Reference implementation: the packages distillmos 0.9.1 and xls-r-sqa 0.1.0.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

CROP, HOP, FFT = 122_880, 160, 320
FRAMES = CROP // HOP
MAX_STEP = 16_000
"""The largest step between crops."""
EDGE = (FFT - HOP) // 2
"""Samples of a frame before its first one and, less a hop, after its last."""
POWER, FLOOR, NORM_FLOOR, SLOPE = 0.3, 1e-12, 1e-8, 0.1
CHANNELS = (64, 64, 128, 256, 256, 256)
BANDS = 4
"""Bands after the convolutions, of 161 bins."""
WIDTH, HEADS, LAYERS = 200, 8, 7
REACH = 14
"""Frames of silence for a column that reads neither the signal nor the crop's end."""
FROM_END = 4
"""The index of that column from the last."""


def columns(num_samples: int) -> int:
    """Count the frames that are read of a crop with so many samples; even."""
    needed = -(-(num_samples + EDGE) // HOP)
    return min(FRAMES, -(-(needed + REACH) // 32) * 32)


def cropped(signal: np.ndarray) -> list[np.ndarray]:
    """Cut a signal `(samples,)` into equally spaced, overlapping crops of one length.

    A signal that is not longer than a crop is returned as it is.
    """
    over = signal.size - CROP
    if over <= 0:
        return [signal]
    starts = (int(share * over) for share in np.linspace(0, 1, math.ceil(over / MAX_STEP) + 1))
    return [signal[start : start + CROP] for start in starts]


class _Encoder(nn.Module):
    """The transformer, under the published names."""

    def __init__(self, inputs: int, width: int, layers: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(inputs)
        self.position_encoding = nn.Module()
        self.position_encoding.register_buffer("pe", torch.zeros(1, FRAMES // 2, width))
        self.linear_proj = nn.Linear(inputs, width)
        layer = nn.TransformerEncoderLayer(width, HEADS, 2 * width, dropout=0.0, batch_first=True)
        self.transformer_encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


class _DistillPool(nn.Module):
    """Attention over time with two linear layers, and a third for the score."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, 1)
        self.linear3 = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(items, steps, width)` to `(items,)`."""
        weights = self.linear2(F.relu(self.linear1(x))).softmax(1)
        scores: Tensor = self.linear3((weights * x).sum(1))[:, 0]
        return scores


class _Head(nn.Module):
    """The layers above the convolutions, under the published names."""

    def __init__(self, inputs: int, width: int, layers: int) -> None:
        super().__init__()
        self.norm_input = nn.BatchNorm1d(inputs)
        self.transformer = _Encoder(inputs, width, layers)
        self.norm_trans = nn.BatchNorm1d(width)
        self.pool = _DistillPool(width)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(items, inputs, steps)` to scores in [0, 1], `(items,)`."""
        inner = self.transformer
        x = inner.linear_proj(inner.norm(self.norm_input(x)).transpose(1, 2)) + inner.position_encoding.pe
        x = self.norm_trans(inner.transformer_encoder(x).transpose(1, 2)).transpose(1, 2)
        scores: Tensor = self.pool(x).sigmoid()
        return scores


class DistillMosNet(nn.Module):
    """The whole network."""

    at_once = (4 * CROP, 96 * CROP)
    """Samples per pass on a CPU and a GPU. They bound the convolutions' memory: 40 MB per crop."""
    cut = staticmethod(cropped)

    def __init__(self, channels: tuple[int, ...] = CHANNELS, width: int = WIDTH, layers: int = LAYERS) -> None:
        super().__init__()
        last = len(channels) - 1
        convolutions: list[nn.Module] = []
        for index, (inputs, outputs) in enumerate(zip((2, *channels), channels)):
            stride = (2 if index else 1, 2 if index == last else 1)
            convolutions += [nn.Conv2d(inputs, outputs, 3, stride, (0, 1)), nn.LeakyReLU(SLOPE, inplace=True)]
        # One level more, for the names of the published tensors.
        self.cnn = nn.Sequential(OrderedDict(cnn=nn.Sequential(*convolutions)))
        self.transformer_pool_attn = _Head(BANDS * channels[-1], width, layers)

    @staticmethod
    def room(num_samples: int) -> int:
        """Return the samples to which a crop is padded with silence."""
        return columns(num_samples) * HOP

    def forward(self, crops: Tensor, lengths: Sequence[int] = ()) -> Tensor:
        """Score each crop, float32 `(crops, 1)`.

        Args:
            crops: float32 `(crops, samples)` at 16 kHz: `columns` hops, silent at the end if short. lengths: unused.
        """
        peak = crops.abs().amax(1, keepdim=True)
        x = self.cnn(_compressed(crops / (peak + NORM_FLOOR))).flatten(1, 2)
        missing = FRAMES // 2 - x.shape[2]
        if missing:
            position = x.shape[2] - FROM_END
            silent = x[:, :, position : position + 1].expand(-1, -1, missing)
            x = torch.cat([x[:, :, :position], silent, x[:, :, position:]], 2)
        scores: Tensor = 1 + 4 * self.transformer_pool_attn(x)
        return scores[:, None]


def _compressed(waves: Tensor) -> Tensor:
    """Compute complex spectra with magnitudes to the power of 0.3.

    Returns:
        Real and imaginary parts, `(crops, 2, bins, frames)`.
    """
    padded = F.pad(waves, (EDGE, EDGE), mode="reflect")
    window = torch.hann_window(FFT, device=waves.device)
    spectrum = torch.stft(padded, FFT, HOP, window=window, center=False, return_complex=True)
    parts = torch.view_as_real(spectrum)
    magnitude = parts.square().sum(3, keepdim=True).sqrt().clamp(min=FLOOR)
    return (magnitude**POWER * parts / magnitude).permute(0, 3, 1, 2)

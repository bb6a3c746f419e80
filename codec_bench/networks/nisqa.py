"""NISQA: convolutions, a sequence model and pooling, in ragged batches.

Attention, the LSTM and pooling use each item's own segments only, and levels are below the item's own maximum, so a
batch equals its items one by one. Reference implementation: github.com/gabrielmittag/NISQA at fe84f0f.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.kernels.spectrum.ref import mel_filters
from codec_bench.networks.ragged import each, inside, on_device, uploaded
from codec_bench.networks.recurrent import BothWays
from codec_bench.networks.speech_extractor import Folding

RATE_HZ = 48_000
FFT, WINDOW, HOP = 4096, 960, 480
MELS, SEGMENT = 48, 15
AMPLITUDE_FLOOR, RANGE_DB = 1e-4, 80.0
CHANNELS = (1, 16, 32, 64, 64, 64, 64)
WIDTH, ATTENTION_POOL = 64, 128
PER_PIECE, HIDDEN = 20, 128


class NisqaLevels(nn.Module):
    """Mel levels in dB, at most 80 dB below an item's largest, up to `top_hz`."""

    window: Tensor
    bands: Tensor

    def __init__(self, top_hz: float) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)
        bands = torch.from_numpy(mel_filters(RATE_HZ, FFT, MELS, top_hz).T).float()
        self.register_buffer("bands", bands, persistent=False)

    def forward(self, waves: Tensor, counts: Sequence[int]) -> Tensor:
        """Compute levels float32 `(items, bands, frames)`.

        Args:
            waves: float32 `(items, samples)` at 48 kHz, with half an FFT of its mirror image at each end of an item.
            counts: the frames of each item.
        """
        spectra = torch.stft(waves, FFT, HOP, WINDOW, self.window, center=False, return_complex=True)
        # Twice as fast as `abs` on a CPU.
        amplitudes = spectra.real.square().addcmul_(spectra.imag, spectra.imag).sqrt_()
        levels = 20 * (self.bands @ amplitudes).clamp(min=AMPLITUDE_FLOOR).log10()
        mask = inside(counts, levels.shape[2], waves.device)[:, None]
        largest = levels.masked_fill(~mask, -torch.inf).amax((1, 2), keepdim=True)
        return torch.maximum(levels, largest - RANGE_DB)


class _Pieces(Folding):
    """Six convolutions over segments of 15 frames, with norms folded into weights.

    Args:
        adaptive: whether maxima are over a fixed number of parts (NISQA), else over pairs (NISQA-TTS).
    """

    def __init__(self, adaptive: bool) -> None:
        super().__init__()
        self.adaptive = adaptive
        for index, (inputs, outputs) in enumerate(pairwise(CHANNELS), 1):
            padding = (1, 0) if adaptive and index == 6 else 1
            setattr(self, f"conv{index}", nn.Conv2d(inputs, outputs, 3, padding=padding))
            setattr(self, f"bn{index}", nn.BatchNorm2d(outputs))
        if not adaptive:
            self.fc_out = nn.Linear(CHANNELS[-1] * 12, PER_PIECE)

    def fold(self) -> list[tuple[Tensor, Tensor, Any]]:
        """Fold each convolution's batch norm; return (weights, bias, padding) of each."""
        folded = []
        for index in range(1, 7):
            conv, norm = getattr(self, f"conv{index}"), getattr(self, f"bn{index}")
            scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
            weight = conv.weight.double() * scale[:, None, None, None]
            bias = (conv.bias.double() - norm.running_mean.double()) * scale + norm.bias.double()
            folded.append((weight.float(), bias.float(), conv.padding))
        return folded

    def forward(self, x: Tensor) -> Tensor:
        """Map segments `(segments, 1, bands, frames)` to features `(segments, features)`."""
        for index, (weight, bias, padding) in enumerate(self.folded(), 1):
            x = F.conv2d(x, weight, bias, padding=padding).relu_()
            if index in (1, 2, 4):
                x = self._maxima(x, index)
        x = x.flatten(1)
        return x if self.adaptive else self.fc_out(x)

    def _maxima(self, x: Tensor, index: int) -> Tensor:
        if self.adaptive:
            return _adaptive_maxima(x, {1: 7, 2: 5, 4: 3}[index])
        return F.max_pool2d(x, 2, padding=(0, 1) if index == 1 else 0)


def _adaptive_maxima(x: Tensor, width: int) -> Tensor:
    """Pool as `F.adaptive_max_pool2d` to half the bands and `width` frames.

    On a CPU it is four times as fast.
    """
    x = torch.maximum(x[:, :, 0::2], x[:, :, 1::2])
    frames = x.shape[3]
    out = x.new_empty((*x.shape[:3], width))
    for index in range(width):
        torch.amax(x[..., index * frames // width : -(-(index + 1) * frames // width)], -1, out=out[..., index])
    return out


class _AttentionLayer(nn.Module):
    """Self-attention and two linear layers, each followed by a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(WIDTH, 1, batch_first=True)
        self.linear1, self.linear2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, is_padding: Tensor) -> Tensor:
        """Map `(items, segments, width)` to the same shape; `is_padding` is true on padding."""
        x = self.norm1(x + self.self_attn(x, x, x, key_padding_mask=is_padding, need_weights=False)[0])
        out: Tensor = self.norm2(x + self.linear2(F.relu(self.linear1(x))))
        return out


class _Attention(nn.Module):
    """Two layers of attention over the segments' features."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm1 = nn.Linear(CHANNELS[-1] * 6, WIDTH), nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(_AttentionLayer() for _ in range(2))

    def forward(self, x: Tensor, is_padding: Tensor) -> Tensor:
        """Map `(items, segments, features)` to `(items, segments, width)`."""
        x = self.norm1(self.linear(x))
        for layer in self.layers:
            x = layer(x, is_padding)
        return x


class _Pool(nn.Module):
    """A weighted mean over segments, and a linear layer for the score."""

    def __init__(self) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(WIDTH, ATTENTION_POOL), nn.Linear(ATTENTION_POOL, 1)
        self.linear3 = nn.Linear(WIDTH, 1)

    def forward(self, x: Tensor, is_padding: Tensor) -> Tensor:
        """Map `(items, segments, width)` to scores `(items, 1)`."""
        weights = self.linear2(F.relu(self.linear1(x))).masked_fill(is_padding[..., None], -torch.inf).softmax(1)
        out: Tensor = self.linear3((weights * x.masked_fill(is_padding[..., None], 0.0)).sum(1))
        return out


class _BothEnds(nn.Module):
    """A bidirectional LSTM over the segments' features, reduced to its last states."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = BothWays(PER_PIECE, HIDDEN)

    def forward(self, x: Tensor, counts: Sequence[int]) -> Tensor:
        """Map `(items, segments, features)` to `(items, 2 x hidden)`."""
        x = self.lstm.over(x, counts)
        last = (on_device(counts, x.device) - 1)[:, None, None].expand(-1, 1, HIDDEN)
        return torch.cat([x[..., :HIDDEN].gather(1, last)[:, 0], x[:, 0, HIDDEN:]], 1)


class _Named(nn.Module):
    """A module one level down, for the published names."""

    model: Any

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model


class NisqaNet(nn.Module):
    """NISQA 2.0.

    Args:
        scores: 5 for opinion score, noisiness, discontinuity, coloration and loudness, in this order; 1 for the first
            alone.
    """

    step = 4
    """Frames from segment to segment."""

    def __init__(self, scores: int) -> None:
        super().__init__()
        self.levels = NisqaLevels(20_000.0)
        self.cnn = _Named(_Pieces(adaptive=True))
        self.time_dependency = _Named(_Attention())
        if scores == 1:
            self.pool = _Named(_Pool())
        else:
            self.pool_layers = nn.ModuleList(_Named(_Pool()) for _ in range(scores))

    def forward(self, waves: Tensor, frames: Sequence[int]) -> Tensor:
        """Score each item, float32 `(items, scores)`.

        Args:
            waves: as for `NisqaLevels`. frames: the frames of each item.
        """
        x, counts = _pieces(self, waves, frames)
        is_padding = ~inside(counts, x.shape[1], waves.device)
        x = self.time_dependency.model(x, is_padding)
        return torch.cat([pool.model(x, is_padding) for pool in self._pools()], 1)

    def _pools(self) -> list[Any]:
        return list(self.pool_layers) if hasattr(self, "pool_layers") else [self.pool]


class NisqaTtsNet(nn.Module):
    """NISQA-TTS: the naturalness of synthetic speech."""

    step = 1
    """Frames from segment to segment."""

    def __init__(self) -> None:
        super().__init__()
        self.levels = NisqaLevels(8_000.0)
        self.cnn = _Named(_Pieces(adaptive=False))
        self.time_dependency = _Named(_BothEnds())
        self.pool = _Named(nn.Sequential(OrderedDict(linear=nn.Linear(2 * HIDDEN, 1))))

    def forward(self, waves: Tensor, frames: Sequence[int]) -> Tensor:
        """Score each item, float32 `(items, 1)`.

        Args:
            waves: as for `NisqaLevels`. frames: the frames of each item.
        """
        x, counts = _pieces(self, waves, frames)
        scores: Tensor = self.pool.model(self.time_dependency.model(x, counts))
        return scores


def _pieces(net: NisqaNet | NisqaTtsNet, waves: Tensor, frames: Sequence[int]) -> tuple[Tensor, Sequence[int]]:
    """Compute features of every segment, `(items, segments, features)`.

    Args:
        frames: of each item.

    Returns:
        The features, and the number of segments of each item.
    """
    frames = uploaded(frames, waves.device)
    pieces = net.levels(waves, frames).unfold(2, SEGMENT, net.step).transpose(1, 2)
    x = net.cnn.model(pieces.reshape(-1, 1, MELS, SEGMENT)).reshape(*pieces.shape[:2], -1)
    return x, each(frames, lambda count: (count - SEGMENT) // net.step + 1)

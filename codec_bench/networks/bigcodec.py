"""BigCodec's networks: anti-aliased residual convolutions, LSTM, one codebook.

Every activation runs at twice the rate: interpolation, SnakeBeta, low-pass and decimation, with the first and last
sample repeated at the ends. In a batch, each item's own last sample is repeated, and values beyond it are zeroed before
a convolution, so a batch equals its items one by one. Hidden states are float32 `(items, channels, time)`; `lengths`
are those at a layer's input (`ragged.py`). Reference: Aria-K-Alethia/BigCodec (MIT): the same codes and waves within
float32 noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from codec_bench.networks.ragged import each, full, on_device, uploaded, zero_beyond

_TAPS = 12
_DILATIONS = (1, 3, 9)
_SHARPEST = 1e-9  # added to beta, so that the division is never by zero


@dataclass(frozen=True)
class BigCodecShape:
    """The sizes of one model.

    Args:
        filters: channels after the encoder's first convolution, doubled by each stride, and before the decoder's last.
        latent_dim: channels between encoder, quantiser and decoder. entries, code_dim: of the codewords.
        ratios: strides of the encoder; the decoder reverses them.
    """

    filters: int = 48
    latent_dim: int = 1024
    entries: int = 8192
    code_dim: int = 8
    ratios: tuple[int, ...] = (2, 2, 2, 5, 5)

    @property
    def hop(self) -> int:
        """Samples per frame."""
        return math.prod(self.ratios)


class _Filter(nn.Module):
    """A low-pass filter of twelve taps at half the rate, under its published name."""

    filter: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("filter", _kaiser_sinc()[None, None])


class _Decimation(nn.Module):
    """The filter before a decimation, under its longer published name."""

    def __init__(self) -> None:
        super().__init__()
        self.lowpass = _Filter()


class SnakeBeta(nn.Module):
    """x + sin²(alpha x) / beta per channel; both stored as logarithms."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha, self.beta = nn.Parameter(torch.zeros(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `x` `(items, channels, 2, time)` to the same shape."""
        alpha, beta = (each.exp()[:, None, None] for each in (self.alpha, self.beta))
        return torch.addcmul(x, torch.sin(x * alpha).square_(), (beta + _SHARPEST).reciprocal())


class Activation(nn.Module):
    """SnakeBeta at twice the rate, between an interpolation and a decimation.

    The doubled signal is held as two phases, its even and odd samples, so both filters run at the signal's rate with
    half of the taps.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.act = SnakeBeta(channels)
        self.upsample = _Filter()
        self.downsample = _Decimation()

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Activate `(items, channels, time)` at twice the rate; the shape stays.

        Each item is padded at its own end, and the result is zero beyond it.
        """
        items, channels, time = x.shape
        up, down = self.upsample.filter[0, 0], self.downsample.lowpass.filter[0, 0]
        nothing = up.new_zeros(1)
        split = torch.stack([torch.cat([up[1::2].flip(0), nothing]), torch.cat([nothing, up[::2].flip(0)])])
        join = torch.stack([torch.cat([nothing, down[1::2]]), torch.cat([down[::2], nothing])])
        ragged = not full(lengths, time)
        x = F.pad(x, (3, 3), mode="replicate")
        if ragged:
            rows = torch.arange(items, device=x.device)
            last_at = on_device(lengths, x.device) + 2
            behind = last_at[:, None] + torch.arange(1, 4, device=x.device)
            x[rows[:, None], :, behind] = x[rows, :, last_at][:, None]
        # Grouped by channel: as items, the channels would take a CPU five times as long.
        phases = F.conv1d(x, 2 * split[:, None].repeat(channels, 1, 1), groups=channels)
        phases = self.act(phases.view(items, channels, 2, time))
        # Both phases are padded: at the start with the even phase's first value, at the end with the odd phase's last.
        first, last = phases[:, :, :1, :1], phases[:, :, 1:, -1:]
        wide = torch.cat([first.expand(-1, -1, 2, 3), phases, last.expand(-1, -1, 2, 3)], dim=3)
        if ragged:
            wide[rows[:, None], ..., behind] = wide[rows, :, 1:, last_at][:, None].expand(-1, 3, -1, 2)
        wide = wide.view(items, 2 * channels, time + 6)
        return zero_beyond(F.conv1d(wide, join.repeat(channels, 1, 1), groups=channels), lengths)


class ResidualUnit(nn.Module):
    """A dilated convolution of seven taps and one of one tap, added to the input."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.block = nn.ModuleList(
            [
                Activation(channels),
                nn.Conv1d(channels, channels, 7, dilation=dilation, padding=3 * dilation),
                Activation(channels),
                nn.Conv1d(channels, channels, 1),
            ]
        )

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Map `x` `(items, channels, time)` to the same shape."""
        return x + _through(self.block, x, lengths)


class EncoderBlock(nn.Module):
    """Three residual units, and a strided convolution that doubles the channels."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        conv = nn.Conv1d(channels, 2 * channels, 2 * stride, stride, padding=-(-stride // 2))
        units = (ResidualUnit(channels, dilation) for dilation in _DILATIONS)
        self.block = nn.ModuleList([*units, Activation(channels), conv])
        self.stride = stride

    def length(self, before: Any) -> Any:
        """Return a length, or all as a tensor, behind this block."""
        return before // self.stride

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """`(items, 2 x channels, time / stride)`, for multiples of the stride."""
        return _through(self.block, x, lengths)


class DecoderBlock(nn.Module):
    """A transposed convolution that halves the channels, and three residual units."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        padding, more = -(-stride // 2), stride % 2
        conv = nn.ConvTranspose1d(channels, channels // 2, 2 * stride, stride, padding, output_padding=more)
        units = (ResidualUnit(channels // 2, dilation) for dilation in _DILATIONS)
        self.block = nn.ModuleList([Activation(channels), conv, *units])
        self.stride = stride

    def length(self, before: Any) -> Any:
        """Return a length, or all as a tensor, behind this block."""
        return before * self.stride

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """`(items, channels / 2, time x stride)`."""
        x = self.block[1](self.block[0](x, lengths))
        return _through(self.block[2:], x, each(lengths, self.length))


class ResidualLSTM(nn.Module):
    """Two layers of a forward LSTM, added to their input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(channels, channels, 2, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Return the shape of `x`. The LSTM is causal, so padding cannot change an item."""
        x = x.transpose(1, 2)
        return (self.lstm(x)[0] + x).transpose(1, 2)


class BigCodecEncoder(nn.Module):
    """Waves to latents."""

    def __init__(self, shape: BigCodecShape) -> None:
        super().__init__()
        channels = shape.filters
        layers: list[nn.Module] = [nn.Conv1d(1, channels, 7, padding=3)]
        for stride in shape.ratios:
            layers.append(EncoderBlock(channels, stride))
            channels *= 2
        layers += [ResidualLSTM(channels), Activation(channels), nn.Conv1d(channels, shape.latent_dim, 3, padding=1)]
        self.block = nn.ModuleList(layers)

    def forward(self, waves: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Encode zero-padded waves `(items, 1, samples)` to `(items, latent_dim, frames)`.

        Lengths are multiples of the hop.
        """
        return _through(self.block, waves, lengths)


class _Projected(nn.Module):
    """The codebook, and the projections to and from its few dimensions."""

    def __init__(self, shape: BigCodecShape) -> None:
        super().__init__()
        self.in_proj = nn.Linear(shape.latent_dim, shape.code_dim)
        self.out_proj = nn.Linear(shape.code_dim, shape.latent_dim)
        self._codebook = nn.Embedding(shape.entries, shape.code_dim)


class BigCodecDecoder(nn.Module):
    """The quantiser's weights, and latents to waves."""

    def __init__(self, shape: BigCodecShape) -> None:
        super().__init__()
        self.quantizer = nn.ModuleDict({"layers": nn.ModuleList([_Projected(shape)])})
        channels = shape.filters * 2 ** len(shape.ratios)
        layers: list[nn.Module] = [nn.Conv1d(shape.latent_dim, channels, 7, padding=3), ResidualLSTM(channels)]
        for stride in reversed(shape.ratios):
            layers.append(DecoderBlock(channels, stride))
            channels //= 2
        layers += [Activation(channels), nn.Conv1d(channels, 1, 7, padding=3)]
        self.model = nn.ModuleList(layers)

    @property
    def projected(self) -> _Projected:
        """The codebook and its projections."""
        layer: Any = self.quantizer["layers"]
        return layer[0]

    def forward(self, latents: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        """Decode latents `(items, latent_dim, frames)` to waves `(items, 1, samples)`."""
        lengths = uploaded(lengths, latents.device)
        return torch.tanh(_through(self.model, zero_beyond(latents, lengths), lengths))


def _through(layers: nn.ModuleList, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
    """Run layers in order on `(items, channels, time)`, and track the items' lengths.

    Args:
        lengths: of each item, as input of the first layer.
    """
    lengths = uploaded(lengths, x.device)
    for layer in layers:
        x = layer(x) if isinstance(layer, nn.Conv1d) else layer(x, lengths)
        if isinstance(layer, (EncoderBlock, DecoderBlock)):
            lengths = each(lengths, layer.length)
    return x


def _kaiser_sinc() -> torch.Tensor:
    """Build a low-pass filter of 12 taps, cut off at a quarter of the sample rate.

    It is a Kaiser-windowed sinc with a transition of 0.6, normalised to sum 1.
    """
    attenuation = 2.285 * (_TAPS // 2 - 1) * math.pi * 1.2 + 7.95
    window = torch.kaiser_window(_TAPS, periodic=False, beta=0.1102 * (attenuation - 8.7))
    taps = window * torch.sinc(0.5 * (torch.arange(_TAPS) - (_TAPS - 1) / 2))
    return taps / taps.sum()

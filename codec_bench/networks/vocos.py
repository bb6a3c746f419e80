"""Vocos: a ConvNeXt backbone and a head that inverts a spectrogram.

In ragged batches, values beyond an item are zeroed before a convolution, and the overlap-add is normalised by the
windows of own frames, so a batch equals its items one by one. Hidden states are float32 `(items, channels, frames)`
before a backbone, `(items, frames, channels)` after it; `lengths` is int64 `(items,)` on the device, or None if all are
full. Paper: Siuzdak, Vocos, https://arxiv.org/abs/2306.00814. Reference: gemelo-ai/vocos (MIT).
"""

from __future__ import annotations

from typing import Literal, TypeVar

import torch
from torch import nn
from torch.nn import functional as F

Count = TypeVar("Count", int, torch.Tensor)

_EPS = 1e-6
_LOUDEST = 100.0  # largest magnitude of a bin: without it, exp of an extreme value would be infinite
_WINDOW_FLOOR = 1e-11  # if the windows add up to less than this, no window covers the sample


def frames_mask(lengths: torch.Tensor | None, frames: int) -> torch.Tensor | None:
    """Return a mask of valid frames, float32 `(items, 1, frames)`; None if all are."""
    if lengths is None:
        return None
    return (torch.arange(frames, device=lengths.device) < lengths[:, None]).float()[:, None]


def masked(x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Zero `x` `(items, channels, frames)` beyond each item."""
    return x if mask is None else x * mask


class AdaLayerNorm(nn.Module):
    """Layer normalisation over the channels, with a gain and offset per condition."""

    def __init__(self, conditions: int, dim: int) -> None:
        super().__init__()
        self.scale = nn.Embedding(conditions, dim)
        self.shift = nn.Embedding(conditions, dim)
        nn.init.ones_(self.scale.weight)
        nn.init.zeros_(self.shift.weight)

    def forward(self, x: torch.Tensor, condition: int = 0) -> torch.Tensor:
        """Normalise `x` `(..., dim)` under one condition."""
        return F.layer_norm(x, x.shape[-1:], self.scale.weight[condition], self.shift.weight[condition], _EPS)


class ConvNeXtBlock(nn.Module):
    """A depthwise convolution and two layers per frame, added with gains.

    Args:
        intermediate_dim: width between the two layers. conditions: of an adaptive norm, or None for a plain one.
        kernel_size, dilation: of the depthwise convolution, which keeps the length. layer_scale: initial gain.
    """

    def __init__(
        self,
        dim: int,
        intermediate_dim: int,
        conditions: int | None = None,
        *,
        kernel_size: int = 7,
        dilation: int = 1,
        layer_scale: float = 1.0,
    ) -> None:
        super().__init__()
        padding = dilation * (kernel_size - 1) // 2
        self.dwconv = nn.Conv1d(dim, dim, kernel_size, padding=padding, dilation=dilation, groups=dim)
        self.norm = _norm(dim, conditions)
        self.pwconv1 = nn.Linear(dim, intermediate_dim)
        self.pwconv2 = nn.Linear(intermediate_dim, dim)
        self.gamma = nn.Parameter(torch.full((dim,), layer_scale))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, condition: int = 0) -> torch.Tensor:
        """Map `(items, dim, frames)` to the same shape; the padding is not zero.

        Args:
            mask: 1 on an item's own frames, or None without padding.
            condition: which gain and offset an adaptive norm uses.
        """
        hidden = self.dwconv(masked(x, mask)).transpose(1, 2)
        hidden = self.norm(hidden) if isinstance(self.norm, nn.LayerNorm) else self.norm(hidden, condition)
        hidden = self.pwconv2(F.gelu(self.pwconv1(hidden))) * self.gamma
        return x + hidden.transpose(1, 2)


class VocosBackbone(nn.Module):
    """A convolution, a norm, ConvNeXt blocks, a norm.

    Args:
        input_channels: channels of the input (mel bands, latents).
        conditions: of its adaptive norms (`adanorm_num_embeddings`), or None for plain ones.
        pos_net: another network between the first convolution and the norm, called with `(x, mask)`, or None.
    """

    def __init__(
        self,
        input_channels: int,
        dim: int,
        intermediate_dim: int,
        num_layers: int,
        conditions: int | None = None,
        pos_net: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.embed = nn.Conv1d(input_channels, dim, 7, padding=3)
        self.norm = _norm(dim, conditions)
        self.convnext = nn.ModuleList(
            ConvNeXtBlock(dim, intermediate_dim, conditions, layer_scale=1 / num_layers) for _ in range(num_layers)
        )
        self.final_layer_norm = nn.LayerNorm(dim, _EPS)
        self.pos_net = pos_net

    def forward(self, x: torch.Tensor, lengths: torch.Tensor | None = None, condition: int = 0) -> torch.Tensor:
        """Map inputs `(items, input_channels, frames)` to `(items, frames, dim)`."""
        mask = frames_mask(lengths, x.shape[-1])
        x = self.embed(masked(x, mask))
        if self.pos_net is not None:
            x = self.pos_net(x, mask)
        x = x.transpose(1, 2)
        x = self.norm(x) if isinstance(self.norm, nn.LayerNorm) else self.norm(x, condition)
        x = x.transpose(1, 2)
        for block in self.convnext:
            x = block(x, mask, condition)
        return self.final_layer_norm(x.transpose(1, 2))


class ISTFT(nn.Module):
    """The inverse STFT with a periodic Hann window as long as the transform.

    Args:
        padding: with `same`, T frames give T x hop samples; with `center`, (T - 1) x hop, as in torch.istft.
    """

    window: torch.Tensor

    def __init__(self, n_fft: int, hop_length: int, padding: Literal["same", "center"] = "same") -> None:
        super().__init__()
        if padding not in ("same", "center"):
            raise ValueError(f"there is no padding '{padding}'; there are same and center")
        self.n_fft, self.hop_length, self.padding = n_fft, hop_length, padding
        self.register_buffer("window", torch.hann_window(n_fft))

    def samples(self, frames: Count) -> Count:
        """Return the samples of this many frames."""
        return (frames if self.padding == "same" else frames - 1) * self.hop_length

    def forward(self, spectrum: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Invert spectra, complex64 `(items, n_fft // 2 + 1, frames)`, to waves.

        Args:
            lengths: frames of each item; None if none is padded.

        Returns:
            `(items, samples)`, zero beyond each item's end.
        """
        frames = spectrum.shape[-1]
        mask = frames_mask(lengths, frames)
        pieces = torch.fft.irfft(spectrum, self.n_fft, dim=1) * self.window[:, None]
        weights = self.window.square()[None, :, None].expand(1, -1, frames)
        wave = self._overlap_add(masked(pieces, mask))
        weight = self._overlap_add(weights if mask is None else weights * mask)
        trim = (self.n_fft - self.hop_length) // 2 if self.padding == "same" else self.n_fft // 2
        wave, weight = (each[:, trim : trim + self.samples(frames)] for each in (wave, weight))
        wave = torch.where(weight > _WINDOW_FLOOR, wave / weight, 0.0)
        mask = None if lengths is None else frames_mask(self.samples(lengths), wave.shape[1])
        return wave if mask is None else wave * mask[:, 0]

    def _overlap_add(self, pieces: torch.Tensor) -> torch.Tensor:
        """Overlap-add `(items, n_fft, frames)`: `(items, (frames - 1) x hop + n_fft)`."""
        total = (pieces.shape[-1] - 1) * self.hop_length + self.n_fft
        return F.fold(pieces, (1, total), (1, self.n_fft), stride=(1, self.hop_length))[:, 0, 0]


class ISTFTHead(nn.Module):
    """A linear layer to log magnitude and phase, and the inverse transform."""

    def __init__(self, dim: int, n_fft: int, hop_length: int, padding: Literal["same", "center"] = "same") -> None:
        super().__init__()
        self.out = nn.Linear(dim, n_fft + 2)
        self.istft = ISTFT(n_fft, hop_length, padding)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Map `(items, frames, dim)` to waves `(items, samples)`, zero-padded."""
        magnitude, phase = self.out(x).transpose(1, 2).chunk(2, dim=1)
        return self.istft(torch.polar(magnitude.exp().clamp(max=_LOUDEST), phase), lengths)


def _norm(dim: int, conditions: int | None) -> nn.Module:
    return nn.LayerNorm(dim, _EPS) if conditions is None else AdaLayerNorm(conditions, dim)

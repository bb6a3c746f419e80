"""Kaldi's filter bank less its mean over own frames, for padded batches."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from codec_bench.networks.kaldi import HOP, WINDOW, Shape, analysis_window, filter_bank, mel_bands, num_frames
from codec_bench.networks.ragged import each, full, inside, on_device


class Fbank(nn.Module):
    """Waves to mean-normalised bands.

    Args:
        scale: the factor of samples in [-1, 1] before the filter bank.
    """

    window: Tensor
    bands: Tensor

    def __init__(self, bands: int, window: Shape = "povey", scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale
        self.register_buffer("window", analysis_window(window), persistent=False)
        self.register_buffer("bands", mel_bands(bands), persistent=False)

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> tuple[Tensor, Sequence[int]]:
        """Compute `(batch, bands, frames)`, zero-padded, and each item's frames.

        Args:
            waves: float32 `(batch, samples)`. lengths: samples of each item, enough for a frame.
        """
        counts = each(lengths, num_frames)
        logs = filter_bank(waves.unfold(1, WINDOW, HOP) * self.scale, self.window, self.bands).transpose(1, 2)
        mask = inside(counts, logs.shape[2], waves.device)[:, None]
        mean = logs.masked_fill(~mask, 0.0).sum(2, keepdim=True) / on_device(counts, waves.device)[:, None, None]
        return (logs - mean).masked_fill(~mask, 0.0), counts


def halved(count: int) -> int:
    """Return the frames (numbers or a tensor) after a convolution of stride 2."""
    return (count + 1) // 2


def valid(counts: Sequence[int], time: int, like: Tensor) -> Tensor | None:
    """1 on own frames, else 0, `(batch, 1, frames)`; None if all are own."""
    return None if full(counts, time) else inside(counts, time, like.device)[:, None].to(like.dtype)


def masked(x: Tensor, mask: Tensor | None) -> Tensor:
    """Zero `x` `(batch, ..., frames)` beyond each item's end by the mask of `valid`."""
    if mask is None:
        return x
    return x * (mask if x.dim() == 3 else mask[:, None])

"""The same as `ref.py` in torch, float32, on any device."""

from __future__ import annotations

import torch
from torch.nn.functional import conv1d


def convolve(
    x: torch.Tensor, taps: torch.Tensor, bias: torch.Tensor | None = None, padding: int = 0, dilation: int = 1
) -> torch.Tensor:
    """As `ref.convolve`."""
    return conv1d(x, taps.permute(1, 2, 0), bias, padding=padding, dilation=dilation)

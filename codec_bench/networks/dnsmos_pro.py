"""DNSMOS Pro: convolutions, maxima and linear layers, in ragged batches.

Reference implementation: github.com/fcumlin/DNSMOSPro.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.ragged import each, inside, uploaded

FFT, HOP, FLOOR, CEILING = 320, 160, 1e-7, 1e7
POOL = 3
CHANNELS = (1, 32, 32, 64, 64)
HIDDEN = 64
CONVOLUTION = (
    "weight",
    "bias",
    "norm.weight",
    "norm.bias",
    "norm.running_mean",
    "norm.running_var",
    "norm.num_batches_tracked",
)
LAYOUT: tuple[tuple[str, tuple[int, ...]], ...] = (
    *(
        (
            f"convolutions.{index}.{parameter}",
            (outputs, inputs, 3, 3) if parameter == "weight" else () if "num" in parameter else (outputs,),
        )
        for index, (inputs, outputs) in enumerate(pairwise(CHANNELS))
        for parameter in CONVOLUTION
    ),
    *(
        (f"head.{index}.{parameter}", (outputs, HIDDEN) if parameter == "weight" else (outputs,))
        for index, outputs in enumerate((HIDDEN, HIDDEN, 2))
        for parameter in ("weight", "bias")
    ),
)
"""Names and shapes of a published file's tensors, in its order."""


class _Convolution(nn.Conv2d):
    """A convolution with the norm that follows it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 3, padding=1)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(items, inputs, frames, bins)` to as many outputs."""
        normed: Tensor = self.norm(super().forward(x))
        return normed


class DnsmosProNet(nn.Module):
    """The whole network."""

    def __init__(self) -> None:
        super().__init__()
        pairs = pairwise(CHANNELS)
        self.convolutions = nn.ModuleList(_Convolution(inputs, outputs) for inputs, outputs in pairs)
        self.head = nn.ModuleList(nn.Linear(HIDDEN, outputs) for outputs in (HIDDEN, HIDDEN, 2))

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Compute mean and variance of each item's opinion score, float32 `(items, 2)`.

        Args:
            waves: float32 `(items, samples)` at 16 kHz, zero beyond each item's end. lengths: the samples of each item.
        """
        # In float64 as the reference: single precision would fill near-silent bands with rounding noise.
        window = torch.hann_window(FFT, device=waves.device, dtype=torch.float64)
        spectra = torch.stft(waves.double(), FFT, HOP, window=window, pad_mode="constant", return_complex=True).abs()
        counts = each(uploaded(lengths, waves.device), lambda samples: samples // HOP + 1)
        x = spectra.clamp(FLOOR, CEILING).log10().float().transpose(1, 2)[:, None]
        for index, convolution in enumerate(self.convolutions):
            padding = ~inside(counts, x.shape[2], waves.device)[:, None, :, None]
            x = F.relu(convolution(x.masked_fill(padding, 0.0)))
            if index == 1:
                x = F.max_pool2d(x, POOL)
                counts = each(counts, lambda frames: frames // POOL)
        padding = ~inside(counts, x.shape[2], waves.device)[:, None, :, None]
        x = x.masked_fill(padding, 0.0).amax((2, 3))  # no value is below zero
        first, second, last = self.head
        mean, spread = last(F.relu(second(F.relu(first(x))))).unbind(1)
        return torch.stack([2 * mean + 3, 4 * F.softplus(spread)], 1)


def state_of(tensors: Mapping[str, bytes]) -> dict[str, Tensor]:
    """Build the network's state dict from a published file's raw tensors.

    Args:
        tensors: bytes by number, `"0"`, `"1"` and so on.

    Raises:
        ValueError: one is missing, left over or of another size.
    """
    if len(tensors) != len(LAYOUT):
        raise ValueError(f"it holds {len(tensors)} tensors (expected {len(LAYOUT)})")
    state = {}
    for index, (name, shape) in enumerate(LAYOUT):
        kind = torch.int64 if "num" in name else torch.float32
        raw = tensors.get(str(index), b"")
        expected = kind.itemsize * max(1, torch.Size(shape).numel())
        if len(raw) != expected:
            raise ValueError(f"its tensor {index} ({name}) has {len(raw)} bytes (expected {expected})")
        state[name] = torch.frombuffer(bytearray(raw), dtype=kind).reshape(shape)
    return state

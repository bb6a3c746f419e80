"""Lengths for SNAC's layers in a ragged batch, so it equals its items one by one.

The network is the package `snac`. Every item is a whole number of blocks, so in every layer an item's length is the
same fraction of the batch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from codec_bench.networks.ragged import each, uploaded, zero_beyond


class RaggedBatch:
    """The lengths and the noise of the items in a SNAC network.

    It writes zeros beyond each item before every convolution of more than one tap, and replaces the noise blocks.

    Args:
        net: the package's network, whose modules are changed.
    """

    def __init__(self, net: nn.Module) -> None:
        self._lengths: Sequence[int] = []
        self._noise: list[Tensor] = []
        self._rates: list[int] = []  # steps of every noise block for a step of the decoder's input
        rate = 1
        for module in net.modules():
            if isinstance(module, (nn.Conv1d, nn.ConvTranspose1d)) and module.kernel_size[0] > 1:
                module.register_forward_pre_hook(self._silence)
            if isinstance(module, nn.ConvTranspose1d):
                rate *= module.stride[0]
            if type(module).__name__ == "NoiseBlock":
                block: Any = module
                block.forward = self._noisy(block.linear)
                self._rates.append(rate)

    @contextmanager
    def of(self, lengths: Sequence[int], device: str, noise: Sequence[Tensor] = ()) -> Iterator[None]:
        """Return a context in which the batch holds items of these lengths.

        Args:
            lengths: in any unit.
            device: of the network.
            noise: as returned by `noise`, on the device; for the decoder only.
        """
        self._lengths, self._noise = uploaded(lengths, device), list(noise)
        try:
            yield
        finally:
            self._lengths, self._noise = [], []

    def noise(self, frames: Sequence[int], generators: Sequence[torch.Generator]) -> list[np.ndarray]:
        """Draw the noise of every noise block in order, float32 `(items, 1, steps)`.

        Args:
            frames: steps of each item at the decoder's input.
            generators: one on the CPU for each item's noise.
        """
        out = [np.zeros((len(frames), 1, rate * max(frames)), np.float32) for rate in self._rates]
        for row, (count, generator) in enumerate(zip(frames, generators, strict=True)):
            for block, rate in zip(out, self._rates, strict=True):
                block[row, 0, : rate * count] = torch.randn(rate * count, generator=generator).numpy()
        return out

    def _lengths_at(self, time: int) -> Sequence[int]:
        """Return the items' lengths in a layer with `time` steps; the division is exact."""
        longest = max(self._lengths)
        return each(self._lengths, lambda length: length * time // longest)

    def _silence(self, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        (x,) = inputs
        zero_beyond(x, self._lengths_at(x.shape[-1]))

    def _noisy(self, linear: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def forward(x: Tensor) -> Tensor:
            return x + self._noise.pop(0) * linear(x)

        return forward

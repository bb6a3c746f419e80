"""The lengths that SNAC's layers need in a batch of unequal lengths, so that it equals its items one by one.

The network itself is that of the package `snac`. Every item is a whole number of blocks. So in every layer, an item's
length is the same fraction of the batch's length. This module imports torch: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from codec_bench.networks.ragged import zero_beyond


class RaggedBatch:
    """The lengths and the noise of the items that pass through a SNAC network.

    It writes zeros beyond each item before every convolution of more than one tap, and it replaces the noise blocks.

    Args:
        net: the package's network, whose modules are changed.
    """

    def __init__(self, net: nn.Module) -> None:
        self._lengths: list[int] = []
        self._generators: list[torch.Generator] = []
        for module in net.modules():
            if isinstance(module, (nn.Conv1d, nn.ConvTranspose1d)) and module.kernel_size[0] > 1:
                module.register_forward_pre_hook(self._silence)
            if type(module).__name__ == "NoiseBlock":
                block: Any = module
                block.forward = self._noisy(block.linear)

    @contextmanager
    def of(self, lengths: Sequence[int], generators: Sequence[torch.Generator] = ()) -> Iterator[None]:
        """A context in which the batch holds items of these lengths.

        Args:
            lengths: lengths of the items, in any unit.
            generators: one random generator on the CPU for each item's noise; only the decoder needs them.
        """
        self._lengths, self._generators = list(lengths), list(generators)
        try:
            yield
        finally:
            self._lengths, self._generators = [], []

    def _here(self, time: int) -> list[int]:
        """The items' lengths in a layer where the longest item has `time` steps. The division leaves no remainder."""
        longest = max(self._lengths)
        return [length * time // longest for length in self._lengths]

    def _silence(self, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        (x,) = inputs
        zero_beyond(x, self._here(x.shape[-1]))

    def _noisy(self, linear: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def forward(x: Tensor) -> Tensor:
            time = x.shape[-1]
            noise = torch.zeros(len(x), 1, time)
            for row, length, generator in zip(noise, self._here(time), self._generators):
                row[0, :length] = torch.randn(length, generator=generator)
            return x + noise.to(x.device) * linear(x)

        return forward

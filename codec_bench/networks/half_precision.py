"""Layers whose weights may be in half precision, and norms that stay in float32 whatever comes in.

A network in half precision keeps the weights of its large products in float16 or bfloat16. Such a layer brings its
input to the type of its weights and gives a result of that type. Everything else stays in float32: the first
convolution, norms, softmaxes, statistics over time, recurrent layers, the last layer of a head, and the sum that runs
through the blocks of a transformer (a number in half precision added to one in float32 gives one in float32). With
weights in float32, these layers are those of torch. This module imports torch: import it inside functions.
"""

from __future__ import annotations

from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.precision import Precision

HALF: dict[str, torch.dtype] = {"float16-weights": torch.float16, "bfloat16-weights": torch.bfloat16}
Net = TypeVar("Net", bound=nn.Module)


class Reducible(nn.Module):
    """A layer that can keep its weights in half precision."""

    exact = False
    """Whether it stays in float32 in a network of half precision."""

    def reduce(self, dtype: torch.dtype) -> None:
        """Brings the weights to half precision."""
        self.to(dtype)


class Linear(Reducible, nn.Linear):
    """A linear layer."""

    def forward(self, x: Tensor) -> Tensor:
        """As torch's, in the type of the weights."""
        return F.linear(x.to(self.weight.dtype), self.weight, self.bias)


class Conv1d(Reducible, nn.Conv1d):
    """A convolution over time."""

    def forward(self, x: Tensor) -> Tensor:
        """As torch's, in the type of the weights."""
        return super().forward(x.to(self.weight.dtype))


class Conv2d(Reducible, nn.Conv2d):
    """A convolution over frequency and time."""

    def forward(self, x: Tensor) -> Tensor:
        """As torch's, in the type of the weights."""
        return super().forward(x.to(self.weight.dtype))


class LayerNorm(nn.LayerNorm):
    """A layer norm in float32."""

    def forward(self, x: Tensor) -> Tensor:
        """As torch's, of the input in float32."""
        return super().forward(x.float())


class BatchNorm1d(nn.BatchNorm1d):
    """A batch norm in float32."""

    def forward(self, x: Tensor) -> Tensor:
        """As torch's, of the input in float32."""
        return super().forward(x.float())


class BatchNorm2d(nn.BatchNorm2d):
    """A batch norm of planes in float32."""

    def forward(self, x: Tensor) -> Tensor:
        """As torch's, of the input in float32."""
        return super().forward(x.float())


def reduce_weights(net: Net, precision: Precision) -> Net:
    """Brings the weights of a network's reducible layers to half precision, if that is what is requested.

    Returns:
        The same network.
    """
    if precision in HALF:
        for module in net.modules():
            if isinstance(module, Reducible) and not module.exact:
                module.reduce(HALF[precision])
    return net

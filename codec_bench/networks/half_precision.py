"""Layers with weights in half precision, and norms that stay in float32.

A network in half precision keeps the weights of its large products in float16 or bfloat16. Such a layer casts its input
to the type of its weights and returns that type. All else stays in float32: the first convolution, norms, softmaxes,
statistics over time, recurrent layers, a head's last layer, and a transformer's residual sum. With float32 weights,
these layers are torch's.
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
        """Cast the weights to half precision."""
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
    """Cast a network's reducible layers to half precision in place, if requested."""
    if precision in HALF:
        for module in net.modules():
            if isinstance(module, Reducible) and not module.exact:
                module.reduce(HALF[precision])
    return net

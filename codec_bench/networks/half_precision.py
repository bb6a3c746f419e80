"""Layers with weights in half precision, and norms that stay in float32.

A network in half precision keeps the weights of its large products in float16 or bfloat16. Such a layer casts its input
to the type of its weights and returns that type. All else stays in float32: the first convolution, norms, softmaxes,
statistics over time, recurrent layers, a head's last layer, and a transformer's residual sum. With float32 weights,
these layers are torch's.
"""

from __future__ import annotations

from typing import TypeVar

import torch
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


class _WeightType(Reducible):
    weight: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Cast the input to the type of the weights."""
        result: Tensor = super().forward(x.to(self.weight.dtype))
        return result


class _Float32(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        """Cast the input to float32."""
        result: Tensor = super().forward(x.float())
        return result


class HalfLinear(_WeightType, nn.Linear):
    """A linear layer."""


class Conv1d(_WeightType, nn.Conv1d):
    """A convolution over time."""


class Conv2d(_WeightType, nn.Conv2d):
    """A convolution over frequency and time."""


class LayerNorm(_Float32, nn.LayerNorm):
    """A layer norm in float32."""


class BatchNorm1d(_Float32, nn.BatchNorm1d):
    """A batch norm in float32."""


class BatchNorm2d(_Float32, nn.BatchNorm2d):
    """A batch norm of planes in float32."""


def reduce_weights(net: Net, precision: Precision) -> Net:
    """Cast a network's reducible layers to half precision in place, if requested."""
    if precision in HALF:
        for module in net.modules():
            if isinstance(module, Reducible) and not module.exact:
                module.reduce(HALF[precision])
    return net

"""EfficientNetV2-S without its classifier, as a network over spectrograms.

Names of tensors are those of timm's `tf_efficientnetv2_s`, whose convolutions pad as TensorFlow does: the end gets the
odd sample.
Paper: M. Tan, Q. Le, "EfficientNetV2: Smaller Models and Faster Training", ICML 2021. Reference implementation: timm
1.0.31 (Apache-2.0), to 1e-5 of the largest number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

EPS = 1e-3
"""TensorFlow's, of the batch norms."""


@dataclass(frozen=True, slots=True)
class EfficientNetStage:
    """Blocks of one kind and width.

    Args:
        kind: `plain` (one convolution), `fused` (one that widens, and one that narrows), or `separable` (widened, each
            channel by itself, weighted by its mean, narrowed).
        stride: of the first block. expansion: by which a block widens. channels: of its result.
    """

    kind: Literal["plain", "fused", "separable"]
    repeats: int
    stride: int
    expansion: int
    channels: int


SMALL = (
    EfficientNetStage("plain", 2, 1, 1, 24),
    EfficientNetStage("fused", 4, 2, 4, 48),
    EfficientNetStage("fused", 4, 2, 4, 64),
    EfficientNetStage("separable", 6, 2, 4, 128),
    EfficientNetStage("separable", 9, 1, 6, 160),
    EfficientNetStage("separable", 15, 2, 6, 256),
)
FEATURES = 1280
"""Channels of the result."""


class _Conv(nn.Conv2d):
    """A convolution without bias, with one value per `stride` of the input."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve with TensorFlow's "same" padding, which is larger at the right end."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        down, across = (max((-(-size // stride) - 1) * stride + kernel - size, 0) for size in x.shape[2:])
        if down or across:
            x = F.pad(x, (across // 2, across - across // 2, down // 2, down - down // 2))
        return super().forward(x)


class _Norm(nn.BatchNorm2d):
    """A batch norm, followed by SiLU unless the block ends there."""

    def __init__(self, channels: int, *, ends: bool = False) -> None:
        super().__init__(channels, EPS)
        self._ends = ends

    def forward(self, x: Tensor) -> Tensor:
        x = super().forward(x)
        return x if self._ends else F.silu(x)


class _Weighing(nn.Module):
    """Squeeze and excitation: channels weighted by 0 to 1 from the means of all."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.conv_reduce, self.conv_expand = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        means = x.mean((2, 3), keepdim=True)
        return x * self.conv_expand(F.silu(self.conv_reduce(means))).sigmoid()


class _Block(nn.Module):
    """The base of blocks: the input is added to a result of the same shape."""

    def __init__(self, inputs: int, stage: EfficientNetStage, stride: int) -> None:
        super().__init__()
        self._adds = stride == 1 and inputs == stage.channels

    def _inner(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        y = self._inner(x)
        return y + x if self._adds else y


class _Plain(_Block):
    def __init__(self, inputs: int, stage: EfficientNetStage, stride: int) -> None:
        super().__init__(inputs, stage, stride)
        self.conv, self.bn1 = _Conv(inputs, stage.channels, 3, stride), _Norm(stage.channels)

    def _inner(self, x: Tensor) -> Tensor:
        y: Tensor = self.bn1(self.conv(x))
        return y


class _Fused(_Block):
    def __init__(self, inputs: int, stage: EfficientNetStage, stride: int) -> None:
        super().__init__(inputs, stage, stride)
        wide = inputs * stage.expansion
        self.conv_exp, self.bn1 = _Conv(inputs, wide, 3, stride), _Norm(wide)
        self.conv_pwl, self.bn2 = _Conv(wide, stage.channels), _Norm(stage.channels, ends=True)

    def _inner(self, x: Tensor) -> Tensor:
        y: Tensor = self.bn2(self.conv_pwl(self.bn1(self.conv_exp(x))))
        return y


class _Separable(_Block):
    def __init__(self, inputs: int, stage: EfficientNetStage, stride: int) -> None:
        super().__init__(inputs, stage, stride)
        wide = inputs * stage.expansion
        self.conv_pw, self.bn1 = _Conv(inputs, wide), _Norm(wide)
        self.conv_dw, self.bn2 = _Conv(wide, wide, 3, stride, groups=wide), _Norm(wide)
        self.se = _Weighing(wide, inputs // 4)
        self.conv_pwl, self.bn3 = _Conv(wide, stage.channels), _Norm(stage.channels, ends=True)

    def _inner(self, x: Tensor) -> Tensor:
        x = self.se(self.bn2(self.conv_dw(self.bn1(self.conv_pw(x)))))
        y: Tensor = self.bn3(self.conv_pwl(x))
        return y


_KINDS = {"plain": _Plain, "fused": _Fused, "separable": _Separable}


class EfficientNetV2(nn.Module):
    """The convolutions of EfficientNetV2."""

    def __init__(self, stages: tuple[EfficientNetStage, ...] = SMALL, features: int = FEATURES) -> None:
        super().__init__()
        channels = stages[0].channels
        self.conv_stem, self.bn1 = _Conv(3, channels, 3, 2), _Norm(channels)
        modules: list[nn.Module] = []
        for stage in stages:
            blocks: list[nn.Module] = []
            for index in range(stage.repeats):
                blocks.append(_KINDS[stage.kind](channels, stage, 1 if index else stage.stride))
                channels = stage.channels
            modules.append(nn.Sequential(*blocks))
        self.blocks = nn.Sequential(*modules)
        self.conv_head, self.bn2 = _Conv(channels, features), _Norm(features)

    def forward(self, images: Tensor) -> Tensor:
        """Map images `(images, 3, height, width)` to features at 1/32 of the size."""
        x: Tensor = self.bn2(self.conv_head(self.blocks(self.bn1(self.conv_stem(images)))))
        return x

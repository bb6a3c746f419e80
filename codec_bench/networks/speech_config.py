"""The architectures of speech encoders (wav2vec 2.0, HuBERT, WavLM)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Count = TypeVar("Count", int, "Tensor")


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """An encoder's architecture.

    Args:
        extractor: `group_norm` (one, after the first convolution) or `layer_norm` (one after each).
        width, layers, heads, feed_forward: sizes of the transformer.
        pre_norm: whether each block normalises its input and the last output is normalised too; else its output.
        conv_layers: `(channels, kernel, stride)` of each convolution of the extractor. conv_bias: whether they have a
            bias.
        conv_pos, conv_pos_groups: kernel in frames and groups of the positional convolution.
        relative_buckets, max_distance: of WavLM's gated relative position bias; 0 buckets if there is none.
    """

    extractor: Literal["group_norm", "layer_norm"]
    width: int
    layers: int
    heads: int
    feed_forward: int
    pre_norm: bool
    conv_layers: tuple[tuple[int, int, int], ...] = ((512, 10, 5), *((512, 3, 2),) * 4, *((512, 2, 2),) * 2)
    conv_bias: bool = False
    conv_pos: int = 128
    conv_pos_groups: int = 16
    relative_buckets: int = 0
    max_distance: int = 800

    @property
    def hop(self) -> int:
        """Samples from one frame to the next."""
        return math.prod(stride for _, _, stride in self.conv_layers)

    @property
    def receptive_field(self) -> int:
        """Samples of the first frame; a shorter signal has no frames."""
        field = 1
        for _, kernel, stride in reversed(self.conv_layers):
            field = (field - 1) * stride + kernel
        return field

    def frames(self, samples: Count) -> Count:
        """Count the frames of `samples` (number or tensor); 0 below the receptive field."""
        for _, kernel, stride in self.conv_layers:
            samples = (samples - kernel) // stride + 1
            samples = samples * (samples > 0)
        return samples


WAVLM_LARGE = EncoderConfig("layer_norm", 1024, 24, 16, 4096, pre_norm=True, relative_buckets=320)
WAVLM_BASE = EncoderConfig("group_norm", 768, 12, 12, 3072, pre_norm=False, relative_buckets=320)
WAV2VEC2_LARGE = EncoderConfig("layer_norm", 1024, 24, 16, 4096, pre_norm=True, conv_bias=True)
WAV2VEC2_LARGE_12 = EncoderConfig("layer_norm", 1024, 12, 16, 4096, pre_norm=True, conv_bias=True)
WAV2VEC2_BASE = EncoderConfig("group_norm", 768, 12, 12, 3072, pre_norm=False)
"""Also HuBERT-base. fairseq pads to an even number of frames, but masks and removes the added one."""

"""emotion2vec+: data2vec 2.0 and a classifier, exact in batches.

Masked are the five positional convolutions, attention, and the mean over time. Reference implementation: FunASR 1.4
`Emotion2vec` (MIT), whose parameter names these are; none of its code is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.grouped_convolution import GroupedConv
from codec_bench.networks.half_precision import HalfLinear, LayerNorm
from codec_bench.networks.ragged import each, inside, on_device, uploaded
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_encoder import standardised
from codec_bench.networks.speech_extractor import ConvExtractor
from codec_bench.networks.speech_transformer import BIAS_ENTRIES

WAVE_EPS = 1e-5
FRAMES_MULTIPLE = 8


@dataclass(frozen=True, slots=True)
class Emotion2vecConfig:
    """The architecture.

    Args:
        width, heads, feed_forward: sizes of a block. before, after: blocks in the transformer's two parts.
        convs: `(channels, kernel, stride)` of each convolution of the extractor.
        positions, kernel, groups: number, length in frames and groups of the positional convolutions.
        extra: learnt vectors in front of the frames. emotions: of the classifier.
    """

    width: int = 1024
    heads: int = 16
    feed_forward: int = 4096
    before: int = 4
    after: int = 8
    convs: tuple[tuple[int, int, int], ...] = ((512, 10, 5), *((512, 3, 2),) * 4, *((512, 2, 2),) * 2)
    positions: int = 5
    kernel: int = 19
    groups: int = 16
    extra: int = 10
    emotions: int = 9

    @property
    def extractor(self) -> EncoderConfig:
        """The convolutions in front of the transformer."""
        return EncoderConfig(
            "layer_norm", self.width, self.before + self.after, self.heads, self.feed_forward, False, self.convs
        )


class DistanceBias:
    """Attention bias by distance, and minus infinity beyond an item's end.

    The learnt vectors in front have no distance from anything.

    Args:
        counts: own frames of each item, `(batch,)`. extra: learnt vectors in front. slopes: of each head, `(heads,)`.
    """

    def __init__(self, counts: Tensor, frames: int, extra: int, slopes: Tensor) -> None:
        length = extra + frames
        padding = torch.arange(length, device=counts.device) >= extra + counts[:, None]
        self._mask = torch.zeros(padding.shape, device=counts.device).masked_fill_(padding, -torch.inf)[:, None, None]
        self._slopes, self._extra = slopes[:, None, None], extra
        self._position = torch.arange(-extra, frames, device=counts.device)
        block = max(1, BIAS_ENTRIES // (len(counts) * len(slopes) * length))
        self.blocks = [slice(start, min(start + block, length)) for start in range(0, length, block)]
        self._cached: Tensor | None = None

    def rows(self, rows: slice, dtype: torch.dtype) -> Tensor:
        """Return the bias of these querying frames, `(batch, heads, rows, length)`."""
        if len(self.blocks) == 1:  # the same for every block of the transformer
            self._cached = self._compute(rows).to(dtype) if self._cached is None else self._cached
            return self._cached
        return self._compute(rows).to(dtype)

    def _compute(self, rows: slice) -> Tensor:
        here = self._position[rows, None]
        distance = (here - self._position).abs() * (here >= 0) * (self._position >= 0)
        return self._mask - self._slopes * distance


class Emotion2VecAttention(nn.Module):
    """Self-attention with one projection for queries, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = HalfLinear(width, 3 * width), HalfLinear(width, width)

    def forward(self, x: Tensor, bias: DistanceBias) -> Tensor:
        """Map `(batch, length, width)` to the same shape."""
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        parts = [
            F.scaled_dot_product_attention(q[:, :, rows], k, v, attn_mask=bias.rows(rows, q.dtype))
            for rows in bias.blocks
        ]
        return self.proj(torch.cat(parts, 2).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A block of the transformer, which normalises its output."""

    def __init__(self, config: Emotion2vecConfig) -> None:
        super().__init__()
        self.norm1, self.norm2 = LayerNorm(config.width), LayerNorm(config.width)
        self.attn = Emotion2VecAttention(config.width, config.heads)
        self.mlp = nn.ModuleDict(
            {"fc1": HalfLinear(config.width, config.feed_forward), "fc2": HalfLinear(config.feed_forward, config.width)}
        )

    def forward(self, x: Tensor, bias: DistanceBias) -> Tensor:
        """Map `(batch, length, width)` to the same shape."""
        x = self.norm1(x + self.attn(x, bias))
        return self.norm2(x + self.mlp["fc2"](F.gelu(self.mlp["fc1"](x))))


class AudioEncoder(nn.Module):
    """Waves to the frames of the transformer's second part."""

    slopes: Tensor

    def __init__(self, config: Emotion2vecConfig) -> None:
        super().__init__()
        self.config = config
        self.extra_tokens = nn.Parameter(torch.zeros(1, config.extra, config.width))
        self.alibi_scale = nn.Parameter(torch.ones(1, 1, config.heads, 1, 1))
        self.register_buffer("slopes", head_slopes(config.heads), persistent=False)
        self.local_encoder = ConvExtractor(config.extractor)
        channels = config.convs[-1][0]
        self.project_features = nn.ModuleDict({"1": LayerNorm(channels), "2": HalfLinear(channels, config.width)})
        self.relative_positional_encoder = nn.ModuleDict(
            {str(index): nn.ModuleDict({"0": self._positional()}) for index in range(1, config.positions + 1)}
        )
        blocks = nn.ModuleList(Block(config) for _ in range(config.before))
        self.context_encoder = nn.ModuleDict({"blocks": blocks, "norm": LayerNorm(config.width)})

    def _positional(self) -> GroupedConv:
        return GroupedConv(self.config.width, self.config.kernel, self.config.groups)

    def forward(self, waves: Tensor, lengths: Sequence[int], counts: Sequence[int]) -> tuple[Tensor, DistanceBias]:
        """Encode waves to learnt vectors and frames, `(batch, extra + frames, width)`.

        Args:
            waves: `(batch, samples)`, a multiple of the hop. lengths, counts: own samples and frames of each.

        Returns:
            The vectors with frames, and the attention bias for the blocks that follow.
        """
        x = self.project_features["2"](self.project_features["1"](self.local_encoder(waves, lengths))).float()
        mask = inside(counts, x.shape[1], x.device)[..., None]
        x = x.masked_fill(~mask, 0.0)
        x = self._extended(x + self._positions(x, mask))
        slopes = self.alibi_scale.flatten().clamp(min=0) * self.slopes
        bias = DistanceBias(on_device(counts, x.device), mask.shape[1], self.config.extra, slopes)
        x = self.context_encoder["norm"](x)
        for block in self.context_encoder.get_submodule("blocks").children():
            x = block(x, bias)
        return x, bias

    def _positions(self, x: Tensor, mask: Tensor) -> Tensor:
        """Run the positional convolutions over frames, with zeros on the padding."""
        for layer in self.relative_positional_encoder.values():
            assert isinstance(layer, nn.ModuleDict)
            x = layer["0"](x).float()
            x = F.gelu(F.layer_norm(x, x.shape[-1:])).masked_fill(~mask, 0.0)
        return x

    def _extended(self, x: Tensor) -> Tensor:
        return torch.cat([self.extra_tokens.expand(len(x), -1, -1), x], dim=1)


class Emotion2vecNet(nn.Module):
    """The whole network."""

    def __init__(self, config: Emotion2vecConfig) -> None:
        super().__init__()
        self.config = config
        encoder = nn.ModuleDict({"AUDIO": AudioEncoder(config)})
        blocks = nn.ModuleList(Block(config) for _ in range(config.after))
        self.d2v_model = nn.ModuleDict({"modality_encoders": encoder, "blocks": blocks})
        self.proj = nn.Linear(config.width, config.emotions)

    @property
    def step(self) -> int:
        """The unit in samples of a padded batch's length."""
        return self.config.extractor.hop * FRAMES_MULTIPLE

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Compute mean frame and emotions' probabilities, `(batch, width + emotions)`.

        Args:
            waves: float32 `(batch, samples)` at 16 kHz. lengths: samples of each item, at least the extractor's field.
        """
        lengths = uploaded(lengths, waves.device)
        samples = -(-max(lengths) // self.step) * self.step
        waves = waves[:, :samples] if waves.shape[1] >= samples else F.pad(waves, (0, samples - waves.shape[1]))
        counts = each(lengths, self.config.extractor.frames)
        encoder = self.d2v_model.get_submodule("modality_encoders.AUDIO")
        x, bias = encoder(standardised(waves, lengths, WAVE_EPS), lengths, counts)
        for block in self.d2v_model.get_submodule("blocks").children():
            x = block(x, bias)
        frames = x[:, self.config.extra :].float()
        mask = inside(counts, frames.shape[1], waves.device)[..., None]
        mean = frames.masked_fill(~mask, 0.0).sum(1) / on_device(counts, waves.device)[:, None]
        return torch.cat([mean, self.proj(mean).softmax(1)], dim=1)


def head_slopes(heads: int) -> Tensor:
    """Return ALiBi's slopes `(heads,)`: the fall of each head's attention per frame.

    They are powers of two. If the number of heads is not a power of two, every second slope of the next larger set
    follows.
    """
    power = 1 << int(math.log2(heads))
    slopes = [2.0 ** (-8.0 * (index + 1) / power) for index in range(power)]
    slopes += [2.0 ** (-4.0 * (index + 1) / power) for index in range(0, 2 * (heads - power), 2)]
    return torch.tensor(slopes)

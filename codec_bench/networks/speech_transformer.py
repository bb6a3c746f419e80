"""The transformer of a speech encoder: positions, masked attention and blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.kernels.gated_attention import attend, fuses
from codec_bench.networks.grouped_convolution import GroupedConv
from codec_bench.networks.half_precision import HalfLinear, LayerNorm, Reducible
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_extractor import Folding

BIAS_ENTRIES = 1 << 28
"""Entries of the attention bias at a time (1 GiB in float32): bounds the memory of long signals."""


class PositionalConv(GroupedConv):
    """The weight-normalised convolution of positions, "same" padding."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config.width, config.conv_pos, config.conv_pos_groups)
        self.weight_g = nn.Parameter(torch.ones(1, 1, config.conv_pos))
        self.weight_v = self.weight
        del self.weight
        self._dtype = torch.float32
        nn.init.normal_(self.weight_v, std=math.sqrt(4 / (config.conv_pos * config.width)))

    def reduce(self, dtype: torch.dtype) -> None:
        """Keep float32: the weights are made in float32 and rounded once."""
        self._dtype, self._folded = dtype, None

    def taps(self) -> tuple[Tensor, Tensor]:
        """Return the weights, with weight normalisation per tap applied, and the bias."""
        lengths = torch.linalg.vector_norm(self.weight_v, dim=(0, 1), keepdim=True)
        weight = self.weight_v * (self.weight_g / lengths)
        return weight.to(self._dtype), self.bias.to(self._dtype)

    def forward(self, frames: Tensor) -> Tensor:
        """Map `(batch, frames, width)`, zero beyond each item's end, to the same shape."""
        return F.gelu(super().forward(frames))


class Attention(Folding, Reducible):
    """Self-attention, with WavLM's gated position bias if configured.

    Args:
        holds_bias: whether this layer holds the table of biases, as the first does for all.
    """

    def __init__(self, config: EncoderConfig, holds_bias: bool) -> None:
        super().__init__()
        self.heads, width = config.heads, config.width
        self.k_proj, self.v_proj = HalfLinear(width, width), HalfLinear(width, width)
        self.q_proj, self.out_proj = HalfLinear(width, width), HalfLinear(width, width)
        self.relative = config.relative_buckets > 0
        if self.relative:
            self.grep_linear = nn.Linear(width // self.heads, 8)
            self.grep_a = nn.Parameter(torch.ones(1, self.heads, 1, 1))
            if holds_bias:
                self.relative_attention_bias = nn.Embedding(config.relative_buckets, self.heads)

    def reduce(self, dtype: torch.dtype) -> None:
        """Skip: projections are cast themselves, gates stay in float32."""
        self._folded = None

    def fold(self) -> tuple[Tensor, ...]:
        """Join the weights and biases of queries, keys and values.

        The layers' parameters become views. With a position bias, weights and offsets of its two gates follow, each the
        sum of four outputs of `grep_linear`.
        """
        parts = (self.q_proj, self.k_proj, self.v_proj)
        weight, bias = (torch.cat([getattr(projection, name) for projection in parts]) for name in ("weight", "bias"))
        for projection, own_weight, own_bias in zip(parts, weight.chunk(3), bias.chunk(3), strict=True):
            projection.weight, projection.bias = nn.Parameter(own_weight, False), nn.Parameter(own_bias, False)
        if not self.relative:
            return weight, bias
        gates = self.grep_linear
        return weight, bias, gates.weight.view(2, 4, -1).sum(1), gates.bias.view(2, 4).sum(1)

    def forward(self, frames: Tensor, bias: AttentionBias) -> Tensor:
        """Map `(batch, frames, width)` to the same shape."""
        weight, offset, *gates = self.folded()
        projected = F.linear(frames.to(weight.dtype), weight, offset)
        q, k, v = projected.unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        gate = self._gate(frames, *gates) if self.relative else None
        if gate is not None and bias.by_distance is not None and fuses(q):
            out = attend(q, k, v, gate, bias.by_distance, bias.counts)
        else:
            out = bias.attended(q, k, v, gate)
        return self.out_proj(out.transpose(1, 2).flatten(2))

    def _gate(self, frames: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
        """Return the factors of the position bias by frame, `(batch, heads, frames, 1)`."""
        gates = torch.sigmoid(F.linear(frames.unflatten(-1, (self.heads, -1)), weight, offset)).transpose(1, 2)
        update, reset = gates.chunk(2, dim=-1)
        return update * (reset * self.grep_a - 1.0) + 2.0


class AttentionBias:
    """The attention bias: by position, and minus infinity beyond an item's end.

    Args:
        counts: valid frames of each item, `(batch,)`. length: frames of the batch.
        by_distance: position bias from distance -(length - 1) to length - 1, `(heads, 2 * length - 1)`, or None.
    """

    def __init__(self, counts: Tensor, length: int, heads: int, by_distance: Tensor | None) -> None:
        padding = torch.arange(length, device=counts.device) >= counts[:, None]
        self._mask = torch.zeros(padding.shape, device=counts.device).masked_fill_(padding, -torch.inf)[:, None, None]
        self.counts, self.by_distance, self._length = counts, by_distance, length
        per_row = len(counts) * heads * length if by_distance is not None else 1
        block = max(1, BIAS_ENTRIES // per_row)
        self.blocks = [slice(start, min(start + block, length)) for start in range(0, length, block)]
        self._masks: dict[torch.dtype, Tensor] = {}
        self._by_dtype: dict[torch.dtype, Tensor] = {}

    def attended(self, q: Tensor, k: Tensor, v: Tensor, gate: Tensor | None) -> Tensor:
        """Run attention with this bias on `(batch, heads, length, width of a head)`.

        Args:
            gate: each frame's factor of the position bias, or None without one.
        """
        gate = None if gate is None else gate.to(q.dtype)
        parts = [
            F.scaled_dot_product_attention(q[:, :, rows], k, v, attn_mask=self.rows(rows, gate, q.dtype))
            for rows in self.blocks
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 2)

    def rows(self, rows: slice, gate: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Return some query frames' bias, broadcastable to `(batch, heads, rows, length)`."""
        if dtype not in self._masks:
            self._masks[dtype] = self._mask.to(dtype)
        if gate is None:
            return self._masks[dtype]
        return torch.addcmul(self._masks[dtype], gate[:, :, rows], self._positions(rows, dtype))

    def _positions(self, rows: slice, dtype: torch.dtype) -> Tensor:
        """Return the position bias of some query frames, `(heads, rows, length)`, ungated."""
        if dtype in self._by_dtype:
            return self._by_dtype[dtype][:, rows]
        last = self._length - 1
        # Row i holds distances -i to length - 1 - i: windows of the table, from its last to its first.
        assert self.by_distance is not None, "only an attention with a position bias gates it"
        windows = self.by_distance.to(dtype).unfold(1, self._length, 1)
        if windows.numel() <= BIAS_ENTRIES:  # the same for every layer and item
            self._by_dtype[dtype] = windows.flip(1)
            return self._by_dtype[dtype][:, rows]
        return windows[:, last - rows.stop + 1 : last - rows.start + 1].flip(1)


class EncoderLayer(nn.Module):
    """A block of the transformer."""

    def __init__(self, config: EncoderConfig, holds_bias: bool) -> None:
        super().__init__()
        self.pre_norm = config.pre_norm
        self.self_attn = Attention(config, holds_bias)
        self.self_attn_layer_norm = LayerNorm(config.width)
        self.fc1 = HalfLinear(config.width, config.feed_forward)
        self.fc2 = HalfLinear(config.feed_forward, config.width)
        self.final_layer_norm = LayerNorm(config.width)

    def forward(self, frames: Tensor, bias: AttentionBias) -> Tensor:
        """Map `(batch, frames, width)` to the same shape."""
        if self.pre_norm:
            frames = frames + self.self_attn(self.self_attn_layer_norm(frames), bias)
            return frames + self.fc2(F.gelu(self.fc1(self.final_layer_norm(frames))))
        frames = self.self_attn_layer_norm(frames + self.self_attn(frames, bias))
        return self.final_layer_norm(frames + self.fc2(F.gelu(self.fc1(frames))))


class Transformer(Folding):
    """The positional convolution and the blocks."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.pos_conv = nn.Sequential(PositionalConv(config))
        self.layers = nn.ModuleList(EncoderLayer(config, holds_bias=index == 0) for index in range(config.layers))
        self.layer_norm = LayerNorm(config.width)

    def hidden_states(self, frames: Tensor, counts: Tensor) -> Iterator[Tensor]:
        """Yield each block's input, then the last output, `(batch, frames, width)`.

        Args:
            counts: frames of each item.
        """
        length = frames.shape[1]
        padding = torch.arange(length, device=frames.device) >= counts[:, None]
        frames = frames.masked_fill(padding[..., None], 0.0)
        frames = frames + self.pos_conv(frames)
        if not self.config.pre_norm:
            frames = self.layer_norm(frames)
        bias = AttentionBias(counts, length, self.config.heads, self._by_distance(length))
        for layer in self.layers:
            yield frames
            frames = layer(frames, bias)
        yield self.layer_norm(frames) if self.config.pre_norm else frames

    def _by_distance(self, length: int) -> Tensor | None:
        """Return the position bias by distance, `(heads, 2 * length - 1)`, or None.

        Distances are from `1 - length` to `length - 1`.
        """
        if not self.config.relative_buckets:
            return None
        table, most = self.folded(), self.config.max_distance
        if length <= most + 1:
            return table[:, most + 1 - length : most + length]
        return F.pad(table[None], (length - 1 - most, length - 1 - most), mode="replicate")[0]

    def fold(self) -> Tensor:
        """Return the position bias by distance up to `max_distance`, then constant."""
        first: Any = self.layers[0]
        table = first.self_attn.relative_attention_bias.weight
        buckets = distance_buckets(self.config.max_distance + 1, self.config.relative_buckets, self.config.max_distance)
        return table[buckets.to(table.device)].T.contiguous()


def distance_buckets(length: int, buckets: int, max_distance: int) -> Tensor:
    """Return the bucket of each distance from `1 - length` to `length - 1`, int64.

    Half of the buckets are for later frames. In each half, the first half holds one distance each, the following ones
    grow logarithmically up to the largest distance, and the last one holds all larger distances.
    """
    distance = torch.arange(1 - length, length)
    half = buckets // 2
    exact = half // 2
    away = distance.abs()
    wide = (
        exact + (torch.log(away.clamp(min=1).float() / exact) / math.log(max_distance / exact) * (half - exact)).long()
    )
    near = torch.where(away < exact, away, wide.clamp(max=half - 1))
    return near + half * (distance > 0)

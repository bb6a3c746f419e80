"""Self-supervised speech encoders (wav2vec 2.0, HuBERT, WavLM) over padded batches, exact for every item.

A stack of strided convolutions turns a 16 kHz wave into one vector every 20 ms. A wide convolution adds positions, and
a transformer follows. In a padded batch, three of its operations would read beyond the end of an item. They are masked
here: the statistics of the group norm, the positional convolution, and attention.

Parameters have the names of fairseq and s3prl, so that published checkpoints load as they are.

Papers: A. Baevski et al., "wav2vec 2.0", NeurIPS 2020; W.-N. Hsu et al., "HuBERT", TASLP 2021; S. Chen et al., "WavLM",
JSTSP 2022. Reference implementations: s3prl 0.4.18 (WavLM, wav2vec 2.0) and transformers, each item alone, to 1e-5.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FRAMES_MULTIPLE = 8
"""Batches are padded to a multiple of this many frames, which fused attention needs for its bias."""
BIAS_ENTRIES = 1 << 28
"""Entries of the attention bias at a time (1 GiB in float32): bounds the memory of long signals."""


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """An encoder's architecture.

    Args:
        extractor: `group_norm` (one group norm, after the first convolution) or `layer_norm` (one after each).
        width, layers, heads, feed_forward: sizes of the transformer.
        pre_norm: whether each block normalises its input, and the last output is normalised too; else each block
            normalises its output.
        conv_layers: `(channels, kernel, stride)` of each convolution of the extractor.
        conv_bias: whether these convolutions have a bias.
        conv_pos, conv_pos_groups: kernel in frames and groups of the positional convolution.
        relative_buckets, max_distance: settings of WavLM's gated relative position bias; 0 buckets if there is none.
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
        """Samples that the first frame needs; a shorter signal has no frames."""
        field = 1
        for _, kernel, stride in reversed(self.conv_layers):
            field = (field - 1) * stride + kernel
        return field

    def frames(self, samples: int) -> int:
        """Number of frames of a signal with this many samples; 0 below the receptive field."""
        for _, kernel, stride in self.conv_layers:
            samples = (samples - kernel) // stride + 1 if samples >= kernel else 0
        return samples

    def flops(self, samples: int) -> float:
        """Floating-point operations of one pass over one signal: matrix products only, two for each multiply-add."""
        total, length, channels = 0.0, samples, 1
        for out, kernel, stride in self.conv_layers:
            length = (length - kernel) // stride + 1
            total += 2.0 * length * out * channels * kernel
            channels = out
        total += 2.0 * length * channels * self.width
        total += 2.0 * length * self.width * (self.width // self.conv_pos_groups) * self.conv_pos
        dense = 4 * self.width**2 + 2 * self.width * self.feed_forward
        return total + self.layers * (2.0 * length * dense + 4.0 * length * length * self.width)


WAVLM_LARGE = EncoderConfig("layer_norm", 1024, 24, 16, 4096, pre_norm=True, relative_buckets=320)
WAVLM_BASE = EncoderConfig("group_norm", 768, 12, 12, 3072, pre_norm=False, relative_buckets=320)
WAV2VEC2_BASE = EncoderConfig("group_norm", 768, 12, 12, 3072, pre_norm=False)
"""Also HuBERT-base. fairseq pads its input to an even number of frames, masks the added frame in attention and removes
it again. It has no effect, so it is not added here."""


class Folding(nn.Module):
    """A module that uses tensors derived from its parameters. They are computed once after loading or moving."""

    _folded: Any = None

    def folded(self) -> Any:
        """The derived tensors."""
        if self._folded is None:
            # Tensors made in inference mode could not be used outside of it.
            with torch.inference_mode(False), torch.no_grad():
                self._folded = self.fold()
        return self._folded

    def fold(self) -> Any:
        """Computes the derived tensors."""
        raise NotImplementedError

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self._folded = None
        return super()._apply(*args, **kwargs)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._folded = None
        super()._load_from_state_dict(*args, **kwargs)


class StridedConv(Folding):
    """A convolution over `(frames, channels)` as matrix products without a copy of the input.

    With stride s, the s taps of a step are s consecutive rows. In the same memory they are one row that is s times as
    wide. So a kernel of k taps takes ceil(k / s) products, each shifted by one such row.

    Args:
        inputs, outputs: channels. kernel, stride: in frames. bias: whether the convolution has a bias.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, bias: bool) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride
        self.weight = nn.Parameter(torch.empty(outputs, inputs, kernel))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None
        nn.init.kaiming_normal_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def fold(self) -> list[Tensor]:
        """The weights of each product, `(taps * inputs, outputs)`."""
        taps = self.weight.permute(2, 1, 0)
        return [part.flatten(0, 1).contiguous() for part in taps.split(self.stride)]

    def forward(self, rows: Tensor) -> Tensor:
        """From rows of all items, `(batch * frames, inputs)`, to `(batch * frames / stride, outputs)`.

        The number of frames is a multiple of the stride. The taps of an item's last rows reach into the next item, but
        these rows lie beyond the item's valid frames and are not used.
        """
        device = rows.device.type
        if torch.is_autocast_enabled(device):  # autocast does not apply to in-place products
            rows = rows.to(torch.get_autocast_dtype(device))
        wide = rows.view(rows.shape[0] // self.stride, -1)
        first, *rest = (weight.to(rows.dtype) for weight in self.folded())
        if self.bias is None:
            out = wide[:, : first.shape[0]] @ first
        else:
            out = torch.addmm(self.bias.to(rows.dtype), wide[:, : first.shape[0]], first)
        for shift, weight in enumerate(rest, 1):
            out[:-shift].addmm_(wide[shift:, : weight.shape[0]], weight)
        return out


class ConvExtractor(nn.Module):
    """The strided convolutions: one vector per frame of a wave. A group norm uses only an item's own frames.

    Args:
        config: the architecture.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.conv_layers = nn.ModuleList()
        inputs = 1
        for place, (outputs, kernel, stride) in enumerate(config.conv_layers):
            layer = nn.ModuleDict({"0": StridedConv(inputs, outputs, kernel, stride, config.conv_bias)})
            if config.extractor == "layer_norm":
                layer["2"] = nn.ModuleDict({"1": nn.LayerNorm(outputs)})
            elif place == 0:
                layer["2"] = nn.GroupNorm(outputs, outputs)
            self.conv_layers.append(layer)
            inputs = outputs

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """From waves `(batch, samples)`, samples being a multiple of the hop, to `(batch, samples / hop, channels)`."""
        layers: list[Any] = list(self.conv_layers)
        first, *rest = layers
        rows = F.gelu(self._first(first, waves, lengths).flatten(0, 1))
        for layer in rest:
            rows = layer["0"](rows)
            if "2" in layer:
                rows = layer["2"]["1"](rows)
            rows = F.gelu(rows)
        return rows.view(waves.shape[0], -1, rows.shape[-1])

    def _first(self, layer: Any, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """The first convolution and its norm, `(batch, frames, channels)`, always in float32."""
        conv = layer["0"]
        with torch.autocast(waves.device.type, enabled=False):
            overhang = max(0, conv.kernel - conv.stride)
            taps = F.pad(waves.float(), (0, overhang)).unfold(1, conv.kernel, conv.stride)
            weight = conv.weight[:, 0]
            if self.config.extractor == "group_norm":
                scale, shift = self._group_norm(layer["2"], taps, weight, lengths)
                return torch.baddbmm(shift[:, None], taps, (weight * scale[..., None]).transpose(1, 2))
            out = taps @ weight.T if conv.bias is None else F.linear(taps, weight, conv.bias)
            return layer["2"]["1"](out)

    def _group_norm(
        self, norm: nn.GroupNorm, taps: Tensor, weight: Tensor, lengths: Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        """The group norm of the first convolution as a scale of its weights and a shift, each `(batch, channels)`.

        A channel is a linear function of the taps, so its mean and variance over an item follow from the mean and the
        covariance of the item's taps. These few hundred numbers in float64 replace three passes over the widest tensor
        of the network. A bias of the convolution cancels.
        """
        _, kernel, stride = self.config.conv_layers[0]
        counts = torch.tensor([(n - kernel) // stride + 1 if n >= kernel else 1 for n in lengths])
        counts = counts.to(taps.device, non_blocking=True)[:, None, None]
        valid = torch.arange(taps.shape[1], device=taps.device)[None, :, None] < counts
        exact = torch.where(valid, taps.double(), 0.0)
        mean = exact.sum(1, keepdim=True) / counts
        centred = torch.where(valid, exact - mean, 0.0)
        covariance = centred.transpose(1, 2) @ centred / counts
        wide = weight.double()
        variance = ((wide @ covariance) * wide).sum(-1).clamp(min=0.0)
        scale = norm.weight / (variance + norm.eps).sqrt()
        shift = norm.bias - (mean @ wide.T)[:, 0] * scale
        return scale.float(), shift.float()


class PositionalConv(Folding):
    """The weight-normalised grouped convolution that encodes positions, with "same" padding.

    Args:
        config: the architecture.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.groups = config.conv_pos_groups
        self.weight_g = nn.Parameter(torch.ones(1, 1, config.conv_pos))
        self.weight_v = nn.Parameter(torch.empty(config.width, config.width // self.groups, config.conv_pos))
        self.bias = nn.Parameter(torch.zeros(config.width))
        nn.init.normal_(self.weight_v, std=math.sqrt(4 / (config.conv_pos * config.width)))

    def fold(self) -> Tensor:
        """The weights, made from a direction and a length per tap."""
        lengths = torch.linalg.vector_norm(self.weight_v, dim=(0, 1), keepdim=True)
        return self.weight_v * (self.weight_g / lengths)

    def forward(self, frames: Tensor) -> Tensor:
        """`(batch, frames, width)`, zero beyond each item's end, to the same shape."""
        weight = self.folded()
        kernel = weight.shape[-1]
        out = F.conv1d(frames.transpose(1, 2), weight, self.bias, padding=kernel // 2, groups=self.groups)
        return F.gelu(out[..., : frames.shape[1]]).transpose(1, 2)


class Attention(Folding):
    """Self-attention. WavLM's position bias, if there is one, depends on distance and head and has a gate per frame.

    Args:
        config: the architecture.
        holds_bias: whether this layer holds the table of biases. The first layer does, and all layers share it.
    """

    def __init__(self, config: EncoderConfig, holds_bias: bool) -> None:
        super().__init__()
        self.heads, width = config.heads, config.width
        self.k_proj, self.v_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.q_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.relative = config.relative_buckets > 0
        if self.relative:
            self.grep_linear = nn.Linear(width // self.heads, 8)
            self.grep_a = nn.Parameter(torch.ones(1, self.heads, 1, 1))
            if holds_bias:
                self.relative_attention_bias = nn.Embedding(config.relative_buckets, self.heads)

    def fold(self) -> tuple[Tensor, Tensor]:
        """The weights and biases of the two gates, each of which is the sum of four outputs of `grep_linear`."""
        weight, bias = self.grep_linear.weight, self.grep_linear.bias
        return weight.view(2, 4, -1).sum(1), bias.view(2, 4).sum(1)

    def forward(self, frames: Tensor, bias: AttentionBias) -> Tensor:
        """`(batch, frames, width)` to the same shape."""
        batch, length, width = frames.shape
        q, k, v = (
            project(frames).view(batch, length, self.heads, -1).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        gate = self._gate(frames).to(q.dtype) if self.relative else None
        parts = [
            F.scaled_dot_product_attention(q[:, :, rows], k, v, attn_mask=bias.rows(rows, gate, q.dtype))
            for rows in bias.blocks
        ]
        out = parts[0] if len(parts) == 1 else torch.cat(parts, 2)
        return self.out_proj(out.transpose(1, 2).reshape(batch, length, width))

    def _gate(self, frames: Tensor) -> Tensor:
        """The factors by which each frame multiplies the position bias, `(batch, heads, frames, 1)`."""
        weight, offset = self.folded()
        gates = torch.sigmoid(F.linear(frames.unflatten(-1, (self.heads, -1)), weight, offset)).transpose(1, 2)
        update, reset = gates.chunk(2, dim=-1)
        return update * (reset * self.grep_a - 1.0) + 2.0


class AttentionBias:
    """What is added to the attention scores: the position bias, and minus infinity for frames beyond an item's end.

    Args:
        counts: valid frames of each item, `(batch,)`. length: frames of the batch. heads: number of heads.
        by_distance: position bias from distance -(length - 1) to length - 1, `(heads, 2 * length - 1)`, or None.
    """

    def __init__(self, counts: Tensor, length: int, heads: int, by_distance: Tensor | None) -> None:
        beyond = torch.arange(length, device=counts.device) >= counts[:, None]
        self._mask = torch.zeros(beyond.shape, device=counts.device).masked_fill_(beyond, -torch.inf)[:, None, None]
        self._by_distance, self._length = by_distance, length
        per_row = len(counts) * heads * length if by_distance is not None else 1
        block = max(1, BIAS_ENTRIES // per_row)
        self.blocks = [slice(start, min(start + block, length)) for start in range(0, length, block)]
        self._kept: dict[torch.dtype, Tensor] = {}

    def rows(self, rows: slice, gate: Tensor | None, dtype: torch.dtype) -> Tensor:
        """The bias of these querying frames, broadcastable to `(batch, heads, rows, length)`."""
        mask = self._mask.to(dtype)
        if gate is None:
            return mask
        return torch.addcmul(mask, gate[:, :, rows], self._positions(rows, dtype))

    def _positions(self, rows: slice, dtype: torch.dtype) -> Tensor:
        """The position bias of these querying frames before the gate, `(heads, rows, length)`."""
        if dtype in self._kept:
            return self._kept[dtype]
        last = self._length - 1
        # Row i holds distances -i to length - 1 - i, so the rows are windows of the table, from its last to its first.
        assert self._by_distance is not None, "only an attention with a position bias gates it"
        windows = self._by_distance.to(dtype).unfold(1, self._length, 1)
        positions = windows[:, last - rows.stop + 1 : last - rows.start + 1].flip(1)
        if len(self.blocks) == 1:  # the same for every layer
            self._kept[dtype] = positions
        return positions


class EncoderLayer(nn.Module):
    """A block of the transformer.

    Args:
        config: the architecture. holds_bias: whether the table of position biases is in this layer.
    """

    def __init__(self, config: EncoderConfig, holds_bias: bool) -> None:
        super().__init__()
        self.pre_norm = config.pre_norm
        self.self_attn = Attention(config, holds_bias)
        self.self_attn_layer_norm = nn.LayerNorm(config.width)
        self.fc1 = nn.Linear(config.width, config.feed_forward)
        self.fc2 = nn.Linear(config.feed_forward, config.width)
        self.final_layer_norm = nn.LayerNorm(config.width)

    def forward(self, frames: Tensor, bias: AttentionBias) -> Tensor:
        """`(batch, frames, width)` to the same shape."""
        if self.pre_norm:
            frames = frames + self.self_attn(self.self_attn_layer_norm(frames), bias)
            return frames + self.fc2(F.gelu(self.fc1(self.final_layer_norm(frames))))
        frames = self.self_attn_layer_norm(frames + self.self_attn(frames, bias))
        return self.final_layer_norm(frames + self.fc2(F.gelu(self.fc1(frames))))


class Transformer(nn.Module):
    """The positional convolution and the blocks.

    Args:
        config: the architecture.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.pos_conv = nn.Sequential(PositionalConv(config))
        self.layers = nn.ModuleList(EncoderLayer(config, holds_bias=place == 0) for place in range(config.layers))
        self.layer_norm = nn.LayerNorm(config.width)

    def hidden_states(self, frames: Tensor, counts: Tensor) -> Iterator[Tensor]:
        """The input of each block, then the output of the last one, each `(batch, frames, width)`."""
        length = frames.shape[1]
        beyond = torch.arange(length, device=frames.device) >= counts[:, None]
        frames = frames.masked_fill(beyond[..., None], 0.0)
        frames = frames + self.pos_conv(frames)
        if not self.config.pre_norm:
            frames = self.layer_norm(frames)
        bias = AttentionBias(counts, length, self.config.heads, self._by_distance(length))
        for layer in self.layers:
            yield frames
            frames = layer(frames, bias)
        yield self.layer_norm(frames) if self.config.pre_norm else frames

    def _by_distance(self, length: int) -> Tensor | None:
        """The position bias from distance -(length - 1) to length - 1, `(heads, 2 * length - 1)`."""
        if not self.config.relative_buckets:
            return None
        first: Any = self.layers[0]
        table = first.self_attn.relative_attention_bias.weight
        buckets = distance_buckets(length, self.config.relative_buckets, self.config.max_distance)
        return table[buckets.to(table.device, non_blocking=True)].T


class SpeechEncoder(nn.Module):
    """wav2vec 2.0, HuBERT or WavLM over a padded batch.

    Waves are `(batch, samples)` at 16 kHz; what lies beyond an item's length may be anything finite. Every length must
    reach the receptive field. An item's result does not depend on the others, nor on the padding (float32: 1e-5).

    Args:
        config: the architecture.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        channels = config.conv_layers[-1][0]
        self.feature_extractor = ConvExtractor(config)
        self.layer_norm = nn.LayerNorm(channels)
        self.post_extract_proj = nn.Linear(channels, config.width) if channels != config.width else None
        self.mask_emb = nn.Parameter(torch.zeros(config.width))  # only training uses it, but checkpoints hold it
        self.encoder = Transformer(config)

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> tuple[Tensor, list[int]]:
        """The last hidden state and its valid frames.

        Args:
            waves: float32 `(batch, samples)`. lengths: samples of each item, as Python integers, so that nothing waits
                for the device.

        Returns:
            `(batch, frames, width)` with as many frames as the longest item has, and the number of each item's own
            frames. Values beyond an item's own frames are unspecified but finite.
        """
        (last,) = deque(self.hidden_states(waves, lengths), maxlen=1)  # keeps one at a time
        return last, [self.config.frames(n) for n in lengths]

    def mixed(self, waves: Tensor, lengths: Sequence[int], weights: Tensor) -> Tensor:
        """The sum of the hidden states, each multiplied by its weight, float32 `(batch, frames, width)`.

        Each is added as soon as it is computed, so that only one is in memory.

        Args:
            weights: one per hidden state, `(layers + 1,)`.
        """
        total: Tensor | None = None
        for weight, hidden in zip(weights.float(), self.hidden_states(waves, lengths), strict=True):
            total = hidden.float() * weight if total is None else torch.addcmul(total, hidden.float(), weight)
        assert total is not None, "there is a hidden state in front of the first block"
        return total

    def hidden_states(self, waves: Tensor, lengths: Sequence[int]) -> Iterator[Tensor]:
        """Yields the input of each block and then the last output: `layers + 1` tensors `(batch, frames, width)`.

        If blocks normalise their input, the last output is taken after the final norm, as in s3prl.

        Raises:
            ValueError: a length is below the receptive field or beyond the batch.
        """
        counts = [self.config.frames(n) for n in lengths]
        if len(counts) != waves.shape[0] or min(counts) < 1 or max(lengths) > waves.shape[1]:
            raise ValueError(
                f"lengths {list(lengths)} do not fit waves of shape {tuple(waves.shape)} and a receptive field of "
                f"{self.config.receptive_field} samples"
            )
        step = self.config.hop * FRAMES_MULTIPLE
        samples = -(-max(lengths) // step) * step
        waves = waves[:, :samples] if waves.shape[1] >= samples else F.pad(waves, (0, samples - waves.shape[1]))
        frames = self.layer_norm(self.feature_extractor(waves, lengths))
        if self.post_extract_proj is not None:
            frames = self.post_extract_proj(frames)
        longest = max(counts)
        for hidden in self.encoder.hidden_states(frames, torch.tensor(counts).to(waves.device, non_blocking=True)):
            yield hidden[:, :longest]


def distance_buckets(length: int, buckets: int, max_distance: int) -> Tensor:
    """The buckets of distances -(length - 1) to length - 1, int64 `(2 * length - 1,)`.

    Half of the buckets are for later frames, the other half for the rest. In each half, the first half of the buckets
    holds one distance each, the following ones grow logarithmically up to the largest distance, and the last one holds
    all larger distances.
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


def padded(signals: Sequence[Any], device: str) -> tuple[Tensor, list[int]]:
    """Signals, float32 `(samples,)`, as one zero-padded tensor `(batch, longest)` on a device; and their lengths."""
    lengths = [len(signal) for signal in signals]
    waves = torch.zeros(len(signals), max(lengths))
    for wave, signal, length in zip(waves, signals, lengths, strict=True):
        wave[:length] = torch.as_tensor(signal)
    return waves.to(device), lengths


def standardised(waves: Tensor, lengths: Sequence[int], eps: float) -> Tensor:
    """Waves less their mean, divided by their deviation, over each item's own samples; zero beyond its end.

    Args:
        waves: float32 `(batch, samples)`. lengths: samples of each item. eps: added to the (biased) variance.
    """
    counts = torch.tensor(lengths).to(waves.device, non_blocking=True)[:, None]
    valid = torch.arange(waves.shape[1], device=waves.device) < counts
    exact = torch.where(valid, waves.double(), 0.0)
    centred = torch.where(valid, exact - exact.sum(1, keepdim=True) / counts, 0.0)
    variance = centred.square().sum(1, keepdim=True) / counts
    return (centred / (variance + eps).sqrt()).float()


def fairseq_name(name: str, extractor: str) -> str:
    """This module's name for a parameter of transformers' Wav2Vec2Model, HubertModel or WavLMModel, without its prefix.

    Args:
        name: transformers' name, such as `encoder.layers.3.feed_forward.output_dense.bias`.
        extractor: as in `EncoderConfig`.
    """
    if "conv_layers." in name:
        name = name.replace(".layer_norm.", ".2.1." if extractor == "layer_norm" else ".2.")
    for theirs, ours in (
        (".conv.parametrizations.weight.original0", ".0.weight_g"),
        (".conv.parametrizations.weight.original1", ".0.weight_v"),
        (".conv.", ".0."),
        ("pos_conv_embed", "pos_conv"),
        ("masked_spec_embed", "mask_emb"),
        ("feature_projection.layer_norm", "layer_norm"),
        ("feature_projection.projection", "post_extract_proj"),
        (".attention.", ".self_attn."),
        ("gru_rel_pos_const", "grep_a"),
        ("gru_rel_pos_linear", "grep_linear"),
        ("rel_attn_embed", "relative_attention_bias"),
        ("feed_forward.intermediate_dense", "fc1"),
        ("feed_forward.output_dense", "fc2"),
    ):
        name = name.replace(theirs, ours)
    if name.startswith("encoder.layers.") and name.split(".")[3] == "layer_norm":
        name = name.replace(".layer_norm.", ".self_attn_layer_norm.")
    return name

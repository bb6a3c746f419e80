"""Whisper's encoder and stepwise decoder, for greedy decoding.

Queries, keys and values of a token are one product; keys and values of the encoder's output are computed once; those of
tokens go to preallocated memory. Nothing is padded, so no attention has a mask. Weights and results have the loaded
type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from codec_bench.networks.batch_shapes import rows_of

Affine = tuple[Tensor, Tensor]
"""Bias, and weight `(inputs, outputs)`, of a linear layer."""
OUTPUT = "proj_out.weight"
"""A checkpoint's tensor if its output layer is not its table of tokens."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a checkpoint's networks; `*_wide` between two linear layers."""

    n_mels: int
    width: int
    vocabulary: int
    audio_positions: int
    text_positions: int
    encoder_layers: int
    encoder_heads: int
    encoder_wide: int
    decoder_layers: int
    decoder_heads: int
    decoder_wide: int
    has_output: bool

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the expected shape of each tensor, by its name in transformers."""
        width, encoder, decoder = self.width, "model.encoder", "model.decoder"
        out: dict[str, tuple[int, ...]] = {
            f"{encoder}.conv1.weight": (width, self.n_mels, 3),
            f"{encoder}.conv1.bias": (width,),
            f"{encoder}.conv2.weight": (width, width, 3),
            f"{encoder}.conv2.bias": (width,),
            f"{encoder}.embed_positions.weight": (self.audio_positions, width),
            f"{decoder}.embed_positions.weight": (self.text_positions, width),
            f"{decoder}.embed_tokens.weight": (self.vocabulary, width),
        }
        if self.has_output:
            out[OUTPUT] = (self.vocabulary, width)
        for stack, layers, wide, attentions in (
            (encoder, self.encoder_layers, self.encoder_wide, ("self_attn",)),
            (decoder, self.decoder_layers, self.decoder_wide, ("self_attn", "encoder_attn")),
        ):
            norms = [f"{stack}.layer_norm"]
            for layer in (f"{stack}.layers.{k}" for k in range(layers)):
                norms += [f"{layer}.{name}_layer_norm" for name in (*attentions, "final")]
                for name in (f"{layer}.{one}.{entry}_proj" for one in attentions for entry in ("q", "k", "v", "out")):
                    out[f"{name}.weight"] = (width, width)
                    if not name.endswith("k_proj"):
                        out[f"{name}.bias"] = (width,)
                out |= {f"{layer}.fc1.weight": (wide, width), f"{layer}.fc1.bias": (wide,)}
                out |= {f"{layer}.fc2.weight": (width, wide), f"{layer}.fc2.bias": (width,)}
            out |= {f"{norm}.{entry}": (width,) for norm in norms for entry in ("weight", "bias")}
        return out


class WhisperNet:
    """The networks of a checkpoint.

    Args:
        state: its tensors by their names in transformers (`shapes`), of one type, on their device.
    """

    def __init__(self, state: Mapping[str, Tensor], sizes: Sizes) -> None:
        encoder, decoder = "model.encoder", "model.decoder"
        self._front = [
            (state[f"{encoder}.conv{k}.weight"], state[f"{encoder}.conv{k}.bias"], stride)
            for k, stride in ((1, 1), (2, 2))
        ]
        self._places = state[f"{encoder}.embed_positions.weight"]
        self._text_places = state[f"{decoder}.embed_positions.weight"]
        self._encoder_layers = [
            _Layer(state, f"{encoder}.layers.{k}", sizes.encoder_heads) for k in range(sizes.encoder_layers)
        ]
        self._decoder_layers = [
            _DecoderLayer(state, f"{decoder}.layers.{k}", sizes.decoder_heads) for k in range(sizes.decoder_layers)
        ]
        self._encoder_norm = _WhisperNorm(state, f"{encoder}.layer_norm")
        self._decoder_norm = _WhisperNorm(state, f"{decoder}.layer_norm")
        self._words = state[f"{decoder}.embed_tokens.weight"]
        self._logits = state.get(OUTPUT, self._words)
        self.dtype, self.device = self._words.dtype, self._words.device

    def encode(self, mels: Tensor) -> Tensor:
        """Encode log-mel windows `(windows, n_mels, 3000)` to `(windows, 1500, width)`."""
        frames = mels
        for weight, bias, stride in self._front:
            frames = F.gelu(F.conv1d(frames, weight, bias, stride, padding=1))
        # Every sum below keeps the memory order of its first term, so the frames are made contiguous here.
        frames = frames.transpose(1, 2).contiguous() + self._places
        shape, rows, repeats = frames.shape, frames.flatten(0, 1), _repeats(frames)
        for layer in self._encoder_layers:
            rows = layer.encode(rows, shape[0], repeats)
        return self._encoder_norm(rows).view(shape)

    def begin(self, encoded: Tensor, tokens: int) -> DecoderMemory:
        """Allocate memory for texts of so many tokens, prompt included."""
        return DecoderMemory([layer.begin(encoded, tokens) for layer in self._decoder_layers])

    def step(self, tokens: Tensor, written: DecoderMemory) -> Tensor:
        """Decode tokens `(windows, tokens)` to hidden states `(windows, tokens, width)`.

        Args:
            tokens: the prompt, or the next token of each window.
            written: keys and values of earlier tokens of these windows; those of the tokens are added.
        """
        first, written.tokens = written.tokens, written.tokens + tokens.shape[1]
        out = F.embedding(tokens, self._words) + self._text_places[first : written.tokens]
        shape, rows = out.shape, out.flatten(0, 1)
        for layer, memory in zip(self._decoder_layers, written.layers):
            rows = layer.write(rows, memory, first, written.tokens)
        return self._decoder_norm(rows).view(shape)

    def logits(self, out: Tensor, added: Tensor | None = None) -> Tensor:
        """Map `(windows, width)` to logits `(windows, vocabulary)`, plus `added`."""
        return F.linear(out, self._logits, added)

    def logits_added(self, banned: Sequence[int]) -> Tensor:
        """Return a tensor to add to `logits`: minus infinity for banned tokens, else 0."""
        added = torch.zeros(len(self._logits))
        added[list(banned)] = -math.inf
        return added.to(self.device, self.dtype)


class DecoderMemory:
    """A decoder's memory of its windows, layer by layer."""

    def __init__(self, layers: list[_Memory]) -> None:
        self.layers, self.tokens = layers, 0

    def keep(self, rows: Tensor) -> None:
        """Keep some windows, int64 `(windows,)`; only one layer is copied at a time."""
        for layer in self.layers:
            layer.cross_cache, layer.self_cache = layer.cross_cache[rows], layer.self_cache[:, rows]


class _Memory:
    """A layer's keys and values.

    Of the encoder's output `(windows, 1500, 2, heads, size)`, and of tokens `(2, windows, heads, room, size)`.
    """

    def __init__(self, cross_cache: Tensor, self_cache: Tensor) -> None:
        self.cross_cache, self.self_cache = cross_cache, self_cache

    @property
    def cross_cache(self) -> Tensor:
        return self._cross_cache

    @cross_cache.setter
    def cross_cache(self, cross_cache: Tensor) -> None:
        self._cross_cache, self.repeats = cross_cache, _repeats(cross_cache)
        self.keys, self.values = cross_cache.permute(2, 0, 3, 1, 4).unbind()


class _WhisperNorm:
    def __init__(self, state: Mapping[str, Tensor], name: str) -> None:
        self._weight, self._bias = state[f"{name}.weight"], state[f"{name}.bias"]

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self._weight.shape, self._weight, self._bias)


class _Layer:
    """Self-attention, and two linear layers. Steps of all windows are rows, `(windows * steps, width)`."""

    def __init__(self, state: Mapping[str, Tensor], name: str, heads: int) -> None:
        attention = f"{name}.self_attn"
        self._heads = heads
        self._own_norm = _WhisperNorm(state, f"{name}.self_attn_layer_norm")
        self._norm = _WhisperNorm(state, f"{name}.final_layer_norm")
        self._projection = _joined(state, *(f"{attention}.{letter}_proj" for letter in "qkv"))
        self._out = _joined(state, f"{attention}.out_proj")
        self._wide, self._narrow = _joined(state, f"{name}.fc1"), _joined(state, f"{name}.fc2")
        half = self._wide[0].dtype == torch.float16
        self._most = torch.finfo(torch.float16).max - 1000 if half else None

    def _split(self, rows: Tensor, windows: int, parts: int) -> Tensor:
        """View `(windows * steps, parts * width)` as `(parts, windows, heads, steps, size)`."""
        return rows.view(windows, len(rows) // windows, parts, self._heads, -1).permute(2, 0, 3, 1, 4)

    def _attended(self, attended: Tensor, out: Affine, rows: Tensor) -> Tensor:
        return _affine(attended.transpose(1, 2).reshape(rows.shape), out).add_(rows)

    def _widened(self, rows: Tensor) -> Tensor:
        return _affine(F.gelu(_affine(self._norm(rows), self._wide)), self._narrow).add_(rows)

    def encode(self, rows: Tensor, windows: int, repeats: bool) -> Tensor:
        """Encode the frames of a batch, `(windows * frames, width)`.

        Args:
            repeats: whether batches of this shape come again.
        """
        q, k, v = self._split(_affine(self._own_norm(rows), self._projection), windows, 3)
        rows = self._widened(self._attended(_attention(q, k, v, repeats), self._out, rows))
        # As transformers: in float16, single sums of a large network may become infinite.
        return rows if self._most is None else rows.clamp_(-self._most, self._most)


class _DecoderLayer(_Layer):
    """A layer that also attends to the encoder's output."""

    def __init__(self, state: Mapping[str, Tensor], name: str, heads: int) -> None:
        super().__init__(state, name, heads)
        attention = f"{name}.encoder_attn"
        self._cross_norm = _WhisperNorm(state, f"{attention}_layer_norm")
        self._query, self._cross_out = _joined(state, f"{attention}.q_proj"), _joined(state, f"{attention}.out_proj")
        self._cross_projection = _joined(state, f"{attention}.k_proj", f"{attention}.v_proj")

    def begin(self, encoded: Tensor, tokens: int) -> _Memory:
        """Allocate the keys and values of a batch, and compute those of the encoder.

        Args:
            encoded: `(windows, frames, width)`.
            tokens: the most tokens of a text, prompt included.
        """
        windows, frames, width = encoded.shape
        cross_cache = _affine(encoded.view(-1, width), self._cross_projection).view(windows, frames, 2, self._heads, -1)
        return _Memory(cross_cache, cross_cache.new_empty(2, windows, self._heads, tokens, width // self._heads))

    def write(self, rows: Tensor, memory: _Memory, first: int, last: int) -> Tensor:
        """Decode tokens `first` to `last - 1` of every window; store their keys, values.

        Args:
            rows: `(windows * tokens, width)`, as is the result.
        """
        windows = memory.self_cache.shape[1]
        projected = self._split(_affine(self._own_norm(rows), self._projection), windows, 3)
        memory.self_cache.narrow(3, first, last - first).copy_(projected[1:])
        keys, values = memory.self_cache.narrow(3, 0, last).unbind()
        one = last - first == 1
        attended = F.scaled_dot_product_attention(projected[0], keys, values, is_causal=not one)
        rows = self._attended(attended, self._out, rows)
        query = self._split(_affine(self._cross_norm(rows), self._query), windows, 1)[0]
        attended = _attention(query, memory.keys, memory.values, memory.repeats and one)
        return self._widened(self._attended(attended, self._cross_out, rows))


def _repeats(windows: Tensor) -> bool:
    """Whether a GPU sees this shape again, and cuDNN has an attention for its type."""
    return windows.is_cuda and windows.dtype != torch.float32 and rows_of(len(windows)) == len(windows)


def _attention(q: Tensor, k: Tensor, v: Tensor, repeats: bool) -> Tensor:
    """Compute attention, with cuDNN's kernel allowed if the shape `repeats`."""
    if not repeats:
        return F.scaled_dot_product_attention(q, k, v)
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(True)
    try:
        return F.scaled_dot_product_attention(q, k, v)
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


def _affine(rows: Tensor, of: Affine) -> Tensor:
    return torch.addmm(of[0], rows, of[1])


def _joined(state: Mapping[str, Tensor], *names: str) -> Affine:
    """Join named linear layers to one: bias, and transposed weights.

    Missing biases, as of Whisper's keys, become zeros.
    """
    weights, biases = [state[f"{name}.weight"] for name in names], [state.get(f"{name}.bias") for name in names]
    if len(names) == 1:
        assert biases[0] is not None
        return biases[0], weights[0].t()
    filled = [weight.new_zeros(len(weight)) if bias is None else bias for weight, bias in zip(weights, biases)]
    return torch.cat(filled), torch.cat(weights).t()

"""Whisper's encoder, and its decoder step by step, for greedy decoding of whole windows.

A step of the decoder reads far more memory than it computes, so what a GPU waits for is the host: few launches and
little Python in a step are the aim here. Queries, keys and values of a token are one product; those keys and values
that the decoder makes of the encoder's output are made once; those of its own tokens are written into memory that was
taken before.

Nothing is padded, so no attention has a mask. Weights and results have the type that the network was loaded in.

cuDNN's attention needs a plan for every shape, which takes about 0.06 s on an H200, and computes the encoder's
attention in two thirds of the time of torch's own and that of one token over the encoder's output in 0.56 of it. So it
may be taken where a shape comes
again: for numbers of windows on the ladder of shapes. Keys of the text grow with every token, and stay with torch's
own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from codec_bench.networks.batch_shapes import rows_of

Affine = tuple[Tensor, Tensor]
"""Bias, and weight `(inputs, outputs)`, of a linear layer."""


class WhisperNet:
    """The networks of a checkpoint, as transformers has loaded it.

    Args:
        net: a `WhisperForConditionalGeneration` on its device; its weights are taken over.
    """

    def __init__(self, net: Any) -> None:
        net.requires_grad_(False)
        encoder, decoder = net.model.encoder, net.model.decoder
        self._front = [(conv.weight, conv.bias, conv.stride) for conv in (encoder.conv1, encoder.conv2)]
        self._places, self._text_places = encoder.embed_positions.weight, decoder.embed_positions.weight
        self._hearing = [_Layer(layer, net.config.encoder_attention_heads) for layer in encoder.layers]
        self._writing = [_WritingLayer(layer, net.config.decoder_attention_heads) for layer in decoder.layers]
        self._encoder_norm, self._written_norm = _Norm(encoder.layer_norm), _Norm(decoder.layer_norm)
        self._words, self._logits = decoder.embed_tokens.weight, net.proj_out.weight
        self.dtype, self.device = self._words.dtype, self._words.device

    def encode(self, mels: Tensor) -> Tensor:
        """What the encoder makes of windows `(windows, n_mels, 3000)`: `(windows, 1500, width)`."""
        frames = mels
        for weight, bias, stride in self._front:
            frames = F.gelu(F.conv1d(frames, weight, bias, stride, padding=1))
        # Every sum below keeps the order of its first term in memory, so frames are put one behind the other here.
        frames = frames.transpose(1, 2).contiguous() + self._places
        shape, rows, repeats = frames.shape, frames.flatten(0, 1), _repeats(frames)
        for layer in self._hearing:
            rows = layer.encode(rows, shape[0], repeats)
        return self._encoder_norm(rows).view(shape)

    def begin(self, encoded: Tensor, tokens: int) -> Written:
        """Memory for texts of so many tokens, prompt and all, over windows as `encode` gives them."""
        return Written([layer.begin(encoded, tokens) for layer in self._writing])

    def step(self, tokens: Tensor, written: Written) -> Tensor:
        """The decoder's output `(windows, tokens, width)` for tokens `(windows, tokens)`: those of a prompt, or one
        that follows.

        Args:
            written: of the same windows; the tokens are added to it.
        """
        first, written.tokens = written.tokens, written.tokens + tokens.shape[1]
        out = F.embedding(tokens, self._words) + self._text_places[first : written.tokens]
        shape, rows = out.shape, out.flatten(0, 1)
        for layer, memory in zip(self._writing, written.layers):
            rows = layer.write(rows, memory, first, written.tokens)
        return self._written_norm(rows).view(shape)

    def logits(self, out: Tensor, added: Tensor | None = None) -> Tensor:
        """Logits `(windows, vocabulary)` of a step's output `(windows, width)`, with what is added to each,
        `(vocabulary,)`.
        """
        return F.linear(out, self._logits, added)

    def logits_added(self, banned: Sequence[int]) -> Tensor:
        """What `logits` must add so that some tokens are never the most probable."""
        added = torch.zeros(len(self._logits))
        added[list(banned)] = -math.inf
        return added.to(self.device, self.dtype)


class Written:
    """What a decoder keeps of windows that it writes the texts of.

    Args:
        layers: the memory of each layer.
    """

    def __init__(self, layers: list[_Memory]) -> None:
        self.layers, self.tokens = layers, 0

    def keep(self, rows: Tensor) -> None:
        """Keeps some windows, int64 `(windows,)` on the device: layer by layer, so that two copies of one layer alone
        exist at a time.
        """
        for layer in self.layers:
            layer.cross_cache, layer.self_cache = layer.cross_cache[rows], layer.self_cache[:, rows]


class _Memory:
    """Keys and values of a layer: those of the encoder's output `(windows, 1500, 2, heads, size)`, and those of tokens
    `(2, windows, heads, room, size)`."""

    def __init__(self, cross_cache: Tensor, self_cache: Tensor) -> None:
        self.cross_cache, self.self_cache = cross_cache, self_cache

    @property
    def cross_cache(self) -> Tensor:
        return self._cross_cache

    @cross_cache.setter
    def cross_cache(self, cross_cache: Tensor) -> None:
        self._cross_cache, self.repeats = cross_cache, _repeats(cross_cache)
        self.keys, self.values = cross_cache.permute(2, 0, 3, 1, 4).unbind()


class _Norm:
    """A layer normalisation."""

    def __init__(self, norm: Any) -> None:
        self._of = (norm.normalized_shape, norm.weight, norm.bias, norm.eps)

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, *self._of)


class _Layer:
    """Self-attention, and two linear layers behind it. Steps of all windows are rows, `(windows * steps, width)`.

    Args:
        layer: of transformers. heads: of the attention.
    """

    def __init__(self, layer: Any, heads: int) -> None:
        attention = layer.self_attn
        self._heads = heads
        self._own_norm, self._norm = _Norm(layer.self_attn_layer_norm), _Norm(layer.final_layer_norm)
        self._projection, self._out = (
            _joined(attention.q_proj, attention.k_proj, attention.v_proj),
            _joined(attention.out_proj),
        )
        self._wide, self._narrow = _joined(layer.fc1), _joined(layer.fc2)
        self._activation: Callable[[Tensor], Tensor] = layer.activation_fn
        self._most = torch.finfo(torch.float16).max - 1000 if layer.fc1.weight.dtype == torch.float16 else None

    def _split(self, rows: Tensor, windows: int, parts: int) -> Tensor:
        """`(windows * steps, parts * width)` as `(parts, windows, heads, steps, size)`, in the same memory."""
        return rows.view(windows, len(rows) // windows, parts, self._heads, -1).permute(2, 0, 3, 1, 4)

    def _attended(self, attended: Tensor, out: Affine, rows: Tensor) -> Tensor:
        return _affine(attended.transpose(1, 2).reshape(rows.shape), out).add_(rows)

    def _widened(self, rows: Tensor) -> Tensor:
        return _affine(self._activation(_affine(self._norm(rows), self._wide)), self._narrow).add_(rows)

    def encode(self, rows: Tensor, windows: int, repeats: bool) -> Tensor:
        """Rows of so many windows, to the same shape; `repeats` says whether the shape comes again."""
        q, k, v = self._split(_affine(self._own_norm(rows), self._projection), windows, 3)
        rows = self._widened(self._attended(_attention(q, k, v, repeats), self._out, rows))
        # As transformers: in float16, single sums of a large network may become infinite.
        return rows if self._most is None else rows.clamp_(-self._most, self._most)


class _WritingLayer(_Layer):
    """A layer that also attends to what the encoder made."""

    def __init__(self, layer: Any, heads: int) -> None:
        super().__init__(layer, heads)
        attention = layer.encoder_attn
        self._cross_norm = _Norm(layer.encoder_attn_layer_norm)
        self._query, self._cross_out = _joined(attention.q_proj), _joined(attention.out_proj)
        self._cross_projection = _joined(attention.k_proj, attention.v_proj)

    def begin(self, encoded: Tensor, tokens: int) -> _Memory:
        """The memory for a batch."""
        windows, frames, width = encoded.shape
        cross_cache = _affine(encoded.view(-1, width), self._cross_projection).view(windows, frames, 2, self._heads, -1)
        return _Memory(cross_cache, cross_cache.new_empty(2, windows, self._heads, tokens, width // self._heads))

    def write(self, rows: Tensor, memory: _Memory, first: int, last: int) -> Tensor:
        """The output for tokens `first` to `last` of every window, to the same shape."""
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
    """Whether a GPU will see a shape of so many windows again, and cuDNN has an attention for the type."""
    return windows.is_cuda and windows.dtype != torch.float32 and rows_of(len(windows)) == len(windows)


def _attention(q: Tensor, k: Tensor, v: Tensor, repeats: bool) -> Tensor:
    """Attention; by cuDNN where the shape `repeats` and torch prefers it on this device."""
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


def _joined(*layers: Any) -> Affine:
    """A linear layer that gives the outputs of some; Whisper's keys have no bias."""
    if len(layers) == 1:
        return layers[0].bias, layers[0].weight.t()
    biases = [layer.weight.new_zeros(len(layer.weight)) if layer.bias is None else layer.bias for layer in layers]
    return torch.cat(biases), torch.cat([layer.weight for layer in layers]).t()

"""EnCodec's layers item by item, in pieces with state, and joined chunks."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

_ITEMS_IN_LSTM = 16


def meeting_in_lstm(coder: Any, items: Sequence[Any], step: int) -> list[Any]:
    """Run an encoder or decoder: convolutions item by item, the LSTM as one batch.

    The LSTM is causal, so padding does not change an item. It repeats the last value: with zeros the state could decay
    to subnormal numbers, which slow a CPU many times.

    Args:
        coder: transformers' encoder or decoder.
        items: `(1, channels, time)` each.
        step: how much of an item the convolutions process at once: samples for an encoder, frames for a decoder.
    """
    import torch
    from torch.nn.utils import parametrize

    layers = list(coder.layers)
    at = next(k for k, layer in enumerate(layers) if hasattr(layer, "lstm"))
    with parametrize.cached():  # the normalised weights are computed once, not for every item
        hidden = [_alone(layers[:at], item, step) for item in items]
        order = sorted(range(len(hidden)), key=lambda k: hidden[k].shape[-1])
        for first in range(0, len(order), _ITEMS_IN_LSTM):
            group = order[first : first + _ITEMS_IN_LSTM]
            longest = hidden[group[-1]].shape[-1]
            filled = [
                torch.cat([hidden[k], hidden[k][..., -1:].expand(-1, -1, longest - hidden[k].shape[-1])], dim=-1)
                for k in group
            ]
            for k, item in zip(group, layers[at](torch.cat(filled))):
                hidden[k] = item[None, :, : hidden[k].shape[-1]]
        return [_alone(layers[at + 1 :], item, step) for item in hidden]


def _alone(layers: Sequence[Any], hidden: Any, step: int) -> Any:
    """Run layers over one item in segments, whose outputs stay in the CPU's cache.

    It also copies less than transformers' layers, which pad before every convolution, even of one tap.

    Args:
        hidden: the item, `(1, channels, time)`.
        step: length of a segment, a multiple of the product of all strides. The last one also takes the remainder.
    """
    import torch

    count = max(1, hidden.shape[-1] // step)
    pieces = hidden.split([step] * (count - 1) + [hidden.shape[-1] - (count - 1) * step], dim=-1)
    ends: dict[Any, Any] = {}
    return torch.cat(
        [piece_through(layers, segment, ends, last=k == count - 1) for k, segment in enumerate(pieces)], dim=-1
    )


def piece_through(layers: Sequence[Any], hidden: Any, ends: dict[Any, Any], *, last: bool) -> Any:
    """Run layers over the next segment of one item `(1, channels, time)`.

    Args:
        ends: the state that each layer carries, updated here.
        last: whether this is the item's last segment.
    """
    for layer in layers:
        if hasattr(layer, "block"):
            direct = piece_through([layer.shortcut], hidden, ends, last=last)
            hidden = direct + piece_through(layer.block, hidden, ends, last=last)
        elif hasattr(layer, "trim_right_ratio"):
            hidden = _upsample(layer, hidden, ends)
        elif hasattr(layer, "conv"):
            hidden = _convolve(layer, hidden, ends, last=last)
        else:
            hidden = layer(hidden)
    return hidden


def _convolve(layer: Any, hidden: Any, ends: dict[Any, Any], *, last: bool) -> Any:
    """Convolve the next segment of an item causally.

    The item is reflected at its start, and at its end up to a multiple of the stride.

    Args:
        ends: the end of the segment before, by layer; updated here.
        last: whether the item ends with this segment.
    """
    import torch

    before = int(layer.padding_total)
    after = -hidden.shape[-1] % layer.conv.stride[0] if last else 0
    start = ends.get(layer)
    if start is None and hidden.shape[-1] <= max(before, after):
        return layer(hidden)  # too short to be reflected: zeros come first
    if before:
        hidden = torch.cat([hidden[..., 1 : before + 1].flip(-1) if start is None else start, hidden], dim=-1)
        ends[layer] = hidden[..., -before:].clone()
    if after:
        hidden = torch.cat([hidden, hidden[..., -1 - after : -1].flip(-1)], dim=-1)
    return layer.conv(hidden)


def _upsample(layer: Any, hidden: Any, ends: dict[Any, Any]) -> Any:
    """Upsample an item's next segment by a causal transposed convolution.

    The kernel has two strides, so it is two matrix products. On a CPU this takes a third of the time of torch's
    transposed convolution.

    Args:
        ends: the last step of the segment before, by layer; updated here.
    """
    import torch

    conv, stride = layer.conv, layer.conv.stride[0]
    current, following = (half.permute(1, 2, 0).flatten(0, 1) for half in conv.weight.split(stride, dim=-1))
    out = torch.addmm(conv.bias.repeat_interleave(stride)[:, None], current, hidden[0])
    out[:, 1:].addmm_(following, hidden[0, :, :-1])
    if layer in ends:
        out[:, :1].addmm_(following, ends[layer])
    ends[layer] = hidden[0, :, -1:].clone()
    return out.view(conv.out_channels, stride, -1).transpose(1, 2).reshape(1, conv.out_channels, -1)


class CarriedHalf:
    """An encoder or decoder with the state that its layers carry between pieces.

    Args:
        side: `.encoder` or `.decoder` of transformers' `EncodecModel`; it is copied.

    Attributes:
        started, ended: whether the first and the last piece have been processed.
    """

    def __init__(self, coder: Any) -> None:
        layers = list(_plain(coder).layers)
        at = next(k for k, layer in enumerate(layers) if hasattr(layer, "lstm"))
        self._before, self._lstm, self._behind = layers[:at], layers[at].lstm, layers[at + 1 :]
        self._ends: dict[Any, Any] = {}
        self._states: list[Any] = []
        self.started = self.ended = False

    def step(self, hidden: Any, *, last: bool) -> Any:
        """Process the next segment, `(1, channels, time)`; `last` ends the item."""
        self.started, self.ended = True, last
        hidden = piece_through(self._before, hidden, self._ends, last=last)
        return piece_through(self._behind, hidden + self._remember(hidden), self._ends, last=last)

    def _remember(self, hidden: Any) -> Any:
        """Run the LSTM over a segment from its carried state, cell by cell.

        On a CPU, torch's LSTM rearranges 17 MB of weights per call: 7 ms a frame.
        """
        import torch

        if not self._states:
            nothing = hidden.new_zeros(1, self._lstm.hidden_size)
            self._states = [(nothing, nothing)] * self._lstm.num_layers
        out = []
        for frame in hidden.permute(2, 0, 1):
            for k, weights in enumerate(self._lstm.all_weights):
                self._states[k] = torch.lstm_cell(frame, self._states[k], *weights)
                frame = self._states[k][0]
            out.append(frame)
        return torch.stack(out, dim=-1)


def _plain(coder: Any) -> Any:
    """Copy a network, with weight normalisation folded into plain weights."""
    import torch
    from torch.nn.utils import parametrize

    instead: dict[int, Any] = {id(lstm): lstm for lstm in coder.modules() if isinstance(lstm, torch.nn.LSTM)}
    for conv in coder.modules():
        if parametrize.is_parametrized(conv):  # torch's own function would also change the original
            kind = torch.nn.ConvTranspose1d if conv.transposed else torch.nn.Conv1d
            sizes = conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride
            plain = kind(*sizes, dilation=conv.dilation, device="meta")
            weight = conv.weight.detach()
            if conv.transposed:  # laid out as `_upsample` reads it, so that it is not rearranged at every step
                weight = weight.permute(1, 2, 0).contiguous().permute(2, 0, 1)
            plain.weight, plain.bias = torch.nn.Parameter(weight), conv.bias
            instead[id(conv)] = plain
    return copy.deepcopy(coder, instead)


def reflect_ends(hidden: Any, valid: Any, stride: int) -> Any:
    """Copy `(batch, channels, time)` with each item's end reflected into its padding.

    Args:
        valid: the length of each item, which is extended to a multiple of the stride.
    """
    import torch

    from codec_bench.networks.seanet import reflection

    to, source = reflection(valid[:, None], 0, 0, stride)
    rows = torch.arange(len(hidden), device=hidden.device)[:, None]
    hidden = hidden.clone()
    hidden[rows, :, to] = hidden[rows, :, source]
    return hidden


def overlap_add(chunks: Sequence[Any], stride: int) -> Any:
    """Join chunks `(channels, samples)`, cross-faded with triangular weights.

    Args:
        stride: samples from the start of one chunk to that of the next.

    The reference fails on lengths 161 to 320 samples above a multiple of the stride, because the last chunk ends before
    the previous one. Here the longer chunk keeps its end; most of it is cut off afterwards.
    """
    import torch

    first = chunks[0]
    ramp = torch.linspace(0, 1, first.shape[-1] + 2, device=first.device)[1:-1]
    weight = 0.5 - (ramp - 0.5).abs()
    total = max(k * stride + chunk.shape[-1] for k, chunk in enumerate(chunks))
    out = torch.zeros(first.shape[0], total, device=first.device)
    weights = torch.zeros(total, device=first.device)
    for k, chunk in enumerate(chunks):
        span = slice(k * stride, k * stride + chunk.shape[-1])
        out[:, span] += weight[: chunk.shape[-1]] * chunk
        weights[span] += weight[: chunk.shape[-1]]
    return out / weights

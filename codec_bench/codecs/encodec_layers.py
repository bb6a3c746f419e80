"""EnCodec's causal layers over one item at a time, piece by piece with carried state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_ITEMS_IN_LSTM = 16


def meeting_in_lstm(side: Any, items: Sequence[Any], step: int) -> list[Any]:
    """An encoder or decoder over items `(1, channels, time)`: each alone, but the LSTM over many of them at once.

    Args:
        step: samples of a piece for an encoder, frames for a decoder.

    The LSTM is causal: what comes after an item does not reach it. Its last value goes on there, since on zeros the state
    could decay to subnormal numbers, with which a CPU is many times slower.
    """
    import torch
    from torch.nn.utils import parametrize

    layers = list(side.layers)
    at = next(k for k, layer in enumerate(layers) if hasattr(layer, "lstm"))
    with parametrize.cached():  # the normalised weights are formed once, not once an item
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
    """Layers over one item, piece by piece with carried state, so that what one layer writes is still near for the next.

    Also with less copying than transformers' own layers, which pad before every convolution, 1x1 or not.

    Args:
        step: length of a piece, a multiple of all strides together; the last one is longer by what is left over.
    """
    import torch

    count = max(1, hidden.shape[-1] // step)
    pieces = hidden.split([step] * (count - 1) + [hidden.shape[-1] - (count - 1) * step], dim=-1)
    ends: dict[Any, Any] = {}
    return torch.cat(
        [piece_through(layers, piece, ends, last=k == count - 1) for k, piece in enumerate(pieces)], dim=-1
    )


def piece_through(layers: Sequence[Any], hidden: Any, ends: dict[Any, Any], *, last: bool) -> Any:
    """Layers over the next piece of one item `(1, channels, time)`.

    Args:
        ends: what each layer keeps of the pieces before; filled here. last: whether nothing follows.
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
    """A causal convolution; the item is reflected at its start, and at its end up to a multiple of the stride."""
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
    """A causal transposed convolution whose kernel is twice its stride, as two products of matrices.

    Every input adds to the outputs of its own step and of the next. On a CPU this takes a third of the time of torch's own.
    """
    import torch

    conv, stride = layer.conv, layer.conv.stride[0]
    own, following = (half.permute(1, 2, 0).flatten(0, 1) for half in conv.weight.split(stride, dim=-1))
    out = torch.addmm(conv.bias.repeat_interleave(stride)[:, None], own, hidden[0])
    out[:, 1:].addmm_(following, hidden[0, :, :-1])
    if layer in ends:
        out[:, :1].addmm_(following, ends[layer])
    ends[layer] = hidden[0, :, -1:].clone()
    return out.view(conv.out_channels, stride, -1).transpose(1, 2).reshape(1, conv.out_channels, -1)

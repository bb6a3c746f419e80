"""What adapters of neural codecs share: items of unequal length as one array, full float32, and noise in place of weights."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.errors import UserError
from codec_bench.types import Audio, Codes, CodeStream

RANDOM = "random"
RANDOM_FULL = "random-full"


def weights_folder(name: str) -> str | None:
    """The folder that holds a checkpoint of the catalogue on this machine, or None; what an adapter's `find_weights` answers."""
    from codec_bench.weights import lookup

    found = lookup(name)
    return str(found.folder) if found else None


def stack(items: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Arrays `(rows, columns)` as one `(batch, rows, length)`, zeros after each item's end."""
    out = np.zeros((len(items), items[0].shape[0], length), items[0].dtype)
    for row, item in zip(out, items):
        row[:, : item.shape[1]] = item
    return out


def equal_lengths(lengths: Sequence[int]) -> list[list[int]]:
    """Indices of the items, those of one length together."""
    groups: dict[int, list[int]] = defaultdict(list)
    for index, length in enumerate(lengths):
        groups[length].append(index)
    return list(groups.values())


def one_stream(values: np.ndarray, audio: Audio, info: CodecInfo, cardinality: int) -> Codes:
    """Codes of one stream at the codec's frame rate."""
    stream = CodeStream(np.ascontiguousarray(values, np.int64), cardinality, info.frame_rate_hz)
    return Codes((stream,), audio.num_samples, audio.sample_rate_hz)


def check_stream(item: Codes, info: CodecInfo, shape: tuple[int, int], cardinality: int) -> None:
    """Refuses codes that are not one stream of this shape, and codes out of range.

    Raises:
        UserError: naming the codec, what it was given and what it takes.
    """
    got = item.streams[0].values.shape if len(item.streams) == 1 else f"{len(item.streams)} streams"
    if got != shape:
        raise UserError(f"{info.name}: codes are {got}; {item.num_samples} samples have {shape}")
    values = item.streams[0].values
    if values.min() < 0 or values.max() >= cardinality:
        raise UserError(f"{info.name}: codes from {values.min()} to {values.max()}; expected 0 to {cardinality - 1}")


def check_codebooks(codec: str, codebooks: int | None, most: int, *, fewest: int = 1) -> int:
    """How many codebooks are used: all of them, or what was asked for.

    Raises:
        UserError: the codec does not have so many, or so few.
    """
    if codebooks is None:
        return most
    if isinstance(codebooks, bool) or not isinstance(codebooks, int) or not fewest <= codebooks <= most:
        raise UserError(f"{codec} has no {codebooks!r} codebooks", hint=f"it has {fewest} to {most}")
    return codebooks


@contextmanager
def full_float32(device: str) -> Iterator[None]:
    """No gradients, and no TensorFloat-32: it would move codes with the batch."""
    import torch

    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if str(device).startswith("cuda"):
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=False))
            before = torch.backends.cuda.matmul.allow_tf32
            torch.backends.cuda.matmul.allow_tf32 = False
            stack.callback(setattr, torch.backends.cuda.matmul, "allow_tf32", before)
        yield


@contextmanager
def seeded(seed: int = 0) -> Iterator[None]:
    """Random weights are the same every time, and the caller's generator is left alone."""
    import torch

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        yield


def fill_with_noise(net: Any) -> None:
    """Noise as the weights of every convolution and linear layer: it keeps the power of a signal, with small biases."""
    import torch
    from torch import nn

    for module in net.modules():
        if isinstance(module, (nn.Conv1d, nn.ConvTranspose1d, nn.Linear)):
            taps = math.prod(module.weight.shape[1:])
            if isinstance(module, nn.ConvTranspose1d):
                taps = module.weight.shape[0] // module.groups * module.weight.shape[2] / module.stride[0]
            module.weight.copy_(torch.randn_like(module.weight) / math.sqrt(taps))
            if module.bias is not None:
                module.bias.normal_(0, 0.05)

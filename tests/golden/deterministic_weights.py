"""Deterministic stand-in weights: the same numbers for the same parameter name and shape, on any machine.

No pretrained checkpoint can be downloaded where the tests run. To prove that a model is built and loaded
exactly like the published one all the same, fill a state dict that has the *published checkpoint's* key names
and shapes with these numbers, load it through the project's own loader, and compare its output with the value
that the reference implementation gave for the same weights and the same audio.

`numpy.random.RandomState` is frozen by NumPy's compatibility policy, so the values never change.
"""

from __future__ import annotations

import ctypes
import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 1 << 16


def values_for(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """float32 values for one parameter or buffer, scaled so that activations neither vanish nor explode."""
    leaf = name.rsplit(".", 1)[-1]
    if leaf == "num_batches_tracked":
        return np.zeros(shape, dtype=np.int64)
    if leaf == "window":  # a constant, not a weight: the periodic Hann window of an STFT
        return (0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(shape[0]) / shape[0])).astype(np.float32)
    noise = _noise(name, shape)
    if leaf == "running_var":
        return (1.0 + 0.1 * np.abs(noise)).astype(np.float32)
    if leaf == "running_mean" or "bias" in leaf:
        return (0.1 * noise).astype(np.float32)
    if leaf in (
        "weight_g",
        "original0",
    ):  # weight-norm gains; a single one is that of the convolution before a final tanh
        return ((0.005 if noise.size == 1 else 1.0) * (1.0 + 0.1 * np.abs(noise))).astype(np.float32)
    if leaf == "embed":  # codebook entries: large enough for clear nearest-neighbour decisions
        return (0.3 * noise).astype(np.float32)
    if leaf in ("coef", "alpha") or (name.endswith("norm.scale.weight") and shape[0] <= 8):  # scales around one
        return (1.0 + 0.1 * np.abs(noise)).astype(np.float32)
    if len(shape) >= 2:
        return np.divide(noise, np.sqrt(int(np.prod(shape[1:]))), out=noise, casting="same_kind")
    if leaf in ("weight", "gamma"):  # norm gains, layer scales
        return (1.0 + 0.1 * np.abs(noise)).astype(np.float32)
    return (0.1 * noise).astype(np.float32)


def _noise(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The numbers of one generator, drawn block by block: a large tensor is in memory once."""
    generator = np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF)
    noise = np.empty(shape, np.float32)
    flat = noise.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        block = flat[start : start + BLOCK]
        block[:] = generator.standard_normal(block.size)
    return noise


def state_dict_from(keys_file: str | Path) -> dict[str, np.ndarray]:
    """The full stand-in state dict for a `*_keys.json` file: {"name": [shape...], ...}."""
    shapes = json.loads(Path(keys_file).read_text("utf-8"))
    return state_dict_of(shapes)


def state_dict_of(shapes: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """Stand-in values for these names and shapes."""
    return {name: values_for(name, tuple(shape)) for name, shape in shapes.items()}


def release(state: dict[str, Any]) -> None:
    """Empties a state and returns its memory to the system, before a network of that size is read."""
    state.clear()
    with suppress(OSError, AttributeError):  # the C library has no such function
        ctypes.CDLL(None).malloc_trim(0)


def stand_in(net: Any) -> dict[str, Any]:
    """Stand-in tensors for every name of a torch module's state."""
    import torch

    return {name: torch.from_numpy(values_for(name, tuple(v.shape))) for name, v in net.state_dict().items()}

"""PLCMOS v2: convolutions, two recurrent layers, and a head per rater.

Reference implementation: the package speechmos 0.0.1 and its file `plcmos_v2.onnx`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.ragged import WholeSignal, each, full, inside, on_device, uploaded

FFT, HOP = 512, 256
FLOOR = 12 * math.log(10)
"""A power of zero, below the least power of a signal, in the natural logarithm."""
SCALE, SLOPE = 20.0, 0.1
SPREAD = 2
"""Dilation of the convolutions over time; each removes as many frames."""
CHANNELS, WIDTH, RATER, DEPTH = (32, 64, 128), 32, 64, 4
RATERS = 15
"""As many as a call of the package draws."""
_HELD = 1e4
"""Added to the input of the gate that keeps the state, so a step of padding changes nothing."""


class _PlcmosLayer(nn.GRU):
    """A bidirectional recurrent layer; its last input marks padding."""

    def __init__(self, inputs: int) -> None:
        super().__init__(inputs + 1, WIDTH, batch_first=True, bidirectional=True)

    @staticmethod
    def published(inputs: Tensor, hidden: Tensor, biases: Tensor) -> dict[str, Tensor]:
        """Convert a GRU layer's published tensors to torch's names and order of gates.

        Args:
            inputs, hidden, biases: of both directions.
        """
        weights = {}
        for index, direction in enumerate(("", "_reverse")):
            weight_ih, weight_hh = _gates(inputs[index]), _gates(hidden[index])
            flag = torch.zeros(len(weight_ih), 1)
            flag[WIDTH : 2 * WIDTH] = _HELD
            weights[f"weight_ih_l0{direction}"] = torch.cat([weight_ih, flag], dim=1)
            weights[f"weight_hh_l0{direction}"] = weight_hh
            for name, rows in zip(("bias_ih", "bias_hh"), biases[index].chunk(2)):
                weights[f"{name}_l0{direction}"] = _gates(rows)
        return weights


class PlcmosNet(WholeSignal, nn.Module):
    """The whole network."""

    at_once = (30 * 16_000, 600 * 16_000)
    """Samples per pass on a CPU and a GPU. They bound the first convolution's memory: 2 MB per second."""
    window: Tensor

    def __init__(self) -> None:
        super().__init__()
        block, inputs = nn.Module(), 1
        for index, outputs in enumerate(CHANNELS, 1):
            block.add_module(f"conv{index}", nn.Conv2d(inputs, outputs, 3, dilation=(SPREAD, 1), padding=1))
            inputs = outputs
        block.add_module("conv_project", nn.Conv1d(4 * inputs, 4 * WIDTH, 1))
        self.in_blocks = nn.ModuleList([block])
        self.layers = nn.ModuleList([_PlcmosLayer(4 * WIDTH), _PlcmosLayer(2 * WIDTH)])
        self.embed_dense1, self.embed_dense3 = nn.Linear(RATER, 128), nn.Linear(128, 2 * WIDTH)
        self.embed_dense2 = nn.ModuleList(nn.Linear(128, 128) for _ in range(DEPTH))
        self.dense1, self.dense3 = nn.Linear(4 * WIDTH, 32), nn.Linear(32, 1)
        self.dense2 = nn.ModuleList(nn.Linear(32, 32) for _ in range(DEPTH))
        self.register_buffer("window", torch.hamming_window(FFT, dtype=torch.float64), persistent=False)

    @staticmethod
    def draw(seeds: Sequence[int]) -> Tensor:
        """Draw signals' raters, float32 `(signals, 15, 64)`, as the package."""
        raters = [np.random.RandomState(seed).normal(size=(RATERS, RATER)) for seed in seeds]
        return torch.from_numpy(np.stack(raters).astype(np.float32))

    @staticmethod
    def translated(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Convert the tensors of the published ONNX file to this network's state dict."""
        renamed = dict(state)
        for layer, (inputs, numbers) in enumerate(((4 * WIDTH, (412, 413, 411)), (2 * WIDTH, (455, 456, 454)))):
            names = [f"onnx::GRU_{number}" for number in numbers]
            shapes = [(2, 3 * WIDTH, inputs), (2, 3 * WIDTH, WIDTH), (2, 6 * WIDTH)]
            if [tuple(state[name].shape) for name in names if name in state] == shapes:
                tensors = _PlcmosLayer.published(*(renamed.pop(name) for name in names))
                renamed |= {f"layers.{layer}.{name}": value for name, value in tensors.items()}
        return {name: value for name, value in renamed.items() if not name.startswith("onnx::Concat")}

    def forward(self, waves: Tensor, raters: Tensor, lengths: Sequence[int]) -> Tensor:
        """Compute mean score over raters and standard error, float32 `(signals, 2)`.

        Args:
            waves: float32 `(signals, samples)` at 16 kHz, zeros beyond a signal's end. lengths: the samples of each.
            raters: float32 `(signals, raters, 64)`, random vectors that represent listeners.
        """
        frames = each(uploaded(lengths, waves.device), lambda n: (n + FFT - 1) // HOP)
        x = self._levels(waves, frames)[:, None]
        block: Any = self.in_blocks[0]
        for index in range(1, len(CHANNELS) + 1):
            x = F.leaky_relu(block.get_submodule(f"conv{index}")(x), SLOPE, inplace=True)
            frames = each(frames, lambda n: n - SPREAD)
            x = _zero_padding(F.max_pool2d(x, (1, 4)), frames)
        x = block.conv_project(x.permute(0, 3, 1, 2).flatten(1, 2)).transpose(1, 2)
        return self._rated(self._ends(x, frames), raters)

    def _levels(self, waves: Tensor, frames: Sequence[int]) -> Tensor:
        """Compute a twentieth of the log power, `(signals, frames, bins)`; padding is 0."""
        count = max(frames)
        padded = F.pad(waves.double(), (HOP, (count - 1) * HOP + FFT - HOP - waves.shape[1]))
        power = torch.fft.rfft(padded.unfold(1, FFT, HOP) * self.window).abs().square()
        none = power == 0
        if not full(frames, count):
            none = none | ~inside(frames, count, waves.device)[..., None]
        least = power.masked_fill(none, math.inf).amin((1, 2), keepdim=True)
        levels = torch.where(power == 0, least.log() - FLOOR, power.clamp_min(torch.finfo(power.dtype).tiny).log())
        return _zero_padding((levels / SCALE).float()[:, None], frames)[:, 0]

    def _ends(self, x: Tensor, frames: Sequence[int]) -> Tensor:
        """Return the last layer's final states of both directions, `(signals, 2 x width)`."""
        count = x.shape[1]
        padding = x.new_zeros(len(x), count, 1)
        if not full(frames, count):
            padding = (~inside(frames, count, x.device))[..., None].to(x.dtype)
        for layer in self.layers:
            x = layer(torch.cat([x, padding], dim=2))[0]
        last = on_device(frames, x.device)[:, None, None].expand(-1, 1, WIDTH) - 1
        return torch.cat([x[..., :WIDTH].gather(1, last)[:, 0], x[:, 0, WIDTH:]], dim=1)

    def _rated(self, states: Tensor, raters: Tensor) -> Tensor:
        """Compute the mean score over the raters and its standard error, `(signals, 2)`."""
        for layer in (self.embed_dense1, *self.embed_dense2, self.embed_dense3):
            raters = F.leaky_relu(layer(raters), SLOPE)
        # The first layer is linear in signal and rater, so each is projected once and not for every pair.
        of_signal, of_rater = self.dense1.weight.split(2 * WIDTH, dim=1)
        x = F.linear(states, of_signal)[:, None] + F.linear(raters, of_rater, self.dense1.bias)
        x = F.leaky_relu(x, SLOPE)
        for layer in self.dense2:
            x = F.leaky_relu(layer(x), SLOPE)
        scores = 1 + 4 * self.dense3(x)[..., 0].sigmoid()
        return torch.stack([scores.mean(1), scores.std(1) / math.sqrt(scores.shape[1])], dim=1)


def _zero_padding(x: Tensor, frames: Sequence[int]) -> Tensor:
    """Zero `(signals, channels, frames, bins)` beyond each signal's end, in a copy."""
    if full(frames, x.shape[2]):
        return x
    return x.masked_fill(~inside(frames, x.shape[2], x.device)[:, None, :, None], 0)


def _gates(rows: Tensor) -> Tensor:
    """Reorder the rows of three gates from ONNX's order to torch's."""
    keep, reset, new = rows.chunk(3)
    return torch.cat([reset, keep, new])

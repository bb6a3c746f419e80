"""The convolutions of a self-supervised speech encoder: one vector every 20 ms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.half_precision import LayerNorm, Reducible
from codec_bench.networks.ragged import each, on_device
from codec_bench.networks.speech_config import EncoderConfig


class Folding(nn.Module):
    """A module with tensors derived from its parameters once after loading or moving."""

    _folded: Any = None

    def folded(self) -> Any:
        """Return the derived tensors, computed once."""
        if self._folded is None:
            # Tensors made in inference mode could not be used outside of it.
            with torch.inference_mode(False), torch.no_grad():
                self._folded = self.fold()
        return self._folded

    def fold(self) -> Any:
        """Compute the derived tensors."""
        raise NotImplementedError

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self._folded = None
        return super()._apply(*args, **kwargs)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._folded = None
        super()._load_from_state_dict(*args, **kwargs)


class StridedConv(Folding, Reducible):
    """A convolution over `(frames, channels)` as products without a copy.

    With stride s, the s taps of a step are s consecutive rows: in memory, one row s times as wide. So a kernel of k
    taps takes ceil(k / s) products, each shifted by one such row.
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
        """Return the weights of each product, `(outputs, taps * inputs)`."""
        taps = self.weight.permute(0, 2, 1)
        return [chunk.flatten(1).contiguous() for chunk in taps.split(self.stride, 1)]

    def forward(self, rows: Tensor) -> Tensor:
        """Map rows `(batch * frames, inputs)` to `(batch * frames / stride, outputs)`.

        The number of frames is a multiple of the stride. The taps of an item's last rows reach into the next item, but
        these rows are beyond the item's valid frames.
        """
        rows = rows.to(self.weight.dtype)
        wide = rows.view(rows.shape[0] // self.stride, -1)
        first, *rest = self.folded()
        out = F.linear(wide[:, : first.shape[1]], first, self.bias)
        for shift, weight in enumerate(rest, 1):
            out[:-shift].addmm_(wide[shift:, : weight.shape[1]], weight.T)
        return out


class ConvExtractor(nn.Module):
    """The strided convolutions: one vector per frame; norms use own frames."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.conv_layers = nn.ModuleList()
        inputs = 1
        for index, (outputs, kernel, stride) in enumerate(config.conv_layers):
            conv = StridedConv(inputs, outputs, kernel, stride, config.conv_bias)
            conv.exact = index == 0  # the statistics of the norm after it follow from its weights
            layer = nn.ModuleDict({"0": conv})
            if config.extractor == "layer_norm":
                layer["2"] = nn.ModuleDict({"1": LayerNorm(outputs)})
            elif index == 0:
                layer["2"] = nn.GroupNorm(outputs, outputs)
            self.conv_layers.append(layer)
            inputs = outputs

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Map waves `(batch, samples)` to `(batch, samples / hop, channels)`."""
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
        """Run the first convolution and its norm in float32: `(batch, frames, channels)`."""
        conv = layer["0"]
        overhang = max(0, conv.kernel - conv.stride)
        taps = F.pad(waves.float(), (0, overhang)).unfold(1, conv.kernel, conv.stride)
        weight = conv.weight[:, 0]
        if self.config.extractor == "group_norm":
            scale, shift = self._group_norm(layer["2"], taps, weight, lengths)
            # Two more taps of ones, which keep rows aligned: adding the shift would read and write the widest tensor
            # once more.
            scaled = torch.cat([weight * scale[..., None], shift[..., None], torch.zeros_like(shift)[..., None]], 2)
            return F.pad(taps, (0, 2), value=1.0) @ scaled.mT
        out = taps @ weight.T if conv.bias is None else F.linear(taps, weight, conv.bias)
        return layer["2"]["1"](out)

    def _group_norm(
        self, norm: nn.GroupNorm, taps: Tensor, weight: Tensor, lengths: Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        """Express the first group norm as a scale of the weights and a shift.

        Both are `(batch, channels)`. A channel is linear in the taps, so its mean and variance over an item follow from
        the mean and covariance of the item's taps. These few hundred float64 numbers replace three passes over the
        network's widest tensor. The convolution's bias cancels.

        Args:
            taps: windows of the waves, `(batch, frames, kernel)`.
            weight: `(channels, kernel)`.
        """
        _, kernel, stride = self.config.conv_layers[0]
        frame_counts = each(lengths, lambda samples: (samples - kernel) // stride + 1)
        counts = on_device(frame_counts, taps.device)[:, None, None]
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

"""AASIST: detects synthetic speech by sinc filters and graph attention.

Reference implementation: github.com/clovaai/aasist.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.ragged import WholeSignal

FILTERS, TAPS, BANDS = 70, 129, 23
CHANNELS = ((1, 32), (32, 32), (32, 64), (64, 64), (64, 64), (64, 64))
WIDTH, GRAPH_WIDTH = 64, 32
PLAIN_TEMPERATURE, GRAPH_TEMPERATURE = 2.0, 100.0


def sinc_filters() -> Tensor:
    """Build windowed-sinc band-pass filters `(70, 1, 129)`, equally spaced in mel."""
    edges_hz = 700.0 * (10.0 ** (np.linspace(0.0, 2595.0 * np.log10(1.0 + 8_000 / 700.0), FILTERS + 1) / 2595.0) - 1.0)
    taps = np.arange(TAPS) - (TAPS - 1) / 2.0
    low_pass = [2.0 * edge / 16_000 * np.sinc(2.0 * edge / 16_000 * taps) for edge in edges_hz]
    band_pass = np.stack([high - low for low, high in pairwise(low_pass)])
    return torch.from_numpy(np.hamming(TAPS).astype(np.float32) * band_pass.astype(np.float32))[:, None]


class _AasistBlock(nn.Module):
    """Two convolutions of 2 x 3 with a skip, and a maximum over three steps.

    The published network discards the norm of every block's input but the first's; its checkpoint holds the statistics
    (`bn1`).
    """

    def __init__(self, inputs: int, outputs: int, *, first: bool) -> None:
        super().__init__()
        if not first:
            self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, (2, 3), padding=(1, 1))
        self.bn2 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, (2, 3), padding=(0, 1))
        self.conv_downsample = nn.Conv2d(inputs, outputs, (1, 3), padding=(0, 1)) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        """Map `(items, inputs, bands, time)` to `(items, outputs, bands, time / 3)`."""
        out = self.conv2(F.selu(self.bn2(self.conv1(x))))
        skip = x if self.conv_downsample is None else self.conv_downsample(x)
        return F.max_pool2d(out + skip, (1, 3))


class _GraphAttention(nn.Module):
    """Attention between all pairs of nodes of one kind."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.att_proj = nn.Linear(inputs, outputs)
        self.att_weight = nn.Parameter(torch.empty(outputs, 1))
        self.proj_with_att = nn.Linear(inputs, outputs)
        self.proj_without_att = nn.Linear(inputs, outputs)
        self.bn = nn.BatchNorm1d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map nodes `(items, nodes, inputs)` to `(items, nodes, outputs)`."""
        pairs = torch.tanh(self.att_proj(x[:, :, None] * x[:, None]))
        attention = ((pairs @ self.att_weight)[..., 0] / PLAIN_TEMPERATURE).softmax(dim=2)
        return self._normalised(self.proj_with_att(attention @ x) + self.proj_without_att(x))

    def _normalised(self, x: Tensor) -> Tensor:
        return F.selu(self.bn(x.transpose(1, 2)).transpose(1, 2))


class _MixedGraphAttention(_GraphAttention):
    """Attention between nodes of two kinds, and from all of them to one master node."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        del self.att_weight
        self.proj_type1, self.proj_type2 = nn.Linear(inputs, inputs), nn.Linear(inputs, inputs)
        self.att_projM = nn.Linear(inputs, outputs)
        self.att_weight11, self.att_weight22, self.att_weight12, self.att_weightM = (
            nn.Parameter(torch.empty(outputs, 1)) for _ in range(4)
        )
        self.proj_with_attM, self.proj_without_attM = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs)

    def mix(self, times: Tensor, bands: Tensor, master: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Attend between the nodes of times and bands, and update a master node from both.

        Args:
            times, bands: `(items, nodes, inputs)`.
            master: `(items, 1, inputs)`.

        Returns:
            The new times, bands and master, of the output width.
        """
        count = times.shape[1]
        x = torch.cat([self.proj_type1(times), self.proj_type2(bands)], dim=1)
        pairs = torch.tanh(self.att_proj(x[:, :, None] * x[:, None]))
        is_time = torch.arange(x.shape[1], device=x.device) < count
        same, cross = (pairs @ self.att_weight11, pairs @ self.att_weight22), pairs @ self.att_weight12
        weights = torch.where((is_time[:, None] & is_time)[..., None], same[0], cross)
        weights = torch.where((~is_time[:, None] & ~is_time)[..., None], same[1], weights)
        attention = (weights[..., 0] / GRAPH_TEMPERATURE).softmax(dim=2)
        to_master = torch.tanh(self.att_projM(x * master)) @ self.att_weightM
        shares = (to_master / GRAPH_TEMPERATURE).softmax(dim=1).transpose(1, 2)
        master = self.proj_with_attM(shares @ x) + self.proj_without_attM(master)
        x = self._normalised(self.proj_with_att(attention @ x) + self.proj_without_att(x))
        return x[:, :count], x[:, count:], master


class _AasistPool(nn.Module):
    """The nodes with the largest learnt scores, times their scores."""

    def __init__(self, width: int, share: float) -> None:
        super().__init__()
        self.proj, self.share = nn.Linear(width, 1), share

    def forward(self, nodes: Tensor) -> Tensor:
        """Keep a share of the nodes `(items, nodes, width)`, those of highest score.

        They are scaled by their scores, and the best comes first.
        """
        scores = self.proj(nodes).sigmoid()
        best = scores.topk(max(int(nodes.shape[1] * self.share), 1), dim=1).indices
        return (nodes * scores).gather(1, best.expand(-1, -1, nodes.shape[2]))


class AasistNet(WholeSignal, nn.Module):
    """The whole network, for one signal at a time."""

    at_once = (1, 1)
    filters: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("filters", sinc_filters(), persistent=False)
        self.first_bn = nn.BatchNorm2d(1)
        blocks = [nn.Sequential(_AasistBlock(*sizes, first=number == 0)) for number, sizes in enumerate(CHANNELS)]
        self.encoder = nn.Sequential(*blocks)
        self.pos_S = nn.Parameter(torch.empty(1, BANDS, WIDTH))
        self.master1, self.master2 = (nn.Parameter(torch.empty(1, 1, WIDTH)) for _ in range(2))
        self.GAT_layer_S, self.GAT_layer_T = _GraphAttention(WIDTH, WIDTH), _GraphAttention(WIDTH, WIDTH)
        self.pool_S, self.pool_T = _AasistPool(WIDTH, 0.5), _AasistPool(WIDTH, 0.7)
        for branch in "12":
            for step, width in zip("12", (WIDTH, GRAPH_WIDTH), strict=True):
                setattr(self, f"HtrgGAT_layer_ST{branch}{step}", _MixedGraphAttention(width, GRAPH_WIDTH))
            for kind in "ST":
                setattr(self, f"pool_h{kind}{branch}", _AasistPool(GRAPH_WIDTH, 0.5))
        self.out_layer = nn.Linear(5 * GRAPH_WIDTH, 2)

    def forward(self, waves: Tensor, lengths: object) -> Tensor:
        """Map waves `(items, samples)` to the probability of genuine speech `(items, 1)`."""
        x = F.conv1d(waves[:, None], self.filters)[:, None]
        x = self.encoder(F.selu(self.first_bn(F.max_pool2d(x.abs(), 3)))).abs()
        bands = self.pool_S(self.GAT_layer_S(x.amax(dim=3).transpose(1, 2) + self.pos_S))
        times = self.pool_T(self.GAT_layer_T(x.amax(dim=2).transpose(1, 2)))
        branches = [self._branch(times, bands, name) for name in "12"]
        times, bands, master = (torch.maximum(*both) for both in zip(*branches, strict=True))
        parts = [times.abs().amax(1), times.mean(1), bands.abs().amax(1), bands.mean(1), master[:, 0]]
        return self.out_layer(torch.cat(parts, dim=1)).softmax(dim=1)[:, 1:]

    def _branch(self, times: Tensor, bands: Tensor, name: str) -> tuple[Tensor, Tensor, Tensor]:
        """Run one of two parallel stacks of graph attention; return times, bands, master.

        Args:
            name: of the stack in the published weights, `1` or `2`.
        """
        first, second = (getattr(self, f"HtrgGAT_layer_ST{name}{step}") for step in "12")
        times, bands, master = first.mix(times, bands, getattr(self, f"master{name}"))
        bands, times = getattr(self, f"pool_hS{name}")(bands), getattr(self, f"pool_hT{name}")(times)
        more = second.mix(times, bands, master)
        return times + more[0], bands + more[1], master + more[2]

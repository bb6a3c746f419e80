"""Finite scalar quantisation with residual stages and groups.

Hidden states are float32 `(..., dim)`, codes int64. Paper: Mentzer et al., Finite Scalar Quantization,
https://arxiv.org/abs/2309.15505. Reference: vector_quantize_pytorch 1.16.1 (MIT): equal codes and values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

_SLACK = 1e-3  # the bound lies this part beyond the outermost level: else rounding would not reach that level


class ResidualFSQ(nn.Module):
    """A projection to a few numbers, and stages that round the remainder.

    Stage `k` divides the remainder by `(levels - 1) ** k`, bounds it by a hyperbolic tangent and rounds it. The index
    of each number's level is a digit of the stage's code, least significant first.

    Args:
        levels: how many values each number can take. stages: each gives one code.
        bound_first: whether the projection is bounded before the first stage bounds it again, as
            vector_quantize_pytorch before 1.18.5 does with residual stages. It changes which codes are chosen, not the
            values of codes.
    """

    _sizes: Tensor
    _halves: Tensor
    _places: Tensor
    _offset: Tensor
    _reach: Tensor
    _shift: Tensor
    _scales: Tensor

    def __init__(self, dim: int, levels: Sequence[int], stages: int = 1, *, bound_first: bool = False) -> None:
        super().__init__()
        self.stages, self.bound_first = stages, bound_first
        self.entries = math.prod(levels)
        self.project_in = nn.Linear(dim, len(levels))
        self.project_out = nn.Linear(len(levels), dim)
        sizes = torch.tensor(levels)
        offset = torch.where(sizes % 2 == 0, 0.5, 0.0)
        reach = (sizes - 1) * (1 + _SLACK) / 2
        for name, constant in {
            "_sizes": sizes,
            "_halves": sizes // 2,
            "_places": torch.tensor([math.prod(levels[:k]) for k in range(len(levels))]),
            "_offset": offset,
            "_reach": reach,
            "_shift": (offset / reach).atanh(),
            "_scales": torch.stack([(sizes - 1).float() ** -stage for stage in range(stages)]),
        }.items():
            self.register_buffer(name, constant, persistent=False)

    def search(self, x: Tensor) -> Tensor:
        """Quantise hidden states `(..., dim)` to codes `(..., stages)`."""
        left = self.project_in(x)
        if self.bound_first:
            left = self._bound(left)
        codes = []
        for scale in self._scales:
            rounded = self._bound(left / scale).round()
            left = left - rounded / self._halves * scale
            codes.append(((rounded.long() + self._halves) * self._places).sum(-1))
        return torch.stack(codes, -1)

    def lookup(self, codes: Tensor) -> Tensor:
        """Decode codes `(..., stages)` to hidden states `(..., dim)`."""
        digits = codes[..., None] // self._places % self._sizes
        values = (digits - self._halves) / self._halves * self._scales
        return self.project_out(values.sum(-2))

    def _bound(self, x: Tensor) -> Tensor:
        return (x + self._shift).tanh() * self._reach - self._offset


class GroupedResidualFSQ(nn.Module):
    """Groups of channels, each with its own residual quantiser."""

    def __init__(
        self, dim: int, levels: Sequence[int], *, groups: int, stages: int = 1, bound_first: bool = False
    ) -> None:
        super().__init__()
        quantisers = [ResidualFSQ(dim // groups, levels, stages, bound_first=bound_first) for _ in range(groups)]
        self.rvqs = nn.ModuleList(quantisers)
        self.entries = math.prod(levels)

    def search(self, x: Tensor) -> Tensor:
        """Quantise hidden states `(..., dim)` to codes `(..., groups * stages)`."""
        return torch.cat([rvq.search(group) for rvq, group in self._shared(x)], -1)

    def lookup(self, codes: Tensor) -> Tensor:
        """Return hidden states `(..., dim)` of codes `(..., groups * stages)`."""
        return torch.cat([rvq.lookup(group) for rvq, group in self._shared(codes)], -1)

    def _shared(self, values: Tensor) -> Iterator[tuple[ResidualFSQ, Tensor]]:
        """Pair each group's quantiser with its share of values `(..., groups * n)`."""
        for rvq, group in zip(self.rvqs, values.chunk(len(self.rvqs), -1)):
            assert isinstance(rvq, ResidualFSQ)
            yield rvq, group

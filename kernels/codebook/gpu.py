"""The same counts as in `ref.py` on a GPU, without copying the codes to the host.

Histograms are made by a Triton kernel that reads every code once and adds atomically. Integers give the same sum in any
order, and with a thousand bins the additions rarely wait for each other. `torch.bincount` would copy the largest code
to the host, and the codes would have to be masked in memory before. Pairs are sorted on the device: most of 1024²
possible pairs never occur, and 65536² counts would not fit into memory.
"""

from __future__ import annotations

import numpy as np
import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # without Triton, `histogram_plain` counts
    triton = None

_FRAMES_AT_ONCE = 512

if triton is not None:

    @triton.jit
    def _histogram(
        codes, lengths, counts, codebooks, frames, cardinality, codes_item, codes_codebook, codes_frame,
        BLOCK: tl.constexpr,
    ):  # fmt: skip
        item, codebook = tl.program_id(1).to(tl.int64) // codebooks, tl.program_id(1) % codebooks
        t = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        real = t < tl.minimum(tl.load(lengths + item), frames)
        place = codes + item * codes_item + codebook * codes_codebook + t.to(tl.int64) * codes_frame
        code = tl.load(place, mask=real, other=0)
        code = tl.where((code >= 0) & (code < cardinality), code, cardinality)
        tl.atomic_add(
            counts + codebook * (cardinality + 1) + code, tl.full((BLOCK,), 1, tl.int64), mask=real, sem="relaxed"
        )


def histogram(codes: torch.Tensor, cardinality: int, lengths: np.ndarray | torch.Tensor | None = None) -> torch.Tensor:
    """As `ref.histogram`, in Triton."""
    items, codebooks, frames = codes.shape
    counts = torch.zeros(codebooks, cardinality + 1, dtype=torch.int64, device=codes.device)
    if codes.numel():
        # The second dimension of the grid is limited to 65535.
        at_once = max(1, 65535 // codebooks)
        lengths = _lengths(codes, lengths)
        for first in range(0, items, at_once):
            part = codes[first : first + at_once]
            with torch.cuda.device_of(codes):  # a kernel is launched on the current device
                _histogram[(triton.cdiv(frames, _FRAMES_AT_ONCE), len(part) * codebooks)](
                    part, lengths[first:], counts, codebooks, frames, cardinality, *part.stride(),
                    BLOCK=_FRAMES_AT_ONCE, num_warps=4,
                )  # fmt: skip
    return counts


def histogram_plain(
    codes: torch.Tensor, cardinality: int, lengths: np.ndarray | torch.Tensor | None = None
) -> torch.Tensor:
    """As `ref.histogram`, in torch alone."""
    codebooks, width = codes.shape[1], cardinality + 1
    places = torch.arange(codebooks, device=codes.device).view(-1, 1) * width
    codes = codes.long()
    rows = torch.where((codes >= 0) & (codes < cardinality), codes, cardinality) + places
    weights = _real(codes, lengths).expand_as(rows).long()
    counts = torch.zeros(codebooks * width, dtype=torch.int64, device=codes.device)
    return counts.index_add_(0, rows.flatten(), weights.flatten()).view(codebooks, width)


def pairs(
    codes: torch.Tensor, cardinality: int, lengths: np.ndarray | torch.Tensor | None = None, frames: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `ref.pairs`, in torch."""
    codes = codes.long()
    real = _real(codes, lengths).expand_as(codes) & (codes >= 0) & (codes < cardinality)
    first, second = (..., slice(None, -1)), (..., slice(1, None))
    if not frames:
        first, second = (slice(None), slice(None, -1)), (slice(None), slice(1, None))
    places = torch.arange(codes[first].shape[1], device=codes.device).view(-1, 1)
    keys = (places * cardinality + codes[first]) * cardinality + codes[second]
    return torch.unique(keys[real[first] & real[second]], return_counts=True)


def _real(codes: torch.Tensor, lengths: np.ndarray | torch.Tensor | None) -> torch.Tensor:
    return torch.arange(codes.shape[2], device=codes.device) < _lengths(codes, lengths).view(-1, 1, 1)


def _lengths(codes: torch.Tensor, lengths: np.ndarray | torch.Tensor | None) -> torch.Tensor:
    if lengths is None:
        return torch.full((len(codes),), codes.shape[2], device=codes.device)
    return torch.as_tensor(lengths, dtype=torch.int64, device=codes.device)

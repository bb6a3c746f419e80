"""Search and lookup on a CPU: torch's matrix product over blocks of frames.

A codeword's score is `r·e - |e|²/2`: minus half the squared distance, up to `|r|²/2`. The offset is part of the
product, so the table is written once and read once. The number of threads is torch's.
"""

from __future__ import annotations

import numpy as np
import torch

_FRAMES_AT_ONCE = 2048  # with 1024 entries these are 8 MiB of scores; with fewer frames the products are slower


def search_euclidean(latents: torch.Tensor, embed: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Compute `ref.search_euclidean` in float32: int64 `(items, codebooks, frames)`.

    Args:
        latents: `(items, dims, frames)`. embed: `(codebooks, entries, dims)`.
        offsets: `-|e|²/2` of every codeword, `(codebooks, entries)`.
    """
    items, dims, frames = latents.shape
    residual = latents.transpose(1, 2).reshape(-1, dims)
    if residual.data_ptr() == latents.data_ptr():  # it is written to
        residual = residual.clone()
    codes = np.empty((len(embed), len(residual)), np.int64)
    indices = torch.from_numpy(codes)
    scores = torch.empty(min(_FRAMES_AT_ONCE, max(len(residual), 1)), embed.shape[1])
    table = scores.numpy()
    for start in range(0, len(residual), _FRAMES_AT_ONCE):
        chunk = residual[start : start + _FRAMES_AT_ONCE]
        here = slice(start, start + len(chunk))
        for codebook, words in enumerate(embed):
            torch.addmm(offsets[codebook], chunk, words.T, out=scores[: len(chunk)])
            np.argmax(table[: len(chunk)], axis=1, out=codes[codebook, here])
            chunk -= words[indices[codebook, here]]
    return indices.view(len(embed), items, frames).transpose(0, 1).contiguous()


def search_factorised(
    projected: torch.Tensor, directions: torch.Tensor, steps: torch.Tensor, codebooks: int
) -> torch.Tensor:
    """`ref.search_factorised` of projections: int64 `(items, codebooks, frames)`.

    Args:
        projected: `(items, codebooks * dims, frames)`. directions: codewords of length one, `(codebooks, entries,
            dims)`.
        steps: each codeword's subtrahend of later projections, `(codebooks, entries, codebooks, dims)`.
        codebooks: number of codebooks to search.
    """
    items, width, frames = projected.shape
    entries, dims = directions.shape[1:]
    left = projected.transpose(1, 2).reshape(-1, width)
    if left.data_ptr() == projected.data_ptr():  # it is written to
        left = left.clone()
    codes = np.empty((codebooks, len(left)), np.int64)
    indices = torch.from_numpy(codes)
    scores = torch.empty(min(_FRAMES_AT_ONCE, max(len(left), 1)), entries)
    table = scores.numpy()
    for start in range(0, len(left), _FRAMES_AT_ONCE):
        chunk = left[start : start + _FRAMES_AT_ONCE]
        here = slice(start, start + len(chunk))
        for codebook in range(codebooks):
            first, last = codebook * dims, (codebook + 1) * dims
            torch.mm(chunk[:, first:last], directions[codebook].T, out=scores[: len(chunk)])
            np.argmax(table[: len(chunk)], axis=1, out=codes[codebook, here])
            chunk[:, last:] -= steps[codebook].view(entries, -1)[indices[codebook, here], last:width]
    return indices.view(codebooks, items, frames).transpose(0, 1).contiguous()


def lookup_euclidean(codes: torch.Tensor, embed: torch.Tensor) -> torch.Tensor:
    """`ref.lookup_euclidean`, float32 `(items, dims, frames)`, contiguous frames."""
    items, codebooks, frames = codes.shape
    entries, dims = embed.shape[1:]
    firsts = torch.arange(codebooks).view(-1, 1) * entries
    rows = (codes + firsts).transpose(1, 2).reshape(-1, codebooks)
    total = torch.nn.functional.embedding_bag(rows, embed.reshape(-1, dims), mode="sum")
    return total.view(items, frames, dims).transpose(1, 2)


def gather(codes: torch.Tensor, embed: torch.Tensor) -> torch.Tensor:
    """The codewords of all codebooks, `(items, codebooks * dims, frames)`."""
    items, codebooks, frames = codes.shape
    words = embed[torch.arange(codebooks, device=codes.device).view(-1, 1), codes]  # items, codebooks, frames, dims
    return words.transpose(2, 3).reshape(items, codebooks * embed.shape[2], frames)

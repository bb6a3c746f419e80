"""Search and lookup in torch, without Triton, with the whole table."""

from __future__ import annotations

import torch

from codec_bench.kernels.rvq.cpu import gather


def search_euclidean(latents: torch.Tensor, embed: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """As `cpu.search_euclidean`, on any device."""
    items, dims, frames = latents.shape
    residual = latents.transpose(1, 2).reshape(-1, dims)
    codes = []
    for words, offset in zip(embed, offsets):
        codes.append(torch.addmm(offset, residual, words.T).max(1).indices)
        residual = residual - words[codes[-1]]
    return torch.stack(codes).view(len(embed), items, frames).transpose(0, 1).contiguous()


def search_factorised(
    projected: torch.Tensor, directions: torch.Tensor, steps: torch.Tensor, codebooks: int
) -> torch.Tensor:
    """As `cpu.search_factorised`, on any device."""
    items, width, frames = projected.shape
    dims = directions.shape[2]
    left = projected.transpose(1, 2).reshape(items * frames, width // dims, dims)
    codes = []
    for codebook in range(codebooks):
        codes.append((left[:, codebook] @ directions[codebook].T).max(1).indices)
        left = left - steps[codebook, codes[-1], :codebooks]
    return torch.stack(codes).view(codebooks, items, frames).transpose(0, 1).contiguous()


def lookup_euclidean(codes: torch.Tensor, embed: torch.Tensor) -> torch.Tensor:
    """As `cpu.lookup_euclidean`, on any device."""
    words = gather(codes, embed)
    return words.unflatten(1, (codes.shape[1], embed.shape[2])).sum(1)

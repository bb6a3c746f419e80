"""Search and lookup on a GPU, in Triton: one launch for all codebooks.

Registers hold the residual and the scores of a tile of frames; the codebooks are read from the second-level cache,
which holds all of them (EnCodec's 32 take 16 MiB). Each product is three TF32 products on the tensor cores, which
together have float32's error. TRITON_INTERPRET=1, set before the import, runs the kernels on CPU tensors;
`tests/gpu/test_launches.py` checks their reads and writes.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
import triton
import triton.language as tl

MAX_DIMS = 256  # a residual with more dimensions does not fit the registers
MAX_CODEBOOKS = 32  # for a factorised quantiser; the projections for more do not fit the registers
_PRECISION = "tf32x3"


class Tile(NamedTuple):
    """A program's work: frames, entries at a time, warps and stages of loading."""

    frames: int
    entries: int
    warps: int
    stages: int


_NARROW = {128: (Tile(32, 64, 8, 2), Tile(16, 64, 4, 2)), 256: (Tile(16, 32, 8, 1),)}
# By compute capability and residual width, largest first. A tile of 64 frames stays in registers on 9, and on 10 below
# 256 dimensions; elsewhere it spills (docs/reference/kernels.md).
_TILES = {
    9: {128: (Tile(64, 64, 8, 2), *_NARROW[128]), 256: (Tile(64, 32, 8, 1), *_NARROW[256])},
    10: {128: (Tile(64, 32, 8, 1), *_NARROW[128]), 256: _NARROW[256]},
}


@triton.jit
def _better(scores, start, best, which):
    """Update each frame's best score and codeword by a tile of scores from codeword `start` on."""
    top, at = tl.max(scores, axis=1, return_indices=True, return_indices_tie_break_left=True)
    better = top > best  # an equal one has a higher index
    return tl.where(better, top, best), tl.where(better, start + at, which)


@triton.jit
def _euclidean(
    latents, embed, offsets, codes, frames, dims,
    latents_item, latents_dim, latents_frame, codes_item, codes_codebook, codes_frame,
    CODEBOOKS: tl.constexpr, ENTRIES: tl.constexpr,
    BLOCK_T: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    item = tl.program_id(1).to(tl.int64)
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    d = tl.arange(0, BLOCK_D)
    real = t < frames
    residual = tl.load(
        latents + item * latents_item + t[:, None].to(tl.int64) * latents_frame + d[None, :] * latents_dim,
        mask=real[:, None] & (d[None, :] < dims), other=0.0,
    )  # fmt: skip
    for codebook in range(CODEBOOKS):
        words = embed + codebook * ENTRIES * dims
        best = tl.full((BLOCK_T,), float("-inf"), tl.float32)
        which = tl.zeros((BLOCK_T,), tl.int32)
        for start in range(0, ENTRIES, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            tile = tl.load(
                words + k[None, :] * dims + d[:, None], mask=(k[None, :] < ENTRIES) & (d[:, None] < dims), other=0.0
            )
            offset = tl.load(offsets + codebook * ENTRIES + k, mask=k < ENTRIES, other=float("-inf"))
            scores = tl.dot(residual, tile, input_precision=PRECISION) + offset[None, :]
            best, which = _better(scores, start, best, which)
        address = codes + item * codes_item + codebook * codes_codebook + t.to(tl.int64) * codes_frame
        tl.store(address, which.to(tl.int64), mask=real)
        residual -= tl.load(words + which[:, None] * dims + d[None, :], mask=d[None, :] < dims, other=0.0)


@triton.jit
def _factorised(
    projected, directions, steps, codes, frames, stages, dims,
    projected_item, projected_row, projected_frame, codes_item, codes_codebook, codes_frame,
    CODEBOOKS: tl.constexpr, ENTRIES: tl.constexpr,
    BLOCK_T: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    item = tl.program_id(1).to(tl.int64)
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    q = tl.arange(0, BLOCK_Q)[None, :, None]
    d3 = tl.arange(0, BLOCK_D)[None, None, :]
    d = tl.arange(0, BLOCK_D)
    real = t < frames
    inside = (q < CODEBOOKS) & (d3 < dims)
    left = tl.load(
        projected + item * projected_item + (q * dims + d3) * projected_row
        + t[:, None, None].to(tl.int64) * projected_frame,
        mask=real[:, None, None] & inside, other=0.0,
    )  # fmt: skip
    for codebook in range(CODEBOOKS):
        target = tl.sum(tl.where(q == codebook, left, 0.0), axis=1)
        best = tl.full((BLOCK_T,), float("-inf"), tl.float32)
        which = tl.zeros((BLOCK_T,), tl.int32)
        for start in range(0, ENTRIES, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            tile = tl.load(
                directions + (codebook * ENTRIES + k[None, :]) * dims + d[:, None],
                mask=(k[None, :] < ENTRIES) & (d[:, None] < dims), other=0.0,
            )  # fmt: skip
            scores = tl.dot(target, tile, input_precision=PRECISION)
            scores = tl.where(k[None, :] < ENTRIES, scores, float("-inf"))
            best, which = _better(scores, start, best, which)
        address = codes + item * codes_item + codebook * codes_codebook + t.to(tl.int64) * codes_frame
        tl.store(address, which.to(tl.int64), mask=real)
        row = (codebook * ENTRIES + which[:, None, None]) * stages + q
        left -= tl.load(steps + row * dims + d3, mask=inside, other=0.0)


@triton.jit
def _lookup(
    codes, embed, latents, frames, dims,
    codes_item, codes_codebook, codes_frame, latents_item, latents_dim, latents_frame,
    CODEBOOKS: tl.constexpr, ENTRIES: tl.constexpr,
    BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    item = tl.program_id(1).to(tl.int64)
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    d = tl.arange(0, BLOCK_D)
    real = t < frames
    inside = real[:, None] & (d[None, :] < dims)
    total = tl.zeros((BLOCK_T, BLOCK_D), tl.float32)
    for codebook in range(CODEBOOKS):
        address = codes + item * codes_item + codebook * codes_codebook + t.to(tl.int64) * codes_frame
        which = tl.load(address, mask=real, other=0)
        total += tl.load(embed + (codebook * ENTRIES + which[:, None]) * dims + d[None, :], mask=inside, other=0.0)
    address = latents + item * latents_item + t[:, None].to(tl.int64) * latents_frame + d[None, :] * latents_dim
    tl.store(address, total, mask=inside)


def search_euclidean(latents: torch.Tensor, embed: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Compute `cpu.search_euclidean`; `embed` and `offsets` are contiguous."""
    items, dims, frames = latents.shape
    codes = torch.empty(items, len(embed), frames, dtype=torch.int64, device=latents.device)
    if codes.numel() == 0:
        return codes
    tile = chosen_tile(items, frames, dims, *_multiprocessors(latents.device))
    with torch.cuda.device_of(latents):  # a kernel is launched on the current device
        _euclidean[(triton.cdiv(frames, tile.frames), items)](
            latents, embed, offsets, codes, frames, dims, *latents.stride(), *codes.stride(),
            CODEBOOKS=len(embed), ENTRIES=embed.shape[1],
            BLOCK_T=tile.frames, BLOCK_K=tile.entries, BLOCK_D=max(16, triton.next_power_of_2(dims)),
            PRECISION=_PRECISION, num_warps=tile.warps, num_stages=tile.stages,
        )  # fmt: skip
    return codes


def search_factorised(
    projected: torch.Tensor, directions: torch.Tensor, steps: torch.Tensor, codebooks: int
) -> torch.Tensor:
    """Compute `cpu.search_factorised`; `directions` and `steps` are contiguous."""
    items, _, frames = projected.shape
    entries, dims = directions.shape[1:]
    codes = torch.empty(items, codebooks, frames, dtype=torch.int64, device=projected.device)
    if codes.numel() == 0:
        return codes
    tile = factorised_tile(codebooks)
    with torch.cuda.device_of(projected):
        _factorised[(triton.cdiv(frames, tile.frames), items)](
            projected, directions, steps, codes, frames, steps.shape[2], dims,
            *projected.stride(), *codes.stride(),
            CODEBOOKS=codebooks, ENTRIES=entries,
            BLOCK_T=tile.frames, BLOCK_K=tile.entries, BLOCK_Q=triton.next_power_of_2(codebooks),
            BLOCK_D=max(16, triton.next_power_of_2(dims)),
            PRECISION=_PRECISION, num_warps=tile.warps, num_stages=tile.stages,
        )  # fmt: skip
    return codes


def lookup_euclidean(codes: torch.Tensor, embed: torch.Tensor) -> torch.Tensor:
    """Compute `cpu.lookup_euclidean`; `embed` is contiguous."""
    items, codebooks, frames = codes.shape
    dims = embed.shape[2]
    latents = torch.empty(items, dims, frames, device=codes.device)
    if latents.numel() == 0:
        return latents
    at_once = lookup_frames(dims)
    with torch.cuda.device_of(codes):
        _lookup[(triton.cdiv(frames, at_once), items)](
            codes, embed, latents, frames, dims, *codes.stride(), *latents.stride(),
            CODEBOOKS=codebooks, ENTRIES=embed.shape[1],
            BLOCK_T=at_once, BLOCK_D=triton.next_power_of_2(dims), num_warps=4,
        )  # fmt: skip
    return latents


def tiles(dims: int, capability: int) -> tuple[Tile, ...]:
    """Tiles for a residual of these dimensions on a compute capability."""
    return _TILES.get(capability, _NARROW)[128 if dims <= 128 else 256]


def chosen_tile(items: int, frames: int, dims: int, capability: int, multiprocessors: int) -> Tile:
    """Return the largest tile that keeps every multiprocessor busy, else the smallest."""
    able = tiles(dims, capability)
    return next((tile for tile in able if items * triton.cdiv(frames, tile.frames) >= multiprocessors), able[-1])


def factorised_tile(codebooks: int) -> Tile:
    """The factorised search's tile, whose projections fit into registers."""
    return Tile(32 if triton.next_power_of_2(codebooks) <= 16 else 16, 128, 4, 3)


def lookup_frames(dims: int) -> int:
    """Return the frames of one program of the lookup."""
    return 32 if dims <= 256 else 16


@functools.cache
def _multiprocessors(device: torch.device) -> tuple[int, int]:
    """Return the compute capability's first number, and the number of multiprocessors."""
    if device.type != "cuda":  # the interpreter runs the largest tiles
        return 9, 1
    facts = torch.cuda.get_device_properties(device)
    return facts.major, facts.multi_processor_count

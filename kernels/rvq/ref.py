"""The specification of residual vector quantisers, in NumPy and float64.

Latents are `(items, dims, frames)`, codes `(items, codebooks, frames)` int64. Of equally near codewords, the lowest
index wins. EnCodec (arXiv:2210.13438) and Mimi (arXiv:2410.00037) take the nearest codeword; DAC (arXiv:2306.06546)
projects the residual to a few dimensions and takes the largest cosine. transformers computes in float32: its codes
differ only where two codewords are equally near within its rounding.
"""

from __future__ import annotations

import numpy as np

_FRAMES_AT_ONCE = 64  # bounds the table of differences


def search_euclidean(latents: np.ndarray, embed: np.ndarray) -> np.ndarray:
    """Codewords nearest to the residual: int64 `(items, codebooks, frames)`.

    Args:
        latents: `(items, dims, frames)`. embed: codewords `(codebooks, entries, dims)`.
    """
    items, dims, frames = latents.shape
    residual = np.moveaxis(latents, 1, 2).reshape(-1, dims).astype(np.float64)
    embed = embed.astype(np.float64)
    codes = np.empty((len(embed), len(residual)), np.int64)
    for codebook, words in enumerate(embed):
        for start in range(0, len(residual), _FRAMES_AT_ONCE):
            chunk = residual[start : start + _FRAMES_AT_ONCE]
            distance = np.square(chunk[:, None] - words).sum(2)
            codes[codebook, start : start + _FRAMES_AT_ONCE] = distance.argmin(1)
        residual -= words[codes[codebook]]
    return np.moveaxis(codes.reshape(-1, items, frames), 0, 1)


def lookup_euclidean(codes: np.ndarray, embed: np.ndarray) -> np.ndarray:
    """Sum the codewords, float64 `(items, dims, frames)`."""
    words = [embed[codebook].astype(np.float64)[codes[:, codebook]] for codebook in range(codes.shape[1])]
    return np.moveaxis(np.sum(words, axis=0), 2, 1)


def search_factorised(
    latents: np.ndarray,
    embed: np.ndarray,
    project: np.ndarray,
    project_bias: np.ndarray,
    expand: np.ndarray,
    expand_bias: np.ndarray,
) -> np.ndarray:
    """The largest cosine to the projection: int64 `(items, codebooks, frames)`.

    Args:
        latents: `(items, hidden, frames)`.
        embed: codewords `(codebooks, entries, dims)`, not normalised. One of length zero has cosine 0 to everything.
        project, project_bias: `(codebooks, dims, hidden)`, `(codebooks, dims)`, applied before the search.
        expand, expand_bias: `(codebooks, hidden, dims)`, `(codebooks, hidden)`, from a codeword to the residual's
            subtrahend.
    """
    items, hidden, frames = latents.shape
    residual = np.moveaxis(latents, 1, 2).reshape(-1, hidden).astype(np.float64)
    embed, project, expand = (values.astype(np.float64) for values in (embed, project, expand))
    codes = np.empty((len(embed), len(residual)), np.int64)
    for codebook, words in enumerate(embed):
        length = np.linalg.norm(words, axis=1, keepdims=True)
        directions = words / np.where(length > 0, length, 1)
        codes[codebook] = ((residual @ project[codebook].T + project_bias[codebook]) @ directions.T).argmax(1)
        residual -= words[codes[codebook]] @ expand[codebook].T + expand_bias[codebook]
    return np.moveaxis(codes.reshape(-1, items, frames), 0, 1)

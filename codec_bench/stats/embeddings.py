"""Embeddings of an item as text, for `detail["embeddings"]` of the record."""

from __future__ import annotations

import base64

import numpy as np

KEY = "embeddings"


def pack_embeddings(*sides: np.ndarray) -> str:
    """Embeddings `(dimensions,)`, reference first, as base64 of little-endian float32."""
    return base64.b64encode(np.stack(sides).astype("<f4").tobytes()).decode("ascii")


def unpack_embeddings(text: str, sides: int = 2) -> np.ndarray:
    """The arrays of `pack_embeddings`, float32 `(sides, dimensions)`."""
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(sides, -1)

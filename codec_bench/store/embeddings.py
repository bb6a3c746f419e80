"""The embeddings of an item as text, as the record of a run keeps them in `detail["embeddings"]`."""

from __future__ import annotations

import base64

import numpy as np

KEY = "embeddings"


def packed(*sides: np.ndarray) -> str:
    """Embeddings `(dimensions,)` as text: float32, little-endian, in base64.

    The reference comes first, then the estimate.
    """
    return base64.b64encode(np.stack(sides).astype("<f4").tobytes()).decode("ascii")


def unpacked(text: str, sides: int = 2) -> np.ndarray:
    """What `packed` was given, float32 `(sides, dimensions)`."""
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(sides, -1)

"""Batches of items of unequal lengths: which have an end to mask, and writing zeros beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def zero_beyond(x: Any, lengths: Sequence[int]) -> Any:
    """Writes zeros beyond each item's length into `x` `(items, channels, time)`, which it changes and returns.

    On a CPU only the padding is written. On a GPU one operation over the whole batch is faster than one for each item.
    """
    if min(lengths) == x.shape[-1]:
        return x
    if x.is_cpu:
        for row, length in zip(x, lengths):
            row[..., length:] = 0
        return x
    import torch

    beyond = torch.arange(x.shape[-1])[None] >= torch.tensor(lengths)[:, None]
    return x.masked_fill_(beyond[:, None].to(x.device), 0)


def ragged_lengths(lengths: Sequence[int], device: str) -> Any:
    """Each item's length as a tensor, or None where all are equal and nothing is to be masked."""
    import torch

    return None if len(set(lengths)) == 1 else torch.tensor(lengths).to(device)

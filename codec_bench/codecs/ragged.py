"""Items of unequal lengths in one padded pass: which of them share it, and how what lies beyond each is silenced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def groups(lengths: Sequence[int], device: str, *, waste_on_cpu: float | None = 0.15) -> list[list[int]]:
    """The indices of items that share a pass.

    On a GPU all of them: the engine's batches hold similar lengths. On a CPU, where a padded sample costs as much as a real
    one and a larger batch gains little, those that are padded by at most `waste_on_cpu` times their own length; with None,
    each alone: a larger batch may be slower even without padding, where activations outgrow the caches.
    """
    if str(device).startswith("cuda"):
        return [list(range(len(lengths)))]
    if waste_on_cpu is None:
        return [[index] for index in range(len(lengths))]
    out: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda k: lengths[k]):
        if out and lengths[index] <= (1 + waste_on_cpu) * lengths[out[-1][0]]:
            out[-1].append(index)
        else:
            out.append([index])
    return out


def zero_beyond(x: Any, lengths: Sequence[int]) -> Any:
    """Writes zeros beyond each item's length, into `x` `(items, channels, time)` itself, and gives it back.

    On a CPU only the padding is touched; on a GPU one pass is sooner done than a call for each item.
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

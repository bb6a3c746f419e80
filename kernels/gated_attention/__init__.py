"""WavLM's gated attention: `ref` specification, `gpu` Triton in half.

    if fuses(q):
        out = attend(q, k, v, gate, by_distance, counts)

A batch's bias has an entry per item, head and pair of frames. Triton computes it from the row's gate and the distance's
bias on the fly: 0.35 ms in place of 0.94 for 20 items, 16 heads and 749 frames on an H200. Elsewhere torch's attention
takes the bias (`networks/speech_transformer.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codec_bench.kernels.first_launch import triton_works

if TYPE_CHECKING:
    import torch

WIDTHS = (16, 32, 64, 128)


def fuses(q: torch.Tensor) -> bool:
    """Whether Triton computes these queries `(items, heads, frames, width)`."""
    in_half = q.itemsize == 2 and q.is_floating_point()
    return in_half and q.shape[3] in WIDTHS and q.shape[2] * q.stride(2) < 2**31 and triton_works(q.device)


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    gate: torch.Tensor,
    by_distance: torch.Tensor,
    counts: torch.Tensor,
) -> torch.Tensor:
    """Attend to each item's own frames.

    Args:
        q, k, v: `(items, heads, frames, width)` in half precision, of the same strides, the last one is 1.
        gate: float32 `(items, heads, frames, 1)`, each querying frame's factor of the bias.
        by_distance: the bias from distance -(frames - 1) to frames - 1, float32 `(heads, 2 * frames - 1)`.
        counts: int64 `(items,)`, own frames of each item, at least one.

    Returns:
        As `q`, in the memory of `(items, frames, heads, width)`. Frames beyond an item's end hold anything finite.
    """
    from codec_bench.kernels.gated_attention import gpu

    return gpu.attend(q, k, v, gate, by_distance, counts)

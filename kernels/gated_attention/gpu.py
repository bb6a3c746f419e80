"""`ref.py` in Triton in half precision; sums and bias in float32.

A program computes some querying frames of an item and a head, over blocks of keys, as FlashAttention (T. Dao, 2023).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

QUERIES, KEYS, WARPS, STAGES = 64, 32, 4, 3
"""Of eight tiles tried on an H200 (0.34 to 0.88 ms) this took 0.35; 128 queries would spill to the stack on some GPUs.
"""
_LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def _attend(
    q, k, v, out, gate, by_distance, counts, heads, frames, scale,
    q_item, q_head, q_frame, gate_item, gate_head, gate_frame, distance_head,
    WIDTH: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(frames, QUERIES)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    item, head = row // heads, row % heads
    i = tl.program_id(0) % blocks * QUERIES + tl.arange(0, QUERIES)
    d = tl.arange(0, WIDTH)
    real = i < frames
    length = tl.load(counts + item).to(tl.int32)
    base = item * q_item + head * q_head
    query = tl.load(q + base + i[:, None] * q_frame + d[None, :], mask=real[:, None], other=0.0)
    factor = tl.load(gate + item * gate_item + head * gate_head + i * gate_frame, mask=real, other=0.0) * _LOG2_E
    places = by_distance + head * distance_head + frames - 1
    most = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    output = tl.zeros((QUERIES, WIDTH), tl.float32)
    for start in range(0, length, KEYS):
        j = start + tl.arange(0, KEYS)
        known = j < length
        key = tl.load(k + base + j[None, :] * q_frame + d[:, None], mask=known[None, :], other=0.0)
        value = tl.load(v + base + j[:, None] * q_frame + d[None, :], mask=known[:, None], other=0.0)
        bias = tl.load(places + j[None, :] - i[:, None], mask=known[None, :] & real[:, None], other=0.0)
        scores = tl.dot(query, key) * (scale * _LOG2_E) + factor[:, None] * bias
        scores = tl.where(known[None, :], scores, float("-inf"))
        top = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp2(scores - top[:, None])
        rescale = tl.exp2(most - top)
        total = total * rescale + tl.sum(weights, 1)
        output = output * rescale[:, None] + tl.dot(weights.to(value.dtype), value)
        most = top
    y = out + ((item * frames + i[:, None]) * heads + head) * WIDTH + d[None, :]
    tl.store(y, (output / total[:, None]).to(out.dtype.element_ty), mask=real[:, None])


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    gate: torch.Tensor,
    by_distance: torch.Tensor,
    counts: torch.Tensor,
) -> torch.Tensor:
    """As `attend` of the package."""
    items, heads, frames, width = q.shape
    assert q.stride() == k.stride() == v.stride() and q.stride(3) == by_distance.stride(1) == 1
    out = torch.empty(items, frames, heads, width, dtype=q.dtype, device=q.device)
    with torch.cuda.device_of(q):  # a kernel is launched on the current device
        _attend[(triton.cdiv(frames, QUERIES) * items * heads,)](
            q, k, v, out, gate, by_distance, counts, heads, frames, width**-0.5,
            *q.stride()[:3], *gate.stride()[:3], by_distance.stride(0),
            WIDTH=width, QUERIES=QUERIES, KEYS=KEYS, num_warps=WARPS, num_stages=STAGES,
        )  # fmt: skip
    return out.transpose(1, 2)

"""`ref.py` in Triton: a product per kernel position, without window copies.

A program computes a tile of frames and outputs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

FRAMES, OUTPUTS, CHANNELS, WARPS, STAGES = 128, 128, 32, 8, 2
"""A program's tile, channels of a product, and launch options: the fastest tried on an H200."""


@triton.jit
def _convolve(
    x, taps, bias, y, frames, outputs, out_frames, padding, dilation, x_item, x_channel, x_frame,
    PLACES: tl.constexpr, WIDTH: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    item = tl.program_id(2).to(tl.int64)
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    output = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    total = tl.zeros((BLOCK_T, BLOCK_O), tl.float32)
    for tap in range(PLACES):
        frame = t + tap * dilation - padding
        real = (frame >= 0) & (frame < frames)
        for first in range(0, WIDTH, BLOCK_C):
            channel = first + tl.arange(0, BLOCK_C)
            known = channel < WIDTH
            read = x + item * x_item + channel[None, :].to(tl.int64) * x_channel + frame[:, None].to(tl.int64) * x_frame
            values = tl.load(read, mask=real[:, None] & known[None, :], other=0.0)
            row = (tap * outputs + output[None, :]).to(tl.int64)
            held = known[:, None] & (output < outputs)[None, :]
            weights = tl.load(taps + row * WIDTH + channel[:, None], mask=held, other=0.0)
            total = tl.dot(values, weights, total, input_precision="tf32x3")
    total += tl.load(bias + output, mask=output < outputs, other=0.0)[None, :]
    write = y + (item * outputs + output[None, :]).to(tl.int64) * out_frames + t[:, None]
    tl.store(write, total, mask=(t < out_frames)[:, None] & (output < outputs)[None, :])


def convolve(
    x: torch.Tensor, taps: torch.Tensor, bias: torch.Tensor | None = None, padding: int = 0, dilation: int = 1
) -> torch.Tensor:
    """As `ref.convolve`, float32."""
    items, channels, frames = x.shape
    places, outputs, _ = taps.shape
    out_frames = frames + 2 * padding - dilation * (places - 1)
    y = torch.empty(items, outputs, out_frames, device=x.device)
    if bias is None:
        bias = torch.zeros(outputs, device=x.device)
    if y.numel():
        with torch.cuda.device_of(x):  # a kernel is launched on the current device
            _convolve[(triton.cdiv(out_frames, FRAMES), triton.cdiv(outputs, OUTPUTS), items)](
                x, taps, bias, y, frames, outputs, out_frames, padding, dilation, *x.stride(),
                PLACES=places, WIDTH=channels, BLOCK_T=FRAMES, BLOCK_O=OUTPUTS, BLOCK_C=CHANNELS,
                num_warps=WARPS, num_stages=STAGES,
            )  # fmt: skip
    return y

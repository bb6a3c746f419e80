"""`ref.py` in Triton: one pass, which reads nothing beyond an item."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_FRAMES_AT_ONCE = 1024


@triton.jit
def _activate(
    x, y, lengths, alpha, channels, frames, x_item, x_channel, x_frame, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr
):
    # Rows and frames share one axis of the grid: the others end at 65,535, which 25 minutes of sound exceed.
    blocks = tl.cdiv(frames, BLOCK)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    item, channel = row // channels, row % channels
    t = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    real = t < tl.load(lengths + item)
    value = tl.load(
        x + item * x_item + channel * x_channel + t.to(tl.int64) * x_frame, mask=real & (t < frames), other=0
    )
    if ACTIVATION == "elu":
        # For a small v, exp(v) - 1 loses digits, so a series is used there. Above zero, neither is used.
        low = tl.minimum(value, 0.0)
        series = low * (1 + low / 2 * (1 + low / 3 * (1 + low / 4 * (1 + low / 5))))
        value = tl.where(value > 0, value, tl.where(low > -0.1, series, tl.exp(low) - 1))
    if ACTIVATION == "snake":
        a = tl.load(alpha + channel)
        wave = tl.sin(a * value)
        value = value + wave * wave / (a + 1e-9)
    tl.store(y + row * frames + t, value, mask=t < frames)  # where nothing was read, zero stays zero


def activate(
    x: torch.Tensor, lengths: torch.Tensor, activation: str = "identity", alpha: torch.Tensor | None = None
) -> torch.Tensor:
    """As `ref.activate`, float32."""
    items, channels, frames = x.shape
    y = torch.empty(x.shape, device=x.device)
    if y.numel():
        with torch.cuda.device_of(x):  # a kernel is launched on the current device
            _activate[(items * channels * triton.cdiv(frames, _FRAMES_AT_ONCE),)](
                x, y, lengths, x if alpha is None else alpha.contiguous(), channels, frames, *x.stride(),
                ACTIVATION=activation, BLOCK=_FRAMES_AT_ONCE, num_warps=4,
            )  # fmt: skip
    return y

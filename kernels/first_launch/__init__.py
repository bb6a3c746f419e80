"""Whether Triton works on a device, by a checked first launch; result type.

    if triton_works(x.device): ...

Triton's first launch compiles C code and needs a compiler, Python's headers and support of the device. Every operation
with a Triton kernel checks this, and otherwise takes its torch path. A warning states the reason once per device and
process.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import torch


class KernelResult(NamedTuple):
    """What an operation returns, and the implementation that computed it."""

    value: torch.Tensor
    implementation: Literal["blas", "torch", "triton"]


def triton_works(device: torch.device | str) -> bool:
    """Return whether Triton kernels run on this device and give the right numbers."""
    import torch

    where = torch.device(device)
    if where.type != "cuda":
        return False
    index = torch.cuda.current_device() if where.index is None else where.index
    return triton_fault(f"cuda:{index}") is None


@cache
def triton_fault(device: str) -> str | None:
    """Why Triton does not work on `cuda:N`, or None; tried once."""
    if find_spec("triton") is None:
        return "the package 'triton' is not installed"
    try:
        from codec_bench.kernels.first_launch import gpu

        right = gpu.adds_one(device)
        fault = None if right else "its first launch gave wrong numbers"
    except Exception as error:  # a compiler that is missing or fails raises anything
        fault = f"its first launch failed: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if fault is not None:
        warnings.warn(
            f"Triton does not work on '{device}', so torch computes in its place, more slowly: {fault}", stacklevel=2
        )
    return fault

"""Which processors there are, found without importing torch."""

from __future__ import annotations

import ctypes
import os

from codec_bench.errors import UserError


def cuda_count() -> int:
    """CUDA devices this process may use; 0 without a driver. Honours CUDA_VISIBLE_DEVICES."""
    for name in ("libcuda.so.1", "libcuda.dylib"):
        try:
            driver = ctypes.CDLL(name)
        except OSError:
            continue
        count = ctypes.c_int(0)
        if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0:
            return count.value
    return 0


def cpu_count() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def resolve_devices(device: str) -> list[str]:
    """The devices behind `auto`, `cpu`, `cuda`, `cuda:0` or `cuda:0,cuda:1`; `auto` is every GPU, else the CPU.

    Raises:
        UserError: a device that is not here.
    """
    count = cuda_count() if device != "cpu" else 0
    if device == "auto":
        return [f"cuda:{k}" for k in range(count)] or ["cpu"]
    if device == "cuda" and count:
        return [f"cuda:{k}" for k in range(count)]
    known = ["cpu", *(f"cuda:{k}" for k in range(count))]
    chosen = [part.strip() for part in device.split(",")]
    for part in chosen:
        if part not in known:
            raise UserError(f"there is no device '{part}'", hint=f"there is {', '.join(known)}")
    return chosen

"""The CPUs and GPUs that this process may use, found without importing torch."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from codec_bench.machine.environment import cpu_count
from codec_bench.messages.errors import UserError


def _load_driver() -> ctypes.CDLL | None:
    """Load and initialise the CUDA driver; None if it is missing or fails."""
    for name in ("libcuda.so.1", "libcuda.dylib"):
        try:
            driver = ctypes.CDLL(name)
        except OSError:
            continue
        if driver.cuInit(0) == 0:
            return driver
    return None


def cuda_count() -> int:
    """CUDA devices of this process, by CUDA_VISIBLE_DEVICES; 0 without a driver."""
    driver, count = _load_driver(), ctypes.c_int(0)
    return count.value if driver is not None and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def memory_bytes(device: str) -> int:
    """Total memory of `cuda:N`; 0 if unknown."""
    driver, handle, total_bytes = _load_driver(), ctypes.c_int(0), ctypes.c_size_t(0)
    if driver is None or driver.cuDeviceGet(ctypes.byref(handle), int(device.partition(":")[2])) != 0:
        return 0
    return total_bytes.value if driver.cuDeviceTotalMem_v2(ctypes.byref(total_bytes), handle) == 0 else 0


def cpu_workers(devices: Sequence[str]) -> int:
    """Default number of CPU workers: cores without those of GPUs and main process."""
    gpus = len({device for device in devices if device != "cpu"})
    return max(1, cpu_count() - gpus - (gpus > 0))


def has_gpu(device: str) -> bool:
    """Whether a device of `resolve_devices` may be a GPU; its number is not checked."""
    return device != "cpu" and cuda_count() > 0


def resolve_devices(device: str) -> list[str]:
    """Devices of `auto` (all GPUs, else the CPU), `cpu`, `cuda`, `cuda:0` or a list."""
    count = cuda_count() if device != "cpu" else 0
    if device == "auto":
        return [f"cuda:{k}" for k in range(count)] or ["cpu"]
    if device == "cuda" and count:
        return [f"cuda:{k}" for k in range(count)]
    known = ["cpu", *(f"cuda:{k}" for k in range(count))]
    chosen = [name.strip() for name in device.split(",")]
    for name in chosen:
        if name not in known:
            raise UserError("no_device", device=name, hint=f"choose auto or one of {', '.join(known)}")
    return chosen

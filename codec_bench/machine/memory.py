"""Memory of devices: recognise errors of full or lost devices, and share a GPU.

A process owns a GPU, or 1/n of it, which is torch's limit (`own_device`). torch keeps freed memory; CTranslate2 and
onnxruntime need it back. So when memory is full, torch's cache is emptied (`give_back`, after the `except` block, as
the error holds tensors), and the work is repeated. This file imports only the standard library and runs in Python 3.8:
the workers of isolated models load it as a file.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Built = TypeVar("Built")

_CUDA = re.compile("CUDA|cuBLAS|cuDNN", re.IGNORECASE)
_DEVICE_ERROR = re.compile(
    "device-side assert|illegal (memory access|address|instruction)|misaligned address|unspecified launch failure"
    "|launch timed out|uncorrectable|hardware stack error|invalid (program counter|device context)|device is lost"
    "|context is destroyed|busy or unavailable|no CUDA-capable device|No CUDA GPUs are available|not yet initialized"
    "|(error|failure)( 999)?:? unknown error|CUDA unknown error"
    "|(CUBLAS|CUDNN)_STATUS_(EXECUTION_FAILED|INTERNAL_ERROR|NOT_INITIALIZED)"
    "|no kernel image is available|unsupported toolchain",
    re.IGNORECASE,
)
_GONE = re.compile(  # NVML, its Python package and the driver, which do not name CUDA
    r"GPU[ _]?(has[ _]|is[ _]|was[ _])?(lost|fallen off the bus)\b|NVMLError_GpuIsLost"
    "|GPU requires (a )?reset|NVML_ERROR_RESET_REQUIRED|NVMLError_ResetRequired",
    re.IGNORECASE,
)
_FULL = re.compile(
    "out of memory"  # CUDA's own text, in the errors of torch, CTranslate2 and onnxruntime
    "|cudaErrorMemoryAllocation"
    "|_ALLOC(ATION)?_FAILED"  # the status of cuBLAS, cuDNN, cuFFT and cuSOLVER
    "|bad_alloc"
    "|can't allocate memory"  # torch on a CPU
    "|failed to allocated? memory",  # onnxruntime's arena, and CTranslate2 on a CPU
    re.IGNORECASE,
)


def out_of_memory(error: BaseException) -> bool:
    """Whether an error or one of its causes means that memory did not suffice.

    It knows the errors of Python, torch, CUDA, cuBLAS, cuDNN, CTranslate2 and onnxruntime.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or type(cause).__name__ == "OutOfMemoryError" or _FULL.search(str(cause)):
            return True
        cause = cause.__cause__
    return False


def is_device_error(message: str) -> bool:
    """Whether an error text means that this process has lost its GPU for good."""
    if _GONE.search(message):
        return True
    return bool(_CUDA.search(message) and _DEVICE_ERROR.search(message) and not _FULL.search(message))


def device_works(device: str) -> bool:
    """Whether a GPU gives the CPU's results for product, convolution and attention."""
    import torch

    def computed(target: str) -> torch.Tensor:
        x = torch.linspace(-1, 1, 16 * 32).reshape(1, 16, 32).to(target)
        both = [
            x @ x.mT,
            torch.nn.functional.conv1d(x, x[:, :, :3]),
            torch.nn.functional.scaled_dot_product_attention(x, x, x),
        ]
        return torch.cat([y.flatten() for y in both]).cpu()

    try:
        return bool(torch.allclose(computed(device), computed("cpu"), rtol=0, atol=0.05))
    except Exception:  # whatever it says, such a device is of no use
        return False


def give_back(device: str = "cuda") -> None:
    """Return torch's cached memory of a GPU to the device, for other libraries.

    Call it after the `except` block of the error: inside it, the tensors of the failed call are alive.
    """
    if device != "cpu" and "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()


_shares: dict[str, float] = {}
"""This process's share of a GPU's memory by device; 1 by default."""


def own_device(device: str, processes: int = 1) -> None:
    """Make a GPU current, limit torch's memory, and disable cuDNN's attention.

    Libraries such as Triton use the current device. cuDNN's attention was slower on an H200: torch's own kernels took
    19 instead of 34 ms for a batch of WavLM-large in float16 of a known shape.

    Args:
        device: `cpu` (no effect) or `cuda:N`. processes: that share it.
    """
    if device == "cpu":
        return
    import torch

    torch.cuda.set_device(device)
    torch.backends.cuda.enable_cudnn_sdp(False)
    _shares[device] = 1 / processes
    if processes > 1:
        torch.cuda.set_per_process_memory_fraction(1 / processes, device)


def room(device: str) -> int:
    """Bytes that this process can still use on a GPU, within its share."""
    import torch

    free, total = torch.cuda.mem_get_info(device)
    used, reserved = torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
    return max(0, min(free + reserved - used, round(_shares.get(device, 1.0) * total) - used))


def placed(name: str, device: str, make: Callable[[], Built]) -> Built:
    """Make the first object of this process on a device, or raise DeviceFull."""
    try:
        return make()
    except Exception as error:
        if device == "cpu" or not out_of_memory(error):
            raise
    give_back(device)
    from codec_bench.messages.errors import DeviceFull

    raise DeviceFull(name, device, _describe_free(device))


def _describe_free(device: str) -> str:
    """Describe the free memory of a GPU."""
    import torch

    try:
        free, total = torch.cuda.mem_get_info(device)
    except RuntimeError:  # CUDA takes some memory itself before it answers
        return "less is free than CUDA itself needs"
    return f"{free / 2**30:.2g} of {total / 2**30:.4g} GiB are free"


class MemoryWatch:
    """Measures the GPU memory that torch uses from now on."""

    def __init__(self, device: str) -> None:
        import torch

        self._cuda, self._device = torch.cuda, device
        self._room = room(device)
        self._before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)

    def seen(self) -> tuple[int, int]:
        """The peak of used bytes, and the available bytes at the start."""
        return self._cuda.max_memory_allocated(self._device) - self._before, self._room

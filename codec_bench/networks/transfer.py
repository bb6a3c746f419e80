"""Arrays to a device and back, in one transfer per type of number.

A download makes the host wait for all earlier work, and each transfer costs a launch, so the arrays of a batch go
together. They use pinned memory, which the GPU copies by itself: uploads and kernels never wait for the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from codec_bench.networks.on_device import tensors_of

_ALIGNED = 32  # numbers: each array begins at an address that vector instructions can load from


def sent(arrays: Sequence[np.ndarray], device: Any) -> list[torch.Tensor]:
    """Upload NumPy arrays as tensors, in one transfer per dtype, without a wait.

    On a CPU they share the arrays' memory.
    """
    if torch.device(device).type == "cpu":
        return [torch.from_numpy(array) for array in arrays]
    kinds = {array.dtype for array in arrays}
    joined = {
        kind: uploaded(_joined([array for array in arrays if array.dtype == kind], device), device) for kind in kinds
    }
    starts = dict.fromkeys(kinds, 0)
    out = []
    for array in arrays:
        first = starts[array.dtype]
        out.append(joined[array.dtype][first : first + array.size].view(array.shape))
        starts[array.dtype] = first + _room(array)
    return out


def fetched(tensors: Sequence[torch.Tensor]) -> list[np.ndarray]:
    """Download tensors of one device as arrays, with a single wait of the host."""
    if all(tensor.is_cpu for tensor in tensors):
        return [tensor.numpy() for tensor in tensors]
    copies: list[tuple[list[int], torch.Tensor]] = []
    for kind in {tensor.dtype for tensor in tensors}:
        places = [index for index, tensor in enumerate(tensors) if tensor.dtype == kind]
        there = [tensors[index].flatten() for index in places]
        joined = there[0] if len(there) == 1 else torch.cat(there)
        copies.append((places, torch.empty(joined.shape, dtype=kind, pin_memory=True).copy_(joined, non_blocking=True)))
    done = torch.cuda.Event()
    done.record(torch.cuda.current_stream(tensors[0].device))
    done.synchronize()
    out: list[np.ndarray] = [np.empty(0)] * len(tensors)
    for places, here in copies:
        ends = np.cumsum([tensors[index].numel() for index in places])
        for index, values in zip(places, np.split(here.numpy(), ends[:-1]), strict=True):
            out[index] = values.reshape(tuple(tensors[index].shape))
    return out


def zeros_for(device: Any, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Allocate zeros on the host for `uploaded`, pinned for a GPU."""
    return torch.zeros(tuple(shape), dtype=dtype, pin_memory=torch.device(device).type == "cuda")


def uploaded(values: torch.Tensor, device: Any) -> torch.Tensor:
    """Copy a host tensor to the device without a wait of the host."""
    return values.to(device, non_blocking=True)


def place_signals(signals: Sequence[np.ndarray], offsets: Sequence[int], size: int, device: Any) -> torch.Tensor:
    """Write signals `(samples,)` at offsets into zeros, float32 `(size,)`.

    Returns:
        A tensor on the device if all signals carry one there, else one on the host, to be passed to `uploaded`.
    """
    tensors = tensors_of(signals)
    if tensors is not None and all(values.device == torch.device(device) for values in tensors):
        flat = torch.zeros(size, device=device)
        for first, values in zip(offsets, tensors):
            flat[first : first + len(values)] = values
        return flat
    flat = zeros_for(device, (size,))
    array = flat.numpy()
    for first, signal in zip(offsets, signals):
        array[first : first + len(signal)] = signal
    return flat


def padded_rows(signals: Sequence[np.ndarray], width: int, device: Any) -> torch.Tensor:
    """Pad signals `(samples,)` to rows `(signals, width)` on a device."""
    count = len(signals)
    return uploaded(place_signals(signals, range(0, count * width, width), count * width, device), device).view(
        count, width
    )


@dataclass(frozen=True, slots=True, eq=False)
class Prefetch:
    """A value of another stream and its event. Keep it until it is used."""

    value: Any
    there: Any
    device: str

    def wait(self) -> Any:
        """Return the value, and make the current stream wait for its event."""
        torch.cuda.current_stream(self.device).wait_event(self.there)
        return self.value


class UploadStream:
    """A GPU stream on which one thread prepares batches while another thread computes."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._stream: Any = None

    def run(self, make: Callable[[], Any]) -> Prefetch:
        """Run `make` with all its uploads on this stream, without waiting for them.

        Returns:
            Its result, whose `wait` makes the current stream wait for the uploads.
        """
        if self._stream is None:
            torch.cuda.set_device(self._device)  # of this thread: each thread has its own current device
            self._stream = torch.cuda.Stream(self._device)
        with torch.cuda.stream(self._stream):
            value = make()
            there = torch.cuda.Event()
            there.record(self._stream)
        return Prefetch(value, there, self._device)


def sizes_on_host(net: Any) -> None:
    """Keep on the host the sizes that transformers reads for padding.

    They hold stride and kernel as buffers, which move to the device with the weights; every layer would wait for them.
    """
    for module in net.modules():
        for name in module._non_persistent_buffers_set:
            buffer = module._buffers[name]
            if buffer is not None and buffer.dim() == 0 and not buffer.is_floating_point():
                module._buffers[name] = buffer.cpu()


def _room(array: np.ndarray) -> int:
    return -(-array.size // _ALIGNED) * _ALIGNED


def _joined(arrays: Sequence[np.ndarray], device: Any) -> torch.Tensor:
    """Copy arrays into one flat pinned host tensor, each at an aligned offset."""
    kind = torch.from_numpy(np.empty(0, arrays[0].dtype)).dtype
    joined = zeros_for(device, (sum(map(_room, arrays)),), kind)
    flat = joined.numpy()
    first = 0
    for array in arrays:
        flat[first : first + array.size] = array.ravel()
        first += _room(array)
    return joined

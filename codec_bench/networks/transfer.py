"""Arrays to a device and back, in one transfer however many there are.

A transfer from the device makes the host wait until everything before it is done, and each one costs a launch. So what
belongs to one batch goes together, as one piece of memory for each type of number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

_ALIGNED = 32  # numbers: each array begins at an address that vector instructions can load from


def sent(arrays: Sequence[np.ndarray], device: Any) -> list[torch.Tensor]:
    """The arrays as tensors on a device. On a CPU they share the arrays' memory."""
    if torch.device(device).type == "cpu":
        return [torch.from_numpy(array) for array in arrays]
    kinds = {array.dtype for array in arrays}
    joined = {kind: _joined([array for array in arrays if array.dtype == kind]).to(device) for kind in kinds}
    starts = dict.fromkeys(kinds, 0)
    out = []
    for array in arrays:
        first = starts[array.dtype]
        out.append(joined[array.dtype][first : first + array.size].view(array.shape))
        starts[array.dtype] = first + _room(array)
    return out


def fetched(tensors: Sequence[torch.Tensor]) -> list[np.ndarray]:
    """Tensors of one device as arrays. The host waits once for each type of number."""
    if all(tensor.is_cpu for tensor in tensors):
        return [tensor.numpy() for tensor in tensors]
    out: list[np.ndarray] = [np.empty(0)] * len(tensors)
    for kind in {tensor.dtype for tensor in tensors}:
        places = [place for place, tensor in enumerate(tensors) if tensor.dtype == kind]
        if len(places) == 1:
            out[places[0]] = tensors[places[0]].cpu().numpy()
            continue
        whole = torch.cat([tensors[place].flatten() for place in places]).cpu().numpy()
        ends = np.cumsum([tensors[place].numel() for place in places])
        for place, part in zip(places, np.split(whole, ends[:-1]), strict=True):
            out[place] = part.reshape(tuple(tensors[place].shape))
    return out


def sizes_on_host(net: Any) -> None:
    """Keeps on the host what the convolutions of a model of transformers read to pad their input.

    They hold stride and kernel as buffers, which go to the device with the weights; there, every layer would wait for it.
    """
    for module in net.modules():
        for name in module._non_persistent_buffers_set:
            buffer = module._buffers[name]
            if buffer is not None and buffer.dim() == 0 and not buffer.is_floating_point():
                module._buffers[name] = buffer.cpu()


def _room(array: np.ndarray) -> int:
    return -(-array.size // _ALIGNED) * _ALIGNED


def _joined(arrays: Sequence[np.ndarray]) -> torch.Tensor:
    flat = np.zeros(sum(map(_room, arrays)), arrays[0].dtype)
    first = 0
    for array in arrays:
        flat[first : first + array.size] = array.ravel()
        first += _room(array)
    return torch.from_numpy(flat)

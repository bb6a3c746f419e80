"""Signals on the host with a copy on a device. Importing this loads no torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch


class OnDevice(np.ndarray):
    """Samples `(samples,)` with a copy `there` on a device, sliced together."""

    there: torch.Tensor | None = None

    def __getitem__(self, index: Any) -> Any:
        values = super().__getitem__(index)
        if isinstance(index, slice) and index.step in (None, 1) and self.there is not None:
            values.there = self.there[index]
        return values


def tensors_of(signals: Sequence[np.ndarray]) -> list[torch.Tensor] | None:
    """Return the copies of signals on a device, or None if one has none."""
    tensors = [signal.there for signal in signals if isinstance(signal, OnDevice) and signal.there is not None]
    return tensors if len(tensors) == len(signals) else None


def change_samples(
    signal: np.ndarray,
    change: Callable[[Any], Any],
    change_tensor: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> np.ndarray:
    """Apply a change to a signal, and to the tensor on a device that it may carry.

    Args:
        change_tensor: the same change of a tensor; None if `change` takes arrays and tensors alike.
    """
    tensors = tensors_of([signal])
    changed: np.ndarray = change(np.asarray(signal))
    return changed if tensors is None else _with_copy(changed, (change_tensor or change)(tensors[0]))


def concatenate(signals: Sequence[np.ndarray]) -> np.ndarray:
    """Join signals `(samples,)`, and their tensors on a device if all carry one."""
    joined: np.ndarray = np.concatenate([np.asarray(signal) for signal in signals])
    tensors = tensors_of(signals)
    if tensors is None:
        return joined
    import torch

    return _with_copy(joined, torch.cat(tensors))


def fit_samples(signal: np.ndarray, length: int) -> np.ndarray:
    """Cut or zero-pad a signal `(samples,)`, and its tensor on a device, to a length."""

    def fit_array(samples: np.ndarray) -> np.ndarray:
        return np.pad(samples[:length], (0, max(0, length - samples.size)))

    def fit_tensor(samples: torch.Tensor) -> torch.Tensor:
        from torch.nn import functional

        return functional.pad(samples, (0, length - len(samples)))

    return change_samples(signal, fit_array, fit_tensor)


def _with_copy(samples: np.ndarray, tensor: torch.Tensor) -> OnDevice:
    view = samples.view(OnDevice)
    view.there = tensor
    return view

"""Sounds in memory: `Audio`, arrays, and tensors of any float type and device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.messages.errors import AudioError, UserError
from codec_bench.types import Audio

MOST_CHANNELS = 32
_HINT = "codec_bench.Audio(samples, sample_rate_hz) makes one, and Audio.read(path) reads one"


@dataclass(frozen=True, slots=True)
class DeviceAudio(Audio):
    """Audio from a GPU; `there`: float32 tensor `(samples,)` or `(channels, samples)`."""

    there: Any = None

    def signal_for(self, device: str, rate_hz: int, signal: np.ndarray) -> np.ndarray:
        """Attach the GPU tensor to a prepared signal if it is the same mono signal.

        Args:
            device, rate_hz: of the feature that reads it; with another device or rate, `signal` is returned as it is.
        """
        if (self.channels, self.sample_rate_hz, str(self.there.device)) != (1, rate_hz, device):
            return signal
        from codec_bench.networks.on_device import OnDevice

        view = signal.view(OnDevice)
        view.there = self.there.reshape(-1).clamp(-1.0, 1.0)
        return view


class Unusable(str):
    """Why an item cannot be scored."""

    __slots__ = ()


def read_sounds(role: str, values: Any, sample_rate_hz: int | None, lengths: Any = None) -> list[Audio | Unusable]:
    """The sounds of one side of a batch, or the reason why one cannot be scored.

    Args:
        role: `estimate` or `reference`, for messages.
        values: a list of `Audio`, arrays or tensors; one sound `(samples,)` or `(channels, samples)`; or a batch
            `(batch, samples)` with lengths, or `(batch, channels, samples)`.
        sample_rate_hz: of arrays and tensors.
        lengths: samples of each item of a batch; None for all.

    Raises:
        UserError: it is none of these, or arrays lack a rate or a length per item.
    """
    if isinstance(values, str | bytes) or not (isinstance(values, Audio | Iterable) or _is_array(values)):
        raise UserError("item_type", name=role, type=type(values).__name__, expected="sounds", hint=_HINT)
    if isinstance(values, Audio):
        items: list[Any] = [values]
    elif _is_array(values):
        items = _items_of(role, values, lengths)
    else:
        items = list(values)
    if not _is_array(values) and lengths is not None:
        items = _cut(role, items, lengths)
    there = _fetch(items)
    return [_read(f"{role} {index}", item, sample_rate_hz, there.get(index)) for index, item in enumerate(items)]


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (hasattr(value, "detach") and hasattr(value, "ndim"))


def _items_of(role: str, values: Any, lengths: Any) -> list[Any]:
    """Split an array into items by its shape: a batch, or one sound."""
    if values.ndim == 3:
        return list(values) if lengths is None else _cut(role, list(values), lengths)
    if values.ndim == 2 and lengths is not None:
        return _cut(role, list(values), lengths)
    if values.ndim == 2 and values.shape[0] > MOST_CHANNELS:
        raise UserError(
            "shape_of_channels",
            name=role,
            shape=tuple(values.shape),
            channels=values.shape[0],
            hint="give lengths= for a batch (batch, samples)",
        )
    if values.ndim not in (1, 2):
        raise UserError("shape_unexpected", name=role, shape=tuple(values.shape))
    return [values]


def _cut(role: str, items: Sequence[Any], lengths: Any) -> list[Any]:
    """Cut each item to its length in samples."""
    counts = [int(one) for one in (lengths.tolist() if _is_array(lengths) else lengths)]
    if len(counts) != len(items):
        raise UserError("item_count", items=len(counts), name="lengths", count=len(items))
    for index, (item, count) in enumerate(zip(items, counts)):
        if isinstance(item, Audio):
            raise UserError("audio_with_length", name=role, index=index, hint="leave out lengths=")
        if not 0 <= count <= item.shape[-1]:
            raise UserError("length_beyond", name=role, index=index, samples=item.shape[-1], length=count)
    return [item[..., :count] for item, count in zip(items, counts)]


def _fetch(items: Sequence[Any]) -> dict[int, tuple[Any, Any]]:
    """Copy all tensors on GPUs to the CPU, in one transfer per GPU.

    Returns:
        (tensor, array) by position in `items`.
    """
    out: dict[int, tuple[Any, Any]] = {}
    positions: dict[Any, list[int]] = {}
    for index, item in enumerate(items):
        if getattr(item, "is_cuda", False):
            positions.setdefault(item.device, []).append(index)
    for indexes in positions.values():
        from codec_bench.networks.transfer import fetched

        tensors = [_without_gradient(items[index]) for index in indexes]
        out |= zip(indexes, zip(tensors, fetched(tensors)))
    return out


def _read(name: str, value: Any, sample_rate_hz: int | None, there: tuple[Any, Any] | None = None) -> Audio | Unusable:
    """Convert an array or tensor to checked audio, or say why it is unusable.

    Args:
        name: of the item, for messages.
        there: (tensor, array) of an item that was on a GPU.
    """
    if not isinstance(value, Audio):
        if not _is_array(value):
            raise UserError("item_type", name=name, type=type(value).__name__, expected="sound", hint=_HINT)
        if sample_rate_hz is None:
            raise UserError("no_rate_stated", name=name, hint="give sample_rate_hz=")
        try:
            if there is None:
                value = Audio(to_array(value), sample_rate_hz)
            else:
                value = DeviceAudio(there[1], sample_rate_hz, there[0])
        except ValueError as error:
            return Unusable(f"{name}: {error}")
    try:
        value.check(name)
    except AudioError as error:
        return Unusable(error.message)
    return value


def to_array(value: Any) -> Any:
    """An array of a tensor; half and bfloat16 precision become float32."""
    return value if isinstance(value, np.ndarray) else _without_gradient(value).cpu().numpy()


def _without_gradient(value: Any) -> Any:
    """A tensor without its gradient; half and bfloat16 precision become float32."""
    value = value.detach()
    return value.float() if value.is_floating_point() else value

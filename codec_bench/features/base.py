"""What a feature is: something expensive, computed from one signal by a batched model, shared by metrics, cached.

Conventions
    A signal is mono float32 `(samples,)` in [-1, 1] at the feature's own rate.
    A result is a dictionary of numbers, strings and NumPy arrays: it is written to the cache without pickling.
    A result must not depend on which other signals are in the batch (`codec-bench verify-batching` checks it).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

Result = dict[str, Any]


class Unavailable(Exception):
    """Raised, or returned in a batch, for a signal that this feature has no value for (silence, too short)."""


class Feature(ABC):
    """A batched model over single signals.

    Class attributes
        name: registry key. protocol: exact id (model, checkpoint, front end, version), part of the cache key;
            an instance may set it. rate_hz: rate of the signals it reads.
        where: `device` (the GPU if there is one, else the CPU workers) or `cpu` (always the CPU workers).
        batch_s: first guess of a batch's budget in padded seconds; halved on out-of-memory.
        cached: whether results go to the feature cache.
        languages: base codes (`en`, `zh`) of the languages it knows; empty where it makes no difference.
        reads_language: whether `compute` takes `languages`, one base code or None per signal.

    Args:
        device: `cpu` or `cuda:N`.
        weights: a file or folder in place of the built-in ones, or None.
    """

    name: ClassVar[str]
    protocol: str
    rate_hz: ClassVar[int]
    where: ClassVar[Literal["device", "cpu"]] = "device"
    batch_s: ClassVar[float] = 60.0
    cached: ClassVar[bool] = True
    languages: ClassVar[tuple[str, ...]] = ()
    reads_language: ClassVar[bool] = False

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        self.device, self.weights = device, weights

    def load(self) -> None:  # noqa: B027 - most features have something to load, and may leave it to `compute`
        """Loads the model, in the worker that will compute; called once before the first batch.

        Raises:
            WeightsError: the weights do not fit; this ends the run before it has begun.
        """

    @abstractmethod
    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """One result per signal, in order; `Unavailable(reason)` in place of a result that cannot exist."""

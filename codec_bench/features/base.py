"""The interface of features: expensive, cached results of a batched model.

A signal is mono float32 `(samples,)` in [-1, 1] at the feature's rate. A result is a dictionary of numbers, strings and
NumPy arrays, so it can be cached without pickling. It must not depend on the other signals of the batch (`codec-bench
verify-batching`).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError

Result = dict[str, Any]
Word = tuple[str, float, float]
"""A word, its beginning and its end in seconds."""


def seed_of(*names: object) -> int:
    """Derive a 32-bit seed from names, such as a run's seed and an item's id."""
    return int.from_bytes(hashlib.blake2b(repr(names).encode(), digest_size=4).digest(), "big")


class Unavailable(Exception):
    """The reason why a signal has no value (silent, too short); raised or returned."""


def refuse_weights(feature: str, weights: str | None) -> None:
    """Raise a UserError if weights were passed to a feature that has none."""
    if weights is not None:
        raise UserError("no_weights_to_replace", feature=feature, hint="omit its weights")


def too_short(signal: np.ndarray, model: str, needed: int) -> Unavailable | None:
    """Return why a signal is too short for a model, or None."""
    if signal.size >= needed:
        return None
    return Unavailable(Diagnostic("signal_short", samples=signal.size, model=model, needed=needed))


class Feature(ABC):
    """A batched model over single signals.

    Class attributes
        name: its key in the registry.
        protocol: exact id (model, checkpoint, front end, version), part of the cache key; an instance may set it.
        rate_hz: rate of the signals that it reads.
        where: `device` (the GPU if there is one, else the CPU workers) or `cpu` (always the CPU workers).
        batch_s: padded seconds of audio in the first batch. It is halved when the memory is full.
        mib_per_s: upper bound of a GPU's MiB per padded second in float32. If known, the first batch on a GPU fills
            half of the memory, up to 600 s.
        cached: whether results go to the feature cache.
        languages: base codes (`en`, `zh`) of the supported languages; empty for any.
        reads_language: whether `compute` takes `languages`, one base code or None per signal.
        reads_seed: whether `compute` takes `seeds` for random draws (see `seed_of`); None uses the signal's hash.
        times_words: whether a recogniser has `timed`; an instance may set it.
        by: the library, where a device chooses it and the protocol omits it; part of the cache key and the record. An
            instance sets it.
        licence: of weights in an installed package; catalogue entries have their own.

    Args:
        device: `cpu` or `cuda:N`.
        weights: a file or folder in place of the built-in ones, or None.
    """

    name: str
    protocol: str
    rate_hz: ClassVar[int]
    where: Literal["device", "cpu"] = "device"
    batch_s: ClassVar[float] = 60.0
    mib_per_s: ClassVar[float | None] = None
    cached: ClassVar[bool] = True
    languages: tuple[str, ...] = ()
    reads_language: ClassVar[bool] = False
    reads_seed: bool = False
    times_words: bool = False
    by: str = ""
    licence: ClassVar[str] = ""

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        self.device, self.weights = device, weights

    def load(self) -> None:  # noqa: B027 - a feature may have nothing to load
        """Load the model in the worker, once before the first batch.

        Raises:
            WeightsError: the weights do not fit. The run ends before it starts.
        """

    def timed(self, signal: np.ndarray) -> list[Word]:
        """Return the words of a signal `(samples,)` with their times, if `times_words`."""
        raise NotImplementedError

    @abstractmethod
    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Compute one result per signal, in order; `Unavailable(reason)` if there is none."""


class PreparedFeature(Feature):
    """A feature whose batches are prepared before they are computed.

    A worker with a GPU prepares the next batch in another thread while the present one computes. So `prepare` does what
    needs no network: cut, pad and upload. It changes nothing of the feature and never waits for the device. The engine
    calls `load` before it.
    """

    @abstractmethod
    def prepare(self, signals: Sequence[np.ndarray]) -> Any:
        """Cut, pad and upload a batch for `compute_prepared`."""

    @abstractmethod
    def compute_prepared(self, batch: Any) -> list[Result | Unavailable]:
        """Compute the results of a prepared batch."""

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Compute one result per signal, in order."""
        self.load()
        return self.compute_prepared(self.prepare(signals))


class NetworkFeature(PreparedFeature):
    """A prepared feature of one torch network."""

    where = "device"

    def __init__(self, device: str, weights: str | None) -> None:
        super().__init__(device, weights)
        self._net: Any = None

    @abstractmethod
    def _network(self) -> Any:
        """Build the network with its weights on the CPU."""

    def load(self) -> None:
        """Load the network."""
        if self._net is None:
            self._net = self._network().to(self.device)

"""What a feature is: an expensive result that a batched model computes from one signal. It is cached, and metrics share
it.

Conventions
    A signal is mono float32 `(samples,)` in [-1, 1] at the feature's own rate.
    A result is a dictionary of numbers, strings and NumPy arrays, so that it can be cached without pickling.
    A result must not depend on the other signals of the batch. `codec-bench verify-batching` checks this.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

Result = dict[str, Any]
Word = tuple[str, float, float]
"""A word that was heard, with its beginning and end in seconds."""


def seed_of(*names: object) -> int:
    """A seed of 32 bits from names, such as the seed of a run and the id of an item."""
    return int.from_bytes(hashlib.blake2b(repr(names).encode(), digest_size=4).digest(), "big")


class Unavailable(Exception):
    """Raised, or returned in a batch, for a signal for which the feature has no value (silent, too short)."""


class Feature(ABC):
    """A batched model over single signals.

    Class attributes
        name: its key in the registry.
        protocol: exact id (model, checkpoint, front end, version), part of the cache key; an instance may set it.
        rate_hz: rate of the signals that it reads.
        where: `device` (the GPU if there is one, else the CPU workers) or `cpu` (always the CPU workers).
        batch_s: padded seconds of audio in a batch, at first. It is halved when the memory is full.
        mib_per_s: MiB of a GPU's memory that a padded second takes at most, in float32. If it is known, the first batch
            on a GPU is as large as fills half of the memory, up to 600 s.
        cached: whether results go to the feature cache.
        languages: base codes (`en`, `zh`) of the languages that it supports; empty if the language does not matter.
        reads_language: whether `compute` takes `languages`, one base code or None per signal.
        reads_seed: whether `compute` takes `seeds`, of what is drawn for each signal (see `seed_of`); None draws from
            the hash of the signal.
        times_words: whether a recogniser has `timed`, which gives the words of one signal with their times; an instance
        may set it.
        by: what computes it, where a device has its own way and the protocol does not say which; part of the cache key,
            and so of the record. An instance sets it.
        licence: of weights that an installed package brings; the entries of the catalogue say theirs.

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
        """Loads the model, in the worker that computes. It is called once before the first batch.

        Raises:
            WeightsError: the weights do not fit. The run then ends before it has started.
        """

    def timed(self, signal: np.ndarray) -> list[Word]:
        """The words of a signal `(samples,)` at `rate_hz`, float32, if `times_words`."""
        raise NotImplementedError

    @abstractmethod
    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """One result per signal, in order. A signal without a result gives `Unavailable(reason)` in its place."""


class PreparedFeature(Feature):
    """A feature whose batches are made ready before they are computed.

    A worker that owns a GPU makes the next batch ready in a thread of its own while the present one computes. So
    `prepare` does what needs no network: it cuts and pads the signals and sends them to the device. It changes nothing
    of the feature and waits for nothing on the device. The engine calls `load` before it.
    """

    @abstractmethod
    def prepare(self, signals: Sequence[np.ndarray]) -> Any:
        """What `compute_prepared` takes."""

    @abstractmethod
    def compute_prepared(self, batch: Any) -> list[Result | Unavailable]:
        """What `compute` gives, from what `prepare` gave."""

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """One result per signal, in order."""
        self.load()
        return self.compute_prepared(self.prepare(signals))

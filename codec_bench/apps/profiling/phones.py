"""How much the codebooks of a codec tell of the phones that are said, where the user gives alignments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from codec_bench.apps.profiling.phone_information import DRAWS, PhoneCounts, told
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.data.alignments import Alignment
from codec_bench.types import Codes

_BUFFERED_CODES = 1_000_000


class PhoneCounter:
    """Counts codes by phones over a corpus, item by item. A frame has the phone that is said in its middle.

    Args:
        alignments: by the ids of the samples.
    """

    def __init__(self, alignments: Mapping[str, Alignment]) -> None:
        self._alignments = alignments
        self._names = tuple(sorted({phone for alignment in alignments.values() for phone in alignment.phones}))
        self._streams: list[_Stream] = []
        self._aligned = self._missing = 0

    def add(self, name: str, codes: Codes) -> None:
        """Counts one item.

        Args:
            name: the sample's id. codes: of its sound, or of one of its channels.
        """
        streams = [stream for stream in codes.streams if stream.frame_rate_hz]
        if not self._streams:
            self._streams = [_Stream(s.name, s.cardinality, self._names) for s in streams]
        alignment = self._alignments.get(name)
        if alignment is None:
            self._missing += 1
            return
        self._aligned += 1
        numbers = np.array([*np.searchsorted(self._names, alignment.phones), -1])  # the last is that of no phone
        for held, stream in zip(self._streams, streams, strict=True):
            values = np.asarray(stream.values, np.int64)
            middles_s = (np.arange(values.shape[1]) + 0.5) / stream.frame_rate_hz
            held.add(values, numbers[alignment.at(middles_s)])

    def result(self, seed: int) -> dict[str, Any]:
        """What the codebooks tell of the phones, as JSON values.

        Raises:
            NotApplicable: the codec has no codes with a frame rate, or no clip has an alignment.
        """
        if not self._streams:
            raise NotApplicable("it has no codes with a frame rate")
        if not self._aligned:
            raise NotApplicable(
                f"none of the {self._missing} clips has an alignment; the ids must be those of the data"
            )
        return {
            "items": self._aligned,
            "items_without": self._missing,
            "chance_draws": DRAWS,
            "streams": [stream.result(seed) for stream in self._streams],
        }


class _Stream:
    def __init__(self, name: str, cardinality: int, phones: tuple[str, ...]) -> None:
        self._name, self._cardinality, self._phones = name, cardinality, phones
        self._counts = PhoneCounts.zero()
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._frames = 0

    def add(self, values: np.ndarray, phones: np.ndarray) -> None:
        self._waiting.append((values, phones))
        self._frames += len(phones)
        if sum(waiting.size for waiting, _ in self._waiting) > _BUFFERED_CODES:
            self._count()

    def _count(self) -> None:
        # Items are joined in time before counting, because one table for each of them would take long.
        if self._waiting:
            values, phones = (np.concatenate(parts, axis=-1) for parts in zip(*self._waiting, strict=True))
            self._counts += PhoneCounts.of(values, phones, names=self._phones, cardinality=self._cardinality)
        self._waiting = []

    def result(self, seed: int) -> dict[str, Any]:
        self._count()
        books = [asdict(book) for book in told(self._counts, seed=seed)]
        return {"name": self._name, "frames": self._frames, "per_codebook": books}

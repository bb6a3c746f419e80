"""Mutual information of codes and phones: section `phones`.

PNMI is the mutual information over the entropy of the phones, 0 to 1. Phone purity is the share of frames whose phone
is the most frequent of their code, and rises with the number of codes. Cluster purity is the share with the most
frequent code of their phone. Counted information is too high by about (codes - 1) (phones - 1) / (2 frames) nats:
`information_bits_corrected` is Miller and Madow's estimate, and `chance` the mean over `DRAWS` tables with the same
margins and independent codes and phones.
References: W.-N. Hsu et al., "HuBERT", TASLP 2021; Miller 1955; W. M. Patefield, Applied Statistics 30, 1981 (tables
with fixed margins). Information equals scikit-learn's `mutual_info_score` to 1e-9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from codec_bench.apps.profiling.codebook_use import entropy_bits
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.data.alignments import Alignment
from codec_bench.messages import Diagnostic
from codec_bench.types import Sent

DRAWS = 10


def count_pairs(codes: np.ndarray, phones: np.ndarray, *, kinds: int, cardinality: int) -> np.ndarray:
    """Count codes and phones, int64 `(codebooks, cardinality, kinds)`.

    Args:
        codes: integers `(codebooks, frames)` in [0, cardinality).
        phones: integers `(frames,)` in [0, kinds); frames with -1 are not counted.
    """
    counts = np.zeros((len(codes), cardinality, kinds), np.int64)
    has_phone = phones >= 0
    for table, row in zip(counts, codes, strict=True):
        np.add.at(table, (row[has_phone], phones[has_phone]), 1)
    return counts


@dataclass(frozen=True, slots=True)
class PhoneAssociation:
    """Association of one codebook with phones; None without frames.

    Args:
        frames: that have a phone.
        phones, codes: how many different ones occurred.
        information_bits_corrected: Miller and Madow's.
        pnmi_chance, phone_purity_chance, cluster_purity_chance: of independent codes and phones. PNMI is None where all
            frames have one phone.
    """

    frames: int
    phones: int
    codes: int
    information_bits: float | None = None
    information_bits_corrected: float | None = None
    pnmi: float | None = None
    phone_purity: float | None = None
    cluster_purity: float | None = None
    pnmi_chance: float | None = None
    phone_purity_chance: float | None = None
    cluster_purity_chance: float | None = None


def measure_association(counts: np.ndarray, *, seed: int) -> list[PhoneAssociation]:
    """Measure each codebook's association with phones, by seed."""
    return [_measure_table(table, np.random.default_rng([seed, book])) for book, table in enumerate(counts)]


def _measure_table(table: np.ndarray, rng: np.random.Generator) -> PhoneAssociation:
    """Compute mutual information and purities of counts `(codes, phones)`, and chance."""
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    frames, codes, phones = int(table.sum()), *table.shape
    if not frames:
        return PhoneAssociation(0, 0, 0)
    by_code, by_phone = table.sum(axis=1), table.sum(axis=0)
    chance = np.mean([_measures(one) for one in _independent(table, rng)], axis=0).tolist()
    information, phone_purity, cluster_purity = _measures(table)
    corrected = sum(entropy_bits(sums, corrected=True) for sums in (by_code, by_phone)) - entropy_bits(
        table, corrected=True
    )
    there = entropy_bits(by_phone)
    return PhoneAssociation(
        frames, phones, codes, information, float(min(max(0.0, corrected), there)),
        information / there if there else None, phone_purity, cluster_purity,
        chance[0] / there if there else None, chance[1], chance[2],
    )  # fmt: skip


def _independent(table: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw random tables with the same margins, to estimate chance levels."""
    from scipy.stats import random_table

    if min(table.shape) == 1:  # there is only this one, and scipy 1.17 draws negative numbers
        return [table]
    tables = random_table(table.sum(axis=1), table.sum(axis=0), seed=rng)
    return [tables.rvs() for _ in range(DRAWS)]


def _measures(table: np.ndarray) -> tuple[float, float, float]:
    """Compute mutual information, phone and cluster purity from `(codes, phones)`."""
    frames = table.sum()
    bits = entropy_bits(table.sum(axis=1)) + entropy_bits(table.sum(axis=0)) - entropy_bits(table)
    return max(0.0, float(bits)), float(table.max(axis=1).sum() / frames), float(table.max(axis=0).sum() / frames)


_BUFFERED_CODES = 1_000_000


class PhoneCounter:
    """Counts pairs of codes and phones, the phone at the middle of each frame."""

    def __init__(self, alignments: Mapping[str, Alignment]) -> None:
        self._alignments = alignments
        self._names = tuple(sorted({phone for alignment in alignments.values() for phone in alignment.phones}))
        self._streams: list[_PhoneStream] = []
        self._aligned = self._missing = 0

    def add(self, name: str, codes: Sent) -> None:
        """Count pairs of codes and aligned phones of one sample, or of one channel.

        Args:
            name: of the sample in `alignments`; one without an alignment is skipped and counted.
        """
        streams = [stream for stream in codes.streams if stream.frame_rate_hz]
        if not self._streams:
            self._streams = [_PhoneStream(s.name, s.cardinality, len(self._names)) for s in streams]
        alignment = self._alignments.get(name)
        if alignment is None:
            self._missing += 1
            return
        self._aligned += 1
        numbers = np.array([*np.searchsorted(self._names, alignment.phones), -1])  # the last is that of no phone
        for counter, stream in zip(self._streams, streams, strict=True):
            values = np.asarray(stream.values, np.int64)
            middles_s = (np.arange(values.shape[1]) + 0.5) / stream.frame_rate_hz
            counter.add(values, numbers[alignment.at(middles_s)])

    def result(self, seed: int) -> dict[str, Any]:
        """Return the association of each codebook as JSON values.

        Raises:
            NotApplicable: the codec has no codes with a frame rate, or no clip has an alignment.
        """
        if not self._streams:
            raise NotApplicable(Diagnostic("no_frame_rate"))
        if not self._aligned:
            raise NotApplicable(Diagnostic("no_alignments", clips=self._missing))
        return {
            "items": self._aligned,
            "items_without": self._missing,
            "chance_draws": DRAWS,
            "streams": [stream.result(seed) for stream in self._streams],
        }


class _PhoneStream:
    def __init__(self, name: str, cardinality: int, kinds: int) -> None:
        self._name, self._cardinality, self._kinds = name, cardinality, kinds
        self._counts: np.ndarray | None = None
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._frames = 0

    def add(self, values: np.ndarray, phones: np.ndarray) -> None:
        self._waiting.append((values, phones))
        self._frames += len(phones)
        if sum(waiting.size for waiting, _ in self._waiting) > _BUFFERED_CODES:
            self._count()

    def _count(self) -> None:
        """Add the waiting items to the counts of code and phone pairs."""
        # Joining items before counting is faster than one table for each.
        if self._waiting:
            values, phones = (np.concatenate(parts, axis=-1) for parts in zip(*self._waiting, strict=True))
            counts = count_pairs(values, phones, kinds=self._kinds, cardinality=self._cardinality)
            self._counts = counts if self._counts is None else self._counts + counts
        self._waiting = []

    def result(self, seed: int) -> dict[str, Any]:
        self._count()
        books = [] if self._counts is None else [asdict(book) for book in measure_association(self._counts, seed=seed)]
        return {"name": self._name, "frames": self._frames, "per_codebook": books}

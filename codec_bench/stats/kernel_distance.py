"""Values of two sets of embeddings that compare pairs of items: kernel distances, density and coverage.

KAD is 100 times the squared maximum mean discrepancy with a Gaussian kernel as wide as the median distance between the
references, KID the discrepancy with the kernel `(x . y / dimensions + 1)^3`. Both exclude an item's own partner (the
U-statistic of Gretton et al., equation 3). Density and coverage count estimates in balls around the references that
reach their fifth neighbours. Over `MOST_ITEMS` items those with the smallest hashes of their names are taken, so that
merged states give the same value.

References: Chung et al. 2025 (arXiv 2502.15602); Binkowski et al. 2018 (arXiv 1801.01401); Gretton et al. 2012, "A
Kernel Two-Sample Test"; Naeem et al. 2020 (arXiv 2002.09797).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from codec_bench.stats.blocks import BLOCKS, FEWEST_ITEMS, SetValue, block_of, jackknife_interval, no_value
from codec_bench.stats.intervals import LEVEL
from codec_bench.stats.notes import Note

MOST_ITEMS = 2000
SCALE = 100.0
EPS = 1e-8
NEIGHBOURS = 5
Kernel = Callable[[np.ndarray, np.ndarray], list[np.ndarray]]
"""The kernel's values between references, between estimates, and between the two, of float64 embeddings."""


def gaussian(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """KAD's kernel, times 100."""
    squared = _squared_distances(x, x)
    bandwidth = float(np.median(np.sqrt(squared[np.triu_indices(len(x), 1)])))
    gamma = 1.0 / (2.0 * bandwidth**2 + EPS)
    return [SCALE * np.exp(-gamma * one) for one in (squared, _squared_distances(y, y), _squared_distances(x, y))]


def cubic(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """KID's kernel."""
    return [(a @ b.T / x.shape[1] + 1.0) ** 3 for a, b in ((x, x), (y, y), (x, y))]


@dataclass(frozen=True, slots=True, eq=False)
class KernelSample:
    """The pairs of embeddings with the smallest hashes of their names; states add with `+`.

    Args:
        keys: the hashes in rising order. pairs: `(items, 2, dimensions)`, the reference first. blocks: of the pairs.
        seen: how many pairs there were in all.
    """

    keys: np.ndarray
    pairs: np.ndarray
    blocks: np.ndarray
    seen: int

    @classmethod
    def of(cls, pairs: np.ndarray, names: Sequence[str], units: Sequence[str]) -> KernelSample:
        """The state of pairs `(items, 2, dimensions)` with unique `names`; `units` decide the blocks."""
        keys = np.fromiter((key_of(name) for name in names), np.uint64, len(names))
        chosen = np.argsort(keys, kind="stable")[:MOST_ITEMS]
        blocks = np.fromiter((block_of(units[position]) for position in chosen.tolist()), np.int64, len(chosen))
        return cls(keys[chosen], np.asarray(pairs[chosen], np.float32), blocks, len(names))

    def __add__(self, other: KernelSample) -> KernelSample:
        keys = np.concatenate([self.keys, other.keys])
        chosen = np.argsort(keys, kind="stable")[:MOST_ITEMS]
        pairs = np.concatenate([self.pairs, other.pairs])[chosen]
        blocks = np.concatenate([self.blocks, other.blocks])[chosen]
        return KernelSample(keys[chosen], pairs, blocks, self.seen + other.seen)

    @property
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """The embeddings of the references and of the estimates in float64."""
        return self.pairs[:, 0].astype(np.float64), self.pairs[:, 1].astype(np.float64)

    def estimate(self, level: float = LEVEL, kernel: Kernel = gaussian) -> SetValue:
        """The kernel distance and its interval."""
        if len(self.keys) < FEWEST_ITEMS:
            return self._no_value(FEWEST_ITEMS, level)
        references, estimates, across = kernel(*self.sides)
        differences = references + estimates - across - across.T
        np.fill_diagonal(differences, 0.0)
        belongs = (self.blocks[:, None] == np.arange(BLOCKS)).astype(np.float64)
        table, counts = belongs.T @ differences @ belongs, belongs.sum(axis=0)
        rests = [np.arange(BLOCKS) != block for block in np.flatnonzero(counts)]
        each = [_value(table[np.ix_(rest, rest)].sum(), counts[rest].sum()) for rest in rests]
        return self._result(_value(table.sum(), counts.sum()), each, level)

    def neighbours(self, of: Callable[[np.ndarray, np.ndarray], float], level: float = LEVEL) -> SetValue:
        """A value of the radii around the references and the distances of the estimates from them.

        Args:
            of: gives the value from radii `(items,)` and distances `(references, estimates)`, such as `coverage`.
        """
        if len(self.keys) <= NEIGHBOURS:
            return self._no_value(NEIGHBOURS + 1, level)
        references, estimates = self.sides
        between, across = _distances(references, references), _distances(references, estimates)

        def value(chosen: np.ndarray) -> float:
            if chosen.sum() <= NEIGHBOURS:
                return float("nan")
            inner = between[np.ix_(chosen, chosen)]
            return of(np.partition(inner, NEIGHBOURS, axis=1)[:, NEIGHBOURS], across[np.ix_(chosen, chosen)])

        each = [value(self.blocks != block) for block in np.unique(self.blocks)]
        return self._result(value(np.ones(len(self.keys), bool)), each, level)

    def _no_value(self, needed: int, level: float) -> SetValue:
        return no_value(Note("few_items", needed=needed, items=len(self.keys)), len(self.keys), level)

    def _result(self, value: float, each: Sequence[float], level: float) -> SetValue:
        items = len(self.keys)
        note = None if self.seen <= items else Note("chosen_items", items=items, seen=self.seen)
        interval = jackknife_interval(value, [one for one in each if math.isfinite(one)], level)
        return SetValue(value, interval, items, None, note)


def density(radii: np.ndarray, distances: np.ndarray) -> float:
    """In how many balls around references an estimate lies on average, over `NEIGHBOURS`."""
    return float((distances < radii[:, None]).sum(axis=0).mean() / NEIGHBOURS)


def coverage(radii: np.ndarray, distances: np.ndarray) -> float:
    """The share of the references whose ball holds an estimate."""
    return float((distances.min(axis=1) < radii).mean())


def key_of(name: str) -> int:
    """The hash of an item's name, by which items are chosen."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _value(total: float, items: float) -> float:
    return float(total / (items * (items - 1))) if items >= FEWEST_ITEMS else float("nan")


def _squared_distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances, `(x, y)`."""
    return np.maximum((x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None] - 2.0 * x @ y.T, 0.0)


def _distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Euclidean distances without cancellation, so that equal embeddings have exactly 0."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(x, y))

"""The kernel distance of two sets of embeddings: KAD, when the embeddings are of sound.

It is 100 times the squared maximum mean discrepancy with a Gaussian kernel as wide as the median distance between the
references. An item's own partner is left out (the U-statistic of Gretton et al., equation 3); kadtk keeps partners and
takes the median of the estimates. Over `MOST_ITEMS` items those with the smallest hashes of their names are taken, so
that merged states give the same value.

References: Chung et al. 2025, "KAD: No More FAD!" (arXiv 2502.15602); Gretton et al. 2012, "A Kernel Two-Sample Test".
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codec_bench.stats.blocks import BLOCKS, FEWEST_ITEMS, SetValue, block_of, jackknife_interval, no_value
from codec_bench.stats.intervals import LEVEL
from codec_bench.stats.notes import Note

MOST_ITEMS = 2000
SCALE = 100.0
EPS = 1e-8


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

    def estimate(self, level: float = LEVEL) -> SetValue:
        """The value and its interval."""
        items = len(self.keys)
        if items < FEWEST_ITEMS:
            return no_value(Note("few_items", needed=FEWEST_ITEMS, items=items), items, level)
        table, counts = self._sums()
        value = _value(table.sum(), counts.sum())
        rests = [np.arange(BLOCKS) != block for block in np.flatnonzero(counts)]
        each = [_value(table[np.ix_(rest, rest)].sum(), counts[rest].sum()) for rest in rests]
        note = None if self.seen <= items else Note("chosen_items", items=items, seen=self.seen)
        interval = jackknife_interval(value, [one for one in each if math.isfinite(one)], level)
        return SetValue(value, interval, items, None, note)

    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """The kernel's sums over pairs of different items by block `(blocks, blocks)`, and items by block."""
        x, y = (self.pairs[:, role].astype(np.float64) for role in range(2))
        squared = _squared_distances(x, x)
        bandwidth = float(np.median(np.sqrt(squared[np.triu_indices(len(x), 1)])))
        gamma = 1.0 / (2.0 * bandwidth**2 + EPS)
        kernel = np.exp(-gamma * squared) + np.exp(-gamma * _squared_distances(y, y))
        across = np.exp(-gamma * _squared_distances(x, y))
        kernel -= across + across.T
        np.fill_diagonal(kernel, 0.0)
        belongs = (self.blocks[:, None] == np.arange(BLOCKS)).astype(np.float64)
        return belongs.T @ kernel @ belongs, belongs.sum(axis=0)


def key_of(name: str) -> int:
    """The hash of an item's name, by which items are chosen."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _value(total: float, items: float) -> float:
    return float(SCALE * total / (items * (items - 1))) if items >= FEWEST_ITEMS else float("nan")


def _squared_distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances, `(x, y)`."""
    return np.maximum((x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None] - 2.0 * x @ y.T, 0.0)

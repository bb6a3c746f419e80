"""The Fréchet distance of two sets of embeddings: FAD, when the embeddings are of sound.

The distance of two Gaussians is `|m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2))`. The state holds sums of the vectors and
their outer products in eight blocks, so states add. The value is too large for few items; `extrapolated` is
FAD-infinity, the line over 1 / items followed to infinitely many.

References: Heusel et al. 2017; Kilgour et al. 2019, "Fréchet Audio Distance"; Chong and Forsyth 2020, "Effectively
Unbiased FID". Agrees with scipy's `sqrtm` to 1e-6 relative.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.stats.blocks import BLOCKS, FEWEST_ITEMS, SetValue, at_infinity, block_of, jackknife_interval, no_value
from codec_bench.stats.intervals import LEVEL
from codec_bench.stats.notes import Note

ONE_THREAD = 512  # up to so many dimensions, the distance is computed on one thread
ROWS = 4096  # vectors that are turned to float64 together


@dataclass(frozen=True, slots=True, eq=False)
class FrechetSums:
    """What blocks of embeddings add up to; states add with `+`.

    Args:
        counts: items in each block. sums: of the vectors, `(blocks, sides, dimensions)`, the reference first.
        products: sums of the outer products, `(blocks, sides, dimensions, dimensions)`.
    """

    counts: np.ndarray
    sums: np.ndarray
    products: np.ndarray

    @classmethod
    def zero(cls, dimensions: int, sides: int = 2) -> FrechetSums:
        """The state of no pairs."""
        return cls(
            np.zeros(BLOCKS, np.int64),
            np.zeros((BLOCKS, sides, dimensions)),
            np.zeros((BLOCKS, sides, dimensions, dimensions)),
        )

    @classmethod
    def of(cls, pairs: np.ndarray, units: Sequence[str]) -> FrechetSums:
        """The state of embeddings `(items, sides, dimensions)`; `units`, such as speakers, decide the blocks."""
        from scipy.linalg.blas import dsyrk

        out = cls.zero(pairs.shape[2], pairs.shape[1])
        blocks = np.fromiter((block_of(unit) for unit in units), np.int64, len(units))
        for block in range(BLOCKS):
            places = np.flatnonzero(blocks == block)
            out.counts[block] = len(places)
            for first in range(0, len(places), ROWS):
                for role in range(pairs.shape[1]):
                    rows = pairs[places[first : first + ROWS], role].astype(np.float64)
                    out.sums[block, role] += rows.sum(axis=0)
                    # The upper triangle alone, which halves the work; `_covariance` mirrors it.
                    out.products[block, role] += dsyrk(1.0, rows.T)
        return out

    def __add__(self, other: FrechetSums) -> FrechetSums:
        if self.sums.shape != other.sums.shape:
            raise ValueError(f"embeddings of {self.sums.shape[2]} and {other.sums.shape[2]} dimensions cannot be added")
        return FrechetSums(self.counts + other.counts, self.sums + other.sums, self.products + other.products)

    @property
    def items(self) -> int:
        """How many pairs there are."""
        return int(self.counts.sum())

    @property
    def dimensions(self) -> int:
        """Of the embeddings."""
        return self.sums.shape[2]

    def value(self, blocks: Iterable[int] = range(BLOCKS)) -> float | None:
        """The distance over the pairs of some blocks; None if they have fewer than two pairs."""
        gaussians = self.gaussians(blocks)
        if gaussians is None:
            return None
        means, (reference, estimate) = gaussians
        return distance(reference, estimate, means[0] - means[1])

    def gaussians(self, blocks: Iterable[int] = range(BLOCKS)) -> tuple[np.ndarray, list[np.ndarray]] | None:
        """The means `(sides, dimensions)` and the covariances of the sides over some blocks; None below two items."""
        chosen = list(blocks)
        count = int(self.counts[chosen].sum())
        if count < FEWEST_ITEMS:
            return None
        means = self.sums[chosen].sum(axis=0) / count
        products = self.products[chosen].sum(axis=0)
        return means, [_covariance(product, mean, count) for product, mean in zip(products, means, strict=True)]

    def estimate_divergence(self, level: float = LEVEL) -> SetValue:
        """The Kullback-Leibler divergence of the estimates' Gaussian from the references', and its interval."""

        def value(blocks: Iterable[int]) -> float | None:
            gaussians = self.gaussians(blocks)
            if gaussians is None:
                return None
            means, (reference, estimate) = gaussians
            return divergence(reference, estimate, means[0] - means[1])

        with threads_for(self.dimensions):
            complete, present = value(range(BLOCKS)), np.flatnonzero(self.counts)
            if complete is None:
                note = Note("singular_covariance", items=self.items, dimensions=self.dimensions)
                return no_value(note, self.items, level)
            each = [value(np.setdiff1d(present, block)) for block in present]
        return SetValue(complete, jackknife_interval(complete, each, level), self.items)

    def estimate(self, level: float = LEVEL) -> SetValue:
        """The value, its interval and what it tends to. One value is computed fifteen times for them."""
        with threads_for(self.dimensions):
            return self._estimate(level)

    def _estimate(self, level: float) -> SetValue:
        value = self.value()
        if value is None:
            return no_value(Note("few_items", needed=FEWEST_ITEMS, items=self.items), self.items, level)
        present = np.flatnonzero(self.counts)
        each = [self.value(np.setdiff1d(present, block)) for block in present]
        note, extrapolated = None, None
        if self.items < 4 * (self.dimensions + 1):
            needed = 4 * (self.dimensions + 1)
            note = Note("biased_value", items=self.items, dimensions=self.dimensions, needed=needed)
        else:
            extrapolated = at_infinity(self._mean_of_parts)
        return SetValue(value, jackknife_interval(value, each, level), self.items, extrapolated, note)

    def _mean_of_parts(self, share: float) -> float | None:
        """The mean value of the parts that the set falls into: quarters, halves, all but one block, or the whole."""
        if share > 0.5:
            size = round(share * BLOCKS)
            parts = (
                [np.setdiff1d(np.arange(BLOCKS), gone) for gone in range(BLOCKS)] if size < BLOCKS else [range(BLOCKS)]
            )
        else:
            parts = list(np.arange(BLOCKS).reshape(round(1 / share), -1))
        values = [self.value(segment) for segment in parts]
        return None if any(value is None for value in values) else float(np.mean(np.asarray(values, np.float64)))


def threads_for(dimensions: int) -> AbstractContextManager[Any]:
    """The threads on which distances of so many dimensions are computed, while the context lasts."""
    from threadpoolctl import threadpool_limits

    # Small matrices gain nothing from several threads, which wait for each other wherever other processes use the
    # cores.
    return threadpool_limits(1, user_api="blas") if dimensions <= ONE_THREAD else nullcontext()


def distance(covariance_a: np.ndarray, covariance_b: np.ndarray, apart: np.ndarray) -> float:
    """The squared Fréchet distance of two Gaussians with means `apart`.

    With `C = L L'`, the trace of `(C1 C2)^(1/2)` is the sum of the singular values of `L1' L2`, whatever the rank.
    """
    from scipy.linalg import svdvals

    common = float(svdvals(_factor(covariance_a).T @ _factor(covariance_b)).sum())
    spread = float(np.trace(covariance_a) + np.trace(covariance_b))
    return max(0.0, float(apart @ apart) + spread - 2.0 * common)


def divergence(reference: np.ndarray, estimate: np.ndarray, apart: np.ndarray) -> float | None:
    """`KL(reference || estimate)` in nats of two Gaussians with means `apart`; None if a covariance is singular."""
    factors = []
    for covariance in (reference, estimate):
        factor = _factor(covariance)
        if factor.shape[1] < len(covariance):
            return None
        factors.append(factor)
    solved = np.linalg.solve(factors[1], np.column_stack([factors[0], apart]))
    log_ratio = np.linalg.slogdet(factors[1]).logabsdet - np.linalg.slogdet(factors[0]).logabsdet
    return float(max(0.0, 0.5 * ((solved**2).sum() - len(apart)) + log_ratio))


def _covariance(upper: np.ndarray, mean: np.ndarray, count: int) -> np.ndarray:
    """The covariance from the upper triangle of the sum of the outer products, over one item less than there are."""
    second_moment = np.triu(upper) + np.triu(upper, 1).T
    return np.asarray((second_moment - count * np.outer(mean, mean)) / (count - 1))


def _factor(covariance: np.ndarray) -> np.ndarray:
    """`L` with `C = L L'`, without the directions in which there is nothing but rounding."""
    from scipy.linalg import eigh

    values, vectors = eigh(covariance, driver="evd")  # the default driver takes five times as long
    floor = max(values[-1], 0.0) * len(values) * np.finfo(np.float64).eps
    significant = values > floor
    return np.asarray(vectors[:, significant] * np.sqrt(values[significant]))

"""The Fréchet distance of two sets of embeddings: FAD, for embeddings of sound.

The distance of two Gaussians is `|m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2))`, biased upwards for few items;
`extrapolated` is FAD-infinity, linear in 1 / items. References: Heusel et al. 2017; Kilgour et al. 2019, "Fréchet Audio
Distance"; Chong and Forsyth 2020, "Effectively Unbiased FID". Agrees with scipy's `sqrtm` to 1e-6 relative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from codec_bench.stats.blocks import BLOCKS, FEWEST_ITEMS, SetValue, blocks_of, jackknife
from codec_bench.stats.notes import Note

ONE_THREAD = 512  # up to so many dimensions, the distance is computed on one thread
Of = Callable[[np.ndarray, np.ndarray, np.ndarray], float | None]
"""A value of two covariances and the difference of the means."""
ROWS = 4096  # vectors that are turned to float64 together


@dataclass(frozen=True, slots=True, eq=False)
class FrechetSums:
    """Sums of embeddings by block, for the Gaussians of any of the blocks.

    Args:
        blocks: of each item.
        sums: of the vectors, `(blocks, sides, dimensions)`, the reference first.
        products: sums of the outer products, `(blocks, sides, dimensions, dimensions)`.
    """

    blocks: np.ndarray
    sums: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, pairs: np.ndarray, units: Sequence[str]) -> FrechetSums:
        """Sums of embeddings `(items, sides, dimensions)` by blocks of `units` (speakers)."""
        from scipy.linalg.blas import dsyrk

        _, sides, dimensions = pairs.shape
        out = cls(
            blocks_of(units), np.zeros((BLOCKS, sides, dimensions)), np.zeros((BLOCKS, sides, dimensions, dimensions))
        )
        for block in range(BLOCKS):
            places = np.flatnonzero(out.blocks == block)
            for first in range(0, len(places), ROWS):
                for role in range(sides):
                    rows = pairs[places[first : first + ROWS], role].astype(np.float64)
                    out.sums[block, role] += rows.sum(axis=0)
                    # The upper triangle alone, which halves the work; `_covariance` mirrors it.
                    out.products[block, role] += dsyrk(1.0, rows.T)
        return out

    def gaussians(self, blocks: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]] | None:
        """Means `(sides, dimensions)`, covariances of some blocks; None below 2 items."""
        count = int(np.isin(self.blocks, blocks).sum())
        if count < FEWEST_ITEMS:
            return None
        means = self.sums[blocks].sum(axis=0) / count
        products = self.products[blocks].sum(axis=0)
        return means, [_covariance(product, mean, count) for product, mean in zip(products, means, strict=True)]

    def value(self, of: Of, blocks: np.ndarray) -> float | None:
        """Apply `of` to Gaussians of numbered blocks; None below two items."""
        if (gaussians := self.gaussians(blocks)) is None:
            return None
        means, (reference, estimate) = gaussians
        return of(reference, estimate, means[0] - means[1])


def frechet_distance(pairs: np.ndarray, names: Sequence[str], units: Sequence[str]) -> SetValue:
    """The distance of estimates from references, its interval, and its limit.

    Args:
        pairs: `(items, 2, dimensions)`, the reference first. names, units: of the items.
    """
    items, _, dimensions = pairs.shape
    sums, needed = FrechetSums.of(pairs, units), 4 * (dimensions + 1)
    note = Note("biased_value", items=items, dimensions=dimensions, needed=needed) if items < needed else None
    why = Note("few_items", needed=FEWEST_ITEMS, items=items)
    with threads_for(dimensions):
        out = jackknife(partial(sums.value, distance), sums.blocks, why=why, note=note)
        return out if note or out.value is None else replace(out, extrapolated=_extrapolate(sums))


def kl_divergence(pairs: np.ndarray, names: Sequence[str], units: Sequence[str]) -> SetValue:
    """Compute the KL divergence of the estimates' Gaussian from the references'.

    Args:
        pairs: embeddings `(items, 2, dimensions)`, reference first.
        units: their speakers, for the jackknife interval.
    """
    items, _, dimensions = pairs.shape
    sums, why = FrechetSums.of(pairs, units), Note("singular_covariance", items=items, dimensions=dimensions)
    with threads_for(dimensions):
        return jackknife(partial(sums.value, divergence), sums.blocks, why=why)


def _extrapolate(sums: FrechetSums) -> float | None:
    """The limit of the distance for infinite sets: its bias shrinks with 1 / items.

    A least-squares line over 1 / share, through mean values of quarters, halves, all but one block and the whole, ends
    at 0.
    """
    every = np.arange(BLOCKS)
    parts = {0.25: every.reshape(4, -1), 0.5: every.reshape(2, -1), 1.0: every[None]}
    parts[1 - 1 / BLOCKS] = np.stack([np.setdiff1d(every, block) for block in every])
    values = [[sums.value(distance, blocks) for blocks in groups] for groups in parts.values()]
    if any(value is None for of_share in values for value in of_share):
        return None
    means = [np.mean(np.asarray(of_share, np.float64)) for of_share in values]
    return float(np.polyfit(1.0 / np.asarray(list(parts)), means, 1)[1])


def threads_for(dimensions: int) -> AbstractContextManager[Any]:
    """Set the threads for distances of so many dimensions, in a context."""
    from threadpoolctl import threadpool_limits

    # Small matrices gain nothing from several threads, which wait for each other wherever other processes use the
    # cores.
    return threadpool_limits(1, user_api="blas") if dimensions <= ONE_THREAD else nullcontext()


def distance(covariance_a: np.ndarray, covariance_b: np.ndarray, mean_difference: np.ndarray) -> float:
    """Compute the squared Fréchet distance of Gaussians; `mean_difference`: difference of means.

    With `C = L L'`, the trace of `(C1 C2)^(1/2)` is the sum of the singular values of `L1' L2`, whatever the rank.
    """
    from scipy.linalg import svdvals

    common = float(svdvals(_factor(covariance_a).T @ _factor(covariance_b)).sum())
    spread = float(np.trace(covariance_a) + np.trace(covariance_b))
    return max(0.0, float(mean_difference @ mean_difference) + spread - 2.0 * common)


def divergence(reference: np.ndarray, estimate: np.ndarray, mean_difference: np.ndarray) -> float | None:
    """`KL(reference || estimate)` in nats, means `mean_difference`; None if singular."""
    factors = []
    for covariance in (reference, estimate):
        factor = _factor(covariance)
        if factor.shape[1] < len(covariance):
            return None
        factors.append(factor)
    solved = np.linalg.solve(factors[1], np.column_stack([factors[0], mean_difference]))
    log_ratio = np.linalg.slogdet(factors[1]).logabsdet - np.linalg.slogdet(factors[0]).logabsdet
    return float(max(0.0, 0.5 * ((solved**2).sum() - len(mean_difference)) + log_ratio))


def _covariance(upper: np.ndarray, mean: np.ndarray, count: int) -> np.ndarray:
    """The covariance (over n - 1) from the upper triangle of the sum of products."""
    second_moment = np.triu(upper) + np.triu(upper, 1).T
    return np.asarray((second_moment - count * np.outer(mean, mean)) / (count - 1))


def _factor(covariance: np.ndarray) -> np.ndarray:
    """`L` with `C = L @ L.T`, `(d, rank)`, without directions at rounding error."""
    from scipy.linalg import eigh

    values, vectors = eigh(covariance, driver="evd")  # the default driver takes five times as long
    floor = max(values[-1], 0.0) * len(values) * np.finfo(np.float64).eps
    significant = values > floor
    return np.asarray(vectors[:, significant] * np.sqrt(values[significant]))

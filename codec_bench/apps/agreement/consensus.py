"""Consensus of raters, and preferences from scores.

A table of ratings or numbered labels is float64 `(raters, items)`, NaN where missing. The majority is the most frequent
value of an item with at least two raters; `TIES` names the rule for ties, since published protocols rarely state it.
"""

from __future__ import annotations

import numpy as np

TIES = ("left-out", "any", "equal")
"""Rules for ties: no majority, any most frequent value agrees, or equal preference."""
FEWEST_RATERS = 2
PREFERRED, EQUAL, OTHER = 1.0, 0.0, -1.0
"""Preferences as numbers: the first system, neither, the second system."""


def majority(table: np.ndarray, *, ties: str = "left-out", against: np.ndarray | None = None) -> np.ndarray:
    """Return the most frequent value of each item, `(items,)`; NaN without one.

    Args:
        ties: see `TIES`.
        against: the values of the compared rater, `(items,)`; for `any`.
    """
    best, most, tied = _modes(table)
    out = np.where((~np.isnan(table)).sum(axis=0) >= FEWEST_RATERS, best, np.nan)
    usable = tied & ~np.isnan(out)
    if ties == "equal":
        return np.where(usable, EQUAL, out)
    if ties == "any" and against is not None:
        agrees = (table == against).sum(axis=0) == most
        return np.where(usable & agrees, against, out)
    return out if ties == "any" else np.where(usable, np.nan, out)


def undecided(table: np.ndarray) -> int:
    """Count the tied items among those with two or more ratings."""
    _, _, tied = _modes(table)
    return int((tied & ((~np.isnan(table)).sum(axis=0) >= FEWEST_RATERS)).sum())


def mean_rating(table: np.ndarray) -> np.ndarray:
    """Return the mean rating of each item, `(items,)`; NaN below two ratings."""
    known = ~np.isnan(table)
    count = known.sum(axis=0)
    sums = np.where(known, table, 0.0).sum(axis=0)
    return np.where(count >= FEWEST_RATERS, sums / np.maximum(count, 1), np.nan)


def preference(first: np.ndarray, second: np.ndarray, *, equal_within: float = 0.0) -> np.ndarray:
    """Derive preferences from two systems' scores `(items,)`; NaN without a score.

    Higher scores are better; differences up to `equal_within` are `EQUAL`.
    """
    apart = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    return np.where(np.isnan(apart), np.nan, np.sign(np.where(np.abs(apart) <= equal_within + 1e-12, 0.0, apart)))


def _modes(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a most frequent value per item, its count, and whether it is tied."""
    ordered = np.sort(table, axis=0)  # NaN goes last
    items = table.shape[1]
    best, most, tied, run = np.full(items, np.nan), np.zeros(items, int), np.zeros(items, bool), np.zeros(items, int)
    for index, row in enumerate(ordered):
        same = row == ordered[index - 1] if index else np.zeros(items, bool)
        run = np.where(np.isnan(row), 0, np.where(same, run + 1, 1))
        more = run > most
        tied = np.where(more, False, tied | ((run == most) & (run > 0) & (row != best)))
        best, most = np.where(more, row, best), np.maximum(most, run)
    return best, most, tied

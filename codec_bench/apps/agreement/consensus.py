"""What several raters say together, and what scores say of two systems: the value of most raters, their mean,
preferences.

Conventions
    A table of ratings is float64 `(raters, items)`, with NaN where a rater did not rate an item. Labels are numbers
    too. The majority is the most frequent value of an item that at least two raters rated. Where several values are the
    most frequent, a rule by name decides (`TIES`): published protocols rarely say which.
"""

from __future__ import annotations

import numpy as np

TIES = ("left-out", "any", "equal")
"""Where no value is the most frequent one: `left-out` (the item has no majority), `any` (whoever gives one of the most
frequent values agrees), `equal` (of preferences alone: neither system is preferred)."""
FEWEST_RATERS = 2
PREFERRED, EQUAL, OTHER = 1.0, 0.0, -1.0
"""Preferences as numbers: the first system, neither, the second system."""


def majority(table: np.ndarray, *, ties: str = "left-out", against: np.ndarray | None = None) -> np.ndarray:
    """The most frequent value of each item, `(items,)`; NaN where fewer than two raters rated it, or no value is the
    most frequent.

    Args:
        table: the ratings, `(raters, items)`.
        ties: what counts where several values are the most frequent; see `TIES`.
        against: the values of the rater that is compared with the majority, `(items,)`; for `any`.
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
    """Of how many items, rated by two or more, no value is the most frequent."""
    _, _, tied = _modes(table)
    return int((tied & ((~np.isnan(table)).sum(axis=0) >= FEWEST_RATERS)).sum())


def mean_rating(table: np.ndarray) -> np.ndarray:
    """The mean of the raters of each item, `(items,)`; NaN where fewer than two rated it."""
    known = ~np.isnan(table)
    count = known.sum(axis=0)
    sums = np.where(known, table, 0.0).sum(axis=0)
    return np.where(count >= FEWEST_RATERS, sums / np.maximum(count, 1), np.nan)


def preference(first: np.ndarray, second: np.ndarray, *, equal_within: float = 0.0) -> np.ndarray:
    """Which of two systems a rater prefers, from the scores of both: `PREFERRED`, `EQUAL` or `OTHER`; NaN without a
    score.

    Args:
        first, second: the scores, `(items,)`; higher is better.
        equal_within: scores that differ by no more than this are equal.
    """
    apart = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    return np.where(np.isnan(apart), np.nan, np.sign(np.where(np.abs(apart) <= equal_within + 1e-12, 0.0, apart)))


def _modes(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A most frequent value of each item, how often it was given, and whether another one was given as often."""
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

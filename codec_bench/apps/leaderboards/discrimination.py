"""Which items of a benchmark tell systems apart: the correlation of each item with the rest of the test, over the systems.

Conventions
    An item's discrimination is Pearson's correlation, over the systems, between the points of the item and the mean of the points
    of all other items (the corrected item-total correlation). Near 1 the item orders the systems as the rest does; below 0 it
    orders them the other way round, which hints at a wrong key or at noise. With few systems it is noisy itself.
    An item that every system gets alike tells none of them apart, and has no discrimination.

Reference: Lord and Novick 1968, "Statistical Theories of Mental Test Scores", chapter 15.
"""

from __future__ import annotations

import numpy as np

FEWEST_SYSTEMS = 3
_SAME = 1e-9


def item_discrimination(points: np.ndarray) -> np.ndarray:
    """The discrimination of every item, float64 `(items,)`; NaN for an item that tells no systems apart.

    Args:
        points: more is better, float64 `(items, systems)`, without NaN, of at least `FEWEST_SYSTEMS` systems.

    Raises:
        ValueError: there are fewer systems.
    """
    items, systems = points.shape
    if systems < FEWEST_SYSTEMS:
        raise ValueError(f"{systems} systems are too few to tell items apart; expected {FEWEST_SYSTEMS}")
    rest = (points.sum(axis=0) - points) / max(1, items - 1)
    own = points - points.mean(axis=1, keepdims=True)
    other = rest - rest.mean(axis=1, keepdims=True)
    below = np.sqrt(np.square(own).sum(axis=1) * np.square(other).sum(axis=1))
    scale = _SAME * max(1.0, float(np.abs(points).max(initial=0.0))) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > scale, (own * other).sum(axis=1) / below, np.nan)

"""The value of most raters against counting by hand, over every table of three raters, and preferences."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from codec_bench.apps.agreement.panel import majority, mean_rating, preference, undecided

VALUES = (0.0, 1.0, 2.0, np.nan)
TABLE = np.array(list(product(VALUES, repeat=4))).T
"""Every table of four raters of three values, each of whom may have rated nothing."""


def counted(column):
    """The most frequent values of an item, and how many raters rated it."""
    counts = Counter(value for value in column.tolist() if value == value)
    most = max(counts.values(), default=0)
    return {value for value, count in counts.items() if count == most}, sum(counts.values())


@pytest.mark.parametrize("ties", ["left-out", "equal", "any"])
@pytest.mark.parametrize("judge", [0.0, 1.0, 2.0])
def test_the_majority_is_the_one_that_counting_gives(ties, judge):
    result = majority(TABLE, ties=ties, against=np.full(TABLE.shape[1], judge))
    for column, value in zip(TABLE.T, result.tolist()):
        modes, raters = counted(column)
        if raters < 2:
            assert np.isnan(value), "one rater is no majority"
        elif len(modes) == 1:
            assert value in modes
        elif ties == "left-out":
            assert np.isnan(value)
        elif ties == "equal":
            assert value == 0.0
        else:
            assert value in modes and (value == judge) == (judge in modes)


def test_items_without_a_majority_are_counted():
    modes = [counted(column) for column in TABLE.T]
    assert undecided(TABLE) == sum(raters >= 2 and len(result) > 1 for result, raters in modes)


def test_the_mean_is_over_those_who_rated():
    table = np.array([[1.0, 4.0, np.nan], [2.0, np.nan, np.nan], [6.0, 5.0, 3.0]])
    assert mean_rating(table)[:2] == pytest.approx([3.0, 4.5]) and np.isnan(mean_rating(table)[2])


def test_preferences_from_scores():
    first, second = np.array([3.0, 4.0, 4.5, np.nan]), np.array([3.0, 3.5, 1.0, 2.0])
    assert preference(first, second)[:3].tolist() == [0.0, 1.0, 1.0]
    assert preference(first, second, equal_within=0.5)[:3].tolist() == [0.0, 0.0, 1.0]
    assert preference(second, first)[:3].tolist() == [0.0, -1.0, -1.0] and np.isnan(preference(first, second)[3])

"""Intervals hold the truth and tests do not cry wolf, as often as they promise: a small part of the study in bench/."""

from __future__ import annotations

import pytest
from bench_intervals import ORDINARY, ordinary, study


@pytest.mark.parametrize("design", [(3, 20), (5, 10), (8, 8), (10, 10), (20, 5), (6, 1), (12, 1), (30, 1)])
def test_the_promise_is_kept(design):
    for row in study(400, (design,), others=False):
        # What holds is not marked, so that a mark means something.
        assert row["marked"] is None or row["marked"] <= 0.1, row
        # The bounds of the study itself, 0.92 and 0.08, less what 400 repetitions scatter.
        assert row["coverage"] >= 0.90, row
        assert row["alarms"] is None or row["alarms"] <= 0.09, row


def test_the_study_can_fail():
    """The percentile bootstrap of three speakers is known to be far too short, and the study sees it."""
    rows = {(r["kind"], r["method"]): r["coverage"] for r in study(100, ((3, 20),))}
    assert rows["mean", "percentile bootstrap"] < 0.85 < 0.9 <= rows["mean", "codec-bench"]


@pytest.mark.parametrize("name", [*ORDINARY][::13])
def test_what_is_ordinary_and_unequal_is_held_or_has_no_interval(name):
    """Every thirteenth design of the second study; 0.92 is promised, and 300 runs scatter by 0.016."""
    (row,) = ordinary(300, [name])
    assert row["coverage"] is None or row["coverage"] >= 0.89, row


def test_an_error_rate_that_may_loop_has_no_interval_below_3000_items():
    """Twice in a thousand items the recogniser loops: of 1,000 items, one sample in seven does not show it."""
    names = [name for name in ORDINARY if name.startswith("error rate") and "looping" in name]
    assert all(row["given"] == 0 for row in ordinary(5, [name for name in names if int(name.split()[-2]) < 3000]))

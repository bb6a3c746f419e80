"""The discrimination of items, against NumPy's correlation and against items of known quality."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.apps.leaderboards.json_values import item_discrimination


def test_it_is_the_correlation_with_the_rest():
    points = np.random.default_rng(0).random((20, 6))
    result = item_discrimination(points)
    for item, value in enumerate(result):
        rest = np.delete(points, item, axis=0).mean(axis=0)
        assert value == pytest.approx(np.corrcoef(points[item], rest)[0, 1])


def test_items_that_follow_ability_stand_out_and_a_wrong_key_is_negative():
    rng = np.random.default_rng(1)
    ability = np.linspace(0.1, 0.9, 8)
    points = (rng.random((60, 1)) < ability).astype(float)
    points[0] = 1.0  # everybody
    points[1] = 1 - (ability > 0.5)  # the key is wrong
    points[2] = ability > 0.5
    result = item_discrimination(points)
    assert np.isnan(result[0]) and result[1] < -0.7 and result[2] > 0.7
    with pytest.raises(ValueError, match="2 systems"):
        item_discrimination(points[:, :2])

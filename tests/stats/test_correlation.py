"""Rank correlations of columns: against SciPy and definitions, and their intervals against a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from codec_bench.stats.correlation import FEWEST_ROWS, correlations, order_by_similarity


def test_values_are_scipys_over_the_rows_that_have_both_cells():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 6, (14, 4)).astype(float)  # with ties
    values[3, 1] = values[7, 2] = np.nan
    pairs = correlations(values)
    assert [(p.first, p.second) for p in pairs] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    for pair in pairs:
        both = np.isfinite(values[:, [pair.first, pair.second]]).all(axis=1)
        x, y = values[both, pair.first], values[both, pair.second]
        assert pair.rows == both.sum()
        assert pair.spearman.value == pytest.approx(spearmanr(x, y).statistic)
        assert pair.kendall.value == pytest.approx(kendalltau(x, y).statistic)
        assert pair.spearman.low < pair.spearman.value < pair.spearman.high


@pytest.mark.parametrize("truth", [0.0, 0.5, 0.8])
def test_intervals_of_the_fewest_rows_hold_the_truth(truth):
    rng = np.random.default_rng(1)
    rho, hits = 6 / np.pi * np.arcsin(truth / 2), []
    for _ in range(600):
        x = rng.standard_normal(FEWEST_ROWS)
        y = truth * x + np.sqrt(1 - truth**2) * rng.standard_normal(FEWEST_ROWS)
        (pair,) = correlations(np.stack([x, y], axis=1))
        if pair.spearman.low is not None:
            hits.append(pair.spearman.low <= rho <= pair.spearman.high)
    assert len(hits) > 450 and np.mean(hits) > 0.92


def test_what_cannot_be_reported_is_reported():
    small = correlations(np.asarray([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]]))[0]
    assert (
        small.spearman.value == pytest.approx(0.5)
        and small.spearman.low is None
        and small.spearman.note.as_dict() == {"code": "few_rows_for_interval", "rows": 3, "of": "rows", "needed": 10}
    )
    two = correlations(np.asarray([[1.0, 2.0], [2.0, 1.0]]))[0]
    assert two.spearman.value is None and two.kendall.note.as_dict() == {
        "code": "few_rows",
        "rows": 2,
        "of": "rows",
        "needed": 3,
    }
    flat = correlations(np.stack([np.arange(12.0), np.ones(12)], axis=1))[0]
    assert flat.kendall.value is None and flat.spearman.note.as_dict() == {"code": "constant_column", "of": "rows"}
    same = correlations(np.stack([np.arange(12.0), np.arange(12.0)], axis=1))[0]
    assert same.spearman.value == pytest.approx(1.0) and same.spearman.low is None and same.kendall.low is None


def test_columns_that_are_alike_stand_side_by_side():
    rng = np.random.default_rng(2)
    one, other = rng.standard_normal((2, 30))
    values = np.stack([one, other, one + 0.1 * rng.standard_normal(30), other + 0.1 * rng.standard_normal(30)], axis=1)
    order = order_by_similarity(correlations(values), 4)
    places = [order.index(n) for n in range(4)]
    assert abs(places[0] - places[2]) == 1 and abs(places[1] - places[3]) == 1
    assert order_by_similarity([], 1) == [0]

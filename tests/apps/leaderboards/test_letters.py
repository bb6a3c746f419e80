"""Two rows share a letter exactly if they do not differ significantly."""

from __future__ import annotations

import re

import numpy as np
import pytest

from codec_bench.apps.leaderboards.formats import significance_letters


def letters(text):
    return set(re.findall(r"\([a-z]+\)|[a-z]", text))


@pytest.mark.parametrize("seed", range(25))
def test_letters_state_who_is_alike(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 10))
    apart = np.triu(rng.random((rows, rows)) < rng.choice([0.2, 0.5, 0.8]), 1)
    alike = [[j for j in range(rows) if j != i and not apart[min(i, j), max(i, j)]] for i in range(rows)]
    results = [letters(text) for text in significance_letters(alike)]
    assert all(results)
    for i in range(rows):
        for j in range(rows):
            assert bool(results[i] & results[j]) == (i == j or j in alike[i])


def test_the_best_row_has_the_first_letter():
    assert significance_letters([[1], [0, 2], [1]]) == ["a", "ab", "b"]
    assert significance_letters([[], []]) == ["a", "b"] and significance_letters([]) == []
    assert significance_letters([[]] * 28)[-1] == "(ab)"

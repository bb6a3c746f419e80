"""Corpus values from summed counts are the same for one set as for many resamples at once."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.intervals import interval_of


@pytest.mark.parametrize("name", FOLDS)
def test_a_fold_works_on_any_leading_axes(name):
    draw = np.random.default_rng(0)
    total = draw.integers(1, 50, (3, 5, 4))
    counts = np.concatenate([draw.integers(1, 90, (3, 5, 2)), draw.binomial(total, 0.3), total], axis=-1)
    values = FOLDS[name](counts)
    assert values.shape == (3, 5) and values.dtype == np.float64
    for index in np.ndindex(3, 5):
        # NumPy multiplies four numbers in another order than columns of them.
        assert float(FOLDS[name](counts[index])) == pytest.approx(values[index], rel=1e-14)


@pytest.mark.parametrize("name", FOLDS)
def test_nothing_has_no_value_and_silence_has_none_of_it(name):
    assert np.isnan(FOLDS[name](np.zeros(10)))
    silent = np.array([0, 7] + [0] * 8)
    assert float(FOLDS[name](silent)) == pytest.approx(0.0, abs=1e-9)
    perfect = np.array([7, 7, 7, 6, 5, 4, 7, 6, 5, 4])
    assert float(FOLDS[name](perfect)) == pytest.approx(100.0 if name.startswith("bleu") else 1.0, rel=1e-8)


def test_bleu_by_hand():
    # Papineni's formula: 4 of 5, 2 of 4, 1 of 3, 1 of 2 n-grams, and 5 words for 6.
    counts = np.array([5, 6, 4, 2, 1, 1, 5, 4, 3, 2])
    expected = 100 * np.exp(1 - 6 / 5) * (4 / 5 * 2 / 4 * 1 / 3 * 1 / 2) ** 0.25
    assert float(FOLDS["bleu"](counts)) == pytest.approx(expected, rel=1e-12)


def test_no_match_at_all_is_smoothed_in_the_older_form_only():
    counts = np.array([4, 4, 0, 0, 0, 0, 4, 3, 2, 1])
    assert float(FOLDS["bleu"](counts)) == 0
    expected = (100 / 8 * 100 / 12 * 100 / 16 * 100 / 16) ** 0.25
    assert float(FOLDS["bleu-sacrebleu-1.5"](counts)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["bleu", "coco-bleu-4", "coco-bleu-2"])
def test_an_interval_of_a_bleu_lies_within_its_ends(name):
    item = np.array([12, 12, 8, 5, 3, 1, 12, 11, 10, 9], float)
    complete = np.array([12, 12, 12, 11, 10, 9, 12, 11, 10, 9], float)
    rows = np.stack([complete] * 30 + [item] * 2)
    result = interval_of(FOLDS[name], rows, None)
    best = 100.0 if name == "bleu" else 1.0
    assert result.low < float(FOLDS[name](rows.sum(0))) < result.high <= best * (1 + 1e-9)

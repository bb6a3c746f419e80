"""What codes tell of phones equals scikit-learn's information and what is known of simulated codes, and counts can be
added.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from codec_bench.apps.profiling.phones import count_pairs, measure_association

NAMES = ("A", "B", "C", "D")


def drawn(rng, frames, noise):
    """Codes that are the phone in one codebook, the phone with noise in another, and independent of it in a third."""
    phones = rng.choice(4, frames, p=[0.4, 0.3, 0.2, 0.1])
    noisy = np.where(rng.random(frames) < noise, rng.integers(0, 4, frames), phones)
    return np.stack([2 * phones + rng.integers(0, 2, frames), noisy, rng.integers(0, 8, frames)]), phones


def test_information_and_purities_are_scikit_learns(rng):
    codes, phones = drawn(rng, 3000, 0.5)
    for row, result in zip(
        codes, measure_association(count_pairs(codes, phones, kinds=len(NAMES), cardinality=9), seed=0), strict=True
    ):
        bits = mutual_info_score(phones, row) / math.log(2)
        share = np.bincount(phones) / phones.size
        assert result.information_bits == pytest.approx(bits, abs=1e-9)
        assert result.pnmi == pytest.approx(bits / -(share * np.log2(share)).sum(), abs=1e-9)
        table = contingency_matrix(row, phones)
        assert result.phone_purity == table.max(axis=1).sum() / 3000
        assert result.cluster_purity == table.max(axis=0).sum() / 3000
        assert (result.frames, result.phones, result.codes) == (3000, 4, len(table))


def test_known_information_is_measured():
    """Of uniform phones through a symmetric channel, whose capacity is known."""
    rng = np.random.default_rng(11)
    phones = rng.integers(0, 4, 40_000)
    codes = np.where(rng.random(phones.size) < 0.4, rng.integers(0, 4, phones.size), phones)[None]
    stay = 0.6 + 0.4 / 4
    expected = 2 + stay * math.log2(stay) + 3 * 0.1 * math.log2(0.1)
    (measured,) = measure_association(count_pairs(codes, phones, kinds=len(NAMES), cardinality=4), seed=0)
    assert measured.information_bits == pytest.approx(expected, abs=0.02)
    assert measured.information_bits_corrected == pytest.approx(expected, abs=0.02)
    assert measured.pnmi == pytest.approx(expected / 2, abs=0.01)
    assert measured.phone_purity == pytest.approx(stay, abs=0.01)


def test_chance_is_what_independent_codes_have():
    rng = np.random.default_rng(5)
    codes, phones = rng.integers(0, 200, (1, 1000)), rng.integers(0, 4, 1000)
    (measured,) = measure_association(count_pairs(codes, phones, kinds=len(NAMES), cardinality=200), seed=0)
    table = contingency_matrix(codes[0], phones)
    expected = expected_mutual_information(table, 1000) / math.log(2)
    there = measured.information_bits / measured.pnmi
    assert measured.information_bits > 0.15, "so much of nothing is counted"
    assert measured.pnmi_chance * there == pytest.approx(expected, rel=0.05)
    assert measured.pnmi == pytest.approx(measured.pnmi_chance, rel=0.15)
    assert 0.2 < measured.information_bits_corrected / measured.information_bits < 0.6, "a part of the bias"
    assert measured.phone_purity == pytest.approx(measured.phone_purity_chance, rel=0.1)
    assert measured == measure_association(count_pairs(codes, phones, kinds=len(NAMES), cardinality=200), seed=0)[0]


def test_frames_without_a_phone_do_not_count_and_one_phone_tells_nothing(rng):
    codes, phones = drawn(rng, 50, 0.5)
    nothing = measure_association(count_pairs(codes, np.full(50, -1), kinds=len(NAMES), cardinality=9), seed=0)
    assert [(book.frames, book.pnmi, book.pnmi_chance) for book in nothing] == [(0, None, None)] * 3
    (one, *_) = measure_association(
        count_pairs(codes, np.where(phones == 0, 0, -1), kinds=len(NAMES), cardinality=9), seed=0
    )
    assert one.frames == (phones == 0).sum() and one.information_bits == 0
    assert (one.pnmi, one.pnmi_chance, one.phone_purity) == (None, None, 1.0)

"""The exponents of sources that are made by the laws."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from codec_bench.apps.profiling.language import heaps_exponent, zipf_exponent


def drawn(exponent, entries, codes, seed=0):
    share = np.arange(1, entries + 1) ** -float(exponent)
    output = np.random.default_rng(seed).multinomial(codes, share / share.sum())
    return np.random.default_rng(seed).permutation(output)  # which code has which rank is not known


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("entries", [64, 1024])
def test_an_independent_zipf_source_has_its_exponent(exponent, entries):
    assert zipf_exponent(drawn(exponent, entries, 100_000), seed=0) == pytest.approx(exponent, abs=0.02)


@pytest.mark.parametrize("codes", [500, 10_000])
def test_white_codes_have_none_however_few_they_are(codes):
    counts = drawn(0, 256, codes)
    assert zipf_exponent(counts, seed=0) < 0.1
    order = np.sort(counts)[::-1]
    slope = np.polyfit(np.log(np.arange(1, 1 + (order > 0).sum())), np.log(order[order > 0]), 1)[0]
    assert codes > 500 or -slope > 0.4  # what ranks and counts of one sample would say


def test_one_entry_and_nothing_have_no_exponent():
    for counts in ([1000, 0, 0], [0, 1], [0, 7]):
        assert zipf_exponent(np.array(counts), seed=0) is None
    assert heaps_exponent(np.array([4, 5])) is None
    assert heaps_exponent(np.array([1000, 0, 0])) == 0.0


def test_new_entries_of_a_zipf_source_appear_as_heaps_says():
    """For an exponent s above 1 and entries without end, different entries grow with n ** (1 / s)."""
    assert heaps_exponent(drawn(2.0, 1_000_000, 100_000)) == pytest.approx(0.5, abs=0.03)
    assert heaps_exponent(np.ones(1000, np.int64)) == pytest.approx(1.0)
    assert heaps_exponent(np.full(16, 1000)) == pytest.approx(0.0, abs=1e-9)


def test_a_tenth_of_the_codes_means_every_way_to_draw_one():
    counts = np.array([7, 0, 3, 1, 9])
    expected = sum(1 - comb(20 - int(c), 2) / comb(20, 2) for c in counts)
    assert heaps_exponent(counts) == pytest.approx(np.log(4 / expected) / np.log(10))

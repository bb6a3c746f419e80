"""Edit distance with compounds: its cost against a recursive definition; its counts against kaldialign's, in
tests/text/test_open_asr.py.
"""

from __future__ import annotations

from functools import cache

import pytest

from codec_bench.kernels.edit_distance.compounds import compound_counts
from codec_bench.text.error_rate import compound_error_rates, error_rates

WORDS = ("a", "b", "ab", "aba", "ba", "abab", "c", "bc", "é", "éa")


def cost(reference, estimate):
    """The least cost, by trying every first step."""

    @cache
    def least(i, j):
        if i == len(reference) or j == len(estimate):
            return len(reference) - i + len(estimate) - j
        steps = [least(i + 1, j) + 1, least(i, j + 1) + 1, least(i + 1, j + 1) + (reference[i] != estimate[j])]
        steps += [least(k, j + 1) for k in range(i + 2, len(reference) + 1) if "".join(reference[i:k]) == estimate[j]]
        steps += [least(i + 1, k) for k in range(j + 2, len(estimate) + 1) if "".join(estimate[j:k]) == reference[i]]
        return min(steps)

    return least(0, 0)


def test_the_cost_is_the_least_of_all_paths(rng):
    for _ in range(400):
        reference, estimate = ([str(w) for w in rng.choice(WORDS, rng.integers(0, 9))] for _ in range(2))
        hits, substitutions, deletions, insertions = compound_counts(reference, estimate)
        assert substitutions + deletions + insertions == cost(reference, estimate), (reference, estimate)
        assert hits + substitutions + deletions == len(reference)


def test_without_compounds_it_costs_what_the_edit_distance_costs(rng):
    texts = [" ".join(f"<{n}>" for n in rng.integers(0, 6, rng.integers(0, 40))) for _ in range(60)]
    plain = error_rates(reference=texts[:30], estimate=texts[30:], normaliser="none")
    joined = compound_error_rates(reference=texts[:30], estimate=texts[30:])
    assert [one.errors for one in joined] == [one.errors for one in plain]


@pytest.mark.parametrize(
    ("reference", "estimate"), [("white paper", "whitepaper"), ("whitepaper", "white paper"), ("a b c", "abc")]
)
def test_words_written_apart_are_right_in_either_direction(reference, estimate):
    (result,) = compound_error_rates(reference=[reference], estimate=[estimate])
    assert (result.errors, result.reference_length) == (0, len(reference.split()))

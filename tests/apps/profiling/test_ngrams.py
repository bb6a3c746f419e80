"""Entropy rates of sources whose entropy rate is known."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from codec_bench.apps.profiling.language import ORDERS, entropy_rates, grassberger_bits


def markov(rng, states, codes):
    """Codes of a chain, and its entropy rate and the entropy of a single code."""
    table = rng.dirichlet(np.full(states, 0.2), states)
    share = np.full(states, 1 / states)
    for _ in range(5000):
        share = share @ table
    row = -(table * np.log2(np.maximum(table, 1e-300))).sum(1)
    built = [int(rng.integers(states))]
    for _ in range(codes - 1):
        built.append(int(rng.choice(states, p=table[built[-1]])))
    return np.array(built), float(share @ row), float(-(share * np.log2(share)).sum())


def test_a_markov_source_has_its_entropy_rate_from_order_two_on():
    output, rate, single = markov(np.random.default_rng(3), 8, 30_000)
    result = entropy_rates(np.array_split(output, 40), 8)
    assert single - rate > 0.5
    assert result[0].bits == pytest.approx(single, abs=0.03)
    for order in (1, 2, 3):
        assert result[order].bits == pytest.approx(rate, abs=0.03)


@pytest.mark.parametrize(("entries", "clips"), [(4, 20), (16, 100), (64, 1)])
def test_white_codes_have_all_bits_at_every_order_that_is_carried(entries, clips):
    rng = np.random.default_rng(0)
    result = entropy_rates([rng.integers(0, entries, 20_000 // clips) for _ in range(clips)], entries)
    carried = [rate.bits for rate in result if rate.bits is not None]
    assert len(carried) >= 1 and carried == pytest.approx([math.log2(entries)] * len(carried), abs=0.05)


def test_an_order_that_the_data_cannot_carry_says_so_and_is_no_number():
    rng = np.random.default_rng(0)
    result = entropy_rates([rng.integers(0, 1024, 20_000)], 1024)
    assert result[0].bits == pytest.approx(10.0, abs=0.01)
    for order in (1, 2, 3):
        assert result[order].bits is None and f"cannot carry order {order + 1}" in result[order].reason
    assert [rate.reason for rate in entropy_rates([np.array([1, 2])], 4)][2:] == [
        "no clip has 3 frames",
        "no clip has 4 frames",
    ]


@pytest.mark.parametrize("stay", [0.5, 0.9, 0.98])
@pytest.mark.parametrize("entries", [16, 256, 1024])
@pytest.mark.parametrize("frames", [3_000, 30_000])
def test_sticky_codes_have_their_entropy_rate_or_none(entries, stay, frames):
    rng = np.random.default_rng(1)
    starts = rng.random(frames) > stay
    starts[0] = True
    codes = rng.integers(0, entries, frames)[np.maximum.accumulate(np.where(starts, np.arange(frames), 0))]
    same, other = stay + (1 - stay) / entries, (1 - stay) / entries
    truth = -same * math.log2(same) - (entries - 1) * other * math.log2(other)
    rates = [rate.bits for rate in entropy_rates(np.array_split(codes, 20), entries)[1:]]
    carried = [bits for bits in rates if bits is not None]
    assert carried == pytest.approx([truth] * len(carried), rel=0.05)
    assert carried or not (entries == 16 and stay == 0.5 and frames == 30_000)


def test_codes_that_never_change_have_no_entropy_at_any_order():
    assert [rate.bits for rate in entropy_rates([np.full(300, 3)] * 5, 8)] == [0.0] * len(ORDERS)


def test_no_ngram_goes_over_the_end_of_a_clip():
    clips = [np.array([0, 1, 0, 1, 0]), np.array([2, 3, 2, 3, 2])] * 200
    result = entropy_rates(clips, 4)
    seen = [Counter(tuple(c[k : k + n]) for c in clips for k in range(len(c) - n + 1)) for n in ORDERS]
    assert [(rate.ngrams, rate.different) for rate in result] == [(sum(c.values()), len(c)) for c in seen]
    assert result[1].bits == pytest.approx(0, abs=1e-2)  # the code before tells the next one


def test_the_estimator_is_grassbergers():
    """G(n) in its first form:

    G(1) = -gamma - ln 2, G(2) = 2 - gamma - ln 2, G(2n + 1) = G(2n), G(2n + 2) = G(2n) + 2 / (2n + 1).
    """
    g = {1: -np.euler_gamma - math.log(2), 2: 2 - np.euler_gamma - math.log(2)}
    for n in range(3, 60):
        g[n] = g[n - 1] if n % 2 else g[n - 2] + 2 / (n - 1)
    counts = np.random.default_rng(1).integers(1, 60, 40)
    total = counts.sum()
    nats = math.log(total) - sum(int(n) * g[int(n)] for n in counts) / total
    assert grassberger_bits(counts) == pytest.approx(nats / math.log(2), abs=1e-12)

"""The compiled resampling draws what its specification draws, and the draws are fair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from codec_bench.kernels.bootstrap import cpu, ref


def splitmix64(state):
    """The published generator, one step, in Python's integers."""
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    z = state
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return state, z ^ (z >> 31)


def test_the_specification_is_splitmix64():
    # The first outputs of the published C code for the seed 1234567, as its users quote them.
    state, outputs = 1234567, []
    for _ in range(3):
        state, output = splitmix64(state)
        outputs.append(output)
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize(("units", "resample"), [(7, 5), (ref.BLOCK, 0), (ref.BLOCK + 301, 2)])
def test_the_draws_are_as_specified(units, resample):
    seed = 99

    def choose(stream, of, count):
        # The bare output function is a step without its addition.
        mix = lambda value: splitmix64((value - ref.GOLDEN) % 2**64)[1]  # noqa: E731
        state, words = mix(mix(seed) + (stream + 1) * ref.GOLDEN), []
        while len(words) < count:
            state, output = splitmix64(state)
            words += [output >> 32, output % 2**32]
        return [word * of >> 32 for word in words[:count]]

    sizes = [min(ref.BLOCK, units - start) for start in range(0, units, ref.BLOCK)]
    stream = resample * (len(sizes) + 1)
    counts = [units]
    if len(sizes) > 1:
        counts = np.bincount([unit // ref.BLOCK for unit in choose(stream, units, units)]).tolist()
    expected = [
        block * ref.BLOCK + chosen
        for block, (size, count) in enumerate(zip(sizes, counts, strict=True))
        for chosen in choose(stream + 1 + block, size, count)
    ]
    assert ref.drawn_units(units, resample, seed).tolist() == expected


@settings(max_examples=50, deadline=None)
@given(
    units=st.integers(1, 400) | st.integers(ref.BLOCK - 2, ref.BLOCK + 3) | st.integers(4000, 9000),
    first=st.integers(0, 2**31),
    seed=st.integers(-(2**63), 2**64 - 1),
    data=st.integers(0, 2**32 - 1),
)
def test_compiled_draws_equal_the_specification(units, first, seed, data):
    # Sums of integers are exact, so equal sums mean equal draws.
    table = np.random.default_rng(data).integers(-1000, 1000, (units, 2)).astype(float)
    np.testing.assert_array_equal(cpu.resampled_sums(table, first, 3, seed), ref.resampled_sums(table, first, 3, seed))


@pytest.mark.parametrize("units", [257, 2 * ref.BLOCK + 1, 3 * ref.BLOCK])
def test_every_unit_that_is_drawn_is_the_same(units):
    powers = np.stack([2.0 ** (np.arange(units) % 40), np.arange(units) * 1e3 + 1], axis=1)
    np.testing.assert_array_equal(cpu.resampled_sums(powers, 11, 40, 4), ref.resampled_sums(powers, 11, 40, 4))


def test_real_numbers_agree_to_rounding(rng):
    table = rng.normal(size=(5000, 2)) * 10.0 ** rng.integers(-3, 3, (5000, 2))
    np.testing.assert_allclose(
        cpu.resampled_sums(table, 0, 20, 1), ref.resampled_sums(table, 0, 20, 1), rtol=1e-11, atol=1e-9
    )


def test_parts_equal_the_whole(rng):
    table = rng.normal(size=(321, 2))
    whole = cpu.resampled_sums(table, 0, 100, 8)
    parts = [cpu.resampled_sums(table, start, 25, 8) for start in (0, 25, 50, 75)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("units", [3, 10, 1000])
def test_units_are_drawn_alike_often(units):
    drawn = np.concatenate([ref.drawn_units(units, resample, 77) for resample in range(90_000 // units)])
    assert drawn.min() == 0 and drawn.max() == units - 1
    assert stats.chisquare(np.bincount(drawn, minlength=units)).pvalue > 1e-4


def test_pairs_of_following_draws_are_independent():
    drawn = np.concatenate([ref.drawn_units(8, resample, 5) for resample in range(20_000)])
    table = np.zeros((8, 8))
    np.add.at(table, (drawn[:-1], drawn[1:]), 1)
    assert stats.chi2_contingency(table).pvalue > 1e-4


def test_blocks_are_drawn_as_from_all_units_at_once():
    # How often a unit is drawn is binomial, and no block gets a fixed number of draws.
    units, resamples = 3 * ref.BLOCK + 500, 400
    counts = np.stack([np.bincount(ref.drawn_units(units, r, 3), minlength=units) for r in range(resamples)])
    expected = stats.binom.pmf(np.arange(8), units, 1 / units) * counts.size
    assert stats.chisquare(np.bincount(counts.ravel(), minlength=9)[:8], expected, sum_check=False).pvalue > 1e-4
    per_block = np.add.reduceat(counts, np.arange(0, units, ref.BLOCK), axis=1)
    shares = np.array([ref.BLOCK, ref.BLOCK, ref.BLOCK, 500]) / units
    spread = np.sqrt(units * shares * (1 - shares))
    np.testing.assert_allclose(per_block.mean(0), units * shares, atol=4 * spread.max() / np.sqrt(resamples))
    np.testing.assert_allclose(per_block.std(0), spread, rtol=0.15)


def test_seeds_and_resamples_give_other_draws():
    draws = {tuple(ref.drawn_units(50, resample, seed)) for resample in range(20) for seed in (0, 1, 2**64 - 1)}
    assert len(draws) == 60


@pytest.mark.parametrize("shape", [(0, 2), (4, 3), (4,)])
def test_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"expected \(units, 2\)"):
        cpu.resampled_sums(np.zeros(shape), 0, 1, 0)

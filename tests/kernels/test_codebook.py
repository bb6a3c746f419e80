"""Every implementation gives the specification's counts, and these equal the counts of NumPy's own functions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from codec_bench.kernels.codebook import cpu, gpu, histogram, pairs, ref

LENGTHS = np.array([70, 0, 13, 1])


@pytest.fixture
def codes(rng):
    return rng.integers(-2, 22, (4, 3, 70))  # four of the values are no codes of 20 entries


def test_the_specification_counts(codes):
    counts = ref.histogram(codes, 20)
    for codebook in range(3):
        values = codes[:, codebook].ravel()
        good = values[(values >= 0) & (values < 20)]
        assert counts[codebook, :20].tolist() == np.bincount(good, minlength=20).tolist()
        assert counts[codebook, 20] == values.size - good.size
    keys, seen = ref.pairs(codes, 20)
    for place in range(2):
        a, b = codes[:, place].ravel(), codes[:, place + 1].ravel()
        table = np.zeros((20, 20), int)
        here = keys // 400 == place
        np.add.at(table, (keys[here] // 20 % 20, keys[here] % 20), seen[here])
        assert np.array_equal(table, np.histogram2d(a, b, bins=20, range=((-0.5, 19.5), (-0.5, 19.5)))[0])


def test_a_pair_in_time_does_not_cross_items():
    codes = np.array([[[0, 1, 2]], [[1, 1, 0]]])
    keys, seen = ref.pairs(codes, 3, frames=True)
    assert dict(zip(keys.tolist(), seen.tolist())) == {0 * 3 + 1: 1, 1 * 3 + 2: 1, 1 * 3 + 1: 1, 1 * 3 + 0: 1}


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16])
def test_histograms_are_the_specified_ones(codes, lengths, dtype):
    codes = codes.astype(dtype)
    expected = ref.histogram(codes, 20, lengths)
    assert np.array_equal(cpu.histogram(codes, 20, lengths), expected)
    assert np.array_equal(gpu.histogram_plain(torch.from_numpy(codes), 20, lengths).numpy(), expected)


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("frames", [False, True])
@pytest.mark.parametrize("dense", [True, False])
def test_pairs_are_the_specified_ones(codes, lengths, frames, dense, monkeypatch):
    monkeypatch.setattr(cpu, "_DENSE", 1 << 24 if dense else 0)
    expected = ref.pairs(codes, 20, lengths, frames)
    for found in cpu.pairs(codes, 20, lengths, frames), gpu.pairs(torch.from_numpy(codes), 20, lengths, frames):
        assert np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 9), st.integers(1, 30), st.integers(0, 1000))
def test_any_shape(items, codebooks, frames, cardinality, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, cardinality, (items, codebooks, frames))
    lengths = rng.integers(0, frames + 1, items)
    counts, ran = histogram(codes, cardinality, lengths)
    assert ran == "numba" and counts.sum() == lengths.sum() * codebooks
    assert np.array_equal(counts, ref.histogram(codes, cardinality, lengths))
    for along, of in (
        ("codebooks", lengths.sum() * (codebooks - 1)),
        ("frames", np.maximum(lengths - 1, 0).sum() * codebooks),
    ):
        (keys, seen), ran = pairs(codes, cardinality, lengths, along=along)
        assert ran == "numba" and seen.sum() == of
        assert np.array_equal(keys, ref.pairs(codes, cardinality, lengths, along == "frames")[0])


def test_one_codebook_has_no_pairs_with_others():
    keys, seen = pairs(np.zeros((1, 1, 5), int), 8).value
    assert keys.size == seen.size == 0


def test_what_lies_beyond_an_item_is_not_looked_at():
    codes = np.full((2, 2, 6), 10**6)
    codes[0, :, :4] = 1
    counts = histogram(codes, 8, np.array([4, 0])).value
    assert counts[:, 1].tolist() == [4, 4] and counts.sum() == 8
    assert pairs(codes, 8, np.array([4, 0])).value[1].tolist() == [4]


def test_tensors_and_arrays_give_the_same(codes):
    a, b = histogram(codes, 20, LENGTHS), histogram(torch.from_numpy(codes), 20, torch.from_numpy(LENGTHS))
    assert np.array_equal(a.value, b.value) and b.implementation == "numba"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU")
@pytest.mark.parametrize("items", [3, 70_000])
def test_on_a_gpu(rng, items):
    codes = rng.integers(-1, 1025, (items, 2, 9))
    lengths = rng.integers(0, 10, items)
    on_device = torch.from_numpy(codes).cuda()
    counts, ran = histogram(on_device, 1024, lengths)
    assert ran == "triton" and counts.is_cuda
    assert np.array_equal(counts.cpu(), cpu.histogram(codes, 1024, lengths))
    found, expected = pairs(on_device, 1024, lengths).value, cpu.pairs(codes, 1024, lengths)
    assert all(np.array_equal(a.cpu(), b) for a, b in zip(found, expected))

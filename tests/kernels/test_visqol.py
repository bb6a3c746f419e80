"""ViSQOL's kernels: numba against the NumPy specification, and the path against a search of all choices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from codec_bench.kernels.visqol import cpu, ref


@pytest.mark.parametrize(("rate_hz", "bands", "high_hz"), [(16_000, 21, 8_000.0), (48_000, 32, 24_000.0)])
def test_spectrograms_are_the_specifications(rate_hz, bands, high_hz):
    signal = np.random.default_rng(0).normal(0, 0.1, rate_hz // 4)
    options = signal, round(0.08 * rate_hz), round(0.02 * rate_hz), ref.filters(rate_hz, bands, 50.0, high_hz)
    expected = ref.spectrogram(*options)
    assert expected.shape == (bands, 9)
    np.testing.assert_allclose(cpu.spectrogram(*options), expected, rtol=1e-10)


def test_similarities_are_the_specifications():
    rng = np.random.default_rng(1)
    levels = rng.uniform(0, 45, (5, 40))
    places = np.array([3, 13, 23])
    patches = np.stack([levels[:, index : index + 8] + rng.normal(0, 1, (5, 8)) for index in places])
    patches[1, :, :4] = 0.0  # silence, whose spread is none
    for radius in (100, 6):
        expected = ref.similarities(patches, levels, places, radius)
        assert (expected == 0).any() == (radius == 6)
        np.testing.assert_allclose(cpu.similarities(patches, levels, places, radius), expected, atol=1e-12)
    np.testing.assert_allclose(
        cpu.similarity(patches[0], levels[:, 3:11]), ref.similarity(patches[0], levels[:, 3:11]), atol=1e-12
    )
    np.testing.assert_allclose(ref.similarity(patches[0], patches[0]), 1.0, atol=1e-12)


def test_the_path_is_the_best_of_all():
    rng = np.random.default_rng(2)
    for _ in range(20):
        alike = rng.uniform(0.1, 1.0, (3, 7))
        path = ref.best_path(alike, np.array([0, 2, 4]), 10)
        choices = itertools.combinations(range(7), 3)
        best = max(sum(alike[p, at] for p, at in enumerate(choice)) for choice in choices)
        if not any(dropped for _, dropped in path):
            assert sum(alike[p, at] for p, (at, _) in enumerate(path)) == pytest.approx(best)
            assert [at for at, _ in path] == sorted({at for at, _ in path})


def test_a_patch_that_adds_nothing_is_dropped():
    alike = np.array([[0.1, 0.1, 0.9], [0.2, 0.2, 0.2]])
    assert ref.best_path(alike, np.array([0, 1]), 10) == [(2, False), (2, True)]

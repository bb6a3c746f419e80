"""Noise is drawn from a signal's own samples, as long as it, and is of the distributions that it says."""

from __future__ import annotations

import numpy as np
from scipy import stats

from codec_bench.audio.noises import NOISES, noises


def test_noises_are_of_their_distributions(rng):
    signal = rng.uniform(-0.5, 0.5, 60_000).astype(np.float32)
    uniform, normal, ones, zeros = noises(signal)
    assert NOISES == ("uniform", "normal", "ones", "zeros") and noises(signal).dtype == np.float32
    assert stats.kstest(uniform, stats.uniform(-1, 2).cdf).pvalue > 0.01
    assert np.abs(normal).max() == 1 and stats.kstest(normal / normal.std(), "norm").pvalue > 0.01
    assert (ones == 1).all() and not zeros.any()
    assert abs(np.corrcoef(uniform, normal)[0, 1]) < 0.02


def test_a_signal_has_the_same_noise_again_and_others_have_another(rng):
    signal = rng.uniform(-0.5, 0.5, 500).astype(np.float32)
    np.testing.assert_array_equal(noises(signal), noises(signal.copy()))
    assert np.abs(noises(signal)[:2] - noises(signal[::-1])[:2]).max() > 0.5
    assert noises(signal[:0]).shape == (4, 0)

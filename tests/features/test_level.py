"""Levels are librosa's, and a batch changes nothing."""

from __future__ import annotations

import librosa
import numpy as np
import pytest
from refusals import refuses

from codec_bench.features import Unavailable
from codec_bench.features.level import Level


@pytest.mark.compares("level", weights="none")
@pytest.mark.parametrize("samples", [1, 159, 160, 4_000, 16_001])
def test_it_is_librosas(samples):
    signal = (0.1 * np.random.default_rng(samples).standard_normal(samples)).astype(np.float32)
    signal[: samples // 3] = 0
    result = Level().compute([signal])[0]
    expected = librosa.feature.rms(y=signal.astype(np.float64), frame_length=400, hop_length=160)[0]
    np.testing.assert_allclose(
        10 ** (result["level_db"].astype(np.float64) / 20), np.maximum(expected, 1e-10), rtol=1e-5, atol=1e-7
    )
    assert (result["hop_s"], result["duration_s"]) == (0.01, samples / 16_000)


def test_a_full_scale_sine_is_three_decibels_down():
    sine = np.sin(2 * np.pi * 400 * np.arange(8_000) / 16_000).astype(np.float32)
    assert Level().compute([sine])[0]["level_db"][10:40] == pytest.approx(-3.0103, abs=1e-3)
    assert Level().compute([np.zeros(800, np.float32)])[0]["level_db"].tolist() == [-200.0] * 6


def test_signals_without_a_level():
    empty, nan = Level().compute([np.zeros(0, np.float32), np.full(9, np.nan, np.float32)])
    assert isinstance(empty, Unavailable) and isinstance(nan, Unavailable)
    with refuses("no_weights_to_replace"):
        Level(weights="x")

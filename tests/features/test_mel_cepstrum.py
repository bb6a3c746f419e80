"""The mel-cepstrum is pyworld's envelope through the warped cepstrum, and signals without an envelope say so."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from refusals import refuses

from codec_bench.audio.resample import prepare
from codec_bench.features import Unavailable
from codec_bench.features.mel_cepstrum import MelCepstrum
from codec_bench.messages import of_error

RATE = 16_000


@pytest.fixture(scope="module")
def speech(embedded):
    pytest.importorskip("pyworld", reason="WORLD's envelope")
    return [prepare(audio, RATE)[: RATE // 2] for _, audio in embedded[:2]]


def test_the_shape_and_the_batch(speech):
    together = MelCepstrum().compute(speech)
    for signal, result in zip(speech, together, strict=True):
        assert result["cepstra"].dtype == np.float32 and result["hop_s"] == 0.005
        assert result["cepstra"].shape == (len(signal) // 80 + 1, 40) and result["power_db"].shape == (
            len(signal) // 80 + 1,
        )
        assert np.isfinite(result["cepstra"]).all() and (10 ** (result["power_db"] / 10)).mean() == pytest.approx(
            1, rel=1e-5
        )
        np.testing.assert_array_equal(MelCepstrum().compute([signal])[0]["cepstra"], result["cepstra"])


def test_ten_decibels_move_the_first_coefficient_alone(speech):
    """The spectrum is in 16-bit units, where WORLD's own added noise is far below speech."""
    quiet, loud = MelCepstrum().compute([speech[0] / np.float32(np.sqrt(10)), speech[0]])
    moved = (loud["cepstra"] - quiet["cepstra"])[quiet["power_db"] > -10]
    assert np.median(moved[:, 0]) == pytest.approx(np.log(10) / 2, abs=1e-3)
    assert np.abs(np.median(moved[:, 1:], axis=0)).max() < 1e-3


def test_signals_without_an_envelope(speech):
    broken = [np.zeros(0, np.float32), np.full(RATE, np.nan, np.float32), np.zeros(RATE, np.float32)]
    empty, nan, silent = MelCepstrum().compute(broken)
    assert all(isinstance(result, Unavailable) for result in (empty, nan, silent))
    codes = [of_error(result).code for result in (empty, nan, silent)]
    assert codes == ["no_samples_heard", "signal_not_finite", "no_envelope"]


def test_what_is_missing_is_named(monkeypatch):
    with refuses("no_weights_to_replace"):
        MelCepstrum(weights="somewhere")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with refuses("package_not_installed", feature="mel_cepstrum"):
        MelCepstrum()

"""PLCMOS against the package's own program with the same raters, one signal at a time; and batches of unequal signals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from glides import glide

from codec_bench.audio.resample import prepare
from codec_bench.errors import WeightsError
from codec_bench.features import Unavailable, load_feature
from codec_bench.features.dnsmos_files import folder_of

SHORTEST = 1281


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("speechmos.plcmos").PLCMOS()


@pytest.fixture(scope="module")
def feature():
    feature = load_feature("plcmos")
    feature.load()  # a test looks at its network
    return feature


def noisy(samples, seed=0):
    return (glide(samples).samples[0] + np.random.default_rng(seed).normal(0, 0.02, samples)).astype(np.float32)


def lossy(signal):
    """The signal with a third of its packets of 10 ms lost, and digital silence in their place."""
    retained = np.random.default_rng(1).random(signal.size // 160 + 1) > 1 / 3
    return signal * np.repeat(retained, 160)[: signal.size].astype(np.float32)


def expected(theirs, signal):
    """The package's score with the raters that are drawn here."""
    before = np.random.get_state()
    np.random.seed(0)
    try:
        return theirs.get_mos(signal)
    finally:
        np.random.set_state(before)


@pytest.mark.compares("plcmos", weights="published")
def test_a_batch_gives_the_packages_scores_of_one_by_one(theirs, feature, spoken):
    signals = sorted((prepare(audio, 16_000) for _, audio in spoken), key=len)
    signals = [*signals[:: max(1, len(signals) // 2)], lossy(signals[-1]), noisy(SHORTEST), noisy(20_000)]
    requested = [expected(theirs, signal) for signal in signals]
    assert max(requested) - min(requested) > 1
    every = feature._net.raters
    feature._net.raters = every[:15]  # as many as the package draws in a call
    try:
        np.testing.assert_allclose([one["mos"] for one in feature.compute(signals)], requested, atol=5e-6)
    finally:
        feature._net.raters = every


def test_the_score_is_the_mean_of_the_packages_own_calls(theirs, feature, spoken):
    signals = [prepare(audio, 16_000)[:24_000] for _, audio in list(spoken)[:3]]
    before = np.random.get_state()
    np.random.seed(7)
    try:
        calls = np.array([[theirs.get_mos(signal) for signal in signals] for _ in range(10)])
    finally:
        np.random.set_state(before)
    errors = np.array([one["mos"] for one in feature.compute(signals)]) - calls.mean(0)
    scatter = calls.std(0, ddof=1) / np.sqrt(len(calls))
    assert calls.std(0).min() > 0.004
    assert (np.abs(errors) < 4 * np.hypot(scatter, 0.001)).all()


def test_signals_of_other_lengths_in_one_pass_change_nothing(feature):
    """On a CPU only equal lengths share a pass, so the network is asked itself, as a GPU asks it."""
    signals = [noisy(samples, samples) for samples in (SHORTEST, 16_000, 9001, 1537)]
    waves = torch.zeros(len(signals), 16_000)
    for row, signal in zip(waves, signals):
        row[: signal.size] = torch.from_numpy(signal)
    with torch.inference_mode():
        together = feature._net(waves, [signal.size for signal in signals])[:, 0].tolist()
    alone = [feature.compute([signal])[0]["mos"] for signal in signals]
    assert np.ptp(alone) > 0.1
    np.testing.assert_allclose(together, alone, atol=2e-6)


def test_unusable_audio_is_unavailable_and_harms_nobody(feature):
    fine = noisy(4000)
    short, silent, broken, long, usable = feature.compute(
        [
            fine[:1280],
            np.zeros(4000, np.float32),
            np.full(4000, np.nan, np.float32),
            np.ones(121 * 16_000, np.float32),
            fine,
        ]
    )
    assert all(isinstance(one, Unavailable) for one in (short, silent, broken, long))
    assert str(short) == f"the signal has 1280 samples; PLCMOS needs at least {SHORTEST}"
    assert str(long).startswith("the signal lasts 121 s, and PLCMOS hears a signal as a whole, up to 120 s here")
    assert usable == pytest.approx(feature.compute([fine])[0], rel=1e-6)


def test_another_file_is_one_sentence(tmp_path):
    file = tmp_path / "plcmos_v2.onnx"
    file.write_bytes(b"no network")
    with pytest.raises(WeightsError, match="cannot be read"):
        load_feature("plcmos", weights=str(file)).load()
    with pytest.raises(WeightsError, match="not those of this model"):
        load_feature("plcmos", weights=str(folder_of(None) / "model_v8.onnx")).load()

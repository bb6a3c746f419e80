"""The spectrograms equal faster-whisper's, whatever else is in the batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec_bench.audio.resample import prepare

RATE = 16_000
TOLERANCE = 1e-6
EDGES = [
    1,
    2,
    40,
    41,
    42,
    159,
    160,
    161,
    199,
    200,
    201,
    202,
    319,
    320,
    399,
    400,
    401,
    3199,
    3200,
    16_000,
    30 * RATE + 1,
]


@pytest.fixture(scope="module")
def oracles():
    from faster_whisper.feature_extractor import FeatureExtractor

    return {n_mels: FeatureExtractor(feature_size=n_mels) for n_mels in (80, 128)}


@pytest.fixture(scope="module")
def speech(embedded):
    return [prepare(audio, RATE) for _, audio in embedded]


def mels(signals, n_mels=80):
    from codec_bench.networks.log_mel import log_mels

    return [mel.numpy() for mel in log_mels(signals, n_mels)]


def check(oracle, signals, n_mels):
    for ours, signal in zip(mels(signals, n_mels), signals, strict=True):
        expected = oracle(signal).T
        assert ours.dtype == np.float32
        assert ours.shape == expected.shape == (signal.size // 160 + 1, n_mels)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("n_mels", [80, 128])
def test_equals_faster_whisper_on_speech_and_noise(oracles, spoken, rng, n_mels):
    clips = [prepare(audio, RATE) for _, audio in spoken]
    noises = [rng.normal(0, 0.1, n).astype(np.float32) for n in (1_600, 16_000, 70 * RATE + 11)]
    long = np.concatenate(clips)[: 65 * RATE]
    assert long.size > 60 * RATE
    check(oracles[n_mels], [*clips, *noises, long], n_mels)


@pytest.mark.parametrize("gain", [1.0, 1e-3, 1e-6])
def test_equals_faster_whisper_at_every_edge(oracles, rng, gain):
    check(oracles[80], [(gain * rng.normal(0, 0.3, n)).astype(np.float32) for n in EDGES], 80)


def test_silence_is_one_value(oracles):
    silent = [np.zeros(n, np.float32) for n in (160, 16_000)]
    check(oracles[80], silent, 80)
    assert all(len(np.unique(mel)) == 1 for mel in mels(silent))


def test_the_floor_is_that_of_the_whole_signal(oracles, speech):
    # A loud burst after 40 s raises the floor of the quiet 40 s before it.
    quiet = np.tile(speech[0] * np.float32(1e-4), 20)[: 40 * RATE]
    burst = np.concatenate([quiet, np.ones(RATE, np.float32)])
    check(oracles[80], [quiet, burst], 80)
    alone, followed = mels([quiet, burst])
    assert followed[:3000].min() > alone[:3000].min() + 0.5


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_does_not_depend_on_the_batch(data):
    lengths = data.draw(st.lists(st.integers(1, 20_000), min_size=1, max_size=8))
    seeds = [np.random.default_rng(n) for n in lengths]
    signals = [seed.normal(0, 10.0 ** seed.integers(-5, 0), n).astype(np.float32) for seed, n in zip(seeds, lengths)]
    for together, signal in zip(mels(signals), signals, strict=True):
        np.testing.assert_allclose(together, mels([signal])[0], rtol=0, atol=TOLERANCE)


def test_does_not_depend_on_how_many_frames_are_computed_at_once(monkeypatch, speech):
    from codec_bench.networks import log_mel

    unchunked = mels(speech[:4])
    for at_once in (1, 97):
        monkeypatch.setitem(log_mel.FRAMES_AT_ONCE, "cpu", at_once)
        for got, expected in zip(mels(speech[:4]), unchunked, strict=True):
            np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("n_mels", [80, 128])
def test_bands_are_faster_whispers(oracles, n_mels):
    from codec_bench.networks import log_mel

    window, bands = log_mel.analysis(n_mels)
    np.testing.assert_allclose(bands.T, oracles[n_mels].mel_filters, rtol=0, atol=1e-8)
    np.testing.assert_allclose(window, np.hanning(401)[:-1], atol=1e-7)


def test_no_signal_gives_no_spectrogram():
    assert mels([]) == []


@pytest.mark.gpu
def test_equals_the_cpu_on_a_gpu(speech):
    import torch

    from codec_bench.networks.log_mel import log_mels

    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU")
    for ours, expected in zip(log_mels(speech, 128, "cuda:0"), mels(speech, 128), strict=True):
        np.testing.assert_allclose(ours.cpu().numpy(), expected, rtol=0, atol=1e-5)

"""Mean pitches and activations against the steps of TTSDS2's own benchmarks, one signal at a time; noises; batches."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_speech
import torch
import transformers
from glides import glide
from refusals import refuses

from codec_bench.audio.noises import noises
from codec_bench.audio.resample import prepare
from codec_bench.features import Unavailable, load_feature
from codec_bench.features import ttsds2_activations as activations
from codec_bench.features.ttsds2 import SET_RATE_HZ, prepare_signals
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import WeightsError

LENGTHS = (14_001, 30_000, 640, 22_017, 14_001)


def noisy(samples, seed=0):
    return (glide(samples).samples[0] + np.random.default_rng(seed).normal(0, 0.02, samples)).astype(np.float32)


@pytest.fixture(scope="module")
def signals():
    return [noisy(length, seed) for seed, length in enumerate(LENGTHS)]


@pytest.fixture(scope="module", params=["ttsds2-wav2vec2", "ttsds2-whisper"])
def network(request, tmp_path_factory):
    """What makes a feature with a small network, what the reference computes of a signal, and the feature's name."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "ttsds2-wav2vec2":
        weights = tiny_speech.write_ttsds2_wav2vec2(folder)
        return (
            lambda variant=None: tiny_speech.SmallTtsds2Wav2vec2("cpu", weights, variant),
            by_wav2vec2(weights),
            request.param,
        )
    weights = tiny_speech.write_ttsds2_whisper(folder)
    return (
        lambda variant=None: load_feature(named(request.param, variant), weights=weights),
        by_whisper(weights),
        request.param,
    )


def named(name, variant):
    return name if variant is None else f"{name}[{variant}]"


def by_wav2vec2(folder):
    """The steps of ttsds' Wav2Vec2ActivationsBenchmark."""
    front = transformers.Wav2Vec2FeatureExtractor.from_pretrained(folder)
    net = transformers.Wav2Vec2Model.from_pretrained(folder).eval()

    def activation(wave):
        values = front(wave, return_tensors="pt", sampling_rate=16_000).input_values
        with torch.no_grad():
            return net(values).last_hidden_state.mean(dim=1).squeeze().numpy()

    return activation


def by_whisper(folder):
    """The steps of ttsds' WhisperActivationsBenchmark."""
    front = transformers.WhisperFeatureExtractor()
    net = transformers.WhisperForConditionalGeneration.from_pretrained(folder).eval()

    def activation(wave):
        features = front(wave, sampling_rate=16_000, return_tensors="pt").input_features
        with torch.no_grad():
            text = net.generate(
                input_features=features, return_dict_in_generate=True, output_hidden_states=True, max_new_tokens=2
            )
        states = torch.stack([state[-1].mean(dim=1) for state in text.encoder_hidden_states])
        return states.squeeze(1).squeeze(1).mean(dim=0).squeeze(0).numpy()

    return activation


def as_in_a_set(signal, rate_hz):
    """A signal as ttsds' DirectoryDataset gives it: filled up to 16,000 samples at 22.05 kHz, divided by its peak."""
    fewest = int(np.ceil(16_000 * rate_hz / 22_050))
    filled = np.concatenate([signal, np.zeros(max(0, fewest - signal.size), np.float32)])
    return filled / (np.max(np.abs(filled)) + 1e-6)


@pytest.mark.compares("ttsds2-wav2vec2", "ttsds2-whisper", weights="stand-in")
def test_activations_are_the_references(network, signals):
    make, reference, name = network
    result = make().compute(signals)
    long = noisy(481_003)
    if name == "ttsds2-whisper":  # the end of a longer signal is cut
        result, signals = [*result, *make().compute([long])], [*signals, long]
    for ours, signal in zip(result, signals, strict=True):
        theirs = reference(as_in_a_set(signal, 16_000))
        assert ours["embedding"].shape == theirs.shape and ours["embedding"].dtype == np.float32
        np.testing.assert_allclose(ours["embedding"], theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())
    assert np.ptp([one["embedding"][0] for one in result]) > 1e-4 * np.abs(result[0]["embedding"]).max()


def test_noises_are_read_as_signals_are(network, signals):
    make, reference, _ = network
    (result, _) = make("noise").compute(signals[1:3])
    for ours, noise in zip(result["embedding"], noises(as_in_a_set(signals[1], 16_000)), strict=True):
        theirs = reference(as_in_a_set(noise, 16_000))
        if not np.ptp(noise):  # a constant less its own mean is rounding, which is not the reference's
            theirs = reference(np.zeros_like(noise)) if len(theirs) == 32 else theirs
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())


@pytest.mark.parametrize("variant", [None, "noise"])
def test_a_batch_is_its_items(network, signals, variant, monkeypatch):
    make, _, _ = network
    monkeypatch.setattr(activations, "WINDOWS_ON_CPU", 3)
    feature = make(variant)
    alone = [feature.compute([signal])[0]["embedding"] for signal in signals]
    for one, batched in zip(alone, feature.compute(signals), strict=True):
        np.testing.assert_allclose(batched["embedding"], one, rtol=0, atol=1e-5 * np.abs(one).max())


def test_what_has_no_result_harms_nobody(network, signals):
    make, _, _ = network
    broken = signals[0].copy()
    broken[7] = np.nan
    none, first, bad = make("noise").compute([signals[0][:0], signals[0], broken])
    assert (str(none), str(bad)) == (Diagnostic("no_samples_heard"), Diagnostic("signal_not_finite"))
    assert isinstance(none, Unavailable) and first["embedding"].shape[0] == 4


def by_ttsds(signal):
    """The steps of ttsds' PitchMeasure and PitchBenchmark."""
    import pyworld

    coarse, times = pyworld.dio(signal.astype(np.float64), 22_050, frame_period=256 / 22_050 * 1000, speed=1)
    pitch = pyworld.stonemask(signal.astype(np.float64), coarse, times, 22_050).astype(np.float32)
    pitch = pitch[:1000] if len(pitch) > 1000 else pitch
    pitch[pitch < 1e-6] = np.nan
    if np.isnan(pitch).all():
        pitch[:] = 1e-6
    gaps = np.isnan(pitch)
    places = np.arange(pitch.size)
    pitch[gaps] = np.interp(places[gaps], places[~gaps], pitch[~gaps])
    return np.mean(pitch)


@pytest.fixture
def recordings(spoken):
    return [prepare(audio, SET_RATE_HZ) for _, audio in spoken][:4]


@pytest.mark.compares("ttsds2-pitch", weights="none")
def test_pitch_is_the_references(recordings):
    pytest.importorskip("pyworld")
    waves = [*recordings, np.concatenate(recordings)[: 13 * SET_RATE_HZ], np.zeros(4000, np.float32)]
    results = [one["embedding"] for one in load_feature("ttsds2-pitch").compute(waves)]
    expected = [by_ttsds(as_in_a_set(wave, SET_RATE_HZ)) for wave in waves]
    assert np.ptp(expected[:-1]) > 1 and expected[-1] == np.float32(1e-6)
    np.testing.assert_array_equal(np.concatenate(results), np.array(expected, np.float32))


def test_pitch_of_noise(recordings):
    pytest.importorskip("pyworld")
    (result,) = load_feature("ttsds2-pitch[noise]").compute(recordings[:1])
    expected = [by_ttsds(as_in_a_set(noise, SET_RATE_HZ)) for noise in noises(as_in_a_set(recordings[0], SET_RATE_HZ))]
    np.testing.assert_array_equal(result["embedding"][:, 0], np.array(expected, np.float32))


def test_signals_are_prepared_as_in_a_set(signals):
    (prepared,) = prepare_signals(signals[2], 16_000, False)
    np.testing.assert_array_equal(prepared, as_in_a_set(signals[2], 16_000).astype(np.float32))
    assert prepared.size == 11_610 and {one.size for one in prepare_signals(signals[2], 16_000, True)} == {11_610}


def test_names_and_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path))
    for name in ("ttsds2-pitch", "ttsds2-wav2vec2", "ttsds2-whisper"):
        with refuses("no_variant", name=name, variant="babble") as caught:
            load_feature(f"{name}[babble]")
        assert caught.value.hint == f"use {name}, or {name}[noise]"
    with refuses("no_weights_to_replace"):
        load_feature("ttsds2-pitch", weights=str(tmp_path))
    weights = tiny_speech.write_ttsds2_whisper(tmp_path / "whisper")
    with pytest.raises(WeightsError):
        load_feature("ttsds2-wav2vec2", weights=weights).load()

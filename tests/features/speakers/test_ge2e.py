"""Embeddings equal Resemblyzer's, whatever else is in the batch."""

from __future__ import annotations

import importlib.util
import sys
import types

import numpy as np
import pytest
from hostile import Hostile
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from codec_bench.audio.resample import prepare
from codec_bench.features import Unavailable, load_feature
from codec_bench.features.speakers import ge2e
from codec_bench.messages import of_error
from codec_bench.messages.errors import WeightsError
from codec_bench.networks.log_mel import analysis

RATE = 16_000
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def resemblyzer():
    """The real package, with a module that scipy drops. webrtcvad's own needs another that setuptools drops."""
    from scipy.ndimage import binary_dilation

    below = pytest.importorskip("_webrtcvad")

    class Vad:
        def __init__(self, mode):
            self.state = below.create()
            below.init(self.state)
            below.set_mode(self.state, mode)

        def is_speech(self, buf, sample_rate):
            return below.process(self.state, sample_rate, buf, len(buf) // 2)

    stubs = {name: types.ModuleType(name) for name in ("webrtcvad", "scipy.ndimage.morphology")}
    stubs["scipy.ndimage.morphology"].binary_dilation = binary_dilation
    stubs["webrtcvad"].Vad = Vad
    before = {name: sys.modules.get(name) for name in stubs}
    sys.modules.update(stubs)
    try:
        import resemblyzer
        import resemblyzer.audio
        import resemblyzer.hparams

        yield resemblyzer
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


@pytest.fixture(scope="module")
def encoder(resemblyzer):
    return resemblyzer.VoiceEncoder("cpu", verbose=False)


@pytest.fixture(scope="module")
def feature():
    return load_feature("ge2e")


@pytest.fixture(scope="session")
def signals(spoken):
    return [prepare(audio, RATE) for _, audio in spoken]


def expected_embedding(resemblyzer, encoder, signal):
    loud = resemblyzer.audio.normalize_volume(signal, resemblyzer.hparams.audio_norm_target_dBFS, increase_only=True)
    return encoder.embed_utterance(loud.astype(np.float32))


def embeddings(feature, signals):
    return np.array([result["embedding"] for result in feature.compute(signals)])


@pytest.mark.compares("ge2e", weights="published")
def test_equals_resemblyzer_on_speech(resemblyzer, encoder, feature, signals):
    expected = [expected_embedding(resemblyzer, encoder, signal) for signal in signals]
    np.testing.assert_allclose(embeddings(feature, signals), expected, atol=TOLERANCE)


@pytest.fixture(scope="module")
def trimming():
    return load_feature("ge2e-vad")


@pytest.mark.compares("ge2e-vad", weights="published")
def test_trimming_is_resemblyzers_and_so_is_what_is_embedded(resemblyzer, encoder, trimming, signals, rng):
    """Speech with pauses of every length in it, whole and cut, loud and quiet: the same samples stay."""
    pauses = [
        np.zeros(RATE // 4 * k, np.float32) + rng.normal(0, 1e-4, RATE // 4 * k).astype(np.float32) for k in (1, 4, 9)
    ]
    spaced = np.concatenate([item for signal, pause in zip(signals, pauses) for item in (signal[: 2 * RATE], pause)])
    some = [spaced, spaced * np.float32(0.01), signals[0][:479], signals[0][: RATE + 7], *signals[:12]]
    shorter = 0
    for signal, result in zip(some, trimming.compute(some), strict=True):
        expected = resemblyzer.preprocess_wav(signal)
        ours = ge2e.spoken(ge2e.raised(signal))
        np.testing.assert_allclose(ours, expected, rtol=1e-5)
        shorter += ours.size < signal.size - ge2e.VAD_WINDOW
        if not expected.size:
            assert isinstance(result, Unavailable)
            assert of_error(result).code == "no_speech_heard"
        else:
            np.testing.assert_allclose(result["embedding"], encoder.embed_utterance(expected), atol=TOLERANCE)
    assert shorter >= 2


def test_what_is_trimmed_does_not_depend_on_the_batch(trimming, feature, signals):
    alone = np.concatenate([embeddings(trimming, [signal]) for signal in signals[:6]])
    np.testing.assert_allclose(embeddings(trimming, signals[:6][::-1]), alone[::-1], atol=1e-5)
    assert np.abs(alone - embeddings(feature, signals[:6])).max() > 1e-3
    assert trimming.protocol != feature.protocol
    assert isinstance(trimming.compute([np.zeros(RATE, np.float32)])[0], Unavailable)


@pytest.mark.parametrize("gain", [1.0, 1e-2, 1e-5])
def test_equals_resemblyzer_at_the_edges_of_partials(resemblyzer, encoder, feature, signals, gain):
    # 19200 samples are 3/4 of a partial, 25600 one; 12320 lie between two partials.
    lengths = [1, 10, 160, 400, 19199, 19200, 25440, 25599, 25600, 25601, 25600 + 12320, 25600 + 19200, 44799, 44800]
    speech = signals[1] * np.float32(gain)
    cut = [speech[4000 : 4000 + length] for length in lengths]
    expected = [expected_embedding(resemblyzer, encoder, signal) for signal in cut]
    np.testing.assert_allclose(embeddings(feature, cut), expected, atol=TOLERANCE)


def test_embeddings_have_norm_one_and_no_negative_entry(feature, signals):
    values = embeddings(feature, signals)
    assert values.dtype == np.float32
    assert values.shape == (len(signals), 256)
    np.testing.assert_allclose(np.linalg.norm(values, axis=1), 1, atol=1e-5)
    assert (values >= 0).all()


def test_does_not_depend_on_the_batch(feature, signals, rng, monkeypatch):
    signals = signals[::3]
    alone = np.concatenate([embeddings(feature, [signal]) for signal in signals])
    scale = np.abs(alone).max()
    for at_once in (1, 7, 1000):
        monkeypatch.setattr(ge2e, "PARTIALS_AT_ONCE", at_once)
        order = rng.permutation(len(signals))
        together = embeddings(feature, [signals[k] for k in order])
        np.testing.assert_allclose(together, alone[order], atol=1e-5 * scale)


def test_everything_is_computed_in_full_float32(feature, signals, monkeypatch):
    from contextlib import contextmanager

    from codec_bench.networks import precision

    inside, devices = [], []

    @contextmanager
    def computing(device, precise):
        devices.append((device, precise))
        inside.append(True)
        with real(device, precise):
            yield
        inside.pop()

    real, net = precision.computing, feature._loaded()
    monkeypatch.setattr(precision, "computing", computing)
    handle = net["lstm"].register_forward_hook(lambda *_: devices.append(bool(inside)))
    feature.compute(signals[:2])
    handle.remove()
    assert devices == [("cpu", "float32"), True]


@settings(max_examples=300, deadline=None)
@given(samples=st.integers(1, 40 * RATE))
def test_partials_lie_where_resemblyzer_cuts(resemblyzer, samples):
    _, slices = resemblyzer.VoiceEncoder.compute_partial_slices(samples, 1.3, 0.75)
    assert ge2e.partial_starts(samples) == [s.start for s in slices]


def test_mel_spectrogram_is_resemblyzers(resemblyzer, signals, monkeypatch):
    monkeypatch.setattr(ge2e, "FRAMES_AT_ONCE", 100)
    for signal in (signals[1], signals[1][:300], signals[8]):
        ours = ge2e.mel_spectrograms([signal])[0].numpy()
        needed = (ge2e.partial_starts(signal.size)[-1] + ge2e.PARTIAL_FRAMES) * ge2e.HOP
        expected = resemblyzer.audio.wav_to_mel_spectrogram(np.pad(signal, (0, max(0, needed - signal.size))))
        assert ours.shape == expected.shape
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6 * expected.max())


def test_mel_bands_are_librosas():
    import librosa

    _, bands = analysis(ge2e.MELS)
    expected = librosa.filters.mel(sr=RATE, n_fft=ge2e.WINDOW, n_mels=ge2e.MELS)
    np.testing.assert_allclose(bands.T, expected, atol=1e-8)


def test_quiet_signals_are_raised_and_loud_ones_unchanged(resemblyzer, signals):
    for gain in (1.0, 0.1, 1e-3):
        signal = signals[2] * np.float32(gain)
        expected = resemblyzer.audio.normalize_volume(signal, -30, increase_only=True)
        np.testing.assert_allclose(ge2e.raised(signal), expected, rtol=1e-5)


@pytest.mark.parametrize("samples", [0, 1, RATE])
def test_silence_has_no_embedding_and_harms_nobody(feature, rng, samples):
    noise = rng.normal(0, 0.1, RATE).astype(np.float32)
    silent, usable = feature.compute([np.zeros(samples, np.float32), noise])
    assert isinstance(silent, Unavailable)
    assert "silent" in str(silent)
    np.testing.assert_allclose(usable["embedding"], feature.compute([noise])[0]["embedding"], atol=1e-6)


def test_the_same_voice_is_nearer_than_another(spoken, feature):
    rows = [(row, audio) for row, audio in spoken if row.get("speaker") and not row["id"].startswith("digit")]
    values = embeddings(feature, [prepare(audio, RATE) for _, audio in rows])
    cosines = values @ values.T
    same = np.array([[a["speaker"] == b["speaker"] for b, _ in rows] for a, _ in rows])
    others = ~same
    np.fill_diagonal(same, False)
    assert cosines[same].mean() > cosines[others].mean() + 0.2


def test_own_weights_change_the_embedding(feature, signals, tmp_path):
    import torch

    checkpoint = torch.load(ge2e._checkpoint(None), map_location="cpu", weights_only=True)
    checkpoint["model_state"]["linear.weight"] = checkpoint["model_state"]["linear.weight"].flip(0)
    path = tmp_path / "own.pt"
    torch.save(checkpoint, path)
    actual = embeddings(load_feature("ge2e", weights=str(path)), signals[:1])
    assert np.abs(actual - embeddings(feature, signals[:1])).max() > 1e-3


def test_weights_that_do_not_fit_are_one_sentence(tmp_path):
    import torch

    with refuses("no_file", path="nothing.pt"):
        load_feature("ge2e", weights=str(tmp_path / "nothing.pt"))
    noise = [np.ones(RATE, np.float32)]
    torch.save({"model_state": {"lstm.weight_ih_l0": torch.zeros(3)}}, tmp_path / "other.pt")
    (tmp_path / "text.pt").write_text("not weights")
    for name in ("other.pt", "text.pt"):
        with refuses("weights_of_another_model", folder=name):
            load_feature("ge2e", weights=str(tmp_path / name)).compute(noise)


def test_nothing_in_a_checkpoint_is_run(tmp_path):
    import pickle

    (tmp_path / "evil.pt").write_bytes(pickle.dumps({"model_state": Hostile(tmp_path / "touched")}, protocol=2))
    with pytest.raises(WeightsError):
        load_feature("ge2e", weights=str(tmp_path / "evil.pt")).compute([np.ones(RATE, np.float32)])
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("name", ["ge2e", "ge2e-vad"])
def test_a_missing_package_is_one_sentence(monkeypatch, name):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with refuses("package_not_installed", hint="codec-bench[embedded]"):
        load_feature(name)

"""DNSMOS Pro against its definition in torch's own layers over librosa's spectrogram, one signal at a time."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
import tiny_speech
from glides import glide
from refusals import Containing, refuses

from codec_bench.features import Unavailable, load_feature, padded
from codec_bench.features.dnsmos_pro import DnsmosPro
from codec_bench.messages import of_error
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs

LENGTHS = (9001, 800, 1280, 16_000, 7017, 16_159)


def reference(tensors, signals):
    """Mean and variance by the published layers."""
    import librosa
    import torch
    from torch import nn

    layers, left = [], list(tensors)
    for index, (inputs, outputs) in enumerate(((1, 32), (32, 32), (32, 64), (64, 64))):
        convolution, norm = nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs)
        names = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
        convolution.load_state_dict({"weight": left.pop(0), "bias": left.pop(0)})
        norm.load_state_dict({name: left.pop(0) for name in names})
        layers += [convolution, norm, nn.ReLU(), *([nn.MaxPool2d(3)] if index == 1 else [])]
    head = []
    for outputs in (64, 64, 2):
        linear = nn.Linear(64, outputs)
        linear.load_state_dict({"weight": left.pop(0), "bias": left.pop(0)})
        head += [linear, nn.ReLU()]
    encoder, output = nn.Sequential(*layers).eval(), nn.Sequential(*head[:-1]).eval()
    out = []
    with torch.inference_mode():
        for signal in signals:
            magnitudes = np.abs(librosa.stft(y=signal.astype(np.float64), win_length=320, hop_length=160, n_fft=320).T)
            spectrum = torch.FloatTensor(np.log10(np.clip(magnitudes, 1e-7, 1e7)))[None, None]
            mean, spread = output(encoder(spectrum).amax((2, 3)))[0]
            out.append((float(2 * mean + 3), float(4 * nn.functional.softplus(spread))))
    return out


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(3)
    return [(glide(length).samples[0] + rng.normal(0, 0.02, length)).astype(np.float32) for length in LENGTHS]


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    return tiny_speech.write_dnsmos_pro(tmp_path_factory.mktemp("pro")), tiny_speech.dnsmos_pro_tensors()


@pytest.mark.compares("dnsmos-pro", weights="stand-in")
def test_a_batch_gives_the_scores_of_one_by_one(stand_in, signals, monkeypatch):
    monkeypatch.setattr(padded, "passes", lambda lengths, device, **_: [list(range(len(lengths)))])
    path, tensors = stand_in
    result = load_feature("dnsmos-pro", weights=path).compute(signals)
    expected = reference(tensors, signals)
    assert np.ptp(expected, axis=0).min() > 1e-2
    np.testing.assert_allclose([(one["mean"], one["variance"]) for one in result], expected, atol=1e-4)


def test_unusable_audio_is_unavailable_and_harms_nobody(stand_in, signals):
    feature = load_feature("dnsmos-pro", weights=stand_in[0])
    short, broken, usable = feature.compute([signals[0][:799], np.full(900, np.nan, np.float32), signals[0]])
    assert isinstance(short, Unavailable) and of_error(short).parameters["needed"] == 800
    assert isinstance(broken, Unavailable)
    assert usable == pytest.approx(feature.compute([signals[0]])[0], abs=1e-5)


def test_the_metric_is_the_mean_and_keeps_the_variance():
    metric = build_metric("dnsmos_pro[bvcc]")
    assert metric.protocol == "dnsmos-pro/bvcc"
    result = {"dnsmos-pro[bvcc]": {"mean": 3.25, "variance": 0.5}}
    (score,) = metric.compute([Inputs("a", 16_000, estimate_features=result)])
    assert (score.value, score.detail) == (3.25, {"variance": 0.5})
    with refuses("no_variant", variant="tencent"):
        build_metric("dnsmos_pro[tencent]")
    assert DnsmosPro.protocol_id() == "dnsmos-pro/nisqa"


def test_other_files_are_one_sentence(stand_in, tmp_path):
    other = tmp_path / "other.pt"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("model/data/0", b"abcd")
    with refuses("weights_of_another_model", difference=Containing("holds 1 tensors (expected 34)")):
        load_feature("dnsmos-pro", weights=str(other)).load()
    other.write_bytes(b"no archive")
    with refuses("weights_not_read"):
        load_feature("dnsmos-pro", weights=str(other)).load()

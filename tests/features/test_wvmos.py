"""WV-MOS against its authors' network over transformers' wav2vec 2.0, one signal at a time, with stand-in weights."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_speech
import torch
from glides import glide
from refusals import refuses
from transformers import Wav2Vec2FeatureExtractor

from codec_bench.features import Unavailable
from codec_bench.messages import Diagnostic
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs

LENGTHS = (9001, 5200, 400, 12_000, 5201, 9001)


@pytest.fixture(scope="module")
def feature(tmp_path_factory):
    return tiny_speech.SmallWvmos("cpu", tiny_speech.write_wvmos(tmp_path_factory.mktemp("wvmos")))


def noisy(samples):
    return (0.3 * glide(samples).samples[0] + np.random.default_rng(samples).normal(0.01, 0.02, samples)).astype(
        np.float32
    )


def theirs(signal):
    """What the authors' program computes: the front end of transformers, the encoder, the layers, and the mean over
    all.
    """
    net = tiny_speech.small_wvmos().eval()
    output = Wav2Vec2FeatureExtractor(do_normalize=True)(signal, return_tensors="pt", sampling_rate=16_000).input_values
    with torch.inference_mode():
        return net.dense(net.encoder(output).last_hidden_state).mean().item()


@pytest.mark.compares("wvmos", weights="stand-in")
def test_a_batch_gives_the_authors_scores_of_one_by_one(feature):
    signals = [noisy(length) for length in LENGTHS]
    expected = [theirs(signal) for signal in signals]
    assert np.ptp(expected) > 1e-3
    np.testing.assert_allclose([one["mos"] for one in feature.compute(signals)], expected, atol=2e-6)


def test_unusable_audio_is_unavailable_and_harms_nobody(feature):
    fine = noisy(4000)
    short, broken, usable = feature.compute([fine[:399], np.full(4000, np.nan, np.float32), fine])
    assert isinstance(short, Unavailable) and isinstance(broken, Unavailable)
    assert str(short) == Diagnostic("signal_short", samples=399, model="WV-MOS", needed=400)
    assert usable["mos"] == pytest.approx(feature.compute([fine])[0]["mos"], abs=2e-6)


def test_the_metric_is_the_score():
    metric = build_metric("wvmos")
    (score,) = metric.compute([Inputs("a", 16_000, estimate_features={"wvmos": {"mos": 3.25}})])
    assert (score.value, score.protocol) == (3.25, "wvmos/1")
    assert build_metric("wvmos@float16").protocol == "wvmos/1/float16-weights"


def test_another_file_is_one_sentence(tmp_path):
    file = tmp_path / "wav2vec2.ckpt"
    torch.save({"model": {}}, file)
    with refuses("no_weights_entry", key="state_dict"):
        tiny_speech.SmallWvmos("cpu", str(file)).load()
    torch.save({"state_dict": {"model.dense.0.weight": torch.zeros(3)}}, file)
    with refuses("tensors_wrong"):
        tiny_speech.SmallWvmos("cpu", str(file)).load()

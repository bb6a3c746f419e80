"""CLAP's embeddings against transformers' own front end and network, window by window; batches; broken weights."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_speech
import torch
import transformers
from refusals import refuses

from codec_bench.features import Unavailable, load_feature
from codec_bench.metrics import build_metric

RATE_HZ = 48_000
LENGTHS = (30_000, 48_000, 100_001, 700, 531_000)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return tiny_speech.write_clap(tmp_path_factory.mktemp("clap"))


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(0)
    tones = [np.sin(np.arange(length) * (0.01 + 0.02 * index)) for index, length in enumerate(LENGTHS)]
    return [(0.4 * tone + rng.normal(0, 0.02 + 0.1 * k, tone.size)).astype(np.float32) for k, tone in enumerate(tones)]


@pytest.fixture(scope="module")
def reference(weights):
    front = transformers.ClapFeatureExtractor(
        truncation="rand_trunc", padding="pad", frequency_min=50, frequency_max=14_000
    )
    net = transformers.ClapModel.from_pretrained(weights).eval()

    def embedding(signal):
        output = ((np.clip(signal, -1.0, 1.0) * 32767.0).astype(np.int16) / 32767.0).astype(np.float32)
        results = []
        for start in range(0, len(output), RATE_HZ):
            mels = front(output[start : start + 10 * RATE_HZ], sampling_rate=RATE_HZ, return_tensors="pt")
            with torch.no_grad():
                results.append(
                    net.get_audio_features(input_features=mels.input_features.float()).pooler_output[0].numpy()
                )
        return np.mean(results, axis=0), np.array(results)

    return embedding


@pytest.mark.compares("clap-htsat-unfused", weights="stand-in")
def test_embeddings_are_transformers(weights, signals, reference):
    result = load_feature("clap-htsat-unfused", weights=weights).compute(signals)
    for ours, signal in zip(result, signals, strict=True):
        theirs, windows = reference(signal)
        assert ours["embedding"].dtype == np.float32 and len(windows) == -(-len(signal) // RATE_HZ)
        np.testing.assert_allclose(np.linalg.norm(windows, axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose(ours["embedding"], theirs, rtol=0, atol=1e-5)
    assert np.ptp([one["embedding"] for one in result], axis=0).max() > 0.01


def test_a_batch_gives_what_its_signals_give_alone(weights, signals):
    feature = load_feature("clap-htsat-unfused", weights=weights)
    for together, signal in zip(feature.compute(signals), signals, strict=True):
        np.testing.assert_array_equal(together["embedding"], feature.compute([signal])[0]["embedding"])


def test_what_has_no_embedding_has_a_reason(weights, signals):
    feature = load_feature("clap-htsat-unfused", weights=weights)
    empty, broken, fine = feature.compute([signals[0][:0], np.full(4000, np.nan, np.float32), signals[0]])
    assert isinstance(empty, Unavailable) and "no samples" in str(empty)
    assert isinstance(broken, Unavailable) and "not finite" in str(broken)
    assert fine["embedding"].shape == (24,)


def test_another_clap_is_one_sentence(tmp_path, weights):
    fused = tiny_speech.write_clap(tmp_path, enable_fusion=True)
    feature = load_feature("clap-htsat-unfused", weights=fused)
    with refuses("clap_unexpected"):
        feature.load()


@pytest.mark.parametrize("metric", ["fad", "kad"])
def test_it_is_an_encoder_of_distances_between_sets_alone(metric):
    built = build_metric(f"{metric}[clap-htsat-unfused]")
    assert built.estimate_features == built.reference_features == ("clap-htsat-unfused",)
    assert built.protocol.endswith("/clap-htsat-unfused/10s-every-1s-mean/1")
    with refuses("no_precision", point="float16"):
        build_metric(f"{metric}[clap-htsat-unfused]@float16")
    with refuses("no_variant", name="sim", variant="clap-htsat-unfused"):
        build_metric("sim[clap-htsat-unfused]")

"""SCOREQ against its definition over s3prl's own encoder, one signal at a time, on a small network with stand-in
weights.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import tiny_speech
from glides import glide
from refusals import Containing, refuses

from codec_bench.features import Unavailable, load_feature, padded
from codec_bench.features import scoreq as module
from codec_bench.messages import Diagnostic
from codec_bench.metrics import Inputs, build_metric
from codec_bench.weights import load_state

# Not imported here: every process of tests collects this file, and would hold it for good.
pytestmark = pytest.mark.skipif(find_spec("s3prl") is None, reason="s3prl is not installed")
LENGTHS = (9001, 640, 12_000, 641, 7017, 321)


def reference(path, signals, prefix):
    """Embeddings as the published program makes them, and the scores of its linear layer if it has one."""
    import torch
    import torch.nn.functional as F

    state = {name.removeprefix(prefix): value for name, value in load_state(path).items()}
    inner = {name.removeprefix("ssl_model."): value for name, value in state.items() if name.startswith("ssl_model.")}
    net = tiny_speech.s3prl_net(tiny_speech.BASE, inner)
    points = []
    with torch.inference_mode():
        for signal in signals:
            wave = F.pad(torch.from_numpy(signal), (0, -len(signal) % 320))[None]
            states = net.extract_features(wave, padding_mask=None, mask=False)["x"]
            points.append(F.normalize(states.mean(1), dim=1)[0])
        rated = (
            [F.linear(point, state["mos_layer.weight"], state["mos_layer.bias"]).item() for point in points]
            if prefix
            else []
        )
    return [point.numpy() for point in points], rated


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(3)
    return [(glide(length).samples[0] + rng.normal(0, 0.02, length)).astype(np.float32) for length in LENGTHS]


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    root = tmp_path_factory.mktemp("scoreq")
    return {rates: tiny_speech.write_scoreq(root, rates=rates) for rates in (True, False)}


@pytest.mark.compares("scoreq", weights="stand-in")
def test_scores_of_a_batch_are_those_of_one_by_one(paths, signals, monkeypatch):
    monkeypatch.setattr(padded, "passes", lambda lengths, device, **_: [list(range(len(lengths)))])
    from pathlib import Path

    _, expected = reference(Path(paths[True]), signals, "pt_model.")
    results = [result["scoreq"] for result in tiny_speech.SmallScoreq(weights=paths[True]).compute(signals)]
    assert np.ptp(expected) > 1e-3
    np.testing.assert_allclose(results, expected, atol=2e-5)


@pytest.mark.compares("scoreq-embedding", weights="stand-in")
def test_embeddings_of_a_batch_are_those_of_one_by_one(paths, signals, monkeypatch):
    monkeypatch.setattr(padded, "passes", lambda lengths, device, **_: [list(range(len(lengths)))])
    from pathlib import Path

    expected, _ = reference(Path(paths[False]), signals, "")
    results = [
        result["embedding"] for result in tiny_speech.SmallScoreqEmbedding(weights=paths[False]).compute(signals)
    ]
    np.testing.assert_allclose(results, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(results, axis=1), 1.0, atol=1e-6)


@pytest.mark.compares("nomad-embedding", weights="stand-in")
def test_points_of_nomad_are_the_definitions(signals, tmp_path, monkeypatch):
    from pathlib import Path

    import torch
    import torch.nn.functional as F

    path = tiny_speech.write_nomad(tmp_path)
    state = load_state(Path(path))
    inner = {name.removeprefix("ssl_model."): value for name, value in state.items() if name.startswith("ssl_model.")}
    net = tiny_speech.s3prl_net(tiny_speech.BASE, inner)
    monkeypatch.setattr(padded, "passes", lambda lengths, device, **_: [list(range(len(lengths)))])
    chosen = [signal for signal in signals if signal.size >= 400]
    results = tiny_speech.SmallNomad(weights=path).compute(chosen)
    weight, bias = state["embedding_layer.1.weight"], state["embedding_layer.1.bias"]
    for signal, result in zip(chosen, results, strict=True):
        with torch.inference_mode():
            mean = net.extract_features(torch.from_numpy(signal)[None], padding_mask=None, mask=False)["x"].mean(1)
            expected = F.normalize(F.linear(mean.relu(), weight, bias), dim=1)[0]
        np.testing.assert_allclose(result["embedding"], expected, atol=1e-5)
    features = [{"nomad-embedding": result} for result in results[:2]]
    item = Inputs("x", 16_000, reference_features=features[0], estimate_features=features[1])
    apart = np.linalg.norm(results[0]["embedding"] - results[1]["embedding"])
    assert build_metric("nomad").compute([item])[0].value == pytest.approx(apart, rel=1e-5)


def test_too_short_is_unavailable_and_harms_nobody(paths, signals):
    feature = tiny_speech.SmallScoreq(weights=paths[True])
    none, short, usable = feature.compute([signals[0][:0], signals[0][:320], signals[0]])
    assert isinstance(none, Unavailable) and isinstance(short, Unavailable)
    assert str(short) == Diagnostic("signal_short_scoreq", needed=321)
    assert usable["scoreq"] == pytest.approx(feature.compute([signals[0]])[0]["scoreq"], abs=1e-5)


def test_domains_modes_and_precisions_have_their_own_protocols():
    assert module.Scoreq.protocol_id() == module.Scoreq.protocol_id("natural") == "scoreq-natural-nr/1"
    assert module.ScoreqEmbedding.protocol_id("synthetic", "float16") == "scoreq-synthetic-ref/1/float16-weights"
    with refuses("no_variant", variant="music", name="SCOREQ"):
        module.Scoreq.protocol_id("music")
    with refuses("weights_missing", hint="weights fetch scoreq-synthetic-ref"):
        load_feature("scoreq-embedding[synthetic]")


def test_weights_of_the_other_mode_are_one_sentence(paths):
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "missing": Containing(".")}):
        tiny_speech.SmallScoreq(weights=paths[False]).load()

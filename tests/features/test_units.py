"""Units are those of transformers' HuBERT and scikit-learn's k-means, one signal at a time, on a small network of
noise.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny_speech
import torch
from glides import glide
from refusals import refuses

from codec_bench.features import Unavailable, load_feature, padded
from codec_bench.features.units import HubertUnits
from codec_bench.messages import of_error

LENGTHS = (9001, 640, 12_000, 400, 7017)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_speech.write_units(tmp_path_factory.mktemp("units"))


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(3)
    return [(glide(length).samples[0] + rng.normal(0, 0.02, length)).astype(np.float32) for length in LENGTHS]


def by_transformers(folder, signals):
    import joblib

    net, means = tiny_speech.small_hubert(), joblib.load(Path(folder) / "km.bin")
    for signal in signals:
        with torch.inference_mode():
            states = net(torch.from_numpy(signal)[None], output_hidden_states=True).hidden_states
        yield {f"layer_{layer}": means.predict(states[layer][0].numpy()) for layer in (6, 11)}


@pytest.mark.compares("hubert-km*", weights="stand-in")
def test_units_of_a_batch_are_those_of_one_by_one(folder, signals, monkeypatch):
    monkeypatch.setattr(padded, "passes", lambda lengths, device, **_: [list(range(len(lengths)))])
    result = tiny_speech.SmallUnits("hubert-km200", weights=folder).compute(signals)
    for ours, theirs in zip(result, by_transformers(folder, signals), strict=True):
        for layer, units in theirs.items():
            assert ours[layer].dtype == np.int16
            np.testing.assert_array_equal(ours[layer], units)
    assert len(set(result[2]["layer_6"].tolist())) > 5, "the clusters tell the frames apart"


def test_too_short_is_unavailable_and_harms_nobody(folder, signals):
    feature = tiny_speech.SmallUnits("hubert-km200", weights=folder)
    none, short, usable = feature.compute([signals[0][:0], signals[0][:399], signals[0]])
    assert isinstance(none, Unavailable)
    assert short.args[0].as_dict() == {"code": "signal_short", "samples": 399, "model": "a unit", "needed": 400}
    np.testing.assert_array_equal(usable["layer_6"], feature.compute([signals[0]])[0]["layer_6"])


def test_what_is_not_finite_is_no_unit(folder, signals):
    feature = tiny_speech.SmallUnits("hubert-km200", weights=folder)
    feature.load()
    with torch.no_grad():
        feature._net.encoder.encoder.layers[7].fc1.weight[:] = np.nan
    (result,) = feature.compute([signals[0]])
    assert isinstance(result, Unavailable) and of_error(result).code == "not_finite"


def test_protocols_and_weights(folder):
    assert HubertUnits.protocol_id("hubert-km100", "float16") == "hubert-km100-base-ls960/1/float16-weights"
    with refuses("no_point_of_metric", name="hubert-km50", point="int8"):
        HubertUnits.protocol_id("hubert-km50", "int8")
    with refuses("weights_missing", hint="weights fetch hubert-base-ls960"):
        load_feature("hubert-km50")
    with refuses("centres_unexpected", clusters=200, width=32, expected=100, expected_width=32):
        tiny_speech.SmallUnits("hubert-km100", weights=folder).load()

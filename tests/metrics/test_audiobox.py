"""Audiobox Aesthetics against its definition over s3prl's own WavLM, one signal at a time, on a small network."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec

import numpy as np
import pytest
import tiny_speech
from glides import glide
from refusals import Containing, refuses

from codec_bench.features import Unavailable
from codec_bench.features.audiobox import WINDOW, Audiobox
from codec_bench.metrics import build_metric, expand
from codec_bench.metrics.base import Inputs
from codec_bench.weights import load_state

# Not imported here: every process of tests collects this file, and would hold it for good.
pytestmark = pytest.mark.skipif(find_spec("s3prl") is None, reason="s3prl is not installed")
LENGTHS = (9001, 640, WINDOW, WINDOW + 100, 7017, 1, 2 * WINDOW + 5000)


def reference(folder, signals):
    """The four scores as the published program makes them: windows, masks, mixtures, projections, weights."""
    import torch
    import torch.nn.functional as F

    state = load_state(folder / "model.safetensors")
    inner = {
        name.removeprefix("wavlm_model."): value for name, value in state.items() if name.startswith("wavlm_model.")
    }
    net = tiny_speech.s3prl_net(tiny_speech.WAVLM, inner)
    out = []
    with torch.inference_mode():
        for signal in signals:
            rows, weights = [], []
            for start in range(0, signal.size, WINDOW):
                actual = signal[start : start + WINDOW]
                wave = F.pad(torch.from_numpy(actual), (0, WINDOW - actual.size))[None]
                mask = torch.arange(WINDOW)[None] >= actual.size
                (_, layers), beyond = net.extract_features(
                    wave, padding_mask=mask, output_layer=tiny_speech.WAVLM.layers + 1, ret_layer_results=True
                )
                states = torch.stack([layer[0] for layer in layers], dim=-1)
                output = (~beyond)[..., None].float()
                values = []
                for axis, scale in tiny_speech.AESTHETICS["target_transform"].items():
                    mixed = torch.einsum("tbcl,l->btc", states, F.softmax(state[f"layer_weights.{axis}"], dim=-1))
                    x = F.normalize((mixed * output).sum(1) / output.sum(1), dim=-1)
                    for step in (0, 4):  # linear, norm, activation, dropout, and again
                        x = F.linear(
                            x, state[f"proj_layer.{axis}.{step}.weight"], state[f"proj_layer.{axis}.{step}.bias"]
                        )
                        norm = [state[f"proj_layer.{axis}.{step + 1}.{item}"] for item in ("weight", "bias")]
                        x = F.gelu(F.layer_norm(x, x.shape[1:], *norm))
                    x = F.linear(x, state[f"proj_layer.{axis}.8.weight"], state[f"proj_layer.{axis}.8.bias"])
                    values.append(x.item() * scale["std"] + scale["mean"])
                rows.append(values)
                weights.append(actual.size)
            out.append(np.average(rows, axis=0, weights=weights))
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from pathlib import Path

    return Path(tiny_speech.write_audiobox(tmp_path_factory.mktemp("audiobox")))


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(3)
    return [(glide(length).samples[0] + rng.normal(0, 0.02, length)).astype(np.float32) for length in LENGTHS]


@pytest.mark.compares("audiobox", weights="stand-in")
def test_scores_of_a_batch_are_those_of_one_by_one(folder, signals, monkeypatch):
    from codec_bench.features import audiobox

    monkeypatch.setitem(audiobox.WINDOWS_AT_ONCE, "cpu", 4)
    actual = tiny_speech.SmallAudiobox(weights=str(folder)).compute(signals)
    expected = reference(folder, signals)
    assert np.ptp(expected, axis=0).min() > 1e-3
    np.testing.assert_allclose(
        [[result[axis] for axis in ("ce", "cu", "pc", "pq")] for result in actual], expected, atol=5e-5
    )
    assert [result["windows"] for result in actual] == [1, 1, 1, 2, 1, 1, 3]


def test_nothing_is_unavailable_and_harms_nobody(folder, signals):
    feature = tiny_speech.SmallAudiobox(weights=str(folder))
    none, broken, usable = feature.compute([signals[0][:0], np.full(900, np.nan, np.float32), signals[0]])
    assert isinstance(none, Unavailable) and none.args[0].code == "no_samples_heard"
    assert isinstance(broken, Unavailable)
    assert usable == pytest.approx(feature.compute([signals[0]])[0], abs=1e-5)


def test_four_metrics_read_one_feature():
    assert expand(["audiobox@float16"]) == [f"audiobox_{axis}@float16" for axis in ("ce", "cu", "pc", "pq")]
    metric = build_metric("audiobox_pc")
    assert metric.protocol == "audiobox_pc/audiobox-aesthetics/10s"
    result = {"ce": 4.0, "cu": 5.0, "pc": 2.0, "pq": 7.0, "windows": 2}
    (score,) = metric.compute([Inputs("a", 16_000, estimate_features={"audiobox": result})])
    assert (score.value, score.detail) == (2.0, {"windows": 2})
    assert metric.higher_is_better is None and metric.worst(text=None, language=None) is None
    assert build_metric("audiobox_pq").worst(text=None, language=None).value == 1
    with refuses("no_point_of_metric", point="int8"):
        Audiobox.protocol_id("int8")


def test_configurations_of_other_networks_are_one_sentence(folder, tmp_path):
    for name, changes, says in (
        ("layers", {"nth_layer": 7}, {"code": "weights_of_another_model", "difference": "nth_layer 7 (expected 13)"}),
        ("axes", {"target_transform": {}}, {"code": "file_not_readable", "cause": Containing("KeyError")}),
        (
            "deeper",
            {"proj_num_layer": 4},
            {"code": "tensors_wrong", "difference": {"code": "tensors_differ", "missing": Containing(".")}},
        ),
    ):
        other = shutil.copytree(folder, tmp_path / name)
        (other / "config.json").write_text(json.dumps({**tiny_speech.AESTHETICS, **changes}), "utf-8")
        with refuses(**says):
            tiny_speech.SmallAudiobox(weights=str(other)).load()

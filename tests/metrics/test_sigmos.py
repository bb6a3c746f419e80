"""SIGMOS against the definition of its front end, frame by frame, with a network of noise in the published layout."""

from __future__ import annotations

import numpy as np
import pytest
from glides import glide
from refusals import refuses

from codec_bench.features import Unavailable, load_feature
from codec_bench.features.sigmos import BINS, KEYS
from codec_bench.messages import of_error
from codec_bench.metrics import GROUPS, build_metric, expand
from codec_bench.metrics.base import Inputs

onnx = pytest.importorskip("onnx")
LENGTHS = (9001, 960, 4800, 48_000)


def write_sigmos(path, outputs=7, seed=2):
    """A network of noise that takes what SIGMOS takes: the mean over the frames, and one product; gives its matrix."""
    from onnx import TensorProto, helper, numpy_helper

    matrix = np.random.default_rng(seed).normal(0, 0.1, (3 * BINS, outputs)).astype(np.float32)
    nodes = [
        helper.make_node("ReduceMean", ["features"], ["mean"], axes=[2], keepdims=0),
        helper.make_node("Reshape", ["mean", "shape"], ["flat"]),
        helper.make_node("MatMul", ["flat", "matrix"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes, "sigmos",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [1, 3, "frames", BINS])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, outputs])],
        [numpy_helper.from_array(matrix, "matrix"), numpy_helper.from_array(np.array([1, 3 * BINS]), "shape")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return matrix


def reference(signal, matrix):
    """The scores of one signal: every frame cut, transformed and compressed by itself."""
    last = len(signal) % 480 or 480
    padded = np.concatenate([np.zeros(480), signal, np.zeros(960 - last)])
    window = np.sqrt(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(960) / 960))
    turn = np.exp(-2j * np.pi * np.outer(np.arange(BINS), np.arange(960)) / 960)
    rows = []
    for start in range(0, len(padded) - 959, 480):
        spectrum = turn @ (padded[start : start + 960] * window)
        size = np.maximum(np.abs(spectrum), 1e-6)
        rows.append([size**0.3, spectrum.real * size**-0.7, spectrum.imag * size**-0.7])
    return np.mean(rows, axis=0).reshape(-1) @ matrix


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    path = tmp_path_factory.mktemp("sigmos") / "sigmos.onnx"
    return str(path), write_sigmos(path)


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(5)
    return [(glide(length).samples[0] + rng.normal(0, 0.02, length)).astype(np.float32) for length in LENGTHS]


@pytest.mark.compares("sigmos", weights="stand-in")
def test_every_signal_has_the_scores_of_the_definition(stand_in, signals):
    path, matrix = stand_in
    result = load_feature("sigmos", weights=path).compute(signals)
    expected = np.stack([reference(signal.astype(np.float64), matrix) for signal in signals])
    assert np.ptp(expected, axis=0).min() > 1e-3
    np.testing.assert_allclose([[one[key] for key in KEYS] for one in result], expected, atol=1e-5)


def test_unusable_audio_is_unavailable_and_harms_nobody(stand_in, signals):
    feature = load_feature("sigmos", weights=stand_in[0])
    broken = np.full(2000, np.nan, np.float32)
    short, long, nan, silent, usable = feature.compute(
        [signals[0][:959], np.ones(121 * 48_000, np.float32), broken, np.zeros(2000, np.float32), signals[0]]
    )
    assert all(isinstance(one, Unavailable) for one in (short, long, nan, silent))
    assert of_error(short).parameters["needed"] == 960 and of_error(long).parameters["most_s"] == 120.0
    assert of_error(nan).code == "not_finite" and of_error(silent).code == "signal_silent"
    assert usable == feature.compute([signals[0]])[0]


def test_each_metric_takes_its_own_number():
    result = {"sigmos": {key: 1.0 + number / 8 for number, key in enumerate(KEYS)}}
    by_name = {}
    for name in expand(["sigmos"]):
        metric = build_metric(name)
        (score,) = metric.compute([Inputs("a", 48_000, estimate_features=result)])
        by_name[name] = score.value
        assert score.protocol == f"{name}/sigmos-1/48khz"
    assert by_name == {
        "sigmos_col": 1.0,
        "sigmos_disc": 1.125,
        "sigmos_loud": 1.25,
        "sigmos_noise": 1.375,
        "sigmos_reverb": 1.5,
        "sigmos_sig": 1.625,
        "sigmos_ovrl": 1.75,
    }
    assert list(by_name) == list(GROUPS["sigmos"])


def test_other_files_are_one_sentence(tmp_path):
    other = tmp_path / "other.onnx"
    write_sigmos(other, outputs=3)
    with refuses("sigmos_shapes"):
        load_feature("sigmos", weights=str(other)).load()
    other.write_bytes(b"no network")
    with refuses("not_onnx"):
        load_feature("sigmos", weights=str(other)).load()

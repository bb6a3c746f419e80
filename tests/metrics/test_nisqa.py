"""NISQA against numbers of its author's program, with its published weights where they are here and with stand-in
weights.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tiny_speech
from glides import glide
from hostile import Hostile
from refusals import Containing, refuses

from codec_bench.audio.resample import prepare
from codec_bench.config import config_names, read_config
from codec_bench.features import Unavailable, load_feature, nisqa, windowed
from codec_bench.metrics import build_metric, expand
from codec_bench.metrics.base import Inputs
from codec_bench.weights import checkpoint, lookup

EXPECTED = json.loads((Path(__file__).parents[1] / "golden" / "nisqa.json").read_text("utf-8"))
FEATURES = {"nisqa": "nisqa", "nisqa-mos-only": "nisqa[mos-only]", "nisqa-tts": "nisqa-tts"}


@pytest.fixture(scope="module")
def signals(embedded):
    """The input signals of the program, checked by their energy."""
    by_id = {sample.id: audio for sample, audio in embedded}
    results = [prepare(by_id[clip["id"]], nisqa.RATE_HZ)[: clip["samples"]] for clip in EXPECTED["clips"]]
    for signal, clip in zip(results, EXPECTED["clips"], strict=True):
        assert float((signal.astype(np.float64) ** 2).sum()) == pytest.approx(clip["sum_of_squares"], rel=1e-6)
    return results


@pytest.fixture(scope="module", params=FEATURES)
def stand_in(request, tmp_path_factory):
    path = tiny_speech.write_nisqa(tmp_path_factory.mktemp("nisqa"), request.param)
    return request.param, load_feature(FEATURES[request.param], weights=path)


def check(actual, expected):
    got = [[result[name] for name in nisqa.SCORES if name in result] for result in actual]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)


def in_one_pass(monkeypatch):
    """Puts all into one padded batch, as on a GPU, however different their lengths are."""

    def passes(lengths, device, **_):
        return [sorted(range(len(lengths)), key=lengths.__getitem__)]

    monkeypatch.setattr(windowed, "passes", passes)


@pytest.mark.compares("nisqa", "nisqa-tts", weights="stand-in")
def test_a_batch_gives_the_programs_scores_of_one_by_one(stand_in, signals, monkeypatch):
    name, feature = stand_in
    expected = EXPECTED["networks"][name]["stand_in"]
    assert np.ptp(expected, axis=0).max() > 0.05
    check([feature.compute([signal])[0] for signal in signals], expected)
    in_one_pass(monkeypatch)
    check(feature.compute(signals), expected)


@pytest.mark.compares("nisqa", "nisqa-tts", weights="published")
@pytest.mark.parametrize("name", FEATURES)
def test_the_published_weights_give_the_programs_scores(name, signals, monkeypatch):
    if lookup(name) is None:
        pytest.skip(f"the weights '{name}' are not on this machine")
    in_one_pass(monkeypatch)
    check(load_feature(FEATURES[name]).compute(signals), EXPECTED["networks"][name]["published"])


def test_a_long_signal_is_the_mean_of_its_windows(stand_in, monkeypatch):
    _, feature = stand_in
    rng = np.random.default_rng(0)
    signal = (glide(48_000).samples[0] + rng.normal(0, 0.02, 48_000)).astype(np.float32)
    monkeypatch.setattr(type(feature), "most_frames", 40)
    windows = np.array_split(signal, 3)
    (complete,), parts = feature.compute([signal]), feature.compute(windows)
    assert complete["windows"] == 3 and {item["windows"] for item in parts} == {1}
    assert complete["mos"] == pytest.approx(np.mean([item["mos"] for item in parts]), abs=1e-5)


@pytest.mark.parametrize("kind", [nisqa.Nisqa, nisqa.NisqaTts])
@pytest.mark.parametrize("over", [-1, 0, 1, 479, 1_000_000])
def test_windows_are_as_few_as_the_program_takes(kind, over):
    """The program takes 1300 pieces four frames apart, and 6000 one frame apart."""
    step, most = (4, 1300) if kind is nisqa.Nisqa else (1, 6000)
    size = ((most - 1) * step + nisqa.SEGMENT) * nisqa.HOP + over
    windows = nisqa.cut_up(np.zeros(size, np.float32), kind.most_frames)
    pieces = [(window.size // nisqa.HOP + 1 - nisqa.SEGMENT) // step + 1 for window in windows]
    assert max(pieces) <= most and sum(window.size for window in windows) == size
    assert len(windows) == (1 if over < 0 else 2)


def test_unusable_audio_is_unavailable_and_harms_nobody(stand_in, signals):
    _, feature = stand_in
    fine = signals[0]
    none, short, silent, broken, usable = feature.compute(
        [fine[:0], fine[:6719], np.zeros(9000, np.float32), np.full(9000, np.nan, np.float32), fine]
    )
    for result in (none, short, silent, broken):
        assert isinstance(result, Unavailable)
    assert short.args[0].as_dict() == {"code": "signal_short", "samples": 6719, "model": "NISQA", "needed": 6720}
    assert usable == pytest.approx(feature.compute([fine])[0], abs=1e-5)
    assert feature.compute([]) == []


def test_the_metrics_are_the_numbers_of_one_feature():
    result = {"mos": 1.0, "noisiness": 2.0, "discontinuity": 3.0, "coloration": 4.0, "loudness": 5.0, "windows": 2}
    for name in expand(["nisqa"]):
        metric = build_metric(name)
        assert metric.estimate_features == ("nisqa",) and metric.protocol == f"{name}/nisqa-2.0/48khz"
        (score,) = metric.compute([Inputs("a", 48_000, estimate_features={"nisqa": result})])
        assert (score.value, score.detail) == (result[name.removeprefix("nisqa_")], {"windows": 2})
    metric = build_metric("nisqa_mos[mos-only]")
    assert (metric.protocol, metric.estimate_features) == ("nisqa_mos/nisqa-2.0/mos-only/48khz", ("nisqa[mos-only]",))
    (score,) = build_metric("nisqa_tts").compute([Inputs("a", 48_000, estimate_features={"nisqa-tts": result})])
    assert (score.value, score.protocol) == (1.0, "nisqa-tts-1.0/48khz")
    for wrong in ("nisqa_mos[tts]", "nisqa_loudness[mos-only]"):
        with refuses("no_variant"):
            build_metric(wrong)


def test_their_licence_keeps_them_out_of_presets():
    assert all(checkpoint(name).non_commercial for name in FEATURES)
    named = {metric for preset in config_names("preset") for metric in read_config("preset", preset)["metrics"]}
    assert named and not any(metric.startswith("nisqa") for metric in named)


def test_files_of_something_else_are_one_sentence(tmp_path):
    import pickle

    import torch

    other, evil = tmp_path / "other.tar", tmp_path / "evil.tar"
    torch.save({"model_state_dict": {"cnn.model.conv1.weight": torch.zeros(3)}}, other)
    evil.write_bytes(pickle.dumps({"model_state_dict": Hostile(tmp_path / "touched")}, protocol=2))
    for path in (other, evil):
        with refuses(
            "weights_not_read|weights_unreadable|no_weights_entry|tensors_wrong|weights_not_tensors", path=path.name
        ):
            load_feature("nisqa", weights=str(path)).load()
    assert not (tmp_path / "touched").exists()
    tts = tiny_speech.write_nisqa(tmp_path, "nisqa-tts")
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "missing": Containing("model")}):
        load_feature("nisqa", weights=tts).load()

"""DistillMOS against the package's own program, one signal at a time; and crops that are shorter than the rest."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_speech
import torch
from glides import glide
from refusals import refuses

from codec_bench import features
from codec_bench.audio.resample import prepare
from codec_bench.features import Unavailable, load_feature
from codec_bench.messages import Diagnostic
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs
from codec_bench.networks import distillmos

LONG = distillmos.CROP + 20_001


@pytest.fixture(scope="module")
def feature():
    pytest.importorskip("distillmos")
    return load_feature("distillmos")


class Small(features.REGISTRY.resolve("distillmos")):
    """The feature with a small network."""

    @classmethod
    def _architecture(cls):
        return distillmos.DistillMosNet((4,) * 6, 16, 1)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The feature with a small network."""
    path = tmp_path_factory.mktemp("distillmos") / "small.pt"
    torch.save({"model": tiny_speech.standing_in(Small._architecture()).state_dict()}, path)
    feature = Small("cpu", str(path))
    feature.load()  # some tests look at its network
    return feature


def noisy(samples, seed=0):
    return (glide(samples).samples[0] + np.random.default_rng(seed).normal(0, 0.02, samples)).astype(np.float32)


@pytest.mark.compares("distillmos", weights="published")
def test_a_batch_gives_the_packages_scores_of_one_by_one(feature, spoken):
    theirs = pytest.importorskip("distillmos").ConvTransformerSQAModel().eval()
    signals = [prepare(audio, 16_000) for _, audio in spoken]
    signals = [*sorted(signals, key=len)[: -1 : max(1, len(signals) // 2)], noisy(LONG), noisy(320)]
    with torch.inference_mode():
        expected = [theirs(torch.from_numpy(signal)[None]).item() for signal in signals]
    result = feature.compute(signals)
    assert max(expected) - min(expected) > 0.5
    np.testing.assert_allclose([one["mos"] for one in result], expected, atol=2e-6)
    assert [one["crops"] for one in result] == [*[1] * (len(signals) - 2), 3, 1]


@pytest.mark.parametrize("samples", [320, 1500, 40_000, 118_000, 122_879])
def test_the_silence_that_is_skipped_changes_nothing(small, samples):
    """The network over a whole crop, its silence with it, is what the package computes."""
    signal = noisy(samples)
    complete = torch.zeros(1, distillmos.CROP)
    complete[0, :samples] = torch.from_numpy(signal)
    with torch.inference_mode():
        expected = small._net(complete).item()
    assert small.compute([signal])[0]["mos"] == pytest.approx(expected, abs=1e-6)


def test_a_batch_is_its_items(small):
    signals = [noisy(samples, samples) for samples in (LONG, 320, 5000, 9001, 122_880, 9001)]
    alone = [small.compute([signal])[0] for signal in signals]
    assert np.ptp([one["mos"] for one in alone]) > 1e-3
    for one, batched in zip(alone, small.compute(signals), strict=True):
        assert batched["mos"] == pytest.approx(one["mos"], rel=1e-5) and batched["crops"] == one["crops"]


@pytest.mark.parametrize("over", [1, 15_999, 16_000, 16_001, 100_003, 1_234_567])
def test_crops_begin_where_the_package_begins_them(over):
    signal = np.arange(distillmos.CROP + over, dtype=np.float32)
    hops = int(np.ceil(over / 16_000)) + 1
    crops = distillmos.cropped(signal)
    assert [int(crop[0]) for crop in crops] == [int(item * over) for item in np.linspace(0, 1, hops)]
    assert all(crop.size == distillmos.CROP for crop in crops) and crops[-1][-1] == signal[-1]


def test_unusable_audio_is_unavailable_and_harms_nobody(small):
    fine = noisy(4000)
    none, short, silent, broken, usable = small.compute(
        [fine[:0], fine[:319], np.zeros(4000, np.float32), np.full(4000, np.nan, np.float32), fine]
    )
    for result in (none, short, silent, broken):
        assert isinstance(result, Unavailable)
    assert str(short) == Diagnostic("signal_short", samples=319, model="DistillMOS", needed=320)
    assert str(silent) == Diagnostic("signal_silent")
    assert usable == pytest.approx(small.compute([fine])[0], rel=1e-5)
    assert small.compute([]) == []


def test_the_metric_is_the_score():
    metric = build_metric("distillmos")
    (score,) = metric.compute([Inputs("a", 16_000, estimate_features={"distillmos": {"mos": 3.25, "crops": 2}})])
    assert (score.value, score.protocol, score.detail) == (3.25, "distillmos/v7", {"crops": 2})


def test_other_weights_are_one_sentence(tmp_path):
    with refuses("weights_folder_lacks", names="distill_mos_v7.pt"):
        load_feature("distillmos", weights=str(tmp_path))
    file = tmp_path / "distill_mos_v7.pt"
    torch.save({"model": {"cnn.cnn.0.weight": torch.zeros(3)}}, file)
    with refuses("tensors_wrong"):
        load_feature("distillmos", weights=str(file)).load()
    torch.save({"cnn.cnn.0.weight": torch.zeros(3)}, file)
    with refuses("no_weights_entry", key="model"):
        load_feature("distillmos", weights=str(file)).load()

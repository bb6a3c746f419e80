"""ViSQOL against the package visqol-python, pair by pair, in both modes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from refusals import Containing, refuses
from scipy.signal import hilbert

from codec_bench.audio.resample import prepare
from codec_bench.metrics import build_metric, visqol, visqol_mapping
from codec_bench.metrics.base import Inputs
from codec_bench.weights import lookup


def package(mode, data):
    """The package's opinion score and mean similarity of pairs; no score if its library for audio mode is missing."""
    pytest.importorskip("visqol", reason="visqol-python is not installed")
    from visqol.audio_utils import AudioSignal
    from visqol.visqol_manager import VisqolManager

    manager = VisqolManager()
    manager.init(use_speech_mode=True, use_lattice_model=mode == visqol.LATTICE)
    if mode == visqol.AUDIO:
        from visqol.gammatone import GammatoneSpectrogramBuilder
        from visqol.patch_creator import ImagePatchCreator

        manager.use_speech_mode, manager.patch_creator = False, ImagePatchCreator(30)
        manager.spect_builder = GammatoneSpectrogramBuilder(32, 50.0, speech_mode=False)
        manager.quality_mapper = regression()
    rate_hz = visqol.Visqol.variants[mode].rate_hz
    results = [manager.run_from_signals(*(AudioSignal(role, rate_hz) for role in pair)) for pair in data]
    return [(one.moslqo, one.vnsim) for one in results]


def regression():
    """libsvm's where it is installed, else the formula over the published file, written anew."""
    file = lookup(visqol.SVR).path
    try:
        from visqol.quality_mapper import SvrSimilarityToQualityMapper

        mapper = SvrSimilarityToQualityMapper(str(file))
        mapper.init()
        return mapper
    except ImportError:
        rows = [re.findall(r"[^\s:]+", line) for line in file.read_text("ascii").splitlines()[7:]]
        values = np.array(rows, float)

        class Formula:
            def predict_quality(self, bands, *_):
                kernels = [np.exp(-0.01 * sum((bands[i] - row[2 + 2 * i]) ** 2 for i in range(32))) for row in values]
                return float(np.clip(np.dot(values[:, 0], kernels) + 3.6816207123583506, 1, 5))

        return Formula()


def pairs(spoken, rate_hz, count):
    """Speech and what became of it: noise, a late and short copy, an early one, another loudness, noise alone."""
    rng = np.random.default_rng(0)
    clips = [prepare(audio, rate_hz)[: round(1.6 * rate_hz)] for _, audio in spoken[:count]]
    first = clips[0]
    noise = rng.normal(0, 0.02, first.size).astype(np.float32)
    late = np.concatenate([np.zeros(rate_hz // 7, np.float32), first[: -rate_hz // 5]])
    built = [(first, first), (first, first + noise), (first, late + noise[: late.size]), (first, noise)]
    built += [(clip, 0.3 * np.round(clip[rate_hz // 10 :] * 40) / 40) for clip in clips[1:]]
    return [(a, np.asarray(b, np.float32)) for a, b in built]


@pytest.mark.compares("visqol", weights="published")
@pytest.mark.parametrize(("mode", "count"), [(None, 3), (visqol.LATTICE, 2), (visqol.AUDIO, 2)])
def test_scores_are_the_packages(mode, count, spoken):
    if mode == visqol.AUDIO and lookup(visqol.SVR) is None:
        pytest.skip("the regression of audio mode is not on this machine")
    if mode == visqol.LATTICE:
        pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    metric = build_metric(f"visqol[{mode}]" if mode else "visqol")
    data = pairs(spoken, metric.rate_hz, count)
    expected = package(mode, data)
    result = metric.compute([Inputs("a", metric.rate_hz, reference=a, estimate=b) for a, b in data])
    assert np.ptp([value for value, _ in expected]) > 1
    for score, (value, alike) in zip(result, expected, strict=True):
        assert score.value == pytest.approx(value, abs=1e-9)
        assert score.detail["similarity"] == pytest.approx(alike, abs=1e-10)
        assert score.protocol == metric.protocol


def test_what_cannot_be_compared_has_a_reason():
    metric = build_metric("visqol")
    tone = np.sin(np.arange(16_000) / 20).astype(np.float32)
    for reference, estimate, why in (
        (tone, np.zeros(16_000, np.float32), "silent"),
        (np.zeros(16_000, np.float32), tone, "silent"),
        (tone[:0], tone, "silent"),
        (tone[:900], tone[:900], "a frame has 1280"),
        (tone[:5000], tone[:5000], "too short for a patch"),
    ):
        (score,) = metric.compute([Inputs("a", 16_000, reference=reference, estimate=estimate)])
        assert (score.status, score.value) == ("undefined", None) and why in score.reason


def test_a_copy_has_the_most_and_the_rate_is_the_modes():
    tone = (np.sin(np.arange(32_000) / 20) * np.linspace(0.2, 1, 32_000)).astype(np.float32)
    metric = build_metric("visqol")
    (score,) = metric.compute([Inputs("a", 16_000, reference=tone, estimate=0.5 * tone)])
    assert score.value == 5.0 and score.detail["patches"] == 4
    with refuses("no_variant", name="visqol", hint="visqol[audio]"):
        build_metric("visqol[music]")


def test_another_regression_is_one_sentence(tmp_path):
    other = tmp_path / "model.txt"
    other.write_text("svm_type c_svc\nkernel_type rbf\ngamma 1\nrho 0\nSV\n1 1:1 2:1\n")
    with refuses("file_not_readable", cause=Containing("no regression over 32 bands")):
        visqol_mapping.regression(other)
    other.write_text("nothing")
    with refuses("file_not_readable"):
        visqol_mapping.regression(other)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 34, 101, 202, 28_800, 28_801, 49_233, 98_466])
def test_envelopes_are_scipys(size):
    signals = np.random.default_rng(size).normal(0.3, 1.0, (2, size))
    for signal, result in zip(signals, visqol.envelopes(*signals), strict=True):
        expected = np.abs(hilbert(signal - signal.mean())) + signal.mean()
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)

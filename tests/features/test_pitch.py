"""The default is the project's tracker, and `world` is pyworld with VERSA's settings. Neither depends on the batch."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
from refusals import Containing, refuses

from codec_bench.audio.resample import prepare
from codec_bench.features import Unavailable
from codec_bench.features.pitch import Pitch
from codec_bench.messages import of_error

RATE = 16_000


@pytest.fixture(scope="module")
def speech(embedded):
    return [prepare(audio, RATE)[: 2 * RATE] for _, audio in embedded[::6]]


@pytest.fixture(scope="module")
def pyworld():
    return pytest.importorskip("pyworld", reason="the oracle")


def test_it_is_the_tracker(speech):
    from codec_bench.kernels.pitch import ref

    result = Pitch().compute(speech[:1])[0]
    expected = ref.track(speech[0])
    assert result["f0_hz"].dtype == np.float32 and result["hop_s"] == 0.01
    assert (expected > 0).mean() > 0.2
    assert np.mean(np.isclose(result["f0_hz"], expected, rtol=1e-4)) > 0.99


def test_world_is_harvest_as_versa_calls_it(pyworld, speech):
    from scipy.signal import firwin, lfilter

    for signal, result in zip(speech[:1], Pitch(variant="world").compute(speech[:1]), strict=True):
        x = lfilter(firwin(255, 70 / 8000, pass_zero=False), 1, np.array(signal * 32767, np.float64))
        expected, times = pyworld.harvest(x, RATE, f0_floor=40, f0_ceil=800, frame_period=5)
        assert result["hop_s"] == pytest.approx(times[1] - times[0])
        assert np.mean(np.isclose(result["f0_hz"], expected, rtol=1e-5)) > 0.99
        assert (expected > 0).any()


def test_a_batch_changes_nothing(speech):
    feature = Pitch()
    together = feature.compute(speech)
    for signal, result in zip(speech, together, strict=True):
        np.testing.assert_array_equal(feature.compute([signal])[0]["f0_hz"], result["f0_hz"])
    assert feature.compute([]) == []


def test_signals_without_a_pitch(speech):
    broken = [np.zeros(0, np.float32), np.full(RATE, np.nan, np.float32)]
    empty, nan, silent = Pitch().compute([*broken, np.zeros(RATE, np.float32)])
    assert isinstance(empty, Unavailable) and of_error(empty).code == "no_samples_heard"
    assert isinstance(nan, Unavailable) and of_error(nan).code == "signal_not_finite"
    assert silent["f0_hz"].tolist() == [0.0] * 100


def test_swift_is_the_package_and_tracks_the_same_voice(speech):
    swift_f0 = pytest.importorskip("swift_f0", reason="the extra pitch is not installed")
    detector = swift_f0.SwiftF0(threads=1)
    for signal, result in zip(speech[:2], Pitch(variant="swift").compute(speech[:2]), strict=True):
        expected = detector.detect(signal, RATE)
        np.testing.assert_array_equal(result["f0_hz"] > 0, expected.confidence >= 0.5)
        voiced = result["f0_hz"] > 0
        np.testing.assert_allclose(result["f0_hz"][voiced], expected.pitch_hz[voiced], rtol=1e-6)
        assert result["hop_s"] == expected.timestamps[1]
        (ours,) = Pitch().compute([signal])
        medians = [np.median(one["f0_hz"][one["f0_hz"] > 0]) for one in (result, ours)]
        assert medians[0] == pytest.approx(medians[1], rel=0.05)


def test_another_release_of_swift_is_refused(monkeypatch):
    from codec_bench.features import pitch

    monkeypatch.setattr(pitch, "package_version", lambda name: "0.30.1")
    with refuses("package_version_unexpected", package="swift-f0", version="0.3", installed="0.30.1"):
        Pitch(variant="swift")
    monkeypatch.setattr(pitch, "package_version", lambda name: None)
    with refuses("package_not_installed", package="swift-f0", feature=Containing("swift")):
        Pitch(variant="swift")


def test_world_without_pyworld_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with refuses("package_not_installed", package="pyworld", hint="codec-bench[pitch]"):
        Pitch(variant="world")


def test_pyworld_that_lacks_its_own_packages_says_so(monkeypatch, pyworld):
    monkeypatch.delitem(sys.modules, "pyworld")
    monkeypatch.setitem(sys.modules, "pkg_resources", None)  # as with a setuptools that no longer brings it
    with refuses("package_not_installed", package="pkg_resources"):
        Pitch(variant="world").compute([np.zeros(RATE, np.float32)])


def test_another_tracker_and_weights_are_refused():
    with refuses("no_variant", variant="crepe"):
        Pitch(variant="crepe")
    with refuses("no_weights_to_replace"):
        Pitch(weights="folder")
    assert Pitch().protocol != Pitch(variant="world").protocol

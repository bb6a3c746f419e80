"""Torch, the project's kernels and ONNX Runtime agree, and each published protocol gives its project's numbers."""

from __future__ import annotations

import importlib.metadata
import sys
from functools import cache

import numpy as np
import pytest
from refusals import Containing, refuses
from speechmos_scores import RATE, Remembering, assert_scores, speechmos_files

from codec_bench.audio.resample import prepare
from codec_bench.features import Unavailable, dnsmos, load_feature
from codec_bench.networks import dnsmos as dnsmos_torch

TOLERANCE = 1e-4
FRAMES_AT_ONCE, WINDOWS_AT_ONCE = dnsmos_torch._FRAMES_AT_ONCE["cpu"], dnsmos_torch._WINDOWS_AT_ONCE["cpu"]
POLYNOMIALS = {
    "sig": [-0.08397278, 1.22083953, 0.0052439],
    "bak": [-0.13166888, 1.60915514, -0.39604546],
    "ovrl": [-0.06766283, 1.11546468, 0.04602535],
}


@pytest.fixture(scope="module", autouse=True)
def _small_pieces():
    """Pictures are computed in small pieces, which take a third of the memory."""
    with pytest.MonkeyPatch.context() as patch:
        for name, size in (("_FRAMES_AT_ONCE", 1_000), ("_WINDOWS_AT_ONCE", 1)):
            patch.setitem(getattr(dnsmos_torch, name), "cpu", size)
        yield


@pytest.fixture(scope="module")
def sessions():
    return [Remembering(file) for file in speechmos_files()]


@pytest.fixture(scope="module")
def torch_feature():
    return load_feature("dnsmos@torch")


@pytest.fixture(scope="module")
def speech(embedded):
    return np.concatenate([prepare(audio, RATE) for _, audio in embedded][::7])


@pytest.fixture(scope="module")
def clips(speech):
    """One window of a repeated signal, and two windows."""
    return [speech[: round(seconds * RATE)] for seconds in (2.3, 10.01)]


@pytest.fixture(scope="module")
def alone(torch_feature, clips):
    """Torch's result of each clip by itself, over every window; the default counts the first clip's too."""
    features = torch_feature, load_feature("dnsmos[all-windows]@torch")
    return [feature.compute([clip])[0] for feature, clip in zip(features, clips, strict=True)]


def test_torch_is_speechmos(torch_feature, speechmos_scores, clips, alone):
    assert_scores(alone[0], speechmos_scores(clips[0]))
    silence = np.zeros(round(9.02 * RATE), np.float32)
    assert_scores(torch_feature.compute([silence])[0], speechmos_scores(silence))


def test_the_three_ways_agree_over_every_window_also_in_parts(clips, alone, monkeypatch):
    results = {}
    for backend in ("onnxruntime", "numba", "torch"):
        if backend == "torch":  # `alone` is the signal whole
            monkeypatch.setattr(dnsmos, "WINDOWS_AT_ONCE", 1)
        feature = load_feature(f"dnsmos[all-windows]@{backend}")
        assert feature.protocol == "dnsmos/all-windows"
        (results[backend],) = feature.compute([clips[1]])
    numba, torch, onnxruntime = (results[backend] for backend in dnsmos.BACKENDS)
    assert numba["windows"] == torch["windows"] == onnxruntime["windows"] == alone[1]["windows"] == 2
    assert_scores(alone[1], onnxruntime, 2e-5)
    assert_scores(numba, onnxruntime, 2e-5)
    assert_scores(torch, alone[1], 1e-5)


def test_what_shares_the_batch_and_how_it_is_cut_changes_nothing(clips, alone, monkeypatch):
    monkeypatch.setitem(dnsmos_torch._FRAMES_AT_ONCE, "cpu", FRAMES_AT_ONCE)
    monkeypatch.setitem(dnsmos_torch._WINDOWS_AT_ONCE, "cpu", WINDOWS_AT_ONCE)
    wide = load_feature("dnsmos[all-windows]@torch")
    empty, *together = wide.compute([np.zeros(0, np.float32), *clips[::-1]])
    assert isinstance(empty, Unavailable)
    for one, result in zip(alone, together[::-1], strict=True):
        assert result["windows"] == one["windows"]
        assert_scores(result, one, 1e-5)
    assert wide.compute([]) == []


@cache
def ultraeval_audio(backend):
    return load_feature(f"dnsmos[ultraeval-audio]@{backend}")


@pytest.mark.parametrize("backend", ["numba", "torch", "onnxruntime"])
@pytest.mark.parametrize("seconds", [2.2, 13.0])
def test_ultraeval_audio_scores_the_first_window_of_a_signal_followed_by_zeros(sessions, speech, backend, seconds):
    librosa = pytest.importorskip("librosa")
    clip = speech[: round(seconds * RATE)]
    window = np.zeros(int(9.01 * RATE), np.float32)
    start = clip[: window.size]
    window[: start.size] = start
    # Before 0.10, librosa continued a signal by its mirror image; UltraEval-Audio pins 0.8.1.
    mel = librosa.feature.melspectrogram(
        y=window[:-160], sr=RATE, n_fft=321, hop_length=160, n_mels=120, pad_mode="reflect"
    )
    levels = ((librosa.power_to_db(mel, ref=np.max) + 40) / 40).T.astype(np.float32)
    raw = sessions[0].run(None, {"input_1": window[None]})[0][0]
    expected = {
        name: np.polyval(polynomial, value) for (name, polynomial), value in zip(POLYNOMIALS.items(), raw, strict=True)
    }
    expected["p808"] = sessions[1].run(None, {"input_1": levels[None]})[0][0, 0]
    feature = ultraeval_audio(backend)
    result = feature.compute([clip])[0]
    assert feature.protocol == "dnsmos/ultraeval-audio" and result["windows"] == 1
    assert_scores(result, expected)


def test_the_mirror_image_matters_where_a_signal_begins_loud(speech):
    clip = speech[: 10 * RATE].copy()
    clip[:160] += np.float32(0.9) * np.hanning(320).astype(np.float32)[160:]
    clip = np.clip(clip, -1, 1)
    mirrored, plain = (
        load_feature(f"dnsmos{which}@numba").compute([clip])[0]["p808"] for which in ("[ultraeval-audio]", "")
    )
    assert mirrored != plain


@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_versa_divides_by_the_peak(speechmos_scores, speech, backend):
    clip = speech[: 10 * RATE] * np.float32(0.3)
    feature = load_feature(f"dnsmos[versa]@{backend}")
    result, silent = feature.compute([clip, np.zeros(RATE, np.float32)])
    assert feature.protocol == "dnsmos/versa"
    assert_scores(result, speechmos_scores(clip / np.max(np.abs(clip))))
    assert abs(result["bak"] - speechmos_scores(clip)["bak"]) > 10 * TOLERANCE
    assert isinstance(silent, Unavailable) and "silent" in str(silent)


def test_the_device_chooses_the_way():
    assert load_feature("dnsmos").backend == "numba"
    assert load_feature("dnsmos", device="cuda:0").backend == "torch"
    assert load_feature("dnsmos@onnxruntime", device="cuda:0").backend == "onnxruntime"
    assert load_feature("dnsmos").where == load_feature("dnsmos@torch").where == "device"
    assert load_feature("dnsmos@numba").where == "cpu"


@pytest.mark.parametrize(("package", "where"), [("onnxruntime", "cpu"), ("onnxruntime-gpu", "device")])
def test_onnxruntime_goes_to_the_gpu_where_it_can_use_one(monkeypatch, package, where):
    def installed(name):
        if name == package:
            return "1.30"
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(dnsmos, "version", installed)
    assert load_feature("dnsmos@onnxruntime").where == where


def test_a_gpu_that_onnxruntime_does_not_use_is_an_error(monkeypatch):
    # Only the CPU build is installed here. It uses the CPU without a warning, as a broken GPU build would.
    monkeypatch.setattr(dnsmos, "_onnxruntime_has_cuda", lambda: True)
    onnxruntime = pytest.importorskip("onnxruntime")
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime knows CUDA")
    with (
        pytest.warns(UserWarning, match="CUDAExecutionProvider"),
        refuses("onnxruntime_without_gpu"),
    ):
        load_feature("dnsmos@onnxruntime", device="cuda:0").load()


def test_without_onnxruntime_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with refuses("package_not_installed", package="onnxruntime", feature=Containing("onnxruntime")):
        load_feature("dnsmos@onnxruntime").load()


def test_another_way_is_refused():
    with refuses("no_point_of_metric", point="tf32") as caught:
        load_feature("dnsmos@tf32")
    assert "torch" in caught.value.hint


@pytest.mark.gpu
def test_on_a_gpu(speechmos_scores, speech):
    import torch

    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    clips = [speech[i * RATE : i * RATE + n] for i, n in enumerate([4_000, 176_200, 144_160])]
    for clip, result in zip(clips, load_feature("dnsmos", device="cuda:0").compute(clips), strict=True):
        assert_scores(result, speechmos_scores(clip))

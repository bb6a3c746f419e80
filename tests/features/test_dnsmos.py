"""The four scores equal those of the package speechmos, over the same windows, whatever else is in the batch."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from refusals import refuses
from speechmos_scores import RATE, SCORES, assert_scores, speechmos

from codec_bench.audio.resample import prepare
from codec_bench.features import Unavailable, dnsmos, load_feature
from codec_bench.messages import of_error

TOLERANCE = 1e-4
LENGTHS_S = (0.1, 2.3, 9.01, 9.02, 10.99, 12)


@pytest.fixture(scope="module")
def feature():
    return load_feature("dnsmos")


@pytest.fixture(scope="module")
def every_window():
    return load_feature("dnsmos[all-windows]")


@pytest.fixture(scope="module")
def speech(embedded):
    """A minute of several voices, mono at 16 kHz. It comes round every 13 s, so that the oracle has less to compute."""
    clips = [prepare(audio, RATE) for _, audio in embedded]
    return np.resize(np.concatenate(clips[::7])[: 13 * RATE], 60 * RATE)


def test_clips_of_every_length(feature, speechmos_scores, speech):
    clips = [speech[: round(seconds * RATE)] for seconds in LENGTHS_S]
    results = feature.compute(clips)
    for seconds, clip, result in zip(LENGTHS_S, clips, results, strict=True):
        expected = speechmos_scores(clip)
        for name in SCORES:
            assert result[name] == pytest.approx(expected[name], abs=TOLERANCE), f"{name} of {seconds} s"


@pytest.mark.compares("dnsmos", weights="published")
def test_clips_of_every_source(feature, speechmos_scores, spoken):
    sources = {row["audio"].split("_")[0]: (row, audio) for row, audio in reversed(spoken)}
    chosen = list(sources.values())  # speechmos takes minutes over all recordings whole, and the bench does it
    assert len(chosen) >= 4
    clips = [np.resize(prepare(audio, RATE), round(9.02 * RATE)) for _, audio in chosen]  # one window of each
    for (row, _), clip, result in zip(chosen, clips, feature.compute(clips), strict=True):
        expected = speechmos_scores(clip)
        for name in SCORES:
            assert result[name] == pytest.approx(expected[name], abs=TOLERANCE), f"{name} of {row['id']}"


@pytest.mark.parametrize(
    "signal",
    [
        np.zeros(2 * RATE, np.float32),
        np.full(1, 0.3, np.float32),
        np.full(10 * RATE, -0.5, np.float32),
        np.sign(np.sin(np.arange(10 * RATE) * 0.05)).astype(np.float32),
        np.eye(1, 10 * RATE, 80_000, dtype=np.float32)[0],
        np.random.default_rng(0).uniform(-1, 1, 10 * RATE).astype(np.float32),
    ],
    ids=["silence", "one sample", "constant", "square wave", "impulse", "full-scale noise"],
)
def test_signals_that_are_no_speech(feature, speechmos_scores, signal):
    assert_scores(feature.compute([signal])[0], speechmos_scores(signal))


def test_the_windows_are_those_that_speechmos_counts():
    class Listening(speechmos().DNSMOS):
        """Records where each window starts. The samples of the signal tell their own time in seconds."""

        def __init__(self):
            self.onnx_sess = self.p808_onnx_sess = self
            self.starts = []

        def audio_melspec(self, audio, **options):
            return np.zeros((900, 120))

        def run(self, names, inputs):
            if inputs["input_1"].ndim == 2:  # this window is for the P.835 network; the other network gets mel levels
                self.starts.append(round(float(inputs["input_1"][0, 0]) * 256))
            return np.ones((1, 1, 3), np.float32)

    seconds = np.repeat(np.arange(140, dtype=np.float32) / 256, RATE)
    for samples in [*range(dnsmos.WINDOW, 140 * RATE, 7 * RATE + 1999), 20 * RATE, 33 * RATE, 34 * RATE, 140 * RATE]:
        listening = Listening()
        listening(seconds[:samples], RATE, False)
        assert dnsmos.window_starts(samples) == listening.starts
    assert not {*range(7, 24), *range(119, 123)} & set(dnsmos.window_starts(140 * RATE))


def test_what_speechmos_does_not_read_changes_nothing_but_all_windows(feature, every_window, speech, rng):
    clip = speech[: 30 * RATE]
    spoiled = clip.copy()
    tail = spoiled[round(15.01 * RATE) :]
    tail[:] = rng.uniform(-1, 1, tail.size)
    usable, spoiled_output = feature.compute([clip, spoiled])
    assert usable == spoiled_output
    everything, spoiled_everything = every_window.compute([clip, spoiled])
    assert (usable["windows"], everything["windows"]) == (7, 21)
    assert all(abs(everything[name] - spoiled_everything[name]) > 0.05 for name in SCORES)


@pytest.mark.parametrize("seconds", [0.7, 3.0, 9.01, 10, 12, 15])
def test_all_windows_is_the_default_where_nothing_is_skipped(feature, every_window, speech, seconds):
    clip = speech[: round(seconds * RATE)]
    repeated = dnsmos.repeat(clip).size
    if dnsmos.window_starts(repeated) != dnsmos.window_starts(repeated, "all-windows"):
        clip = clip[: dnsmos.repeat(clip).size]
        assert every_window.compute([clip])[0]["windows"] > feature.compute([clip])[0]["windows"]
    else:
        assert every_window.compute([clip]) == feature.compute([clip])


def test_all_windows_is_the_mean_of_every_window(every_window, speechmos_scores, speech):
    clip = speech[: round(12.5 * RATE)]
    windows = [speechmos_scores(clip[start : start + dnsmos.WINDOW]) for start in range(0, 4 * RATE, RATE)]
    result = every_window.compute([clip])[0]
    assert result["windows"] == 4
    assert_scores(result, {name: np.mean([w[name] for w in windows]) for name in SCORES})


def test_a_batch_changes_nothing(feature, speech):
    clips = [speech[i * RATE : i * RATE + n] for i, n in enumerate([4_000, 150_000, 31_999, 200_000, 1])]
    together = feature.compute(clips)
    assert together == [feature.compute([clip])[0] for clip in clips]
    assert together[::-1] == feature.compute(clips[::-1])
    assert feature.compute([]) == []


def test_a_long_signal_in_parts_is_the_signal_whole(every_window, speech, monkeypatch):
    clip = speech[: 14 * RATE]
    complete = every_window.compute([clip])[0]
    for most in (1, 2, 5):
        monkeypatch.setattr(dnsmos, "WINDOWS_AT_ONCE", most)
        assert_scores(every_window.compute([clip])[0], complete, 2e-5)


def test_runs_are_stretches_without_a_gap():
    assert dnsmos.runs([], 3) == []
    assert dnsmos.runs([0, 1, 2, 3, 24, 25, 30], 3) == [(0, 3), (3, 1), (24, 2), (30, 1)]


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_change_nothing(feature, speech, monkeypatch, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert load_feature("dnsmos").compute([speech[: 11 * RATE]]) == feature.compute([speech[: 11 * RATE]])


def test_signals_without_a_score_are_unavailable(feature, speech):
    broken = [np.zeros(0, np.float32), np.full(RATE, np.nan, np.float32), np.full(RATE, 1.5, np.float32)]
    broken.append(np.concatenate([speech[:RATE], [np.float32(-np.inf)]]))
    *bad, good = feature.compute([*broken, speech[:RATE]])
    assert all(isinstance(result, Unavailable) for result in bad)
    assert of_error(bad[0]).code == "no_samples_heard"
    assert good == feature.compute([speech[:RATE]])[0]


def test_an_unknown_variant_names_the_known():
    with refuses("no_variant", variant="all-window", hint="all-windows"):
        load_feature("dnsmos[all-window]")


def test_without_the_package_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with refuses("package_not_installed", package="speechmos"):
        load_feature("dnsmos")


def test_weights_from_a_folder(feature, speech, tmp_path):
    installed = feature._folder
    with refuses("no_file", path="sig_bak_ovr.onnx"):
        load_feature("dnsmos", weights=str(tmp_path))
    shutil.copy(installed / "sig_bak_ovr.onnx", tmp_path)
    with refuses("no_file", path="model_v8.onnx"):
        load_feature("dnsmos", weights=str(tmp_path))
    shutil.copy(installed / "model_v8.onnx", tmp_path)
    assert load_feature("dnsmos", weights=str(tmp_path)).compute([speech[:RATE]]) == feature.compute([speech[:RATE]])


def test_weights_of_something_else_are_refused(feature, tmp_path):
    for name in ("sig_bak_ovr.onnx", "model_v8.onnx"):
        shutil.copy(feature._folder / "model_v8.onnx", tmp_path / name)
    with refuses("weights_of_another_model"):
        load_feature("dnsmos", weights=str(tmp_path)).compute([np.zeros(RATE, np.float32)])
    (tmp_path / "sig_bak_ovr.onnx").write_bytes(b"no network at all")
    with refuses("not_onnx"):
        load_feature("dnsmos", weights=str(tmp_path)).compute([np.zeros(RATE, np.float32)])


def test_it_imports_neither_the_package_nor_a_runtime():
    script = """
        import sys
        import numpy as np
        from codec_bench.features import load_feature
        result = load_feature("dnsmos").compute([np.zeros(1600, np.float32)])[0]
        assert result["windows"] == 3, result
        print(sorted({"speechmos", "onnxruntime", "librosa", "requests", "torch"} & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-P", "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"

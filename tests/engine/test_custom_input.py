"""What code of one's own writes into its input changes no other row: codecs, metrics, features
and models get copies.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from codec_bench import Audio, evaluate, load_codec
from codec_bench.audio.clip import Clip, SharedSounds
from codec_bench.config.registry import load_attribute
from codec_bench.data import open_source
from codec_bench.engine.stage import call_feature, compute_scores
from codec_bench.features import load_feature
from codec_bench.messages import Diagnostic
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs
from codec_bench.types import Score

CUSTOM_CODE = Path(__file__).parent / "assets" / "custom_writers.py"
METRICS = "si_sdr,stoi,pesq_wb,sim[ge2e],dnsmos_sig"
INNOCENT = ("g722", "unprocessed", "opus-12k")


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Two clips of one and a half seconds."""
    folder = tmp_path_factory.mktemp("clips")
    cut = []
    for sample in open_source("embedded", limit=2):
        signal, rate_hz = soundfile.read(sample.audio)
        soundfile.write(folder / f"{sample.id}.wav", signal[: 3 * rate_hz // 2], rate_hz)
        cut.append(replace(sample, audio=str(folder / f"{sample.id}.wav")))
    return cut


@pytest.fixture(scope="module")
def clean(samples, tmp_path_factory):
    """A run in which nothing writes."""
    folder = tmp_path_factory.mktemp("clean") / "run"
    return evaluate(
        codec=list(INNOCENT), data=samples, metrics=METRICS, out=folder, page=False, cache=False, check=False,
        save_audio="none", workers=1,
    )  # fmt: skip


def scores_of(run, systems):
    """The scores of some systems in every metric that does not write."""
    rows = {(r.system, r.id, r.metric): r.value for r in run.scores() if r.system in systems and "writ" not in r.metric}
    assert rows
    return rows


def same_scores(scores):
    """Scores as they must come again: a network may see other batches beside a writer, which moves its last digits."""
    return {row: value if value is None else pytest.approx(value, rel=1e-5) for row, value in scores.items()}


@pytest.mark.parametrize("here", [False, True], ids=["in a worker", "in this process"])
def test_a_codec_that_writes_into_its_input_changes_no_other_row(run_it, samples, clean, here):
    writer = load_codec(f"{CUSTOM_CODE}:Writer") if here else f"{CUSTOM_CODE}:Writer"
    requested = {"data": samples, "metrics": METRICS, "workers": 1, "cache": False, "check": True}
    extra = run_it(codec=[writer, *INNOCENT], out="beside", **requested)
    assert scores_of(extra, INNOCENT) == same_scores(scores_of(clean, INNOCENT))
    findings = extra.meta["checks"]["writer"]["findings"]
    assert [(f["check"], f["state"]) for f in findings] == [("input", "suspect")]
    assert findings[0]["found"].startswith("encode writes into its input")
    alone = run_it(codec=[writer], out="alone", **requested)
    assert scores_of(alone, {"writer"}) == same_scores(scores_of(extra, {"writer"}))


def test_metrics_that_write_into_their_input_change_no_other_score(run_it, samples, clean):
    requests = {"codec": ["g722", "unprocessed"], "data": samples, "workers": 1, "cache": False}
    actual = f"{CUSTOM_CODE}:WritingMetric,{CUSTOM_CODE}:WritesIntoFeatures"
    extra = run_it(metrics=f"{actual},{METRICS}", out="beside", **requests)
    assert scores_of(extra, {"g722", "unprocessed"}) == same_scores(scores_of(clean, {"g722", "unprocessed"}))
    assert extra.counts()["failed_scores"] == 0


def test_a_feature_that_writes_gets_copies():
    signals = [np.linspace(-0.5, 0.5, 1600, dtype=np.float32)]
    before = signals[0].copy()
    feature = load_attribute(f"{CUSTOM_CODE}:WritingFeature")()
    call_feature(feature, feature.compute, signals, [None])
    assert np.array_equal(signals[0], before)


def test_a_model_that_writes_into_a_shared_sound_changes_it_for_nobody(samples):
    for source in (samples[0].audio, Audio.read(samples[0].audio)):
        clip = SharedSounds().share(Clip(source), "a sound")
        before = clip.read().samples.copy()
        fitted = clip.fitted(clip.read().sample_rate_hz)[0]
        for sound in (clip.read(), fitted.read(), clip.signal(clip.read().sample_rate_hz)[0]):
            sound.samples[...] = 0
        assert np.array_equal(clip.read().samples, before) and fitted.read().samples.any()


def test_a_score_by_another_protocol_than_that_of_its_metric_has_no_mean_with_the_others():
    class Changing:
        """Measures the second item in another way."""

        name, protocol = "changing", "changing/1"

        def compute(self, batch):
            return [0.5, *(Score.ok(1.0, f"changing/{item.id}") for item in batch[1:])]

    signal = np.zeros(160, np.float32)
    metric, batch = Changing(), [Inputs(id, 16000, signal, signal) for id in "0123"[:4]]
    scores = compute_scores(metric, batch)
    assert [score.status for score in scores] == ["ok", "ok", "failed", "failed"]
    assert scores[2].reason == Diagnostic("score_of_other_protocol", protocol="changing/2", expected="changing/1")
    metric.protocol = "changing/2/weights=mine"
    assert [score.status for score in compute_scores(metric, batch)] == ["ok", "failed", "ok", "failed"]


def test_our_own_metrics_and_features_write_into_nothing(samples):
    """They get the signals themselves and no copies. An array that is marked as read-only shows who writes."""
    sound = Audio.read(samples[0].audio)
    assert sound.sample_rate_hz == 16000
    signal = sound.samples[0]
    signal.setflags(write=False)
    for name in (
        "si_sdr",
        "snr",
        "snr_seg",
        "stoi",
        "pesq_wb",
        "lsd",
        "mel_distance",
        "stft_distance",
        "warpq",
        "energy_corr",
    ):
        (score,) = compute_scores(build_metric(name), [Inputs("a", 16000, signal, signal)])
        assert "read-only" not in (score.reason or ""), name
    for name in ("level", "pitch", "mel_cepstrum", "ge2e", "dnsmos", "speech-activity", "pocketsphinx"):
        feature = load_feature(name)
        feature.load()
        if feature.rate_hz == 16000:
            call_feature(feature, feature.compute, [signal], ["en"])

"""In any order and any batch, a transcript is that of a new decoder that has decoded nothing else."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from codec_bench.audio.resample import prepare
from codec_bench.features import load_feature
from codec_bench.features.recognisers import pocketsphinx

RATE = 16_000


@pytest.fixture(scope="module")
def feature():
    return load_feature("pocketsphinx")


@pytest.fixture(scope="module")
def english(spoken):
    """Read English, and some digits where there are any, 16 kHz."""
    rows = [(row, audio) for row, audio in spoken if row.get("language") == "en" and row.get("text")]
    read = [prepare(audio, RATE) for row, audio in rows if not row["id"].startswith("digit")]
    digits = [prepare(audio, RATE) for row, audio in rows if row["id"].startswith("digit")]
    return [signal[: 3 * RATE // 2] for signal in read[:: len(read) // 5]] + digits[::10]


def transcribe_with_a_new_decoder(signal):
    import pocketsphinx as package

    decoder = package.Decoder(loglevel="FATAL", **pocketsphinx.FAST)
    decoder.start_utt()
    decoder.process_raw((signal * 32768.0).round().clip(-32768, 32767).astype("<i2").tobytes(), full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    return hypothesis.hypstr if hypothesis else ""


def transcripts(feature, signals):
    return [result["transcript"] for result in feature.compute(signals)]


@pytest.mark.compares("pocketsphinx", weights="published")
def test_equals_a_new_decoder_in_any_order(feature, english, rng):
    expected = [transcribe_with_a_new_decoder(signal) for signal in english]
    assert len(set(expected)) >= 5, "the clips are different, so that a mixed-up order shows"
    order = rng.permutation(len(english))
    assert (order != np.arange(len(english))).any()
    assert transcripts(feature, [english[k] for k in order]) == [expected[k] for k in order]


def test_earlier_audio_would_matter(english):
    # So the test above can fail: one decoder for all, as its package would have it, scores a repetition differently.
    import pocketsphinx as package

    decoder = package.Decoder(loglevel="FATAL", **pocketsphinx.FAST)
    scores = []
    for signal in (english[1], english[0], english[1]):
        decoder.start_utt()
        decoder.process_raw((signal * 32767).astype("<i2").tobytes(), full_utt=True)
        decoder.end_utt()
        scores.append(decoder.hyp().score)
    assert scores[0] != scores[2]


def test_noise_between_two_hearings_changes_nothing(feature, english, rng):
    before = transcripts(feature, [english[0]])
    loud = rng.normal(0, 0.5, 2 * RATE).clip(-1, 1).astype(np.float32)
    assert transcripts(feature, [loud, np.zeros(RATE, np.float32), english[0]])[2:] == before


def test_recognises_most_of_the_read_speech(spoken, feature):
    from codec_bench.text.error_rate import error_rate

    known = [(row, audio) for row, audio in spoken if row.get("language") == "en" and row.get("text")]
    rows = [(row, audio) for row, audio in known if audio.duration_s > 2]
    rows = rows[:: len(rows) // 3]
    transcript = transcripts(feature, [prepare(audio, RATE) for _, audio in rows])
    text = [row["text"] for row, _ in rows]
    assert error_rate(reference=text, estimate=transcript).rate < 0.4


@pytest.mark.parametrize("samples", [0, 1, 100, 400, 411, 800, 1600])
def test_very_short_signals_have_a_transcript(feature, rng, samples):
    for signal in (np.zeros(samples), rng.normal(0, 0.1, samples)):
        (result,) = feature.compute([signal.astype(np.float32)])
        assert list(result) == ["transcript"]
        assert isinstance(result["transcript"], str)


@pytest.mark.parametrize("amplitude", [0.0, 1e-6, 1 / 32768])
def test_silence_is_an_empty_transcript(feature, rng, amplitude):
    signal = (amplitude * rng.integers(-1, 2, 2 * RATE)).astype(np.float32)
    assert transcripts(feature, [signal]) == [""]


def test_samples_beyond_full_scale_are_cut_not_wrapped(feature, english):
    loud = english[0] * np.float32(3.0 / np.abs(english[0]).max())
    assert transcripts(feature, [loud]) == transcripts(feature, [loud.clip(-1, 1)])


def test_a_long_signal_is_the_sum_of_its_windows(feature, english, monkeypatch):
    monkeypatch.setattr(pocketsphinx, "WINDOW_S", 2.0)
    monkeypatch.setattr(pocketsphinx, "EARLIEST_CUT_S", 1.0)
    signal = np.concatenate(english[:3])
    cuts = list(pocketsphinx.windows(signal))
    assert len(cuts) > 2
    parts = [transcribe_with_a_new_decoder(signal[start:end]) for start, end in cuts]
    assert transcripts(feature, [signal]) == [" ".join(p for p in parts if p)]


@pytest.mark.parametrize("seconds", [0.5, 30.0, 30.01, 61.3, 3600.0])
def test_windows_cover_the_signal_once_and_cut_in_the_pauses(rng, seconds):
    signal = np.ones(round(seconds * RATE), np.int16)
    pauses = np.arange(25 * RATE, signal.size, 25 * RATE)
    for pause in pauses:
        signal[pause - RATE // 5 : pause + RATE // 5] = 0
    cuts = list(pocketsphinx.windows(signal))
    assert [cuts[0][0], *(end for _, end in cuts)] == [*(start for start, _ in cuts), signal.size]
    assert max(end - start for start, end in cuts) <= 30 * RATE
    assert all(signal[end - 1] == 0 for _, end in cuts[:-1])


def test_own_weights_are_a_folder_of_the_same_layout(feature, english, tmp_path):
    bundled = Path(importlib.util.find_spec("pocketsphinx").origin).parent / "model" / "en-us"
    actual = load_feature("pocketsphinx", weights=str(bundled))
    assert transcripts(actual, english[:1]) == transcripts(feature, english[:1])
    with refuses("weights_folder_lacks", names="en-us/mdef"):
        load_feature("pocketsphinx", weights=str(tmp_path))


def test_the_protocol_names_version_model_and_search(feature):
    from importlib.metadata import version

    major, minor = version("pocketsphinx").split(".")[:2]
    assert feature.protocol == f"pocketsphinx-{major}.{minor}-en-us-fast"


def test_a_missing_package_is_one_sentence(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with refuses("package_not_installed", hint="codec-bench[embedded]"):
        load_feature("pocketsphinx")

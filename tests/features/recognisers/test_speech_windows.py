"""Windows are where their protocols say: fixed ones against hand counts, those of speech against faster-whisper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import Containing, refuses

from codec_bench.audio.resample import prepare
from codec_bench.features.recognisers import speech_windows
from codec_bench.features.recognisers.speech_windows import grouped, joined, parts, speech

RATE = 16_000


@pytest.fixture(scope="module")
def long_speech(embedded):
    """A minute and a half of speech with pauses of 0.1 to 4 s."""
    rng = np.random.default_rng(5)
    pieces = []
    for _, audio in embedded[:24]:
        pieces += [prepare(audio, RATE), rng.normal(0, 1e-4, int(RATE * rng.uniform(0.1, 4))).astype(np.float32)]
    return np.concatenate(pieces)


@pytest.mark.parametrize("seconds", [0.01, 27.99, 28, 28.01, 30, 56, 70.5])
def test_28s_cuts_every_28_seconds(seconds):
    signal = np.arange(round(seconds * RATE), dtype=np.float32)
    cut = parts(signal, "28s")
    np.testing.assert_array_equal(np.concatenate(cut), signal)
    assert all(item.size == 28 * RATE for item in cut[:-1])
    assert 0 < cut[-1].size <= 28 * RATE


def test_30s_keeps_the_signal_whole(rng):
    signal = rng.normal(0, 0.1, 70 * RATE).astype(np.float32)
    (complete,) = parts(signal, "30s")
    np.testing.assert_array_equal(complete, signal)


@pytest.mark.parametrize("windows", speech_windows.WINDOWS)
def test_nothing_has_no_parts(windows):
    assert parts(np.zeros(0, np.float32), windows) == []


def faster_whispers(signal):
    """What faster-whisper's batched transcription cuts, with its own calls and its own choice of options."""
    from faster_whisper.vad import VadOptions, collect_chunks, get_speech_timestamps

    options = VadOptions(max_speech_duration_s=30, min_silence_duration_ms=160)
    spans = get_speech_timestamps(signal, options)
    chunks, _ = collect_chunks(signal, spans, max_duration=30)
    return [(span["start"], span["end"]) for span in spans], [chunk for chunk in chunks if chunk.size]


def test_vad_cuts_where_faster_whisper_does(long_speech):
    spans, chunks = faster_whispers(long_speech)
    assert len(spans) > 5
    assert speech(long_speech) == spans
    ours = parts(long_speech, "vad")
    assert len(ours) == len(chunks) > 1
    for got, expected in zip(ours, chunks):
        np.testing.assert_array_equal(got, expected)


def test_vad_on_every_clip(spoken):
    for _, audio in spoken:
        signal = prepare(audio, RATE)
        _, chunks = faster_whispers(signal)
        ours = parts(signal, "vad")
        assert [item.size for item in ours] == [chunk.size for chunk in chunks]
        for got, expected in zip(ours, chunks):
            np.testing.assert_array_equal(got, expected)


def test_vad_leaves_out_silence_and_nothing_else(long_speech):
    retained = sum(item.size for item in parts(long_speech, "vad"))
    assert 0.3 * long_speech.size < retained < 0.97 * long_speech.size
    assert parts(np.zeros(5 * RATE, np.float32), "vad") == []


def test_vad_does_not_change_the_signal(long_speech):
    before = long_speech.copy()
    parts(long_speech, "vad")
    np.testing.assert_array_equal(long_speech, before)
    long_speech.setflags(write=False)
    parts(long_speech, "vad")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 100)), max_size=30))
def test_groups_are_as_long_as_they_can_be(gaps_and_lengths):
    spans, at = [], 0
    for gap, length in gaps_and_lengths:
        spans.append((at + gap, at + gap + length))
        at += gap + length
    groups = grouped(spans, 100)
    assert [span for group in groups for span in group] == spans
    sizes = [sum(end - start for start, end in group) for group in groups]
    assert all(size <= 100 for size in sizes)
    for size, following in zip(sizes, groups[1:]):
        assert size + following[0][1] - following[0][0] > 100


def test_another_network_is_refused(monkeypatch):
    speech_windows.check_windows("vad")
    monkeypatch.setattr(speech_windows, "VAD_ASSET", "silero_vad_v9.onnx")
    speech_windows.check_windows("30s")
    with refuses("windows_network", file=Containing("silero_vad_v9")):
        speech_windows.check_windows("vad")


@pytest.mark.parametrize(
    ("windows", "language", "expected"),
    [
        ("30s", "en", "One two. Three."),
        ("vad", "en", "One two. Three."),
        ("28s", "en", "One two. Three."),
        ("28s", "zh", "One two.Three."),
        ("28s", "yue", "One two.Three."),
    ],
)
def test_texts_are_joined(windows, language, expected):
    assert joined([" One two.", " Three. "], windows, language) == expected


def test_empty_texts_leave_no_space():
    assert joined([" a", "  ", " b"], "28s", "en") == "a b"
    assert joined([], "30s", "en") == joined([], "28s", "zh") == ""

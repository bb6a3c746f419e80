"""The words of the transcript: their times, the first word of an answer, and those that an interruption cost."""

from __future__ import annotations

import json

import numpy as np
import pytest
from refusals import refuses

from codec_bench.apps.conversation.full_duplex import WORDS, read_words
from codec_bench.apps.conversation.session_files import read_session, write_session
from codec_bench.apps.conversation.transcripts import by_words, load_timed, write_words
from codec_bench.audio.resample import to_signal
from codec_bench.data import open_source
from codec_bench.types import Audio

from .server import RATE_HZ
from .test_measures import event, written


@pytest.fixture(scope="module")
def recogniser():
    return load_timed("pocketsphinx", "auto")


@pytest.fixture(scope="module")
def spoken():
    """An utterance of the embedded set at the server's rate, 16 bits."""
    signal = to_signal(Audio.read(next(iter(open_source("embedded"))).audio), RATE_HZ)
    return np.rint(signal * 32767).astype(np.int16)


def test_the_words_are_those_of_the_transcript(recogniser):
    for sample, _ in zip(open_source("embedded"), range(2)):
        signal = to_signal(Audio.read(sample.audio), 16_000)
        words = recogniser.timed(signal)
        assert " ".join(word for word, _, _ in words) == recogniser.compute([signal])[0]["transcript"]
        times = [time for _, begin, end in words for time in (begin, end)]
        assert times == sorted(times) and times[-1] <= signal.size / 16_000 + 0.01


def signal_at(session, sound, at_s):
    begin = round(at_s * session.output_rate_hz)
    session.output[begin : begin + sound.size] = sound[: session.output.size - begin]


def test_the_first_word_and_the_missing_ones(tmp_path, recogniser, spoken):
    """The answer begins at 3 s and is cut at 4.5 s; what was thrown away holds the words that the whole utterance has
    from there on.
    """
    session = written([], [event("turn", (1.0, 2.0)), event("interruption", (4.2, 4.9))])
    cut = round(1.5 * session.output_rate_hz)
    signal_at(session, spoken[:cut], 3.0)
    session.stops = [(4.5, 3.0 + spoken.size / session.output_rate_hz)]
    object.__setattr__(session, "discarded", spoken[cut:])
    write_session(tmp_path / "s", session, {})
    assert np.array_equal(read_session(tmp_path / "s").discarded, session.discarded)
    write_words(tmp_path / "s", session, recogniser)
    measured = {(v.measure, v.index): v for v in by_words(session, tmp_path / "s", read_words(tmp_path / "s"))}
    complete = recogniser.timed(to_signal(Audio((spoken / 32768).astype(np.float32)[None], RATE_HZ), 16_000))
    first = measured["first_word_latency_s", 0].value
    assert first == pytest.approx(1.0 + complete[0][1], abs=0.15) and first >= 1.0
    assert measured["first_word_latency_s", 1].reason.code == "no_word_recognised"
    dropped = measured["words_lost", 0].value
    assert dropped == pytest.approx(sum(end > 1.5 for _, _, end in complete), abs=1) and dropped >= 2


def test_words_of_somebody_else_count(tmp_path, recogniser, spoken):
    session = written([], [event("turn", (1.0, 2.0))])
    signal_at(session, spoken[:RATE_HZ], 2.9)
    theirs = json.dumps({"chunks": [{"text": "well", "timestamp": [3.5, 3.7]}]})
    (tmp_path / WORDS).write_text(theirs)
    write_words(tmp_path, session, recogniser)
    assert (tmp_path / WORDS).read_text() == theirs
    (value,) = by_words(session, tmp_path, read_words(tmp_path))
    assert (value.measure, value.value) == ("first_word_latency_s", pytest.approx(1.5))


def test_a_recogniser_without_times():
    with refuses("recogniser_without_times"):
        load_timed("ge2e", "auto")

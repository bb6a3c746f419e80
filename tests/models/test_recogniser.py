"""A recogniser used as a model answers with the feature's transcript, in the requested language."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses
from scripted_models import ask

from codec_bench.audio.clip import Clip
from codec_bench.audio.resample import prepare
from codec_bench.features import load_feature
from codec_bench.features.base import Feature, Unavailable
from codec_bench.models.base import ModelInfo
from codec_bench.models.recogniser import Recogniser
from codec_bench.types import Audio, Message, Request

RATE = 16_000
INFO = ModelInfo("heard", inputs=("audio",), reads="fields")


class Recording(Feature):
    """Returns the requested language and the length of the signal."""

    name, rate_hz, reads_language, batch_s = "told", 8_000, True, 12.0
    protocol = "told-1"

    def compute(self, signals, languages=None):
        out = []
        for signal, language in zip(signals, languages, strict=True):
            if signal.size < 800:
                out.append(Unavailable("too short to hear"))
            elif signal.size > 8_000 * 5:
                out.append({"transcript": "and and and", "fault": "the decoding did not come to an end"})
            else:
                out.append({"transcript": f"{language} {signal.size}"})
        return out


def clip(seconds, rate=RATE):
    return Clip(Audio(np.full(round(seconds * rate), 0.1, np.float32), rate))


def _begin(audio):
    """Two seconds: the recogniser is slow."""
    return Audio(audio.samples[:, : 2 * audio.sample_rate_hz], audio.sample_rate_hz)


@pytest.fixture
def model(monkeypatch):
    from codec_bench.models import recogniser

    monkeypatch.setattr(recogniser, "resolve_recognisers", lambda stem, name: ({}, name))
    monkeypatch.setattr(recogniser, "known_languages", lambda by_language, otherwise: ())
    monkeypatch.setattr(recogniser, "protocol_of_recogniser", lambda name: "told-1")
    monkeypatch.setattr(recogniser, "load_feature", lambda name, device, weights: Recording(device, weights))
    return Recogniser(INFO, feature="told", device="cpu")


def test_it_transcribes_what_the_feature_transcribes(embedded):
    sounds = [_begin(audio) for _, audio in embedded[:2]]
    feature = load_feature("pocketsphinx")
    expected = [feature.compute([prepare(audio, RATE)])[0]["transcript"] for audio in sounds]
    model = Recogniser(INFO, feature="pocketsphinx", device="cpu")
    answers = ask(model, [Request(str(k), fields={"audio": Clip(audio)}) for k, audio in enumerate(sounds)])
    assert [a.text for a in answers] == expected and any(expected)
    assert {a.status for a in answers} == {"ok"}


def test_a_prompt_in_words_is_answered_with_the_transcript(embedded):
    sound = Clip(_begin(embedded[0][1]))
    model = Recogniser(ModelInfo("heard"), feature="pocketsphinx", device="cpu")
    requests = [
        Request("a", (Message("user", (sound, "Transcribe this.")),)),
        Request("b", fields={"audio": sound, "language": "en"}, messages=(Message("user", ("x",)),)),
    ]
    answers = ask(model, requests)
    assert answers[0].text == answers[1].text != ""


def test_the_language_and_the_rate_are_the_features(model):
    fields = [
        {"audio": clip(1.0), "language": "English"},
        {"audio": clip(2.0), "language": "zh-HK"},
        {"audio": clip(1.0)},
    ]
    answers = ask(model, [Request(str(k), fields=f) for k, f in enumerate(fields)])
    assert [a.text for a in answers] == ["en 8000", "yue 16000", "None 8000"]
    assert model.rate_hz == 8_000 and model.batch_s == 12.0


def test_unusable_audio_states_it(model):
    two = {"audio": clip(1.0), "prompt_audio": clip(1.0)}
    requests = [{"audio": clip(0.05)}, {"audio": clip(6.0)}, {}, two, {"audio": clip(1.0)}]
    answers = ask(model, [Request(str(k), fields=f) for k, f in enumerate(requests)])
    assert [a.status for a in answers] == ["refused", "failed", "refused", "refused", "ok"]
    assert answers[0].reason == "too short to hear"
    assert answers[1].reason == "the decoding did not come to an end" and answers[1].text == "and and and"
    assert answers[2].reason.as_dict() == {"code": "one_recording_only", "model": "heard", "recordings": 0} and answers[
        3
    ].reason.as_dict() == {"code": "one_recording_only", "model": "heard", "recordings": 2}


def test_a_choice_by_language_asks_each_in_its_own(monkeypatch):
    model = Recogniser(INFO, feature="seed-tts", device="cpu")
    assert set(model.identity["protocols"]) == {"seaco-paraformer-zh", "whisper-large-v3"}
    assert model._name(Request("a", fields={"language": "zh"})) == "seaco-paraformer-zh"
    assert model._name(Request("a", fields={"language": "fr"})) == "whisper-large-v3"
    with refuses("weights_of_several_recognisers"):
        Recogniser(INFO, feature="seed-tts", weights="here")


def test_what_does_not_transcribe_is_no_recogniser():
    with refuses("not_a_recogniser"):
        Recogniser(INFO, feature="utmos")


def test_its_identity_is_the_protocol_of_the_error_rate():
    from codec_bench.features.recognisers.names import protocol_of_recogniser

    model = Recogniser(INFO, feature="pocketsphinx", device="cpu")
    assert model.identity["protocols"] == {"pocketsphinx": protocol_of_recogniser("pocketsphinx")}

"""A cascade passes its recogniser's transcript to its language model, and nothing else."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import tiny_audio_models
from refusals import refuses
from scripted_models import ask

from codec_bench.audio.clip import Clip, SharedSounds
from codec_bench.audio.resample import prepare
from codec_bench.features import load_feature
from codec_bench.messages import Diagnostic
from codec_bench.models.base import ModelInfo
from codec_bench.models.cascade import TEMPLATE, Cascade
from codec_bench.types import Audio, Message, Request

CUSTOM_CODE = textwrap.dedent(
    """
    from codec_bench.models.base import Model
    from codec_bench.types import Response

    class Base(Model):
        log = None

        def __init__(self, info, sign="?"):
            self.info, self.sign, self.state, self.most, self.busy = info, sign, [], 0, 0

        @property
        def identity(self):
            return {"sign": self.sign}

        async def start(self):
            self.state.append("started")

        async def close(self):
            self.state.append("closed")

    class Answering(Base):
        async def ask(self, request):
            assert all(isinstance(p, str) for m in request.messages for p in m.content)
            said = " | ".join(f"{m.role}: {''.join(m.content)}" for m in request.messages)
            return Response(text=said, latency_s=1.0, usage={"input_tokens": 7}, notes=("thought",))

    class Broken(Answering):
        async def start(self):
            raise RuntimeError("no such model")

    class Hearing(Base):
        async def ask(self, request):
            import asyncio

            self.busy += 1
            self.most = max(self.most, self.busy)
            await asyncio.sleep(0)
            self.busy -= 1
            samples = request.fields["audio"].read().num_samples
            if samples < 100:
                return Response.refused("nothing to hear")
            text = "" if samples < 200 else f"{samples} {request.fields.get('language')} {{number}}"
            return Response(text=text, latency_s=0.5, cut_s=0.25)
    """
)
LISTENING = {"reads": "fields", "inputs": ["audio"]}


@pytest.fixture
def custom_file(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(CUSTOM_CODE)
    return file


@pytest.fixture
def cascade(custom_file):
    return Cascade(
        ModelInfo("c"),
        recogniser=f"{custom_file}:Hearing",
        llm=f"{custom_file}:Answering",
        recogniser_options=dict(LISTENING),
    )


def clip(samples):
    return Clip(Audio(np.full(samples, 0.1, np.float32), 16_000))


def test_transcripts_stand_where_the_sounds_stood(cascade):
    request = Request(
        "a",
        (Message("system", ("Be brief.",)), Message("user", ("First", clip(300), "then", clip(400), "?"))),
        fields={"language": "en"},
    )
    (answer,) = ask(cascade, [request])
    assert answer.text == (
        "system: Be brief. | user: First\n<transcript 1>\n300 en {number}\n</transcript 1>\nthen\n"
        "<transcript 2>\n400 en {number}\n</transcript 2>\n?"
    )
    assert answer.notes == ("transcript 1: 300 en {number}", "transcript 2: 400 en {number}", "thought")
    assert (answer.latency_s, answer.cut_s, answer.usage) == (1.5, 0.5, {"input_tokens": 7})


def test_many_are_transcribed_at_once(cascade):
    answers = ask(cascade, [Request(str(k), (Message("user", (clip(300 + k),)),)) for k in range(20)])
    assert [a.text.split("\n")[1].split()[0] for a in answers] == [str(300 + k) for k in range(20)]
    assert cascade.recogniser.most == 20


def test_requests_that_share_a_sound_share_its_transcript(cascade):
    sounds = SharedSounds()
    shared, output = [sounds.share(clip(300 + k), k) for k in range(2)], []
    cascade.recogniser.ask, real = (lambda request: output.append(request.id) or real(request)), cascade.recogniser.ask
    requests = [
        Request(f"{k}{w}", (Message("user", (one, f"wording {w}")),)) for k, one in enumerate(shared) for w in "abc"
    ]
    answers = ask(cascade, requests)
    assert sorted(output) == ["0a#1", "1a#1"]
    assert [a.text.split("\n")[1].split()[0] for a in answers] == ["300"] * 3 + ["301"] * 3
    assert [a.text[-9:] for a in answers] == [f"wording {w}" for w in "abcabc"]


def test_silence_is_sent_and_unusable_audio_is_not(cascade):
    silent, nothing, text = (
        Request("a", (Message("user", (clip(150), "What?")),)),
        Request("b", (Message("user", (clip(300), clip(50))),)),
        Request("c", (Message("user", ("Only text",)),)),
    )
    answers = ask(cascade, [silent, nothing, text])
    assert answers[0].status == "ok" and "<transcript 1>\n\n</transcript 1>\nWhat?" in answers[0].text
    assert answers[1].status == "refused" and answers[1].text is None
    assert answers[1].reason == Diagnostic("recording_not_transcribed", number=2, cause="nothing to hear")
    assert answers[2].text == "user: Only text" and answers[2].latency_s == 1.0


def test_what_it_does_not_take_is_refused(cascade):
    spoken = Request("a", (Message("user", ("x",)),), wants="audio")
    answers = ask(cascade, [spoken, Request("b", fields={"audio": clip(300)})])
    assert [a.status for a in answers] == ["refused", "refused"]


def test_both_are_started_and_closed_and_the_first_too_when_the_second_fails(custom_file, cascade):
    ask(cascade, [])
    assert cascade.recogniser.state == cascade.answers.state == ["started", "closed"]
    broken = Cascade(
        ModelInfo("c"),
        recogniser=f"{custom_file}:Hearing",
        llm=f"{custom_file}:Broken",
        recogniser_options=dict(LISTENING),
    )
    with pytest.raises(RuntimeError):
        ask(broken, [])
    assert broken.recogniser.state == ["started", "closed"]


def test_identity_changes_with_either_and_with_the_template(custom_file):
    def build(**changes):
        options = {
            "recogniser": f"{custom_file}:Hearing",
            "llm": f"{custom_file}:Answering",
            "recogniser_options": LISTENING,
        }
        return Cascade(ModelInfo("c"), **(options | changes)).identity

    first = build()
    assert first == build() and first["template"] == TEMPLATE
    assert first != build(llm_options={"sign": "!"})
    assert first != build(recogniser_options=LISTENING | {"sign": "!"})
    assert first != build(template="[{transcript}]")
    assert build(recogniser="pocketsphinx", recogniser_options={})["recogniser"]["protocols"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recogniser": "utmos"}, {"code": "not_a_recogniser", "variant": "utmos"}),
        ({"recogniser": "whisper-huge"}, {"code": "unknown_name", "name": "whisper-huge"}),
        ({"llm": "openai-speech"}, {"code": "cascade_language_model", "language_model": "openai-speech"}),
        ({"llm": "llama-9"}, {"code": "unknown_name", "kind": "model", "name": "llama-9"}),
        ({"template": "what was said"}, {"code": "cascade_template", "template": "what was said"}),
        ({"recogniser_options": {}}, {"code": "cascade_recogniser"}),
    ],
)
def test_parts_that_do_not_fit_are_named(custom_file, options, message):
    inputs = {
        "recogniser": f"{custom_file}:Hearing",
        "llm": f"{custom_file}:Answering",
        "recogniser_options": LISTENING,
    } | options
    if options.get("recogniser"):
        inputs["recogniser_options"] = {}
    if options.get("llm") == "openai-speech":
        inputs["llm_options"] = {"model": "m", "voice": "v"}
    with refuses(**message):
        Cascade(ModelInfo("c"), **inputs)


def test_a_real_recogniser_and_a_real_language_model(embedded, tmp_path):
    tiny_audio_models.write_llama(tmp_path / "llama")
    config = tmp_path / "llm.yaml"
    options = {"weights": str(tmp_path / "llama"), "device": "cpu", "parameters": {"max_tokens": 8}}
    config.write_text(f"version: 1\nsummary: tiny\nkind: transformers\ninputs: [text]\noptions: {options}\n")
    sound = Audio(embedded[0][1].samples[:, : 2 * embedded[0][1].sample_rate_hz], embedded[0][1].sample_rate_hz)
    cascade = Cascade(ModelInfo("c"), recogniser="pocketsphinx", llm=str(config), recogniser_options={"device": "cpu"})
    requests = [
        Request(str(k), (Message("user", (Clip(sound), question)),))
        for k, question in enumerate(("Why?", "And who said so?"))
    ]
    answers = ask(cascade, requests)
    transcript = load_feature("pocketsphinx").compute([prepare(sound, 16_000)])[0]["transcript"]
    assert transcript and all(a.status == "ok" and a.notes[0] == f"transcript 1: {transcript}" for a in answers)
    assert answers[0].text != answers[1].text and all(a.text for a in answers)

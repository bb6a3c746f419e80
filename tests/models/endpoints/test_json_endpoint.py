import asyncio
import base64
import json

import numpy as np
import pytest
from refusals import Containing, refuses

from codec_bench.audio.clip import Clip, wav_bytes
from codec_bench.models import load_model
from codec_bench.models.endpoints.json_endpoint import value_at
from codec_bench.types import Message, Request

BODY = {
    "q": "{{ text }}",
    "sound": "{{ audio }}",
    "who": "I am {{ system }}",
    "n": "{{ parameters.n }}",
    "fixed": [1, {"a": None, "b": True}],
}


def answered(kit, answer, request, **options):
    async def handle(seen, writer):
        return answer

    async def main():
        async with kit.serving(handle) as service:
            options.setdefault("body", {"q": "{{ text }}"})
            model = load_model("json-endpoint", {"base_url": service.url, **options})
            kit.unhurried(model)
            async with kit.started(model):
                return await model.ask(request), service

    return asyncio.run(main())


def test_the_body_is_filled_and_the_answer_extracted(kit):
    hostile = 'a "quoted" {{ 7 * 7 }} \n \u2028 }, "q": 1'
    request = Request(
        "q", (Message("system", ("Bob",)), Message("user", (Clip(kit.tone()), hostile))), parameters={"n": 3}
    )
    response, service = answered(kit, kit.reply({"r": [{"t": "yes"}]}), request, body=BODY, text_path="r.0.t")
    body = service.seen[0].json
    assert base64.b64decode(body.pop("sound")) == wav_bytes(kit.tone())
    assert body == {"q": hostile, "who": "I am Bob", "n": 3, "fixed": [1, {"b": True}]}
    assert response.text == "yes" and service.seen[0].path == "/v1"


def test_fields_that_are_not_filled_are_omitted(kit):
    request = Request("q", fields={"text": "Hi", "prompt_text": "ref"})
    options = {"reads": "fields", "body": {"t": "{{ text }}", "i": "{{ instruction }}", "p": "{{ prompt_text }}"}}
    _, service = answered(kit, kit.reply({"text": ""}), request, **options)
    assert service.seen[0].json == {"t": "Hi", "p": "ref"}


def test_a_name_that_nobody_knows(kit):
    with refuses("endpoint_template_not_filled", field="body.q"):
        answered(kit, kit.reply({"text": ""}), kit.question(), body={"q": "{{ txet }}"})


@pytest.mark.parametrize("template", ["{{ text", "{% for %}", "{{ text.__class__.__mro__ }}", "{{ ''.__class__ }}"])
def test_a_template_that_is_none_or_leaves_its_sandbox(kit, template):
    with refuses("endpoint_template|endpoint_template_not_filled", field=Containing("body")):
        answered(kit, kit.reply({"text": ""}), kit.question(), body={"q": template})


def test_sound_of_every_coding(kit):
    tone = kit.tone(0.1, 24_000)
    pcm = np.round(tone.samples[0] * 32768).astype("<i2")
    wav = base64.b64encode(wav_bytes(tone)).decode()
    for value, options in (
        (wav, {}),
        (f"data:audio/wav;base64,{wav}", {}),
        (base64.b64encode(pcm.tobytes()).decode(), {"audio_format": "pcm", "audio_rate_hz": 24_000}),
        ((pcm / 32768).tolist(), {"rate_path": "rate"}),
    ):
        response, _ = answered(
            kit,
            kit.reply({"a": value, "rate": 24_000}),
            kit.question(wants="audio"),
            outputs=["audio"],
            audio_path="a",
            **options,
        )
        assert response.audio.sample_rate_hz == 24_000
        # One step: a WAV file is cut to 16 bits, not rounded.
        assert np.abs(response.audio.samples[0] * 32768 - pcm).max() <= 1


def pieces(*objects, end):
    return b"".join(json.dumps(o, ensure_ascii=False).encode() + end for o in objects)


@pytest.mark.parametrize("end", [b"\n", b"\0", b"\r\n\r\n"])
def test_pieces(kit, end):
    stream = pieces({"text": "a: y", "audio": [0.5]}, {"text": "a: yes", "audio": [-0.5, 0.25], "rate": 8000}, end=end)
    options = {
        "reply": "pieces",
        "outputs": ["text", "audio"],
        "audio_path": "audio",
        "audio_rate_hz": 8000,
        "rate_path": "rate",
    }
    response, _ = answered(
        kit, kit.reply(stream, kind="x/y"), kit.question(wants="audio"), pieces_text="last", text_after="a: ", **options
    )
    assert response.text == "yes" and response.audio.samples.tolist() == [[0.5, -0.5, 0.25]]
    response, _ = answered(
        kit, kit.reply(b'data: {"text": "a"}\n\ndata: {"text": "b"}\n\ndata: [DONE]\n'), kit.question(), reply="pieces"
    )
    assert response.text == "ab"


@pytest.mark.parametrize(
    "answer, message",
    [
        ({"other": 1}, "expected layout"),
        ({"text": 3}, "not text"),
        ({"text": "x", "error": "busy"}, "busy"),
        (b"<p>hi", "expected JSON"),
    ],
)
def test_answers_that_are_none(kit, answer, message):
    response, _ = answered(kit, kit.reply(answer), kit.question(), error_path="error", attempts=2)
    assert response.status == "failed" and message in response.reason


def test_paths():
    body = {"a": [{"b": 1}, 2]}
    assert [value_at(body, p) for p in ("a.0.b", "a.-1", "a.7", "a.x", "b", "a.1.c")] == [1, 2, None, None, None, None]

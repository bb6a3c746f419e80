import asyncio
import base64
import email
import io
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
import soundfile

from codec_bench.audio.clip import Clip, wav_bytes
from codec_bench.models import load_model
from codec_bench.models.endpoints.openai_audio import put
from codec_bench.types import Request


def answered(kit, name, answer, request, **options):
    async def handle(seen, writer):
        return answer

    async def main():
        async with kit.serving(handle) as service:
            model = load_model(name, {"base_url": service.url, "model": "m1", **options})
            kit.unhurried(model)
            async with kit.started(model):
                return await model.ask(request), service

    return asyncio.run(main())


def form(seen):
    """The parts of a multipart form: name to (file name, bytes)."""
    head = f"Content-Type: {seen.headers['content-type']}\r\n\r\n".encode()
    parts = email.message_from_bytes(head + seen.body).get_payload()
    return {
        p.get_param("name", header="content-disposition"): (p.get_filename(), p.get_payload(decode=True)) for p in parts
    }


def test_a_transcript(kit):
    request = Request(
        "q", fields={"audio": Clip(kit.tone(0.5, 44_100)), "language": "en"}, parameters={"temperature": 0}
    )
    usage = {"type": "tokens", "input_tokens": 14, "input_token_details": {"audio_tokens": 12}, "output_tokens": 3}
    response, service = answered(kit, "openai-transcription", kit.reply({"text": "hello", "usage": usage}), request)
    assert response.status == "ok" and response.text == "hello"
    assert response.usage == {"input_tokens": 14, "audio_input_tokens": 12, "output_tokens": 3}
    parts = form(service.seen[0])
    assert service.seen[0].path == "/v1/audio/transcriptions"
    assert {k: v[1] for k, v in parts.items() if k != "file"} == {
        "model": b"m1", "response_format": b"json", "temperature": b"0", "language": b"en"}  # fmt: skip
    samples, rate = soundfile.read(io.BytesIO(parts["file"][1]))
    assert parts["file"][0] == "audio.wav" and rate == 16_000 and len(samples) == 8_000


def test_names_of_languages(kit):
    request = Request("q", fields={"audio": Clip(kit.tone()), "language": "yue"})
    for languages, expected in (({"yue": "Cantonese"}, b"Cantonese"), ({"yue": None}, None)):
        _, service = answered(kit, "openai-transcription", kit.reply({"text": ""}), request, languages=languages)
        assert form(service.seen[0]).get("language", (None, None))[1] == expected


def test_a_form_is_the_one_that_openais_package_sends(kit, monkeypatch):
    openai = pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    request = Request("q", fields={"audio": Clip(kit.tone()), "language": "en"}, parameters={"temperature": 0})
    options = {"model": "m1", "response_format": "json", "temperature": 0}
    for name, languages in (("gpt-transcribe", {"languages": ["en"]}), ("gpt-4o-transcribe", {"language": "en"})):
        response, service = answered(kit, name, kit.reply({"text": "a"}), request)
        assert response.text == "a"
        sent = []

        def keep(requested, sent=sent):
            sent.append(SimpleNamespace(headers=requested.headers, body=requested.read()))
            return httpx.Response(200, json={"text": "a"})

        with openai.OpenAI(http_client=httpx.Client(transport=httpx.MockTransport(keep))) as theirs:
            theirs.audio.transcriptions.create(file=("audio.wav", wav_bytes(kit.tone())), **options, **languages)
        ours, expected = form(service.seen[0]), form(sent[0])
        assert ours.keys() == expected.keys() and all(ours[key] == expected[key] for key in ours if key != "file"), name


@pytest.mark.parametrize("body", [{}, {"text": None}, {"text": 3}, []])
def test_no_transcript_in_the_reply(kit, body):
    response, _ = answered(
        kit, "openai-transcription", kit.reply(body), Request("q", fields={"audio": Clip(kit.tone())})
    )
    assert response.status == "failed" and response.reason.code == "body_layout"


def test_a_prompt_without_its_field_is_not_sent(kit):
    for name, fields in (("openai-transcription", {"text": "x"}), ("openai-speech", {"audio": "x"})):
        wants = "audio" if name == "openai-speech" else "text"
        response, service = answered(kit, name, kit.reply({}), Request("q", fields=fields, wants=wants))
        assert response.status == "refused" and service.seen == []


def speech(kit, answer, inputs, **options):
    return answered(kit, "openai-speech", answer, Request("q", fields=inputs, wants="audio"), **options)


def test_speech(kit):
    wav = wav_bytes(kit.tone(0.3, 24_000))
    fields = {"text": "Hello.", "instruction": "whisper", "language": "en"}
    response, service = speech(kit, kit.reply(wav, kind="audio/wav"), fields, voice="alloy", parameters={"speed": 1.0})
    assert service.seen[0].json == {
        "model": "m1", "input": "Hello.", "instructions": "whisper", "voice": "alloy", "response_format": "wav",
        "speed": 1.0}  # fmt: skip
    assert response.audio.sample_rate_hz == 24_000 and response.audio.num_samples == 7_200


@pytest.mark.parametrize("kind", ["mp3", "flac", "ogg", "pcm"])
def test_speech_in_other_formats(kit, kind):
    tone = kit.tone(0.5, 24_000)
    if kind == "pcm":
        data = np.round(tone.samples[0] * 32768).astype("<i2").tobytes()
    else:
        file = io.BytesIO()
        soundfile.write(file, tone.samples[0], 24_000, format=kind.upper())
        data = file.getvalue()
    response, _ = speech(kit, kit.reply(data, kind="audio/x"), {"text": "a"}, audio_format=kind)
    output = response.audio.samples[0]
    # MP3 and Vorbis are lossy and pad: level and length only.
    assert response.audio.sample_rate_hz == 24_000 and abs(len(output) - 12_000) < 2400
    assert np.sqrt((output**2).mean()) == pytest.approx(0.5 / np.sqrt(2), rel=0.1)


def test_a_wav_whose_length_was_not_known_when_it_was_started(kit):
    wav = bytearray(wav_bytes(kit.tone(0.3, 24_000)))
    wav[4:8] = wav[40:44] = b"\xff\xff\xff\xff"  # as OpenAI's speech endpoint and servers that stream write it
    response, _ = speech(kit, kit.reply(bytes(wav), kind="audio/wav"), {"text": "a"})
    assert response.status == "ok" and response.audio.num_samples == 7_200


CLONING = {"text": "input", "prompt_audio": "ref_audio", "prompt_text": "ref_text", "language": "language"}


def test_a_voice_to_imitate(kit):
    fields = {"text": "Hi", "prompt_audio": Clip(kit.tone(0.5)), "prompt_text": "ref", "language": "zh"}
    wav = kit.reply(wav_bytes(kit.tone()), kind="audio/wav")
    _, service = speech(kit, wav, fields, voice="v", fields=CLONING, languages={"zh": "Chinese"})
    body = service.seen[0].json
    assert "voice" not in body and body["ref_text"] == "ref" and body["language"] == "Chinese"
    samples, rate = soundfile.read(
        io.BytesIO(base64.b64decode(body["ref_audio"].removeprefix("data:audio/wav;base64,")))
    )
    assert rate == 24_000 and len(samples) == 12_000


def test_names_within_lists(kit):
    fields = {"text": "Hi", "prompt_audio": Clip(kit.tone(0.1)), "prompt_text": "ref"}
    names = {"text": "input", "prompt_audio": "references.0.audio_path", "prompt_text": "references.0.text"}
    _, service = speech(kit, kit.reply(wav_bytes(kit.tone()), kind="audio/wav"), fields, fields=names)
    (reference,) = service.seen[0].json["references"]
    assert reference["text"] == "ref" and reference["audio_path"].startswith("data:audio/wav;base64,")
    body = {}
    put(body, "a.1.b", 2)
    put(body, "a.0", 1)
    assert body == {"a": [1, {"b": 2}]}


def test_what_a_service_cannot_do_is_refused(kit):
    for extra in ({"prompt_audio": Clip(kit.tone())}, {"instruction": "angrily"}):
        response, service = speech(kit, kit.reply({}), {"text": "a", **extra}, fields={"instruction": None})
        assert response.status == "refused" and service.seen == []
        (name,) = extra
        assert f".fields.{name}=NAME says how an endpoint calls it that takes one" in response.reason


@pytest.mark.parametrize(
    "answer, message",
    [
        (b"", "empty"),
        (b"RIFFxxxx", "audio of the answer"),
        ({"error": "x"}, "got application/json"),
        (b"<p>no</p>", "got text/html: no"),
    ],
)
def test_an_answer_that_is_no_sound(kit, answer, message):
    kind = "application/json" if isinstance(answer, dict) else "text/html" if b"<p>" in answer else "audio/wav"
    response, _ = speech(kit, kit.reply(answer, kind=kind), {"text": "a"})
    assert response.status == "failed" and message in response.reason

import asyncio
import base64

import numpy as np
import pytest
from refusals import refuses

from codec_bench.models import load_model
from codec_bench.types import Message, Request

KEY = "gm-UNMISTAKABLE-4321"


def answered(kit, answer, request, monkeypatch, **options):
    monkeypatch.setenv("GEMINI_API_KEY", KEY)

    async def handle(seen, writer):
        return answer

    async def main():
        async with kit.serving(handle) as service:
            model = load_model("gemini-2.5-flash", {"base_url": service.url, **options})
            kit.unhurried(model)
            async with kit.started(model):
                return await model.ask(request), service

    return asyncio.run(main())


def candidate(*parts, finish="STOP", **more):
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}],
        "usageMetadata": {
            "promptTokenCount": 50,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 11,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}, {"modality": "AUDIO", "tokenCount": 40}],
        },
        **more,
    }


def test_an_answer(kit, monkeypatch):
    turns = (Message("system", ("be brief",)), *kit.question("What?", kit.tone()).messages)
    request = Request("q", turns, parameters={"max_tokens": 8, "stop": "x", "temperature": 0, "top_p": 1})
    body = candidate({"text": "thinking", "thought": True}, {"text": "a "}, {"text": "tone"})
    response, service = answered(kit, kit.reply(body), request, monkeypatch)
    assert (response.text, response.finish) == ("a tone", "stop")
    assert response.usage == {"input_tokens": 50, "audio_input_tokens": 40, "output_tokens": 16, "reasoning_tokens": 11}
    assert response.notes == ("8 characters of reasoning are not part of the answer",)
    (seen,) = service.seen
    assert seen.path == "/v1/models/gemini-2.5-flash:generateContent" and seen.headers["x-goog-api-key"] == KEY
    assert KEY not in seen.path and "authorization" not in seen.headers
    config = {"maxOutputTokens": 8 + 4096, "stopSequences": ["x"], "temperature": 0, "topP": 1}
    assert seen.json["generationConfig"] == config and seen.json["systemInstruction"] == {
        "parts": [{"text": "be brief"}]
    }
    sound, words = seen.json["contents"][0]["parts"]
    assert words == {"text": "What?"} and sound["inlineData"]["mimeType"] == "audio/wav"
    assert base64.b64decode(sound["inlineData"]["data"])[:4] == b"RIFF"
    assert {s["threshold"] for s in seen.json["safetySettings"]} == {"BLOCK_NONE"}


@pytest.mark.parametrize("finish", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT"])
def test_a_filter_in_the_middle(kit, finish, monkeypatch):
    response, _ = answered(kit, kit.reply(candidate({"text": "par"}, finish=finish)), kit.question(), monkeypatch)
    assert response.status == "refused" and finish in response.reason and response.text == "par"


@pytest.mark.parametrize("finish", ["OTHER", "MALFORMED_RESPONSE"])
def test_an_answer_that_ends_for_another_reason_is_no_answer(kit, finish, monkeypatch):
    response, _ = answered(kit, kit.reply(candidate({"text": "par"}, finish=finish)), kit.question(), monkeypatch)
    assert response.status == "failed" and response.reason.parameters["finish"] == finish and response.text == "par"


def test_a_blocked_prompt(kit, monkeypatch):
    body = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}
    response, _ = answered(kit, kit.reply(body), kit.question(), monkeypatch)
    assert response.status == "refused" and "SAFETY" in response.reason and response.usage == {"input_tokens": 4}


def test_too_long(kit, monkeypatch):
    response, _ = answered(kit, kit.reply(candidate(finish="MAX_TOKENS")), kit.question(), monkeypatch)
    assert (response.status, response.text, response.finish) == ("ok", "", "length")


def test_a_spoken_answer(kit, monkeypatch):
    pcm = np.arange(-100, 100, dtype="<i2")
    sound = {
        "inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": base64.b64encode(pcm.tobytes()).decode()}
    }
    options = {"outputs": ["text", "audio"]}
    response, service = answered(kit, kit.reply(candidate(sound)), kit.question(wants="audio"), monkeypatch, **options)
    assert np.array_equal(response.audio.samples[0] * 32768, pcm) and response.audio.sample_rate_hz == 24_000
    assert response.text is None and service.seen[0].json["generationConfig"]["responseModalities"] == ["AUDIO"]


@pytest.mark.parametrize("body", [{}, [], {"candidates": [3]}, {"candidates": [{"content": {"parts": [{"text": 3}]}}]}])
def test_another_shape_fails(kit, body, monkeypatch):
    response, _ = answered(kit, kit.reply(body), kit.question(), monkeypatch)
    assert response.status == "failed"


def test_a_wrong_key_is_reported_by_its_variable(kit, monkeypatch):
    message = {
        "error": {"code": 400, "message": f"API key not valid: {KEY}", "details": [{"reason": "API_KEY_INVALID"}]}
    }
    with refuses("service_status", hint="GEMINI_API_KEY") as caught:
        answered(kit, kit.reply(message, 400), kit.question(), monkeypatch)
    assert KEY not in str(caught.value)

"""`/responses` of OpenAI and of Volcengine's Ark; the sources and their day are in the module."""

import asyncio
import json

import pytest

from codec_bench.models import load_model
from codec_bench.types import Message, Request


def answered(kit, monkeypatch, reply, request, status=200, **options):
    monkeypatch.setenv("ARK_API_KEY", "ark-secret-key")

    async def handle(seen, writer):
        assert seen.headers["authorization"] == "Bearer ark-secret-key" and seen.path == "/v1/responses"
        return kit.reply(reply, status)

    async def main():
        async with kit.serving(handle) as service:
            model = load_model("doubao-seed-2.0-lite", {"base_url": service.url, "attempts": 1, **options})
            kit.unhurried(model)
            async with kit.started(model):
                return await model.ask(request), service.seen[0].json

    return asyncio.run(main())


def body(*content, status="completed", **more):
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "doubao-seed-2-0-lite-260428", "status": status,
        "output": [
            {"id": "r", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": list(content)},
        ],
        "usage": {
            "input_tokens": 30, "output_tokens": 9, "total_tokens": 39,
            "output_tokens_details": {"reasoning_tokens": 4},
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        },
        **more,
    }  # fmt: skip


def spoken(text):
    return {"type": "output_text", "text": text, "annotations": []}


def test_sound_as_volcengine_takes_it(kit, monkeypatch):
    turns = (Message("system", ("be brief",)), *kit.question("What?", kit.tone(0.1)).messages)
    request = Request("q", turns, parameters={"max_tokens": 8, "temperature": 0.0, "reasoning_tokens": 64})
    response, sent = answered(kit, monkeypatch, body(spoken("a "), spoken("tone")), request)
    assert (response.status, response.text, response.finish) == ("ok", "a tone", "stop")
    assert response.usage == {"input_tokens": 30, "output_tokens": 9, "reasoning_tokens": 4}
    assert response.served == {"model": "doubao-seed-2-0-lite-260428"}
    assert (sent["max_output_tokens"], sent["temperature"], sent["store"]) == (72, 0.0, False)
    sound, words = sent["input"][1]["content"]
    assert sound["type"] == "input_audio" and sound["audio_url"].startswith("data:audio/wav;base64,UklGR")
    assert words == {"type": "input_text", "text": "What?"} and sent["input"][0]["role"] == "system"


def test_texts_fit_openais_types():
    params = pytest.importorskip("openai.types.responses.response_create_params")
    from pydantic import TypeAdapter

    turns = (Message("user", ("Hello",)), Message("assistant", ("Yes?",)), Message("user", ("Again",)))
    model = load_model("doubao-seed-2.0-lite")
    outputs = json.loads(model.encode(Request("q", turns, parameters={"max_tokens": 8})))
    known = set(params.ResponseCreateParamsBase.__annotations__)
    assert set(outputs) <= known
    TypeAdapter(params.ResponseCreateParamsNonStreaming).validate_python(outputs)


@pytest.mark.parametrize(
    "reply, status, code, word",
    [
        (body({"type": "refusal", "refusal": "no"}), "refused", 200, "declined"),
        (
            body(spoken("par"), status="incomplete", incomplete_details={"reason": "content_filter"}),
            "refused",
            200,
            "filter",
        ),
        ({"error": {"code": "server_error", "message": "oops"}}, "failed", 200, "oops"),
        ({"error": {"code": "invalid_prompt", "message": "no"}}, "refused", 200, "no"),
        (body(spoken("par"), status="cancelled"), "failed", 200, "cancelled"),
        ({"output": 3}, "failed", 200, "no answer"),
        ({"output": [3]}, "failed", 200, "expected layout"),
    ],
)
def test_what_goes_wrong(kit, monkeypatch, reply, status, code, word):
    response, _ = answered(kit, monkeypatch, reply, kit.question())
    assert response.status == status and word in response.reason


def test_an_answer_that_ended_at_its_limit(kit, monkeypatch):
    reply = body(spoken("par"), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    response, _ = answered(kit, monkeypatch, reply, kit.question())
    assert (response.status, response.finish, response.text) == ("ok", "length", "par")


def test_what_openais_types_write_is_read(kit):
    types = pytest.importorskip("openai.types.responses")
    complete = types.Response.model_validate(
        body(spoken("yes"), parallel_tool_calls=False, tool_choice="auto", tools=[], metadata={})
    )
    model = load_model("doubao-seed-2.0-lite")
    response = model.read_body(json.loads(complete.model_dump_json(warnings=False)), {"served": {}})
    assert response.text == "yes" and response.usage["output_tokens"] == 9

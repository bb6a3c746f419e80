"""What we send fits the types that vendors publish in their packages, and what those types write is read."""

from __future__ import annotations

import asyncio
import json

import pytest

from codec_bench.models import load_model
from codec_bench.types import Message, Request

GREEDY = {"max_tokens": 256, "temperature": 0.0, "repetition_penalty": 1.0, "reasoning_tokens": 64}


def body(name, request, **options):
    """The body that a shipped config makes of a request, as JSON."""
    model = load_model(name, options)
    return json.loads(model.encode(request))


def conversation(kit, wants="text"):
    from codec_bench.audio.clip import Clip

    turns = (Message("system", ("Be brief.",)), Message("user", (Clip(kit.tone(0.1, 16_000)), "What is said?")))
    return Request("q", turns, wants=wants, parameters=GREEDY if wants == "text" else {})


@pytest.mark.parametrize(
    ("name", "wants"), [("gpt-audio-1.5", "text"), ("gpt-audio-1.5", "audio"), ("gpt-6-luna", "text")]
)
def test_chats_fit_openais_types(kit, name, wants):
    chat = pytest.importorskip("openai.types.chat.completion_create_params")
    from pydantic import TypeAdapter

    request = conversation(kit, wants) if name != "gpt-6-luna" else kit.question("Hello", parameters=GREEDY)
    built = body(name, request)
    known = set(chat.CompletionCreateParamsNonStreaming.__annotations__) | set(
        chat.CompletionCreateParamsBase.__annotations__
    )
    assert set(built) <= known
    TypeAdapter(chat.CompletionCreateParamsNonStreaming).validate_python(built)
    assert built.get("max_completion_tokens") == {"gpt-6-luna": 320}.get(name, 256 if wants == "text" else None)


def test_speech_fits_openais_types():
    speech = pytest.importorskip("openai.types.audio.speech_create_params")
    from pydantic import TypeAdapter

    built = body("gpt-4o-mini-tts", Request("q", fields={"text": "Hello.", "instruction": "Softly."}, wants="audio"))
    assert set(built) <= set(speech.SpeechCreateParams.__annotations__)
    TypeAdapter(speech.SpeechCreateParams).validate_python(built)


def test_realtime_sessions_fit_openais_types(kit):
    session = pytest.importorskip("openai.types.realtime.realtime_session_create_request")
    from openai.types.realtime import ConversationItemCreateEvent

    model = load_model("gpt-realtime-2.1")
    first, *items, last = [json.loads(event) for event in model.encode(conversation(kit))]
    assert first["type"] == "session.update" and last == {"type": "response.create"}
    built = session.RealtimeSessionCreateRequest.model_validate(first["session"])
    assert built.max_output_tokens == 256 and not built.model_extra and set(model.unsupported) == {"temperature"}
    for item in items:
        assert ConversationItemCreateEvent.model_validate(item).item.role == "user"


def test_gemini_fits_googles_types(kit):
    types = pytest.importorskip("google.genai.types")
    built = body("gemini-3.8-flash", conversation(kit))
    config = types.GenerationConfig.model_validate(built.pop("generationConfig"))
    assert (config.max_output_tokens, config.temperature, config.thinking_config.thinking_budget) == (320, 0.0, 64)
    for content in [*built.pop("contents"), built.pop("systemInstruction")]:
        types.Content.model_validate(content)
    for setting in built.pop("safetySettings"):
        types.SafetySetting.model_validate(setting)
    assert built == {}


def answered(kit, name, reply, **options):
    async def handle(seen, writer):
        return kit.reply(reply)

    async def main():
        async with kit.serving(handle) as service:
            model = load_model(name, {"base_url": service.url, "key_env": None, **options})
            kit.unhurried(model)
            async with kit.started(model):
                return await model.ask(conversation(kit))

    return asyncio.run(main())


def test_what_openais_types_write_is_read(kit):
    chat = pytest.importorskip("openai.types.chat.chat_completion")
    from openai.types.chat import ChatCompletionMessage
    from openai.types.completion_usage import CompletionUsage

    choice = chat.Choice(
        index=0, finish_reason="length", message=ChatCompletionMessage(role="assistant", content="yes")
    )
    usage = CompletionUsage(prompt_tokens=7, completion_tokens=3, total_tokens=10)
    complete = chat.ChatCompletion(
        id="c-1", object="chat.completion", created=1, model="gpt-audio-1.5-2026-02-23", system_fingerprint="fp_9",
        choices=[choice], usage=usage,
    )  # fmt: skip
    response = answered(kit, "gpt-audio-1.5", json.loads(complete.model_dump_json()))
    assert (response.text, response.finish, response.usage) == (
        "yes",
        "length",
        {"input_tokens": 7, "output_tokens": 3},
    )
    assert response.served == {"model": "gpt-audio-1.5-2026-02-23", "revision": "fp_9"}


def test_what_googles_types_write_is_read(kit):
    types = pytest.importorskip("google.genai.types")
    item = types.Part(text="hm", thought=True), types.Part(text="yes")
    candidate = types.Candidate(content=types.Content(role="model", parts=list(item)), finish_reason="MAX_TOKENS")
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=7, candidates_token_count=3, thoughts_token_count=2
    )
    complete = types.GenerateContentResponse(
        candidates=[candidate], model_version="gemini-3.8-flash-001", response_id="r-1", usage_metadata=usage
    )
    response = answered(kit, "gemini-3.8-flash", json.loads(complete.model_dump_json(by_alias=True, exclude_none=True)))
    assert (response.text, response.finish) == ("yes", "length") and response.usage["output_tokens"] == 5
    assert response.served == {"model": "gemini-3.8-flash-001", "request": "r-1"}

"""Bodies of refusals as services send them (read on 2026-11-22), and what is learned from the first of them."""

import asyncio
import json

import pytest

from codec_bench.messages.errors import UserError
from codec_bench.models import load_model
from codec_bench.models.endpoints.error_texts import (
    UnsupportedParameter,
    cause_of,
    mistake_of,
    read_unsupported_parameter,
)

SENT = ["max_tokens", "temperature", "repetition_penalty", "thinkingConfig.thinkingBudget", "maxOutputTokens"]
OPENAI_TOKENS = {"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                                      "'max_completion_tokens' instead.",
                           "type": "invalid_request_error", "param": "max_tokens",
    "code": "unsupported_parameter"}}  # fmt: skip
OPENAI_HEAT = {"error": {"message": "Unsupported value: 'temperature' does not support 0 with this model. Only the "
                                    "default (1) value is supported.",
                         "type": "invalid_request_error", "param": "temperature",
    "code": "unsupported_value"}}  # fmt: skip
LITELLM = {
    "error": {
        "message": "litellm.UnsupportedParamsError: gpt-5 models don't support temperature=0. Only temperature=1 is "
        "supported."
    }
}
PYDANTIC = {
    "detail": [
        {"type": "extra_forbidden", "loc": ["body", "repetition_penalty"], "msg": "Extra inputs are not permitted"}
    ]
}
SERVE = {"detail": "Unexpected fields in the request: {'repetition_penalty'}"}
GEMINI = {
    "error": {
        "code": 400,
        "message": "Thinking budget is not supported for this model; thinking_budget must be absent.",
        "status": "INVALID_ARGUMENT",
    }
}
CONTEXT = {
    "error": {
        "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 (max_tokens=256 is "
        "too large). Please reduce the length."
    }
}
MODEL = {
    "error": {"message": "The model `gpt-9` does not exist or you do not have access to it.", "code": "model_not_found"}
}
AUDIO = {"error": {"message": "Unknown content part type: input_audio"}}
UNKNOWN_KEY = {"error": {"message": "No connected db.", "type": "no_db_connection", "param": None, "code": "400"}}
"""What litellm's proxy 1.106 answers to a key that it does not know, tried on 2026-11-23."""
ARREARS = {"code": "Arrearage", "message": "Access denied, please make sure your account is in good standing."}


@pytest.mark.parametrize(
    ("message", "lesson"),
    [
        (OPENAI_TOKENS, UnsupportedParameter("max_tokens", "max_completion_tokens")),
        (OPENAI_HEAT, UnsupportedParameter("temperature")),
        (LITELLM, UnsupportedParameter("temperature")),
        (PYDANTIC, UnsupportedParameter("repetition_penalty")),
        (SERVE, UnsupportedParameter("repetition_penalty")),
        (GEMINI, UnsupportedParameter("thinkingConfig.thinkingBudget")),
        (CONTEXT, None),
        (MODEL, None),
        (AUDIO, None),
        ({"error": {"message": "this audio is not supported: it is silent"}}, None),
    ],
)
def test_which_parameter_a_service_does_not_take(message, lesson):
    assert read_unsupported_parameter(json.dumps(message), SENT) == lesson


@pytest.mark.parametrize(
    ("message", "mends"),
    [
        (MODEL, "--set mine.model=NAME"),
        (AUDIO, "--set mine.audio_as=audio_url"),
        (ARREARS, "in arrears"),
        (UNKNOWN_KEY, "check the environment variable that key_env names"),
        ({"error": {"message": "Unrecognized request argument supplied: modalities"}}, "--set mine.modalities=VALUE"),
        (CONTEXT, None),
        ({"error": {"message": "content management policy"}}, None),
        ("[" * 200_000, None),
        (None, None),
    ],
)
def test_which_setting_mends_it(message, mends):
    hint = mistake_of(
        json.dumps(message) if not isinstance(message, str) else message, name="mine", model="gpt-9",
        audio_as="input_audio", others=["modalities"]
    )  # fmt: skip
    assert hint is None if mends is None else mends in hint


def send(kit, service_says, requests, **options):
    """(answers or the error that ended the run, service, model) of concurrent requests."""

    async def main():
        async with kit.serving(service_says) as service:
            model = load_model("openai-chat", {"base_url": service.url, "model": "m1", **options})
            kit.unhurried(model)
            async with kit.started(model):
                done = await asyncio.gather(*map(model.ask, requests), return_exceptions=True)
                return done, service, model

    return asyncio.run(main())


def strict(kit, *refused):
    """A service that takes none of some parameters: `(name, body of the refusal)`."""

    async def handle(seen, writer):
        for name, body in refused:
            if name in seen.json:
                return kit.reply(body, 400)
        return kit.reply(kit.chat(f"{seen.json.get('max_completion_tokens')}"))

    return handle


GREEDY = {"max_tokens": 256, "temperature": 0.0, "repetition_penalty": 1.0}


def test_the_first_request_teaches_what_the_others_are_not_sent(kit):
    handle = strict(kit, ("temperature", OPENAI_HEAT), ("max_tokens", OPENAI_TOKENS), ("repetition_penalty", PYDANTIC))
    requests = [kit.question(id=f"q{n}", parameters=GREEDY) for n in range(5)]
    done, service, model = send(kit, handle, requests)
    assert [answer.text for answer in done] == ["256"] * 5, "the limit is told by the name that the service wants"
    assert len(service.seen) == 3 + 5, "three lessons, and then each question once"
    assert set(model.unsupported) == {"temperature", "repetition_penalty"}
    assert "Only the default (1) value is supported" in model.unsupported["temperature"]


def test_a_judge_that_reasons_has_tokens_for_it(kit):
    _, service, _ = send(kit, strict(kit), [kit.question(parameters={"max_tokens": 64})], reasons=True)
    assert service.seen[0].json["max_tokens"] == 64 + 4096


def test_reasoning_has_tokens_of_its_own(kit):
    parameters = {**GREEDY, "reasoning_tokens": 1000}
    for options, details in (
        ({}, {"max_tokens": 256}),
        ({"reasons": True}, {"max_tokens": 1256}),
        ({"reasoning_end": "</think>"}, {"max_tokens": 1256}),
        (
            {"reasons": True, "rename": {"reasoning_tokens": "thinking_budget"}},
            {"max_tokens": 1256, "thinking_budget": 1000},
        ),
    ):
        _, service, model = send(kit, strict(kit), [kit.question(parameters=parameters)], **options)
        body = service.seen[0].json
        assert body | details == body and model.unsupported == {}
        assert {"reasoning_tokens", "thinking_budget"} & set(body) == {"thinking_budget"} & set(details)


@pytest.mark.parametrize(
    ("body", "mends"),
    [
        (MODEL, "openai-chat.model"),
        (AUDIO, "openai-chat.audio_as=audio_url"),
        (ARREARS, "no credit left"),
        (UNKNOWN_KEY, "key_env"),
    ],
)
def test_a_wrong_setting_is_reported_once_and_ends_everything(kit, body, mends):
    async def handle(seen, writer):
        return kit.reply(body, 400)

    done, _, _ = send(kit, handle, [kit.question(id=f"q{n}", parameters=GREEDY) for n in range(3)])
    assert isinstance(done[0], UserError) and mends in done[0].hint


def test_eight_equal_refusals_end_everything(kit):
    async def handle(seen, writer):
        messages.append(seen)
        return kit.reply({"error": {"message": f"I do not like this (request {len(messages)})"}}, 400)

    messages = []
    done, _, _ = send(kit, handle, [kit.question(id=f"q{n}") for n in range(8)])
    (end,) = [one for one in done if isinstance(one, UserError)]
    assert end.message.code == "refused_alike"
    assert [one.status for one in done if one is not end] == ["refused"] * 7


def test_a_refusal_of_one_question_is_of_that_question(kit):
    async def handle(seen, writer):
        bad = "q1" in seen.json["messages"][0]["content"]
        return kit.reply(CONTEXT, 400) if bad else kit.reply(kit.chat("fine"))

    requests = [kit.question(f"q{n}", id=f"q{n}", parameters=GREEDY) for n in (1, 2, 3)]
    done, _, model = send(kit, handle, requests)
    assert [one.status for one in done] == ["refused", "ok", "ok"] and model.unsupported == {}


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("litellm.ContextWindowExceededError: This model's maximum context length is 8192 tokens.", "limit_s=SECONDS"),
        ("answered 400: No connected db.", "a key that it does not know"),
        ("answered 400: no", "is a setting of the model wrong?"),
    ],
)
def test_what_the_same_refusal_of_every_question_means(message, hint):
    assert hint in cause_of(message)

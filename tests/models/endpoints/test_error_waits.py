"""How long services ask to wait, in the forms that they document (read on 2026-11-22), and what a client does then."""

import asyncio
import json
import random
from dataclasses import replace

import pytest

from codec_bench.messages.errors import UserError
from codec_bench.models import load_model
from codec_bench.models.endpoints.client import Client
from codec_bench.models.endpoints.error_texts import is_daily, most_at_once, wait_of
from codec_bench.models.endpoints.replies import read_json
from codec_bench.models.endpoints.retries import (
    DAILY_S,
    MOST_REQUESTS,
    TOO_OFTEN,
    Patience,
    RequestFailed,
    Retryable,
    RetryPolicy,
)

from ...apps.conversation.virtual import VirtualLoop

GEMINI = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota.",
    "details": [
    {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]},
    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]}}  # fmt: skip
DAY = json.loads(json.dumps(GEMINI).replace("PerMinute", "PerDay"))
OPENAI = {
    "error": {
        "message": "Rate limit reached for gpt-audio on requests per min (RPM): Limit 3, Used 3. Please try again in "
        "20s.",
        "code": "rate_limit_exceeded",
    }
}
OPENAI_DAY = {
    "error": {
        "message": "Rate limit reached for gpt-audio on requests per day (RPD): Limit 200. Please try again in 7m12s."
    }
}


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "7"}, OPENAI, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, {}, 1.5),
        ({}, GEMINI, 34.5),
        ({}, OPENAI, 20.0),
        ({}, OPENAI_DAY, 432.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, {}, 360.0),
        ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "6m0s"}, {}, None),
        ({"retry-after": "soon"}, {"error": {"message": "retry after 3 seconds"}}, 3.0),
        ({"retry-after": "0"}, {}, 0.0),
        ({"retry-after": "inf"}, {}, None),
        ({"retry-after": "NaN"}, {}, None),
        ({"retry-after": "-5"}, {}, None),
        ({"retry-after": "-5s"}, {}, None),
        ({"retry-after": "-5"}, OPENAI, 20.0),
        ({"retry-after-ms": "-1", "retry-after": "2"}, {}, 2.0),
        ({"retry-after": "Fri, 15 Jan 2021 08:00:30 GMT"}, {}, None),
        ({"retry-after": "Friday, 15-Jan-21 08:00:30 GMT"}, {}, None),
        ({}, {"retryDelay": ["x", {"retryDelay": 3}]}, None),
        ({}, {}, None),
    ],
)  # fmt: skip
def test_how_long_a_service_asks_to_wait(headers, body, seconds):
    assert wait_of(headers, json.dumps(body)) == seconds


def test_a_reset_may_be_a_time_of_day(monkeypatch):
    monkeypatch.setattr("codec_bench.models.endpoints.error_texts.time.time", lambda: 1.8e9)
    assert wait_of({"x-ratelimit-reset": "1800000042"}) == 42.0
    dates = ("Fri, 15 Jan 2027 08:00:30 GMT", "Friday, 15-Jan-27 08:00:30 GMT", "Fri Jan 15 08:00:30 2027")
    assert [wait_of({"retry-after": date}) for date in dates] == [30.0] * 3, "the three forms of RFC 9110 5.6.7"


def test_what_is_used_up_for_the_day():
    assert [is_daily(json.dumps(body)) for body in (GEMINI, DAY, OPENAI, OPENAI_DAY)] == [False, True, False, True]


def test_how_many_at_once_a_service_states():
    stated = ("5", "0", "-1", "many", "9" * 40)
    assert [most_at_once({"maximum-concurrent-requests": text}) for text in stated] == [5, None, None, None, None]


def sent(kit, handle, *, patience=None, times=1):
    """([value or exception], sentences, clock, client) of requests one after the other."""

    async def one(client):
        try:
            return (await client.send("POST", "/x", read_json, json={})).value
        except (RequestFailed, UserError) as error:
            return error

    async def main():
        clock, details = kit.Clock(), []
        async with kit.serving(handle) as service:
            client = Client(service.url, clock=clock, sleep=clock.sleep, rng=random.Random(3), patience=patience)
            client.notify = details.append
            await client.start()
            try:
                return [await one(client) for _ in range(times)], details, clock, client
            finally:
                await client.close()

    return asyncio.run(main())


def busy(kit, *bodies, **headers):
    left = list(bodies)

    async def handle(seen, writer):
        return kit.reply(left.pop(0), 429, **headers) if left else kit.reply({"ok": 1})

    return handle


def test_waiting_is_reported_at_once(kit):
    (answer,), details, clock, _ = sent(kit, busy(kit, OPENAI, GEMINI))
    assert answer == {"ok": 1} and clock.slept == [20.0, 34.5]
    waits = ["rate limited, next try in 20 s, 1 slot; ", "rate limited, next try in 34 s, 1 slot; "]
    assert all(one.startswith(wait) and "answered 429: " in one for one, wait in zip(details, waits, strict=True)), (
        "before the first answer the service's words stand beside it"
    )


@pytest.mark.parametrize(
    ("body", "cause", "wait_s"), [(DAY, "quota_used_up", None), (OPENAI_DAY, "quota_used_up", None),
                       ({"error": "try again in 2h"}, "service_status", 7200.0)],
)  # fmt: skip
def test_a_quota_of_the_day_and_a_long_wait_end_the_run(kit, body, cause, wait_s):
    (first, end), _, clock, _ = sent(kit, busy_then(kit, body), times=2)
    assert first == {"ok": 1} and clock.slept == []
    assert isinstance(end, UserError) and end.code == "service_stopped"
    assert end.message.parameters["cause"].code == cause
    assert wait_s is None or end.message.parameters["wait_s"] == wait_s
    assert "--wait" in end.hint and "are recorded" in end.hint


def busy_then(kit, body):
    """Answers one request, and refuses the next."""
    answered = []

    async def handle(seen, writer):
        answered.append(seen)
        return kit.reply({"ok": 1}) if len(answered) != 2 else kit.reply(body, 429)

    return handle


def test_a_patient_client_waits_for_the_next_day(kit):
    answers, _, clock, _ = sent(kit, busy(kit, DAY, {"error": "try again in 2h"}), patience=Patience(stops_s=None))
    assert answers == [{"ok": 1}] and clock.slept == [DAILY_S, 7200.0]


def test_a_patient_client_waits_longer_than_a_day_for_a_quota_of_the_day(kit):
    (end,), _, clock, _ = sent(kit, busy(kit, *[DAY] * 99), patience=Patience(stops_s=None))
    assert end.code == TOO_OFTEN and clock.now > 24 * 3600


def test_a_service_that_answers_nothing_for_five_minutes_ends_the_run(kit):
    ends, options, clock, _ = sent(kit, busy(kit, *[{"error": "slow down"}] * 999), times=3)
    assert isinstance(ends[0], RequestFailed) and isinstance(ends[-1], UserError)
    assert clock.now <= 300.0 and options


@pytest.mark.parametrize("message", ["-5", "0", "nan", "-inf", "Fri, 15 Jan 2021 08:00:30 GMT", "soon"])
@pytest.mark.parametrize("status", [429, 503, 500])
def test_no_service_gets_a_question_more_than_ten_times(kit, message, status):
    seen = []

    async def handle(request, writer):
        seen.append(request)
        return kit.reply({"error": "slow down"}, status, Retry_After=message)

    (end,), _, _, _ = sent(kit, handle, patience=Patience(attempts=MOST_REQUESTS))
    assert isinstance(end, RequestFailed) and end.attempts == len(seen) <= MOST_REQUESTS == 10
    assert (end.code == TOO_OFTEN) == (status != 500), "the attempts of other errors are a setting"


def test_a_long_wait_that_an_error_asks_for_is_not_slept(kit):
    async def handle(request, writer):
        return kit.reply({"error": "boom"}, 500, Retry_After="999999999")

    (end,), _, clock, _ = sent(kit, handle)
    assert isinstance(end, RequestFailed) and clock.slept == []


def test_retries_of_every_kind_count_together(kit):
    """One question whose parameters are refused one after the other, between answers of 429."""
    seen = []

    async def handle(request, writer):
        seen.append(request)
        sent = [name for name in PARAMETERS if name in request.json]
        if len(seen) % 3 == 0 and sent:
            return kit.reply({"error": {"message": f"Unsupported parameter: '{sent[0]}'", "param": sent[0]}}, 400)
        return kit.reply({"error": "slow down"}, 429, Retry_After="-5")

    async def main():
        async with kit.serving(handle) as service:
            model = load_model("openai-chat", {"base_url": service.url, "model": "m"})
            kit.unhurried(model)
            await model.start()
            try:
                question = kit.question("?")
                return await model.ask(replace(question, parameters=dict.fromkeys(PARAMETERS, 1)))
            finally:
                await model.close()

    response = asyncio.run(main())
    assert (response.status, response.finish) == ("failed", TOO_OFTEN)
    assert len(seen) == MOST_REQUESTS


PARAMETERS = ("temperature", "top_p", "seed", "max_tokens", "presence_penalty")


def test_a_service_of_one_request_a_second_loses_nothing():
    """64 places meet a bucket of one request a second that holds 3, with and without a Retry-After of 1 s."""
    for text in (None, 1.0):
        loop = VirtualLoop()
        free, at, answered = 3.0, [loop.time()], []
        client = RetryPolicy(64, Patience(), clock=loop.time, rng=random.Random(5))

        async def attempt(text=text, at=at, loop=loop, answered=answered):
            nonlocal free
            await asyncio.sleep(0.1)
            free, at[0] = min(3.0, free + loop.time() - at[0]), loop.time()
            if free < 1.0:
                raise Retryable("429", crowded=True, wait_s=text)
            free -= 1.0
            answered.append(loop.time())

        async def main(client=client, attempt=attempt):
            await asyncio.gather(*(client.run(attempt) for _ in range(200)))

        with asyncio.Runner(loop_factory=lambda loop=loop: loop) as runner:
            runner.run(main())
        assert len(answered) == 200


def test_never_more_at_once_than_the_service_states(kit):
    async def handle(seen, writer):
        return kit.reply({}, maximum_concurrent_requests=3)

    *_, client = sent(kit, handle)
    assert client.gate.ceiling == 3 and client.gate.limit <= 3

"""How long services ask to wait, in the forms that they document (read on 2026-11-22), and what a client does then."""

import asyncio
import json
import random

import pytest

from codec_bench.errors import UserError
from codec_bench.models.endpoints.client import Client
from codec_bench.models.endpoints.error_texts import is_daily, most_at_once, wait_of
from codec_bench.models.endpoints.replies import read_json
from codec_bench.models.endpoints.retries import GivenUp, Patience

GEMINI = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota.", "details": [
    {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]},
    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]}}  # fmt: skip
DAY = json.loads(json.dumps(GEMINI).replace("PerMinute", "PerDay"))
OPENAI = {
    "error": {
        "message": "Rate limit reached for gpt-audio on requests per min (RPM): Limit 3, Used 3. Please try again in 20s.",
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
        ({"retry-after": "inf"}, {}, None),
        ({}, {"retryDelay": ["x", {"retryDelay": 3}]}, None),
        ({}, {}, None),
    ],
)  # fmt: skip
def test_how_long_a_service_asks_to_wait(headers, body, seconds):
    assert wait_of(headers, json.dumps(body)) == seconds


def test_a_reset_may_be_a_time_of_day(monkeypatch):
    monkeypatch.setattr("codec_bench.models.endpoints.error_texts.time.time", lambda: 1.8e9)
    assert wait_of({"x-ratelimit-reset": "1800000042"}) == 42.0
    assert wait_of({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}) == 30.0


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
        except (GivenUp, UserError) as error:
            return error

    async def main():
        clock, told = kit.Clock(), []
        async with kit.serving(handle) as service:
            client = Client(service.url, clock=clock, sleep=clock.sleep, rng=random.Random(3), patience=patience)
            client.tell = told.append
            await client.start()
            try:
                return [await one(client) for _ in range(times)], told, clock, client
            finally:
                await client.close()

    return asyncio.run(main())


def busy(kit, *bodies, **headers):
    left = list(bodies)

    async def handle(seen, writer):
        return kit.reply(left.pop(0), 429, **headers) if left else kit.reply({"ok": 1})

    return handle


def test_waiting_is_said_at_once(kit):
    (answer,), told, clock, _ = sent(kit, busy(kit, OPENAI, GEMINI))
    assert answer == {"ok": 1} and clock.slept == [20.0, 34.5]
    waits = ["rate limited, next try in 20 s, 1 slot; ", "rate limited, next try in 34 s, 1 slot; "]
    assert all(one.startswith(wait) and "answered 429: " in one for one, wait in zip(told, waits, strict=True)), (
        "before the first answer the service's words stand beside it"
    )


@pytest.mark.parametrize(
    ("body", "says"), [(DAY, "the quota of the day is used up"), (OPENAI_DAY, "the quota of the day"),
                       ({"error": "try again in 2h"}, "asks to wait 7200 s")],
)  # fmt: skip
def test_a_quota_of_the_day_and_a_long_wait_end_the_run(kit, body, says):
    (first, end), _, clock, _ = sent(kit, busy_then(kit, body), times=2)
    assert first == {"ok": 1} and clock.slept == []
    assert isinstance(end, UserError) and says in end.message and "--wait" in end.hint and "is kept" in end.hint


def busy_then(kit, body):
    """Answers one request, and refuses the next."""
    answered = []

    async def handle(seen, writer):
        answered.append(seen)
        return kit.reply({"ok": 1}) if len(answered) != 2 else kit.reply(body, 429)

    return handle


def test_a_patient_client_waits_for_the_next_day(kit):
    answers, _, clock, _ = sent(kit, busy(kit, DAY, {"error": "try again in 2h"}), patience=Patience(stops_s=None))
    assert answers == [{"ok": 1}] and clock.slept == [34.5, 7200.0]


def test_a_service_that_answers_nothing_for_five_minutes_ends_the_run(kit):
    (end,), told, clock, _ = sent(kit, busy(kit, *[{"error": "slow down"}] * 999))
    assert isinstance(end, UserError) and clock.now <= 300.0 and told


def test_never_more_at_once_than_the_service_states(kit):
    async def handle(seen, writer):
        return kit.reply({}, maximum_concurrent_requests=3)

    *_, client = sent(kit, handle)
    assert client.gate.ceiling == 3 and client.gate.limit <= 3

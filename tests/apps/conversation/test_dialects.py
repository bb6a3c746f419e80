"""The live protocols besides OpenAI's own: the same planted conversations in each of them over a real WebSocket."""

from __future__ import annotations

import json

import pytest

from codec_bench.apps.conversation.measures import measure
from codec_bench.apps.conversation.services import SERVICES
from codec_bench.models import load_model
from codec_bench.types import Request

from . import server
from .planted import early, interrupted, nodding, pausing, plain, quiet, silent, stubborn
from .test_measures import check_values

GEMINI, LIVE, QWEN, GROK = "gemini-3.8-live", "gpt-live-1", "qwen3-omni-flash-realtime", "grok-voice"
FORMS = (plain, silent, early, interrupted, stubborn, pausing, nodding, quiet)
DIALECTS = {GEMINI: server.GeminiTalk, LIVE: server.LiveTalk, QWEN: server.BetaTalk, GROK: server.Talk}


@pytest.mark.parametrize("model", DIALECTS)
def test_planted_values_are_measured_in_each_dialect(talk, model):
    """In a stream without turns the service sends no faster than it speaks, and what came is played: it stops by
    sending no more.
    """
    import random

    outputs = []
    for form in FORMS:
        conversation, plan, expected = form(random.Random(form.__name__), form.__name__)
        if model == LIVE:
            plan.speed, plan.jitter_s = 1.0, 0.0
        if model == LIVE and form in (plain, interrupted):
            expected = {"turn_taken": expected["turn_taken"], "too_early": expected["too_early"]}
        outputs.append(({"id": form.__name__, **conversation}, plan, expected))
    held, _ = talk.hold(
        [one for one, _, _ in outputs], {one["id"]: plan for one, plan, _ in outputs}, model=model, talk=DIALECTS[model]
    )
    for one, _, expected in outputs:
        session = held[one["id"]]
        assert session.status == "ok", (one["id"], session.reason)
        assert session.rate_hz == (16_000 if model in (GEMINI, QWEN) else 24_000) and session.output_rate_hz == 24_000
        check_values(one["id"], measure(session), expected)


def test_a_stream_is_cut_by_sending_no_more(talk):
    """The last packet of 0.1 s that was sent before the stop is played to its end."""
    turns = [{"say": "short.wav", "at_s": 0.5}, {"kind": "interruption", "say": "short.wav", "into_answer_s": 0.8}]
    plan = server.Plan(speed=1.0, yields_after_s=0.4, answer_s=4.0)
    held, _ = talk.hold([{"id": "a", "turns": turns}], {"": plan}, model=LIVE, talk=server.LiveTalk)
    (late,) = (v.value for v in measure(held["a"]) if v.measure == "yield_latency_s")
    assert 0.4 <= late <= 0.4 + server.PACKET_S + 2 * server.FRAME_S and not held["a"].stops


def test_the_sessions_of_the_services_that_took_the_protocol_over():
    model = load_model(GROK, {"key_env": None})
    (opening,) = SERVICES[type(model)](model).conversation("be brief")
    session = json.loads(opening)["session"]
    assert session["turn_detection"] == {"type": "server_vad"} and session["voice"] == "eve"
    assert (
        session["audio"]["input"]["format"]
        == session["audio"]["output"]["format"]
        == {"type": "audio/pcm", "rate": 24000}
    )
    model = load_model(QWEN, {"key_env": None})
    assert model.url().endswith("/api-ws/v1/realtime?model=qwen3-omni-flash-realtime") and not model.socket_headers()
    session = json.loads(SERVICES[type(model)](model).conversation("be brief")[0])["session"]
    assert (session["input_audio_format"], session["output_audio_format"], session["modalities"]) == (
        "pcm",
        "pcm",
        ["text", "audio"],
    )
    assert model.check(Request("a", wants="audio")).code == "converses_only"


def test_what_a_service_does_wrong_is_reported_in_each_dialect(talk):
    """Of Gemini's and of the stream's: the other session goes on."""
    turn = {"id": "a", "turns": [{"say": "short.wav", "at_s": 0.5}]}
    for model, serves in ((GEMINI, server.GeminiTalk), (LIVE, server.LiveTalk), (QWEN, server.BetaTalk)):
        for plan, expected in (
            (server.Plan(odd="mute"), {"code": "session_not_begun", "limit_s": 15}),
            (server.Plan(drops_at_s=1.5), {"code": "connection_closed", "at_s": pytest.approx(1.55, abs=0.05)}),
            (server.Plan(odd="odd"), {"code": "odd_sound_bytes"}),
            (server.Plan(odd="hour"), {"code": "sound_beyond_session", "most_s": 15}),
        ):
            plans = {"a": plan, "b": server.Plan(speed=1.0)}
            held, _ = talk.hold([turn, {**turn, "id": "b"}], plans, model=model, talk=serves, longest_s=15)
            shown = held["a"].reason.as_dict()
            assert held["a"].status == "failed" and {**shown, **expected} == shown, model
            assert held["b"].status == "ok", (model, held["b"].reason)

"""GPT-Live, as https://developers.openai.com/api/docs/guides/voice-websockets and openai 3.54 describe it; read on
2026-11-22.
"""

import asyncio
import base64
import json

import numpy as np
import pytest

from codec_bench.audio.clip import Clip
from codec_bench.messages import Diagnostic
from codec_bench.models.endpoints import openai_live
from codec_bench.types import Message, Request

PCM = np.full(2400, 5000, "<i2")
SILENCE = base64.b64encode(np.zeros(2400, "<i2").tobytes()).decode()
SPEECH = base64.b64encode(PCM.tobytes()).decode()


def spoken(word):
    return {"type": "session.output_transcript.delta", "delta": word, "start_ms": 0, "end_ms": 9, "event_id": "e"}


def talked(kit, monkeypatch, request, after_question, closed="close_requested", at_start=None):
    """(response, what was sent) of one request to a Live server that says `after_question` once silence has come."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-live-secret-key")
    monkeypatch.setattr(openai_live, "PACE", 0.02)
    monkeypatch.setattr(openai_live, "UNHEARD_S", 6.0)
    seen, left = [], list(after_question)

    async def handle(socket):
        assert socket.request.headers["Authorization"] == "Bearer sk-live-secret-key"
        async for message in socket:
            event = json.loads(message)
            seen.append(event)
            if event["type"] == "session.start":
                session = {
                    **event["session"],
                    "id": "s",
                    "expires_at": 9,
                    "status": "active",
                    "model": "gpt-live-1-2026-10",
                }
                await socket.send(
                    json.dumps(at_start or {"type": "session.started", "event_id": "e", "session": session})
                )
            quiet = event["type"] == "session.input_audio.append" and event["audio"] == SILENCE
            if quiet:  # the stream goes on, with silence after the last word
                await socket.send(json.dumps({"type": "session.output_audio.delta", "delta": SILENCE}))
                if left:
                    await socket.send(json.dumps(left.pop(0)))
            if event["type"] == "session.close":
                ended = {
                    "type": "session.closed",
                    "event_id": "e",
                    "reason": closed,
                    "session": {},
                    "usage": {"seconds": 4.5},
                }
                await socket.send(json.dumps(ended))

    return asyncio.run(kit.live(handle, "gpt-live-1", "/v1/live/sessions", request)), seen


def conversation(kit, wants="audio"):
    turns = (Message("system", ("be brief",)), Message("user", (Clip(kit.tone(0.35, 24_000)), "What is heard?")))
    return Request("q", turns, wants=wants, parameters={"temperature": 0.0})


def test_a_question_and_an_answer(kit, monkeypatch):
    types = pytest.importorskip("openai.types.live")
    speech = {"type": "session.output_audio.delta", "delta": SPEECH}
    response, seen = talked(kit, monkeypatch, conversation(kit), [spoken("a "), speech, spoken("tone")])
    assert (response.status, response.text, response.finish) == ("ok", "a tone", "stop")
    assert response.served == {"model": "gpt-live-1-2026-10"} and response.usage == {"session_s": 4.5}
    assert (np.abs(response.audio.samples[0]) > 0.1).sum() == 2400 and response.audio.sample_rate_hz == 24_000
    start, *sent, close = seen
    built = types.SessionStartEvent.model_validate(start)
    assert (
        built.session.model == "gpt-live-1"
        and built.session.instructions == "be brief"
        and not built.session.model_extra
    )
    assert start["session"]["input"][0]["content"] == [{"type": "input_text", "text": "What is heard?"}]
    types.InputAudioAppendEvent.model_validate(sent[0])
    question = [np.frombuffer(base64.b64decode(one["audio"]), "<i2") for one in sent[:4]]
    assert sum(map(len, question)) == 8400 and close == {"type": "session.close"}
    assert {one["audio"] for one in sent[4:]} == {SILENCE} and len(
        sent
    ) - 4 >= openai_live.QUIET_S / openai_live.PIECE_S


def test_a_written_answer_is_the_transcript(kit, monkeypatch):
    response, _ = talked(kit, monkeypatch, conversation(kit, "text"), [spoken("two "), spoken("words")])
    assert (response.text, response.audio) == ("two words", None) and "transcript" in response.notes[0]


def test_a_model_that_says_nothing(kit, monkeypatch):
    response, _ = talked(kit, monkeypatch, conversation(kit, "text"), [])
    assert (response.status, response.text) == ("ok", "") and response.notes == (Diagnostic("answer_empty"),)


def test_a_filter(kit, monkeypatch):
    response, _ = talked(kit, monkeypatch, conversation(kit), [spoken("par")], closed="content")
    assert response.status == "refused" and "filter" in response.reason


def test_an_error_at_the_start(kit, monkeypatch):
    error = {
        "type": "error",
        "event_id": "e",
        "error": {"type": "invalid_request_error", "code": "c", "message": "no such voice"},
    }
    response, _ = talked(kit, monkeypatch, conversation(kit), [], at_start=error)
    assert response.status == "refused" and response.reason.as_dict() == {
        "code": "service_error",
        "message": "no such voice",
    }

"""Gemini's Live API, as https://ai.google.dev/api/live and google-genai 3.4 describe it; read on 2026-11-22."""

import asyncio
import base64
import json

import numpy as np
import pytest

from codec_bench.audio.clip import Clip
from codec_bench.types import Message, Request

KEY = "gm-UNMISTAKABLE-4321"
PCM = np.arange(-500, 500, dtype="<i2")
USAGE = {
    "promptTokenCount": 30, "responseTokenCount": 9, "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 25}],
    "responseTokensDetails": [{"modality": "AUDIO", "tokenCount": 8}],
}  # fmt: skip


def spoken(text="a tone", **more):
    data = base64.b64encode(PCM.tobytes()).decode()
    sound = {"mimeType": "audio/pcm;rate=24000", "data": data}
    return [
        {"serverContent": {"modelTurn": {"parts": [{"thought": True, "text": "hm"}]}}},
        {"serverContent": {"modelTurn": {"parts": [{"inlineData": sound}]}}},
        {"serverContent": {"outputTranscription": {"text": text}}},
        {"serverContent": {"generationComplete": True}},
        {"serverContent": {"turnComplete": True, **more}, "usageMetadata": USAGE},
    ]


def talked(kit, monkeypatch, request, turn, ends="activityEnd"):
    """(response, what was sent) of one request to a Live server that answers with `turn`."""
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    seen = []

    async def handle(socket):
        assert socket.request.headers["x-goog-api-key"] == KEY and KEY not in socket.request.path
        async for message in socket:
            seen.append(json.loads(message))
            if "setup" in seen[-1]:
                assert len(seen) == 1, "nothing is sent before the session is ready"
                await socket.send(json.dumps({"setupComplete": {}}).encode())
            if ends in seen[-1].get("realtimeInput", {}) or seen[-1].get("clientContent", {}).get("turnComplete"):
                for event in turn:
                    await socket.send(json.dumps(event).encode())

    return asyncio.run(kit.live(handle, "gemini-3.8-live", "/ws", request)), seen


def conversation(kit, wants="text"):
    turns = (Message("system", ("be brief",)), Message("user", ("What is heard?", Clip(kit.tone(0.5)))))
    return Request("q", turns, wants=wants, parameters={"max_tokens": 9, "temperature": 0.0})


def test_a_spoken_question_and_answer(kit, monkeypatch):
    types = pytest.importorskip("google.genai.types")
    response, seen = talked(kit, monkeypatch, conversation(kit, "audio"), spoken())
    assert (response.status, response.text, response.finish) == ("ok", "a tone", "stop")
    assert np.array_equal(response.audio.samples[0] * 32768, PCM) and response.audio.sample_rate_hz == 24_000
    assert response.usage == {
        "input_tokens": 30, "audio_input_tokens": 25, "output_tokens": 9, "audio_output_tokens": 8,
    }  # fmt: skip
    setup, words, begin, sound, end = seen
    # The package puts this beside the fields of its type (`_live_converters.py`).
    config = setup["setup"].pop("realtimeInputConfig")
    assert types.RealtimeInputConfig.model_validate(config).automatic_activity_detection.disabled is True
    assert types.LiveClientMessage.model_validate(setup).setup.generation_config.max_output_tokens == 9
    assert setup["setup"]["model"] == "models/gemini-3.8-live"
    assert types.LiveClientMessage.model_validate(words).client_content.turn_complete is False
    inputs = [types.LiveClientMessage.model_validate(one).realtime_input for one in (begin, sound, end)]
    assert inputs[0].activity_start is not None and inputs[2].activity_end is not None
    samples = np.frombuffer(base64.b64decode(sound["realtimeInput"]["audio"]["data"]), "<i2")
    assert len(samples) == 8000 and sound["realtimeInput"]["audio"]["mimeType"] == "audio/pcm;rate=16000"


def test_a_written_answer_is_the_transcript(kit, monkeypatch):
    response, _ = talked(kit, monkeypatch, conversation(kit), spoken("two words"))
    assert (response.text, response.audio) == ("two words", None) and "transcript" in response.notes[0]


def test_a_written_question_ends_its_turn_itself(kit, monkeypatch):
    response, seen = talked(kit, monkeypatch, kit.question("Hello"), spoken("hi"))
    assert response.text == "hi" and seen[1]["clientContent"]["turnComplete"] is True and len(seen) == 2


@pytest.mark.parametrize(
    "turn, status, message",
    [
        (spoken(turnCompleteReason="PROHIBITED_INPUT_CONTENT"), "refused", "filter"),
        ([{"serverContent": {"interrupted": True}}], "failed", "interrupted"),
        ([{"serverContent": 3}], "failed", "expected layout"),
    ],
)
def test_what_goes_wrong(kit, monkeypatch, turn, status, message):
    response, _ = talked(kit, monkeypatch, conversation(kit), turn)
    assert response.status == status and message in response.reason


def test_sound_in_an_earlier_turn_is_refused(kit, monkeypatch):
    turns = (Message("user", (Clip(kit.tone(0.1)),)), Message("assistant", ("a tone",)), Message("user", ("Again?",)))
    response, seen = talked(kit, monkeypatch, Request("q", turns), spoken())
    assert response.status == "refused" and response.reason.code == "sound_in_last_turn_only" and seen == []

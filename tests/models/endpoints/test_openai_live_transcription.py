"""GPT-Live-Transcribe, as https://developers.openai.com/api/docs/guides/realtime-transcription says; read on
2026-11-22.
"""

import asyncio
import base64
import json

import numpy as np
import pytest

from codec_bench.audio.clip import Clip
from codec_bench.models import load_model
from codec_bench.models.endpoints import openai_realtime
from codec_bench.types import Request

EVENT = "conversation.item.input_audio_transcription."
ABOUT = {"event_id": "e", "item_id": "i", "content_index": 0}
DELTA = {"type": f"{EVENT}delta", "delta": "hel", **ABOUT}
DONE = {"type": f"{EVENT}completed", "transcript": "hello", "usage": {"type": "duration", "seconds": 0.25}, **ABOUT}


def transcribed(kit, monkeypatch, *after_commit, language="en", **options):
    """(response, path, what was sent) of one request to a server that says `after_commit` when the turn is complete."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-live-secret-key")
    monkeypatch.setattr(openai_realtime, "PIECE_S", 0.1)
    seen, paths = [], []

    async def handle(socket):
        assert socket.request.headers["Authorization"] == "Bearer sk-live-secret-key"
        paths.append(socket.request.path)
        await socket.send(json.dumps({"type": "session.created", "event_id": "e", "session": {}}))
        async for message in socket:
            seen.append(json.loads(message))
            if seen[-1]["type"] == "session.update":
                await socket.send(json.dumps({"type": "session.updated", "session": seen[-1]["session"]}))
            if seen[-1]["type"] == "input_audio_buffer.commit":
                for event in after_commit:
                    await socket.send(json.dumps(event))

    fields = {"audio": Clip(kit.tone(0.25, 24_000)), "language": language}
    request = Request("q", fields=fields, parameters={"temperature": 0})
    requested = kit.live(handle, "gpt-live-transcribe", "/v1/realtime?intent=transcription", request, **options)
    return asyncio.run(requested), paths[0], seen


def test_a_transcript(kit, monkeypatch):
    types = pytest.importorskip("openai.types.realtime")
    from pydantic import TypeAdapter

    response, path, (update, *sound, commit) = transcribed(kit, monkeypatch, DELTA, DONE)
    assert (response.status, response.text) == ("ok", "hello") and response.first_s is not None
    assert response.served == {"model": "gpt-live-transcribe"} and path == "/v1/realtime?intent=transcription"
    TypeAdapter(types.RealtimeTranscriptionSessionCreateRequestParam).validate_python(update["session"])
    transcription = update["session"]["audio"]["input"]["transcription"]
    assert transcription == {"model": "gpt-live-transcribe", "languages": ["en"]}
    assert set(transcription) <= set(types.AudioTranscriptionParam.__annotations__)
    assert commit == {"type": "input_audio_buffer.commit"} and len(sound) == 3
    for segment in sound:
        types.InputAudioBufferAppendEvent.model_validate(segment)
    samples = np.frombuffer(b"".join(base64.b64decode(segment["audio"]) for segment in sound), "<i2")
    assert np.abs(samples / 32768 - kit.tone(0.25, 24_000).samples[0]).max() < 1e-4
    types.ConversationItemInputAudioTranscriptionCompletedEvent.model_validate(DONE)


def test_what_is_sent_of_languages_and_parameters(kit, monkeypatch):
    options = {"languages": {"yue": None}, "parameters": {"keywords": ["AC-42"]}}
    _, _, (update, *_) = transcribed(kit, monkeypatch, DONE, language="yue", **options)
    assert update["session"]["audio"]["input"]["transcription"] == {
        "model": "gpt-live-transcribe", "keywords": ["AC-42"]}  # fmt: skip


def test_nothing_was_recognised(kit, monkeypatch):
    response, _, _ = transcribed(kit, monkeypatch, {**DONE, "transcript": ""})
    assert response.status == "ok" and response.text == "" and response.notes


@pytest.mark.parametrize("kind", ["error", f"{EVENT}failed"])
def test_errors(kit, monkeypatch, kind):
    error = {"type": "invalid_request_error", "code": "audio_unintelligible", "message": "The audio is too short"}
    response, _, _ = transcribed(kit, monkeypatch, {"type": kind, "error": error, **ABOUT})
    assert response.status == "refused" and response.reason.as_dict() == {
        "code": "service_error",
        "message": "The audio is too short",
    }
    broken, _, _ = transcribed(kit, monkeypatch, {**DONE, "transcript": None})
    assert broken.status == "failed" and broken.reason.code == "body_layout"


def test_a_prompt_without_sound_is_refused(kit, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    response = load_model("gpt-live-transcribe").check(Request("q", fields={"text": "x"}))
    assert "transcribes the field 'audio'" in response

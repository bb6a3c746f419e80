"""The messages of conversations with services, against the types of the vendors' packages."""

import base64
import json

import numpy as np
import pytest
from refusals import refuses

from codec_bench.apps.conversation.services import SERVICES
from codec_bench.models import load_model
from codec_bench.models.endpoints.retries import RequestFailed, Retryable

PCM = np.arange(-240, 240, dtype="<i2").tobytes()
CODED = base64.b64encode(PCM).decode()


def service(name, **options):
    model = load_model(name, {"key_env": None, **options})
    return SERVICES[type(model)](model)


def spoken(model, text=""):
    return [json.loads(message) for message in model.conversation(text)]


def transcribe(model, **event):
    return model.read_message(json.dumps(event))


def test_openai_realtime():
    realtime = pytest.importorskip("openai.types.realtime")
    detection = {"type": "semantic_vad", "eagerness": "low"}
    model = service("gpt-realtime-2.1", turn_detection=detection)
    (opening,) = spoken(model, "be brief")
    session = realtime.RealtimeSessionCreateRequest.model_validate(opening["session"])
    assert session.instructions == "be brief" and session.output_modalities == ["audio"]
    assert session.audio.input.turn_detection.eagerness == "low"
    frame = realtime.InputAudioBufferAppendEvent.model_validate(json.loads(model.frame(PCM)))
    assert base64.b64decode(frame.audio) == PCM
    about = {"response_id": "r", "item_id": "i", "content_index": 0, "output_index": 0, "event_id": "e"}
    delta = realtime.ResponseAudioDeltaEvent(type="response.output_audio.delta", delta=CODED, **about)
    got = model.read_message(delta.model_dump_json())
    assert (got.sound, got.answer, got.item, got.id, got.stops, got.ended) == (PCM, "r", "i", "e", False, "")
    stopped = realtime.InputAudioBufferSpeechStartedEvent(
        type="input_audio_buffer.speech_started", audio_start_ms=0, event_id="e", item_id="u"
    )
    assert model.read_message(stopped.model_dump_json()).stops
    cut = realtime.ConversationItemTruncateEvent.model_validate(json.loads(model.cut_off("i", 1.25)))
    assert (cut.audio_end_ms, cut.item_id, cut.content_index) == (1250, "i", 0)


@pytest.mark.parametrize("status, ended", [("completed", "whole"), ("cancelled", "cut"), ("incomplete", "whole")])
def test_the_end_of_an_answer_of_openai_realtime(status, ended):
    model = service("gpt-realtime-2.1")
    got = transcribe(model, type="response.done", response={"id": "r", "status": status, "usage": {"input_tokens": 3}})
    assert (got.ended, got.answer, got.usage) == (ended, "r", {"input_tokens": 3})


def test_nothing_stops_where_nothing_interrupts():
    detection = {"type": "server_vad", "interrupt_response": False}
    model = service("gpt-realtime-2.1", turn_detection=detection)
    assert not transcribe(model, type="input_audio_buffer.speech_started").stops


def test_errors_of_openai_realtime():
    model = service("gpt-realtime-2.1")
    with refuses("service_error", message="overloaded", error=Retryable):
        transcribe(model, type="error", error={"type": "server_error", "message": "overloaded"})
    with refuses("body_layout", error=RequestFailed):
        transcribe(model, type="response.output_audio.delta")
    with refuses("event_not_json", error=Retryable):
        model.read_message("{")


def test_gemini_live():
    types = pytest.importorskip("google.genai.types")
    model = service("gemini-3.8-live")
    (opening,) = spoken(model, "be brief")
    setup = types.LiveClientSetup.model_validate(opening["setup"])
    assert setup.system_instruction.parts[0].text == "be brief"
    assert (
        "realtimeInputConfig" not in opening["setup"]
    )  # the detection of speech is on unless somebody switches it off
    sent = types.LiveClientRealtimeInput.model_validate(json.loads(model.frame(PCM))["realtimeInput"])
    assert sent.audio.data == PCM and sent.audio.mime_type == "audio/pcm;rate=16000"
    assert transcribe(model, setupComplete={}).ready
    item = {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": CODED}}
    content = {"modelTurn": {"parts": [item, item]}, "outputTranscription": {"text": "a"}}
    got = transcribe(model, serverContent=content, usageMetadata={"promptTokenCount": 2, "responseTokenCount": 3})
    assert (got.sound, got.text, got.ended) == (PCM + PCM, "a", "") and got.usage["output_tokens"] == 3
    got = transcribe(model, serverContent={"interrupted": True})
    assert got.stops and got.ended == "cut"
    assert transcribe(model, serverContent={"turnComplete": True}).ended == "whole"
    other = {"inlineData": {"mimeType": "audio/pcm;rate=16000", "data": CODED}}
    with refuses("service_rate", stated="16000", expected=24000, error=RequestFailed):
        transcribe(model, serverContent={"modelTurn": {"parts": [other]}})


def test_openai_live():
    model = service("gpt-live-1")
    (opening,) = spoken(model, "be brief")
    assert opening["type"] == "session.start" and opening["session"]["instructions"] == "be brief"
    assert json.loads(model.frame(PCM)) == {"type": "session.input_audio.append", "audio": CODED}
    assert transcribe(model, type="session.started", session={"model": "m"}).ready
    assert transcribe(model, type="session.output_audio.delta", delta=CODED).sound == PCM
    assert transcribe(model, type="session.output_transcript.delta", delta="a").text == "a"


def test_a_recogniser_does_not_converse():
    assert type(load_model("gpt-live-transcribe", {"key_env": None})) not in SERVICES

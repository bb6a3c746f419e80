import asyncio
import base64
import json
import logging

import numpy as np
import pytest
from refusals import refuses
from websockets.http11 import Response as HttpResponse

from codec_bench.models import load_model
from codec_bench.types import Message, Request

KEY = "rt-UNMISTAKABLE-987654"
USAGE = {
    "input_tokens": 30,
    "output_tokens": 9,
    "input_token_details": {"audio_tokens": 25, "text_tokens": 5},
    "output_token_details": {"audio_tokens": 6},
}


def talked(kit, monkeypatch, *turns, request=None, turn_down=None, **options):
    """One request to a realtime server that plays `turns`, one a connection: (response, connections).

    A turn is a list of events sent after `response.create`, or "hang up".
    """
    monkeypatch.setenv("RT_KEY", KEY)
    seen, left = [], list(turns)

    async def handle(socket):
        turn = left.pop(0) if len(left) > 1 else left[0]
        here = {"headers": socket.request.headers, "path": socket.request.path, "events": []}
        seen.append(here)
        await socket.send(json.dumps({"type": "session.created"}))
        async for message in socket:
            here["events"].append(json.loads(message))
            if here["events"][-1]["type"] == "response.create":
                for event in [] if turn == "hang up" else turn:
                    await socket.send(event if isinstance(event, str) else json.dumps(event))
                if turn == "hang up":
                    return

    def checked(connection, http):
        return (
            HttpResponse(turn_down, "no", connection.protocol.reject(turn_down, "no").headers, b"no")
            if turn_down
            else None
        )

    request = request or kit.question("What?", kit.tone(0.5, 24_000))
    options = {"attempts": 5, "key_env": "RT_KEY", **options}
    return asyncio.run(kit.live(handle, "gpt-4o-realtime", "/v1/realtime", request, checked, **options)), seen


def done(status="completed", **more):
    return {"type": "response.done", "response": {"status": status, "usage": USAGE, **more}}


@pytest.mark.parametrize("layout, name", [("beta", "response.text.delta"), ("ga", "response.output_text.delta")])
def test_words(kit, monkeypatch, layout, name):
    turn = [{"type": "response.created"}, {"type": name, "delta": "a "}, {"type": name, "delta": "tone"}, done()]
    request = Request(
        "q",
        (Message("system", ("be brief",)), *kit.question("What?", kit.tone(0.5)).messages),
        parameters={"max_tokens": 9},
    )
    response, (seen,) = talked(kit, monkeypatch, turn, request=request, layout=layout)
    assert (response.status, response.text, response.finish, response.audio) == ("ok", "a tone", "stop", None)
    assert response.usage == {
        "input_tokens": 30,
        "output_tokens": 9,
        "audio_input_tokens": 25,
        "audio_output_tokens": 6,
    }
    assert 0 < response.first_s < 600
    update, create, last = seen["events"]
    session = update["session"]
    assert session["instructions"] == "be brief" and last == {"type": "response.create"}
    if layout == "beta":
        assert seen["headers"]["OpenAI-Beta"] == "realtime=v1" and session["modalities"] == ["text"]
        assert session["max_response_output_tokens"] == 9 and session["turn_detection"] is None
    else:
        assert session["output_modalities"] == ["text"] and session["max_output_tokens"] == 9
        assert session["audio"]["input"] == {"format": {"type": "audio/pcm", "rate": 24000}, "turn_detection": None}
    assert seen["headers"]["Authorization"] == f"Bearer {KEY}" and KEY not in seen["path"]
    assert seen["path"].endswith("?model=gpt-4o-realtime-preview-2024-10-01")
    sound, words = create["item"]["content"]
    assert words == {"type": "input_text", "text": "What?"} and sound["type"] == "input_audio"
    samples = np.frombuffer(base64.b64decode(sound["audio"]), "<i2") / 32768
    # The 16 kHz tone at 24 kHz; 1e-3 of full scale covers resampling and rounding away from the edges.
    assert np.abs(samples - kit.tone(0.5, 24_000).samples[0])[600:-600].max() < 1e-3


@pytest.mark.parametrize("output", ["", "output_"])
def test_a_spoken_answer(kit, monkeypatch, output):
    pcm = np.arange(-500, 500, dtype="<i2")
    halves = [base64.b64encode(half.tobytes()).decode() for half in np.split(pcm, 2)]
    turn = [{"type": f"response.{output}audio.delta", "delta": half} for half in halves]
    turn += [{"type": f"response.{output}audio_transcript.delta", "delta": "beep"}, done()]
    response, (seen,) = talked(kit, monkeypatch, turn, request=kit.question(wants="audio"), layout="beta")
    assert np.array_equal(response.audio.samples[0] * 32768, pcm) and response.audio.sample_rate_hz == 24_000
    assert response.text == "beep" and seen["events"][0]["session"]["modalities"] == ["text", "audio"]


def test_no_sound_where_sound_is_requested(kit, monkeypatch):
    turn = [{"type": "response.text.delta", "delta": "no"}, done()]
    response, _ = talked(kit, monkeypatch, turn, request=kit.question(wants="audio"))
    assert response.status == "failed" and response.reason.code == "no_audio_in_answer"


@pytest.mark.parametrize(
    "turn, status, message, times",
    [
        ([{"type": "error", "error": {"type": "invalid_request_error", "message": "no such audio"}}], "refused",
            "no such audio", 1),
        ([{"type": "error", "error": {"type": "server_error", "message": f"oops {KEY}"}}], "failed", "oops ***", 3),
        ([done("failed", status_details={"error": {"type": "server_error", "message": "dead"}})], "failed", "dead", 3),
        ([done("incomplete", status_details={"reason": "content_filter"})], "refused", "filter", 1),
        ([done("cancelled", status_details={"reason": "turn_detected"})], "failed", "turn_detected", 3),
        (["not json"], "failed", "not JSON", 3),
        (["[1, 2]"], "failed", "expected layout", 1),
        ("hang up", "failed", "clos", 3),
    ],
)  # fmt: skip
def test_what_goes_wrong(kit, monkeypatch, turn, status, message, times):
    response, seen = talked(kit, monkeypatch, turn, attempts=3)
    assert response.status == status and message in response.reason and KEY not in response.reason
    assert len(seen) == times == max(1, response.attempts)


def test_it_is_tried_again(kit, monkeypatch):
    response, seen = talked(kit, monkeypatch, "hang up", [{"type": "response.text.delta", "delta": "a"}, done()])
    assert response.text == "a" and response.attempts == 2 == len(seen)


def test_a_length_limit(kit, monkeypatch):
    response, _ = talked(kit, monkeypatch, [done("incomplete", status_details={"reason": "max_output_tokens"})])
    assert (response.status, response.finish, response.text) == ("ok", "length", "")


def test_a_wrong_key(kit, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    with refuses("service_status", hint="RT_KEY") as caught:
        talked(kit, monkeypatch, [done()], turn_down=401)
    assert KEY not in str(caught.value)
    client_logs = [r.getMessage() for r in caplog.records if "server" not in r.name]
    assert not any(KEY in text for text in client_logs)


def test_a_missing_key_and_nobody_there(kit, monkeypatch):
    with refuses("key_not_set", variable="OPENAI_API_KEY"):
        asyncio.run(load_model("gpt-4o-realtime").start())

    async def main():
        model = load_model("gpt-4o-realtime", {"base_url": "ws://127.0.0.1:9/v1", "key_env": None})
        kit.unhurried(model)
        async with kit.started(model):
            await model.ask(kit.question())

    with refuses("nothing_answers"):
        asyncio.run(main())


def test_the_session_says_who_answers(kit, monkeypatch):
    """`session.created` names the model behind the requested name; it is recorded with the answer."""
    events = [{"type": "session.updated", "session": {"model": "gpt-realtime-2.1-2026-08-06"}}]
    turn = [*events, {"type": "response.output_text.delta", "delta": "a"}, done()]
    response, _ = talked(kit, monkeypatch, turn, layout="ga")
    assert response.served["model"] == "gpt-realtime-2.1-2026-08-06"

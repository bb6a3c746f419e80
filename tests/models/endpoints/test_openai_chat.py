import asyncio
import base64
import io
import json

import numpy as np
import pytest
import soundfile
from refusals import refuses

from codec_bench.audio.clip import wav_bytes
from codec_bench.messages import Diagnostic
from codec_bench.models import load_model
from codec_bench.types import Message, Request


def answered(kit, handle, request, **options):
    """(response, service, clock) of one request to a model behind a local server."""

    async def main():
        async with kit.serving(handle) as service:
            model = load_model("openai-chat", {"base_url": service.url, "model": "m1", **options})
            clock = kit.unhurried(model)
            async with kit.started(model):
                return await model.ask(request), service, clock

    return asyncio.run(main())


def always(answer):
    async def handle(seen, writer):
        return answer

    return handle


def sent_wav(text):
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(text, validate=True)), dtype="int16")
    return samples, rate


def test_words_and_sound_are_sent_and_the_answer_read(kit):
    tone = kit.tone(0.5, 48_000)
    request = kit.question("What is it?", tone, parameters={"temperature": 0, "max_tokens": 9})
    response, service, _ = answered(kit, always(kit.reply(kit.chat("a tone"))), request, parameters={"top_p": 1})
    assert (response.status, response.text, response.finish) == ("ok", "a tone", "stop")
    assert response.usage == {"input_tokens": 120, "audio_input_tokens": 100, "output_tokens": 7}
    assert response.latency_s is not None and response.first_s is None and response.attempts == 1
    body = service.seen[0].json
    assert service.seen[0].path == "/v1/chat/completions"
    assert {k: body[k] for k in ("model", "temperature", "max_tokens", "top_p")} == {
        "model": "m1", "temperature": 0, "max_tokens": 9, "top_p": 1}  # fmt: skip
    sound, words = body["messages"][0]["content"]
    assert words == {"type": "text", "text": "What is it?"} and sound["input_audio"]["format"] == "wav"
    samples, rate = sent_wav(sound["input_audio"]["data"])
    assert rate == 16_000 and samples.shape == (8_000,)
    # The same tone at the new rate; 1e-3 of full scale covers resampling and rounding away from the edges.
    assert np.abs(samples[400:-400] / 32768 - kit.tone(0.5).samples[0, 400:-400]).max() < 1e-3


def test_sound_by_address(kit):
    request = kit.question("?", kit.tone())
    _, service, _ = answered(kit, always(kit.reply(kit.chat())), request, audio_as="audio_url")
    head, _, data = service.seen[0].json["messages"][0]["content"][0]["audio_url"]["url"].partition(",")
    assert head == "data:audio/wav;base64" and sent_wav(data)[1] == 16_000


def test_plain_words_are_plain_text(kit):
    request = Request("q", (Message("system", ("be brief",)), Message("user", ("a", "b"))))
    _, service, _ = answered(
        kit, always(kit.reply(kit.chat())), request, rename={"max_tokens": "max_completion_tokens"}
    )
    assert service.seen[0].json["messages"] == [
        {"role": "system", "content": "be brief"}, {"role": "user", "content": "ab"}]  # fmt: skip


def test_renamed_parameters(kit):
    request = kit.question(parameters={"max_tokens": 5, "temperature": 0.5, "seed": None})
    rename = {"max_tokens": "max_completion_tokens", "temperature": None}
    _, service, _ = answered(kit, always(kit.reply(kit.chat())), request, rename=rename)
    assert set(service.seen[0].json) == {"model", "messages", "max_completion_tokens"}


def events(*bodies, done=True, error=None):
    lines = [f"data: {json.dumps(body, ensure_ascii=False)}\n\n" for body in bodies]
    return "".join([*lines, *(["data: [DONE]\n\n"] if done else [])]).encode()


def streaming(stream, size, *, cut=False, pause=0.0):
    """A vLLM-like streamed reply, chunked anyhow."""

    async def handle(seen, writer):
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for at in range(0, len(stream), size):
            item = stream[at : at + size]
            writer.write(f"{len(item):x}\r\n".encode() + item + b"\r\n")
            await writer.drain()
            await asyncio.sleep(pause)
        return None if cut else b"0\r\n\r\n"

    return handle


def delta(text=None, finish=None, **more):
    return {"choices": [{"index": 0, "delta": {"content": text, **more}, "finish_reason": finish}]}


STREAM = events(
    delta("", role="assistant"),
    delta(reasoning_content="hm, let me listen"),
    delta("Grüße\u2028"),
    delta("世界"),
    delta(None, "stop"),
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100, 10_000])
def test_a_stream_in_any_chunks(kit, size):
    response, service, _ = answered(kit, streaming(STREAM, size), kit.question(), stream=True)
    assert response.text == "Grüße\u2028世界" and response.finish == "stop"
    assert response.usage == {"input_tokens": 3, "output_tokens": 2}
    assert response.notes == ("17 characters of reasoning are not part of the answer",)
    assert service.seen[0].json["stream_options"] == {"include_usage": True}


def test_the_time_to_the_first_piece(kit):
    stream = events(delta("a"), delta("b"), delta("c", "stop"))
    quick = streaming(stream, len(stream) // 3, pause=0.05)

    async def slow_to_begin(seen, writer):
        await asyncio.sleep(0.15)
        return await quick(seen, writer)

    response, _, _ = answered(kit, slow_to_begin, kit.question(), stream=True)
    # From sending the request, the server's silence before its headers included, to the first of three pieces.
    assert 0.15 <= response.first_s < 0.15 + 3 * 0.05 + 0.5


@pytest.mark.parametrize("case", ["cut", "no end", "error", "not JSON", "not a stream"])
def test_a_stream_that_breaks_is_tried_again_and_fails(kit, case):
    handles = {
        "cut": streaming(STREAM, 50, cut=True),
        "no end": streaming(events(delta("half"), done=False), 50),
        "error": streaming(events(delta("half"), {"error": {"message": "engine died", "code": 500}}), 50),
        "not JSON": streaming(b"data: {half\n\n", 50),
        "not a stream": always(kit.reply(kit.chat())),
    }
    response, service, _ = answered(kit, handles[case], kit.question(), stream=True, attempts=2)
    text = {
        "cut": "connection_broke",
        "no end": "stream_ended_early",
        "error": "service_error_in_answer",
        "not JSON": "event_not_json",
        "not a stream": "stream_expected",
    }
    assert response.status == "failed" and text[case] == response.reason.code
    assert len(service.seen) == 2 == response.attempts and response.text is None


@pytest.mark.parametrize("finish", ["error", "abort", "insufficient_system_resource"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_the_service_broke_off_is_tried_again_and_fails(kit, finish, stream):
    handle = (
        streaming(events(delta("half"), delta("", finish)), 50)
        if stream
        else always(kit.reply(kit.chat("half", finish)))
    )
    response, service, _ = answered(kit, handle, kit.question(), stream=stream, attempts=2)
    assert response.status == "failed" and len(service.seen) == 2 and response.text is None
    assert response.reason.as_dict() == {"code": "answer_cancelled", "cause": finish}


def test_the_limit_of_a_model_is_a_limit_of_length(kit):
    response, _, _ = answered(kit, always(kit.reply(kit.chat("half", "model_length"))), kit.question())
    assert response.status == "ok" and response.finish == "length"


def test_a_refusal(kit):
    response, _, _ = answered(kit, always(kit.reply(kit.chat(None, refusal="I cannot help."))), kit.question())
    assert (
        response.status == "refused"
        and response.reason.as_dict() == {"code": "model_declined", "message": "I cannot help."}
        and response.text == "I cannot help."
    )


def test_a_content_filter(kit):
    response, _, _ = answered(kit, always(kit.reply(kit.chat("par", "content_filter"))), kit.question())
    assert response.status == "refused" and "filter" in response.reason


def test_audio_that_the_server_does_not_take(kit):
    text = {"error": {"message": "At most 0 audio(s) may be provided", "type": "BadRequestError", "code": 400}}
    response, service, _ = answered(kit, always(kit.reply(text, 400)), kit.question("?", kit.tone()))
    assert (
        response.status == "refused"
        and response.reason.parameters["message"] == "At most 0 audio(s) may be provided"
        and len(service.seen) == 1
    )


def test_a_very_long_answer(kit):
    text = "0123456789" * 10_000
    response, _, _ = answered(kit, always(kit.reply(kit.chat(text))), kit.question())
    assert response.status == "ok" and response.text == text


@pytest.mark.parametrize("content", ["", None, []])
def test_an_empty_answer_is_an_answer(kit, content):
    response, _, _ = answered(kit, always(kit.reply(kit.chat(content))), kit.question())
    assert response.status == "ok" and response.text == "" and response.notes == (Diagnostic("answer_empty"),)


@pytest.mark.parametrize(
    "body", [{}, [], {"choices": []}, {"choices": "x"}, {"choices": [{"message": 3}]}, "text", None]
)
def test_json_of_another_shape_fails(kit, body):
    response, _, _ = answered(kit, always(kit.reply(body)), kit.question())
    assert response.status == "failed" and response.reason


def test_a_page_instead_of_an_answer(kit):
    page = kit.reply(b"<!doctype html><title>Sign in</title>", kind="text/html")
    response, service, _ = answered(kit, always(page), kit.question(), attempts=3)
    assert (
        response.reason.as_dict() == {"code": "reply_not_json", "found": "text/html", "text": "Sign in"}
        and len(service.seen) == 3
    )


def test_reasoning_is_excluded(kit):
    message = kit.chat("<think>it </think> is </think>\n\nB", reasoning="some")
    response, _, _ = answered(kit, always(kit.reply(message)), kit.question(), reasoning_end="</think>")
    assert response.text == "B" and response.notes[0].code == "reasoning_excluded"


def spoken(kit, **audio):
    data = base64.b64encode(wav_bytes(kit.tone(0.2, 24_000))).decode()
    return kit.chat(None, audio={"data": data, "transcript": "beep", **audio})


SPEAKS = {"outputs": ["text", "audio"], "modalities": ["text", "audio"], "voice": "alloy"}


def test_a_spoken_answer(kit):
    response, service, _ = answered(kit, always(kit.reply(spoken(kit))), kit.question(wants="audio"), **SPEAKS)
    assert service.seen[0].json["modalities"] == ["text", "audio"]
    assert service.seen[0].json["audio"] == {"format": "wav", "voice": "alloy"}
    assert response.text == "beep" and response.audio.sample_rate_hz == 24_000
    # One step of 16 bits.
    assert np.abs(response.audio.samples - kit.tone(0.2, 24_000).samples).max() <= 1 / 32768


def test_a_spoken_answer_in_a_second_choice(kit):
    body = kit.chat("beep")
    body["choices"] += spoken(kit)["choices"]
    response, _, _ = answered(kit, always(kit.reply(body)), kit.question(wants="audio"), **SPEAKS)
    assert response.text == "beep" and response.audio.num_samples == 4800 and response.notes == ()


def test_spoken_pieces(kit):
    pcm = np.arange(-3000, 3000, dtype="<i2")
    parts = [base64.b64encode(pcm[a : a + 1000].tobytes()).decode() for a in range(0, 6000, 1000)]
    stream = events(*[delta(audio={"data": item}) for item in parts], delta(None, "stop"))
    response, _, _ = answered(
        kit, streaming(stream, 999), kit.question(wants="audio"), stream=True, audio_format="pcm16", **SPEAKS
    )
    assert np.array_equal(response.audio.samples[0] * 32768, pcm) and response.audio.sample_rate_hz == 24_000
    assert response.first_s is not None


def test_pieces_of_one_base64_text_as_dashscope_streams_them(kit):
    pcm = np.arange(-500, 500, dtype="<i2")
    text = base64.b64encode(pcm.tobytes()).decode()
    stream = events(
        *[delta(audio={"data": text[at : at + 333]}) for at in range(0, len(text), 333)], delta(None, "stop")
    )
    options = {"stream": True, "audio_coding": "pcm", "audio_as": "input_audio_uri", **SPEAKS}
    response, service, _ = answered(
        kit, streaming(stream, 999), kit.question("?", kit.tone(), wants="audio"), **options
    )
    assert np.array_equal(response.audio.samples[0] * 32768, pcm)
    assert service.seen[0].json["audio"]["format"] == "wav"
    sound = service.seen[0].json["messages"][0]["content"][0]["input_audio"]["data"]
    assert sound.startswith("data:audio/wav;base64,")


@pytest.mark.parametrize("data", ["!!!", "", base64.b64encode(b"RIFFnothing").decode(), None])
def test_broken_sound_fails(kit, data):
    response, _, _ = answered(kit, always(kit.reply(spoken(kit, data=data))), kit.question(wants="audio"), **SPEAKS)
    assert response.status == "failed" and "audio" in response.reason


def test_what_the_model_does_not_take_is_not_sent(kit):
    handle = always(kit.reply(kit.chat()))
    for request, options in (
        (kit.question(wants="audio"), {"outputs": "text"}),
        (kit.question("?", kit.tone()), {"inputs": "text"}),
        (Request("q", fields={"text": "speak"}), {}),
    ):
        response, service, _ = answered(kit, handle, request, **options)
        assert response.status == "refused" and service.seen == []


def test_a_sound_that_cannot_be_read_fails(kit, tmp_path):
    (tmp_path / "a.wav").write_bytes(b"RIFF nothing")
    from codec_bench.audio.clip import Clip

    request = Request("q", (Message("user", (Clip(str(tmp_path / "a.wav")),)),))
    response, service, _ = answered(kit, always(kit.reply(kit.chat())), request)
    assert response.status == "failed" and "a.wav" in response.reason and service.seen == []


def test_cost(kit):
    prices = {"input": 1.0, "output": 10.0, "audio_input": 40.0}
    response, _, _ = answered(kit, always(kit.reply(kit.chat())), kit.question(), prices=prices)
    assert response.usage["cost_usd"] == pytest.approx((20 * 1 + 100 * 40 + 7 * 10) / 1e6)
    response, _, _ = answered(kit, always(kit.reply(kit.chat())), kit.question(), prices={"input": 1.0})
    assert "cost_usd" not in response.usage


def test_a_cost_where_the_service_does_not_state_which_tokens_were_sound(kit):
    prices = {"input": 2.5, "output": 10.0, "audio_input": 32.0}
    body = kit.chat() | {"usage": {"prompt_tokens": 117, "completion_tokens": 0}}
    response, _, _ = answered(kit, always(kit.reply(body)), kit.question("?", kit.tone()), prices=prices)
    assert response.usage["cost_usd"] == pytest.approx(117 * 32e-6), "the upper end, which limits hold for"
    assert response.usage["cost_unsure_usd"] == pytest.approx(117 * (32 - 2.5) * 1e-6)
    response, _, _ = answered(kit, always(kit.reply(body)), kit.question(), prices=prices)
    assert response.usage["cost_usd"] == pytest.approx(117 * 2.5e-6) and "cost_unsure_usd" not in response.usage


def test_windows_are_queried_one_after_the_other_and_joined(kit):
    texts = iter(["one two", "three", "four"])

    async def handle(seen, writer):
        return kit.reply(kit.chat(next(texts)))

    response, service, _ = answered(kit, handle, kit.question("?", kit.tone(2.5)), limit_s=1.0, window_s=1.0)
    assert response.text == "one two three four" and len(service.seen) == 3
    assert response.notes == ("sent in 3 windows",) and response.cut_s == 0 and response.usage["output_tokens"] == 21
    lengths = [len(sent_wav(s.json["messages"][0]["content"][0]["input_audio"]["data"])[0]) for s in service.seen]
    assert sum(lengths) == 40_000 and max(lengths) <= 16_000


def test_cut_audio_is_reported(kit):
    response, _, _ = answered(kit, always(kit.reply(kit.chat())), kit.question("?", kit.tone(2.5)), limit_s=1.0)
    assert response.cut_s == pytest.approx(1.5)


def test_a_wrong_key_is_an_error_and_not_a_failed_item(kit, monkeypatch):
    monkeypatch.setenv("MY_KEY", "wrong-key-value-123")
    with refuses("service_status", hint="MY_KEY") as caught:
        answered(
            kit,
            always(kit.reply({"error": {"message": "bad wrong-key-value-123"}}, 401)),
            kit.question(),
            key_env="MY_KEY",
        )
    assert "wrong-key-value-123" not in str(caught.value)


def test_nothing_secret_in_the_identity(kit, monkeypatch):
    monkeypatch.setenv("MY_KEY", "wrong-key-value-123")
    model = load_model("openai-chat", {"base_url": "http://localhost:1/v1", "model": "m", "key_env": "MY_KEY"})
    asyncio.run(model.start())
    text = json.dumps(dict(model.identity))
    assert "wrong-key" not in text + repr(vars(model)) and "MY_KEY" not in text
    asyncio.run(model.close())


@pytest.mark.parametrize("count", ["1e400", "NaN", "-Infinity", "9223372036854775808", "-1"])
def test_a_usage_that_is_no_count_is_omitted(kit, count):
    from contextlib import aclosing

    from codec_bench.benchmark.asking.sending import send_requests

    body = json.dumps(kit.chat("fine") | {"usage": {"prompt_tokens": 3, "completion_tokens": 0}})
    body = body.replace('"completion_tokens": 0', f'"completion_tokens": {count}').encode()

    async def main():
        async with kit.serving(always(kit.reply(body))) as service:
            model = load_model("openai-chat", {"base_url": service.url, "model": "m"})
            async with kit.started(model), aclosing(send_requests(model, [kit.question("?")])) as pairs:
                return [response async for _, response in pairs]

    (response,) = asyncio.run(main())
    assert response.text == "fine" and response.usage == {"input_tokens": 3.0}
    assert "output_tokens" in response.notes[-1] and response.notes[-1].code == "usage_not_counts"


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 500 + b"1" + b"}" * 500,
        b'{"error":{"details":5}}',
        b'{"error":5}',
        b'{"error":{"message":{"deep":' + b"[" * 50 + b"]" * 50 + b"}}}",
        b'{"choices":5}',
        b'{"choices":[5]}',
        b'{"choices":[{"message":{"content":5}}]}',
        b'{"choices":[{"message":{"content":"x"}}],"usage":[1]}',
        b"9" * 5000,
        b"\xff\xfe",
        b"null",
    ],
)
@pytest.mark.parametrize("status", [200, 500])
def test_strange_replies_fail_one_request_with_a_reason(kit, body, status):
    response, _, _ = answered(kit, always(kit.reply(body, status)), kit.question("?"), attempts=1)
    assert (response.status in ("failed", "refused") and response.reason) or response.text == "x"

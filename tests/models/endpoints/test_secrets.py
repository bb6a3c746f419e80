"""Nothing that a run writes, says or keeps holds a key, whatever the service does with it."""

import asyncio
import json
import logging
from contextlib import aclosing

import pytest

from codec_bench.benchmark.asking.sending import send_requests
from codec_bench.messages.errors import UserError
from codec_bench.models import list_models, load_model
from codec_bench.models.cache import ResponseCache
from codec_bench.models.endpoints.keys import clean, masked

KEY = "zq-UNMISTAKABLE-0123456789abcdef"
ENDINGS = ("answer", 400, 401, 429, 500, "page", "cut", "event")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_service_that_repeats_the_key(kit, monkeypatch, tmp_path, caplog, capfd, ending):
    monkeypatch.setenv("MY_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    messages = []

    async def handle(seen, writer):
        assert seen.headers["authorization"] == f"Bearer {KEY}"
        if ending == "cut":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + KEY.encode())
            return None
        if ending == "page":
            return kit.reply(f"<html>{KEY}</html>".encode(), kind="text/html")
        if ending == "answer":
            return kit.reply(kit.chat(f"{KEY} is the key, and it ends in {KEY[9:]}"))
        body = {"error": {"message": f"the key {KEY} of {seen.headers['authorization']}"}}
        return kit.reply(body, 200 if ending == "event" else ending)

    async def main():
        async with kit.serving(handle) as service:
            options = {"base_url": service.url, "model": "m", "key_env": "MY_KEY", "attempts": 2}
            model = load_model("openai-chat", options)
            kit.unhurried(model)
            model.client.patience = type(model.client.patience)(attempts=2, throttled_s=1.0)
            cache = ResponseCache(tmp_path / "responses.sqlite")
            async with kit.started(model):
                messages.append(json.dumps(dict(model.identity)))
                requests = [kit.question(f"{n}?", id=f"q{n}") for n in range(3)]
                async with aclosing(send_requests(model, requests, cache=cache)) as pairs:
                    async for request, response in pairs:
                        messages.append(repr(request) + repr(response))
            messages.append(repr(model) + repr(vars(model)))
            cache.close()

    try:
        asyncio.run(main())
    except UserError as error:
        assert ending == 401
        messages += [str(error), repr(error), repr(error.__cause__), repr(error.__context__)]
    out, err = capfd.readouterr()
    # asyncio's own debug log of the server side holds no headers; aiohttp is among what logs at this level.
    everything = "".join([*messages, caplog.text, out, err])
    everything += "".join(file.read_bytes().decode("latin-1") for file in tmp_path.iterdir())
    assert not any(KEY[at : at + 8] in everything for at in range(len(KEY) - 7)) and "MY_KEY" not in messages[0]
    assert ending != "answer" or "*** is the key, and it ends in ***" in everything


def test_parts_of_eight_characters_are_masked():
    for text, expected in {
        f"a {KEY[:13]}... b": "a ***... b",
        f"{KEY[:7]} {KEY[-7:]}": f"{KEY[:7]} {KEY[-7:]}",
        f"{KEY}{KEY} {KEY[4:12]}x": "*** ***x",
        "EMPTY": "EMPTY",
    }.items():
        assert masked(text, (KEY, "EMPTY")) == expected
    assert KEY[:8] not in clean("x" * 287 + KEY, (KEY,)) and KEY[:8] not in clean(clean("x" * 280 + KEY), (KEY,))


def test_no_config_holds_a_key():
    for row in list_models():
        if row.kind in ("openai-chat", "openai-transcription", "openai-speech", "openai-realtime", "gemini"):
            model = load_model(row.name, {"model": "m"} if row.name.startswith(("openai-", "transformers-")) else {})
            assert model.key.env is None or model.key.env.endswith("_API_KEY")

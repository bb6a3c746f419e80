"""Nothing that a run writes, says or keeps holds a key, whatever the service does with it."""

import asyncio
import json
import logging
from contextlib import aclosing

import pytest

from codec_bench.benchmark.asking.requests import ask_all
from codec_bench.errors import UserError
from codec_bench.models import list_models, load_model
from codec_bench.models.cache import ResponseCache

KEY = "zq-UNMISTAKABLE-0123456789abcdef"
ENDINGS = ("answer", 400, 401, 429, 500, "page", "cut", "event")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_service_that_repeats_the_key(kit, monkeypatch, tmp_path, caplog, capfd, ending):
    monkeypatch.setenv("MY_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    said = []

    async def handle(seen, writer):
        assert seen.headers["authorization"] == f"Bearer {KEY}"
        if ending == "cut":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + KEY.encode())
            return None
        if ending == "page":
            return kit.reply(f"<html>{KEY}</html>".encode(), kind="text/html")
        if ending == "answer":
            return kit.reply(kit.chat("an answer"))
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
                said.append(json.dumps(dict(model.identity)))
                requests = [kit.question(f"{n}?", id=f"q{n}") for n in range(3)]
                async with aclosing(ask_all(model, requests, cache=cache)) as pairs:
                    async for request, response in pairs:
                        said.append(repr(request) + repr(response))
            said.append(repr(model) + repr(vars(model)))
            cache.close()

    try:
        asyncio.run(main())
    except UserError as error:
        assert ending == 401
        said += [str(error), repr(error), repr(error.__cause__), repr(error.__context__)]
    out, err = capfd.readouterr()
    # asyncio's own debug log of the server side holds no headers; httpx and httpcore log every request at this level.
    everything = "".join([*said, caplog.text, out, err])
    everything += "".join(file.read_bytes().decode("latin-1") for file in tmp_path.iterdir())
    assert KEY not in everything and KEY[3:] not in everything and "MY_KEY" not in said[0]


def test_no_config_holds_a_key():
    for row in list_models():
        if row.kind in ("openai-chat", "openai-transcription", "openai-speech", "openai-realtime", "gemini"):
            model = load_model(row.name, {"model": "m"} if row.name.startswith("openai-") else {})
            assert model.key.env is None or model.key.env.endswith("_API_KEY")

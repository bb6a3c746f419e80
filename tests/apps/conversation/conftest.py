"""Conversations with the scripted server, on the virtual clock."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace

import pytest
import soundfile

from codec_bench.apps.conversation.script import Conversation, Script
from codec_bench.apps.conversation.services import SERVICES
from codec_bench.apps.conversation.session import hold_conversation
from codec_bench.apps.conversation.user import ScriptedUser, Sounds
from codec_bench.models import load_model

from . import server, virtual

MODEL = "gpt-realtime-2.1"


@pytest.fixture
def talk(monkeypatch, tmp_path):
    """Holds conversations with the scripted server on the virtual clock.

    `talk.hold(conversations, plans)` gives the sessions and the server's logs, both by the id of the conversation. The
    sounds `short`, `long` and `hm` are tones of 0.8, 2 and 0.3 s with 0.2 s of silence behind them.
    """
    virtual.patched(monkeypatch)
    for name, seconds in (("short", 0.8), ("long", 2.0), ("hm", 0.3)):
        sound = [*server.tone(seconds, 200.0), *[0] * round(0.2 * server.RATE_HZ)]
        soundfile.write(tmp_path / f"{name}.wav", sound_of(sound), server.RATE_HZ)
    return SimpleNamespace(hold=lambda *options, **more: held(tmp_path, *options, **more), folder=tmp_path)


def sound_of(values):
    import numpy as np

    return np.asarray(values, np.int16)


def held(folder, conversations, plans, *, users=None, run=virtual.run, model=MODEL, talk=server.Talk, **changed):
    talks = [Conversation(**one) for one in conversations]
    script = Script(version=1, title="t", conversations=talks, **changed)
    logs = {}

    name = model

    async def main():
        async with server.serving(plans, logs, talk=talk) as url:
            model = load_model(name, {"base_url": url, "key_env": None})
            model = SERVICES[type(model)](model)
            await model.start()

            async def one(conversation):
                user = (users or {}).get(conversation.id)
                if user is None:
                    user = ScriptedUser(script, conversation, Sounds(None, folder, model.rate_hz), model.rate_hz // 50)
                return await hold_conversation(
                    model, user, conversation.id, script.model_copy(update={"instructions": conversation.id})
                )

            try:
                return await asyncio.gather(*map(one, talks))
            finally:
                await model.close()

    return {session.id: session for session in run(main())}, logs


@pytest.fixture
def service(monkeypatch):
    """`service(plans)` puts a scripted server behind the next commands, on the virtual clock; gives its options and its
    logs.
    """
    virtual.patched(monkeypatch)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def put(plans):
        logs = {}

        def run(main):
            async def both():
                async with server.serving(plans, logs, port):
                    return await main

            return virtual.run(both())

        monkeypatch.setattr("codec_bench.apps.conversation.api.asyncio.run", run)
        return {"base_url": f"ws://127.0.0.1:{port}/v1/realtime", "key_env": None}, logs

    return put

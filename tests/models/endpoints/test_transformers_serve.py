"""A tiny model that hears, in this process and behind `transformers serve`: greedy answers in float32 are the same
texts.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec

import pytest
import tiny_audio_models
from tiny_questions import request
from tiny_server import answers, free_port, serving

from codec_bench.models import load_model
from codec_bench.models.base import ModelInfo
from codec_bench.models.in_process.transformers_model import TransformersModel

NEEDS = ("fastapi", "uvicorn", "openai", "accelerate")
# Not imported here: every process of tests collects this file, and would hold them for good.
pytestmark = [
    pytest.mark.skipif(None in map(find_spec, NEEDS), reason=f"transformers serve needs {', '.join(NEEDS)}"),
    pytest.mark.usefixtures("one_thread"),
]
GREEDY = {"max_tokens": 12, "temperature": 0.0, "repetition_penalty": 1.0}


@contextmanager
def serving_here(folder):
    """The address of the same server in a thread of this process, which has imported torch already."""
    from transformers.cli.serve import Serve

    port = free_port()
    server = Serve(str(folder), device="cpu", dtype="float32", host="127.0.0.1", port=port, non_blocking=True)
    try:
        while not answers(port):
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill_server()


def send(model, requests, *, together):
    async def run():
        await model.start()
        try:
            if together:
                return await asyncio.gather(*map(model.ask, requests))
            return [await model.ask(one) for one in requests]
        finally:
            await model.close()

    return asyncio.run(run())


def in_process(folder, requests):
    """The answers in this process: of one batch, and one by one."""
    return [
        send(TransformersModel(ModelInfo("tiny"), weights=str(folder), device="cpu"), requests, together=together)
        for together in (True, False)
    ]


def texts_of(*several):
    return [[(one.status, one.text, one.finish) for one in answers] for answers in several]


def questions(count):
    return [replace(request(k, 0.4 + 0.1 * (k % 9)), parameters=GREEDY) for k in range(count)]


def test_a_few_answers_in_process_and_served_are_the_same(tmp_path):
    """The short form of the test below."""
    tiny_audio_models.write_qwen2_audio(tmp_path)
    requests = questions(6)
    with serving_here(tmp_path) as url:
        model = load_model("transformers-serve", {"base_url": url, "model": str(tmp_path)})
        there = send(model, requests, together=True)
    texts = texts_of(*in_process(tmp_path, requests), there)
    assert texts[0] == texts[1] == texts[2] and model.unsupported == {}
    assert len({text for _, text, _ in texts[0]}) > 3, "the checkpoint answers different questions differently"


@pytest.mark.long
def test_in_process_and_served_answers_are_the_same(tmp_path):
    tiny_audio_models.write_qwen2_audio(tmp_path)
    requests = questions(50)
    here = in_process(tmp_path, requests)
    with serving(tmp_path) as url:
        model = load_model("transformers-serve", {"base_url": url, "model": str(tmp_path)})
        there = send(model, requests, together=True)
        plain = load_model("openai-chat", {"base_url": url, "model": str(tmp_path)})
        send(plain, requests[:1], together=True)
    texts = texts_of(*here, there)
    assert texts[0] == texts[1] == texts[2]
    assert len({text for _, text, _ in texts[0]}) > 25, "the checkpoint answers different questions differently"
    assert model.unsupported == {}
    assert "Unexpected fields" in plain.unsupported["repetition_penalty"], "the checkpoint's own penalty would stay"

"""A model of embeddings behind a real local server: what is sent, what is read, and what is refused."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from codec_bench.models import load_model
from codec_bench.types import Message, Request

QUESTION = Request("q", fields={"text": "a dog", "texts": ("a cat", "a dog barks")}, parameters={"temperature": 0})


def body(*vectors, **more):
    data = [{"object": "embedding", "index": n, "embedding": list(vector)} for n, vector in enumerate(vectors)]
    return {
        "object": "list",
        "data": data,
        "model": "m1-2026",
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
        **more,
    }


def send(kit, *answers, request=QUESTION, **options):
    """The response to a request, and what the server saw; the last of its answers stays."""

    async def handle(seen, writer):
        return answers[min(len(service.seen), len(answers)) - 1]

    async def main():
        nonlocal service
        async with kit.serving(handle) as service:
            model = load_model("openai-embeddings", {"base_url": service.url, "model": "m1", **options})
            kit.unhurried(model)
            async with kit.started(model):
                return await model.ask(request), service, model

    service = None
    return asyncio.run(main())


def test_similarities_are_cosines_in_the_order_of_the_texts(kit):
    reply = body((3, 0, 4), (0, 2, 0), (6, 0, 8))
    reply["data"].reverse()  # a server may answer in any order; the numbers say which is which
    prices = {"input": 2.0}
    response, service, model = send(kit, kit.reply(reply), prices=prices)
    assert response.status == "ok" and json.loads(response.text) == {"similarities": [0.0, 1.0]}
    assert service.seen[0].path == "/v1/embeddings"
    assert response.usage["input_tokens"] == 7 and response.usage["cost_usd"] == pytest.approx(14e-6)
    assert response.served["model"] == "m1-2026" and "temperature" in model.unsupported


def test_the_request_is_the_one_that_openais_package_sends(kit, monkeypatch):
    openai = pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    sent = []

    def keep(request):
        sent.append((request.url.path, json.loads(request.read())))
        return httpx.Response(200, json=body((1, 0), (1, 0), (1, 0)))

    _, service, _ = send(kit, kit.reply(body((1, 0), (0, 1), (1, 1))), parameters={"dimensions": 2})
    with openai.OpenAI(http_client=httpx.Client(transport=httpx.MockTransport(keep))) as theirs:
        texts = ["a dog", "a cat", "a dog barks"]
        theirs.embeddings.create(model="m1", input=texts, encoding_format="float", dimensions=2)
    assert sent == [(service.seen[0].path, service.seen[0].json)]


def test_a_busy_server_is_queried_again(kit):
    busy = kit.reply({"error": {"message": "too many requests"}}, status=429)
    response, service, _ = send(kit, busy, kit.reply(body((1, 0), (0, 1), (1, 0))))
    assert response.status == "ok" and response.attempts == 2 and len(service.seen) == 2


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (body((1, 0), (0, 1)), "2 embeddings for 3 texts"),
        (body((1, 0), (0, 0), (1, 1)), "expected"),
        (body((1, 0), (0, 1), (1, 1, 1)), "expected"),
        ({"object": "list", "data": []}, "expected"),
        ({"data": [{"index": 5, "embedding": [1]}] * 3}, "expected"),
    ],
)  # fmt: skip
def test_what_is_no_embedding_of_each_text_is_a_failure(kit, reply, reason):
    response, _, _ = send(kit, kit.reply(reply))
    assert response.status == "failed" and reason in response.reason, response.reason


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Request("q", messages=(Message("user", ("Rate this.",)),)), "compares 'text' with 'texts'"),
        (Request("q", fields={"text": "a", "texts": ()}), "compares 'text' with 'texts'"),
        (Request("q", fields={"text": "a", "texts": ("b", "")}), "an empty text has no embedding"),
    ],
)
def test_what_cannot_be_compared_is_refused_and_not_sent(kit, request_, reason):
    response, service, _ = send(kit, kit.reply({}), request=request_)
    sent = [seen for seen in service.seen if seen.path.endswith("/embeddings")]
    assert response.status == "refused" and reason in response.reason and not sent

"""Embeddings as OpenAI defines them: how like each other texts are. vLLM, litellm's proxy and most vendors serve them.

Source: https://platform.openai.com/docs/api-reference/embeddings/create
Checked against the types and the requests of the package openai 3.54 on 2026-11-26.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from codec_bench.models.base import ModelInfo
from codec_bench.models.endpoints.accounts import openai_usage
from codec_bench.models.endpoints.bodies import named, understood
from codec_bench.models.endpoints.remote import JSON, JsonModel
from codec_bench.models.endpoints.replies import read_json
from codec_bench.models.endpoints.retries import RequestFailed
from codec_bench.types import Request, Response

SIMILARITIES = "similarities"


class OpenAiEmbeddings(JsonModel):
    """A model of texts behind `/embeddings`. It reads the fields `text` and `texts`, and its answer is JSON:
    `{"similarities": [...]}`.

    A similarity is the cosine of the embedding of `text` and that of one of `texts`, in their order. All texts of a
    question are sent in one request, as they are: what a model wants before a text (an instruction, a prefix) is for
    its server to add.

    Args:
        info: the facts of the model, which reads fields and gives text.
        path: appended to `base_url`.
        connection: as `RemoteModel`; `parameters` go into the body (`dimensions`).
    """

    checked: ClassVar[str] = "the types and the requests of the package openai 3.54; 2026-11-26"
    changes_answers: ClassVar[tuple[str, ...]] = ("path",)
    words: ClassVar[Mapping[str, str | None]] = dict.fromkeys(
        ("temperature", "top_p", "max_tokens", "seed", "stop", "reasoning_tokens")
    )

    def __init__(self, info: ModelInfo, *, path: str = "/embeddings", **connection: Any) -> None:
        super().__init__(info, **connection)
        self.path = path

    def check(self, request: Request) -> str | None:
        """Why the model does not take a request; None if it does."""
        texts = [request.fields.get("text"), *(request.fields.get("texts") or (None,))]
        if not all(isinstance(text, str) for text in texts):
            return f"the model '{self.info.name}' compares the field 'text' with 'texts', and the prompt does not fill them"
        if not all(texts):
            return "an empty text has no embedding"
        return super().check(request)

    def content(self, request: Request) -> dict[str, Any]:
        """The body."""
        texts = [request.fields["text"], *request.fields["texts"]]
        return {"model": self.model, "input": texts, "encoding_format": "float", **self.named_parameters(request)}

    async def answer(self, request: Request, body: bytes) -> Response:
        """The similarities."""
        reply = await self.client.send("POST", self.path, read_json, content=body, headers=JSON)
        of_text, *others = understood(_embeddings, reply.value)
        if len(others) != len(request.fields["texts"]):
            expected = 1 + len(request.fields["texts"])
            raise RequestFailed(
                f"the reply has {1 + len(others)} embeddings for {expected} texts", attempts=reply.attempts
            )
        return Response(
            text=json.dumps({SIMILARITIES: [float(of_text @ other) for other in others]}),
            usage={"output_tokens": 0.0, **openai_usage(reply.value.get("usage"))},  # nothing is written
            latency_s=reply.latency_s,
            attempts=reply.attempts,
            served=reply.served(model=named(reply.value, "model")),
        )


def _embeddings(body: Any) -> np.ndarray:
    """The embeddings of a reply `(texts, dimensions)` in the order of the texts, each of length 1."""
    rows = sorted(body["data"], key=lambda one: one["index"])
    if [one["index"] for one in rows] != list(range(len(rows))):
        raise ValueError("the embeddings are not numbered from 0 on")
    vectors = np.array([one["embedding"] for one in rows], np.float64)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if vectors.ndim != 2 or not np.isfinite(vectors).all() or not (lengths > 0).all():
        raise ValueError("the embeddings are not lists of finite numbers of which one is not 0")
    normalised: np.ndarray = vectors / lengths
    return normalised

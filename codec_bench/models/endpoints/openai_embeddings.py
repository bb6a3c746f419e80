"""OpenAI embeddings for text similarity, also of vLLM and most vendors.

Source: https://platform.openai.com/docs/api-reference/embeddings/create. Checked against the types and requests of
openai 3.54 on 2026-11-26.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.models.base import ModelInfo
from codec_bench.models.endpoints.accounts import openai_usage
from codec_bench.models.endpoints.bodies import optional_text, parse_reply
from codec_bench.models.endpoints.remote import JSON, JsonModel
from codec_bench.models.endpoints.replies import read_json
from codec_bench.models.endpoints.retries import RequestFailed
from codec_bench.types import Request, Response

SIMILARITIES = "similarities"


class OpenAiEmbeddings(JsonModel):
    """Text similarity behind `/embeddings`; the answer is `{"similarities": [...]}`.

    It reads the fields `text` and `texts`. A similarity is the cosine of the embeddings of `text` and of one of
    `texts`, in order. One request holds all texts unchanged; instructions or prefixes are for the server to add.

    Args:
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
        """Return why the model does not accept a request, or None.

        It must have the fields `text` and `texts`, which are not empty.
        """
        texts = [request.fields.get("text"), *(request.fields.get("texts") or (None,))]
        if not all(isinstance(text, str) for text in texts):
            return Diagnostic("fields_to_compare_missing", model=self.info.name)
        if not all(texts):
            return Diagnostic("empty_text_to_embed")
        return super().check(request)

    def content(self, request: Request) -> dict[str, Any]:
        """Return the body."""
        texts = [request.fields["text"], *request.fields["texts"]]
        return {"model": self.model, "input": texts, "encoding_format": "float", **self.named_parameters(request)}

    async def answer(self, request: Request, body: bytes) -> Response:
        """Return the cosines of the field `text` with each of `texts`, as JSON."""
        reply = await self.client.send("POST", self.path, read_json, content=body, headers=JSON)
        of_text, *others = parse_reply(_embeddings, reply.value)
        if len(others) != len(request.fields["texts"]):
            counts = {"embeddings": 1 + len(others), "texts": 1 + len(request.fields["texts"])}
            raise RequestFailed(Diagnostic("embeddings_miscounted", **counts), attempts=reply.attempts)
        return Response(
            text=json.dumps({SIMILARITIES: [float(of_text @ other) for other in others]}),
            usage={"output_tokens": 0.0, **openai_usage(reply.value.get("usage"))},  # nothing is written
            **reply.about(model=optional_text(reply.value, "model")),
        )


def _embeddings(body: Any) -> np.ndarray:
    """Return a reply's embeddings as unit vectors; ValueError if they are damaged."""
    rows = sorted(body["data"], key=lambda one: one["index"])
    if [one["index"] for one in rows] != list(range(len(rows))):
        raise ValueError("the embeddings are not numbered from 0 on")
    vectors = np.array([one["embedding"] for one in rows], np.float64)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if vectors.ndim != 2 or not np.isfinite(vectors).all() or not (lengths > 0).all():
        raise ValueError("the embeddings are not lists of finite numbers that are not all 0")
    normalised: np.ndarray = vectors / lengths
    return normalised

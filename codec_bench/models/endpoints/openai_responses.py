"""OpenAI's Responses, also with audio as in Volcengine's Ark.

Sources, read on 2026-11-22: https://developers.openai.com/api/reference/resources/responses and the types of openai
3.54; for audio, `response_input_audio_param.py` of https://github.com/volcengine/volcengine-python-sdk (`audio_url`).
OpenAI's own models take no audio here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from codec_bench.messages import Diagnostic
from codec_bench.models.audio_payloads import data_uri, wav_base64
from codec_bench.models.base import EMPTY, ModelInfo
from codec_bench.models.endpoints.accounts import openai_usage
from codec_bench.models.endpoints.batches import BatchableModel
from codec_bench.models.endpoints.bodies import optional_text, parse_reply, service_facts
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.openai_batches import OpenAiBatches
from codec_bench.models.endpoints.openai_chat import trouble_within
from codec_bench.models.endpoints.remote import JSON, check_choice
from codec_bench.models.endpoints.replies import read_json
from codec_bench.models.endpoints.retries import RequestFailed, Retryable
from codec_bench.types import Message, Request, Response, Sound

if TYPE_CHECKING:
    import aiohttp

FINISHES = {"max_output_tokens": "length"}
INTERRUPTED = {"failed", "cancelled"}
"""States of an answer that the service broke off."""


class OpenAiResponses(BatchableModel):
    """A model behind `/responses`. The service stores nothing (`store`).

    Args:
        audio_as: how audio is sent: `audio_url` (a `data:` URL, as Volcengine takes it) or `input_audio` (WAV in
            base64).
        path: appended to `base_url`.
        connection: as `RemoteModel`; `parameters` go into the body.
    """

    checked: ClassVar[str] = "the types of openai 3.54 and, for sound, those of volcengine-python-sdk; 2026-11-22"
    changes_answers: ClassVar[tuple[str, ...]] = ("path", "audio_as")
    words: ClassVar[Mapping[str, str | None]] = {
        "max_tokens": "max_output_tokens",
        **dict.fromkeys(("reasoning_tokens", "repetition_penalty", "seed", "stop")),
    }

    def __init__(
        self,
        info: ModelInfo,
        *,
        audio_as: Literal["audio_url", "input_audio"] = "audio_url",
        path: str = "/responses",
        **connection: Any,
    ) -> None:
        super().__init__(info, **connection)
        check_choice(info, "audio_as", audio_as, ("audio_url", "input_audio"))
        self.audio_as, self.path = audio_as, path

    async def answer(self, request: Request, body: bytes) -> Response:
        """Send the body of a request, and return the service's answer."""
        reply = await self.client.send("POST", self.path, _read, content=body, headers=JSON)
        return self.read_body(reply.value, reply.about())

    def batches(self) -> OpenAiBatches:
        """Return the batch interface of the service."""
        return OpenAiBatches(self, self.path)

    def content(self, request: Request) -> dict[str, Any]:
        """Return the body."""
        turns = [self._turn(message) for message in request.messages]
        return {"model": self.model, "input": turns, "store": False, **self.named_parameters(request)}

    def read_body(self, body: Any, about: dict[str, Any]) -> Response:
        """Convert a complete reply, and facts `about` it such as latency, to a response."""
        _check(body)
        about = service_facts(about, model=optional_text(body, "model"))
        return parse_reply(lambda body: self._response(body, about), body)

    def _turn(self, message: Message) -> dict[str, Any]:
        """Return a turn as a message of the request: plain text, or parts with audio."""
        texts = [item for item in message.content if isinstance(item, str)]
        if len(texts) == len(message.content):  # earlier answers must be plain text
            return {"type": "message", "role": message.role, "content": "".join(texts)}
        parts = [{"type": "input_text", "text": p} if isinstance(p, str) else self._sound(p) for p in message.content]
        return {"type": "message", "role": message.role, "content": parts}

    def _sound(self, sound: Sound) -> dict[str, Any]:
        if self.audio_as == "audio_url":
            return {"type": "input_audio", "audio_url": data_uri(sound)}
        return {"type": "input_audio", "input_audio": {"data": wav_base64(sound), "format": "wav"}}

    def _response(self, body: Mapping[str, Any], about: dict[str, Any]) -> Response:
        """Convert a reply to a response; refused if the model declined."""
        parts = [p for item in body["output"] if item.get("type") == "message" for p in item.get("content") or ()]
        text = "".join(content.get("text") or "" for content in parts if content.get("type") == "output_text")
        refusal = "".join(content.get("refusal") or "" for content in parts if content.get("type") == "refusal")
        why = (body.get("incomplete_details") or {}).get("reason") if body.get("status") == "incomplete" else None
        about = {**about, "usage": openai_usage(body.get("usage")), "finish": FINISHES.get(why, why) if why else "stop"}
        if refusal:
            return Response.refused(Diagnostic("model_declined", message=clean(refusal)), text=refusal, **about)
        if why == "content_filter":
            return Response.refused(Diagnostic("content_filter"), text=text or None, **about)
        return Response(text=text, notes=() if text else (EMPTY,), **about)


async def _read(response: aiohttp.ClientResponse, began: float) -> Any:
    body = await read_json(response, began)
    _check(body)
    return body


def _check(body: Any) -> None:
    if isinstance(body, Mapping) and body.get("error"):
        raise trouble_within(body, {"invalid_request_error", "invalid_prompt"})
    if isinstance(body, Mapping) and body.get("status") in INTERRUPTED:
        raise Retryable(Diagnostic("answer_cancelled", cause=body["status"]))
    if not isinstance(body, Mapping) or not isinstance(body.get("output"), list):
        raise RequestFailed(Diagnostic("no_answer_in_reply", body=clean(str(body))))

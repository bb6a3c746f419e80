"""Gemini's `generateContent` over REST: https://ai.google.dev/api/generate-content. The key is sent in a header.

Checked against the types of the package google-genai 3.4 on 2026-11-22.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from codec_bench.errors import UserError
from codec_bench.models.base import EMPTY, ModelInfo
from codec_bench.models.endpoints.accounts import gemini_usage
from codec_bench.models.endpoints.bodies import named, understood
from codec_bench.models.endpoints.client import read_json
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.persistence import GivenUp
from codec_bench.models.endpoints.remote import JSON, JsonModel
from codec_bench.models.sound import audio_of, from_base64, wav_base64
from codec_bench.types import Audio, Request, Response, Sound

BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
NAMES = {
    "max_tokens": "maxOutputTokens",
    "top_p": "topP",
    "top_k": "topK",
    "stop": "stopSequences",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
ROLES = {"user": "user", "assistant": "model"}
CATEGORIES = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
BLOCKED = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"}


class Gemini(JsonModel):
    """A Gemini model.

    Args:
        info: the facts of the model.
        safety: the threshold of every safety filter; None takes the service's own. An answer that a filter stops counts as
            refused, so that with strict filters a benchmark measures the filters.
        connection: as `RemoteModel`; `parameters` go into `generationConfig`.
    """

    changes_answers: ClassVar[tuple[str, ...]] = ("safety",)
    words: ClassVar[Mapping[str, str | None]] = {
        "reasoning_tokens": "thinkingConfig.thinkingBudget", "repetition_penalty": None,
    }  # fmt: skip

    def __init__(self, info: ModelInfo, *, safety: str | None = "BLOCK_NONE", **connection: Any) -> None:
        own = {"base_url": BASE_URL, "key_env": "GEMINI_API_KEY", "key_header": "x-goog-api-key", "rename": NAMES}
        super().__init__(info, **{**own, **connection})
        self.safety = safety

    async def answer(self, request: Request, body: bytes) -> Response:
        """One answer."""
        path = f"/models/{self.model}:generateContent"
        reply = await self.client.send("POST", path, read_json, content=body, headers=JSON)
        version, answer = named(reply.value, "modelVersion"), named(reply.value, "responseId")
        served = {**({"request": answer} if answer else {}), **reply.served(model=version)}
        about = {"latency_s": reply.latency_s, "attempts": reply.attempts, "served": served}
        return understood(lambda value: self._response(value, about), reply.value)

    def content(self, request: Request) -> dict[str, Any]:
        """The body."""
        config = self.named_parameters(request)
        if isinstance(config.get("stopSequences"), str):
            config["stopSequences"] = [config["stopSequences"]]
        turns = [m for m in request.messages if m.role != "system"]
        body: dict[str, Any] = {
            "contents": [{"role": ROLES[m.role], "parts": [self._part(part) for part in m.content]} for m in turns]
        }
        system = [self._part(part) for m in request.messages if m.role == "system" for part in m.content]
        if system:
            body["systemInstruction"] = {"parts": system}
        if request.wants == "audio" and "responseModalities" not in config:
            config["responseModalities"] = ["AUDIO"]
        if config:
            body["generationConfig"] = config
        if self.safety is not None:
            body["safetySettings"] = [
                {"category": f"HARM_CATEGORY_{name}", "threshold": self.safety} for name in CATEGORIES
            ]
        return body

    def _part(self, part: str | Sound) -> dict[str, Any]:
        if isinstance(part, str):
            return {"text": part}
        return {"inlineData": {"mimeType": "audio/wav", "data": wav_base64(part)}}

    def _response(self, body: Mapping[str, Any], about: dict[str, Any]) -> Response:
        about = {**about, "usage": gemini_usage(body.get("usageMetadata"))}
        blocked = (body.get("promptFeedback") or {}).get("blockReason")
        if blocked:
            return Response.refused(f"the service blocked the prompt: {clean(str(blocked))}", **about)
        if not body.get("candidates"):
            raise GivenUp(f"the reply holds no answer: {clean(str(body))}")
        candidate = body["candidates"][0]
        finish = candidate.get("finishReason")
        about["finish"] = {"STOP": "stop", "MAX_TOKENS": "length"}.get(finish, finish)
        parts = (candidate.get("content") or {}).get("parts") or []
        text = "".join(part.get("text") or "" for part in parts if not part.get("thought"))
        if finish in BLOCKED:
            said = clean(str(candidate.get("finishMessage") or ""))
            reason = f"the service stopped the answer: {finish}" + (f" ({said})" if said else "")
            return Response.refused(reason, text=text or None, **about)
        sounds = [part["inlineData"] for part in parts if part.get("inlineData")]
        notes = [] if text or sounds else [EMPTY]
        thoughts = sum(len(part.get("text") or "") for part in parts if part.get("thought"))
        if thoughts:
            notes.append(f"{thoughts} characters of reasoning are not part of the answer")
        try:
            audio = _audio(sounds) if sounds else None
        except UserError as error:
            return Response.failed(error.message, text=text or None, **about)
        return Response(text=None if audio is not None and not text else text, audio=audio, notes=tuple(notes), **about)


def _audio(sounds: list[Mapping[str, Any]]) -> Audio:
    kind = sounds[0]["mimeType"].lower()
    rate = re.search(r"rate=(\d+)", kind)
    bare = kind.startswith(("audio/l16", "audio/pcm"))
    data = b"".join(from_base64(sound["data"]) for sound in sounds)
    name = "pcm" if bare else kind.partition(";")[0].rpartition("/")[2].removeprefix("x-").replace("mpeg", "mp3")
    return audio_of(data, name, int(rate[1]) if rate else 24_000)


__all__ = ["Gemini"]

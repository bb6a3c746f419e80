"""Gemini's `generateContent`: https://ai.google.dev/api/generate-content.

Checked against the types of the package google-genai 3.4 on 2026-11-22.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.models.audio_payloads import audio_of, from_base64, wav_base64, wav_file
from codec_bench.models.base import EMPTY, ModelInfo
from codec_bench.models.endpoints.accounts import gemini_usage
from codec_bench.models.endpoints.batches import BatchableModel, transfer_client
from codec_bench.models.endpoints.bodies import json_bytes, optional_text, parse_reply, service_facts
from codec_bench.models.endpoints.gemini_batches import GeminiBatches, root_of, version_of
from codec_bench.models.endpoints.gemini_files import GeminiFiles
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.remote import JSON
from codec_bench.models.endpoints.replies import read_json
from codec_bench.models.endpoints.retries import RequestFailed
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
INLINE_BYTES = 20_000_000
"""20 MB for years, 100 MB since 2026; the smaller number holds for every model."""
SOUND_PREFIX = "codec-bench-sound:"
ROLES = {"user": "user", "assistant": "model"}
CATEGORIES = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
BLOCKED = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"}
STOPPED = {"OTHER", "FINISH_REASON_UNSPECIFIED", "MALFORMED_RESPONSE", "MALFORMED_FUNCTION_CALL"}
"""Reasons for which an answer ends before it is complete, without a limit or a filter."""


class LongBody(bytes):
    """A body whose audio is in files of the service, referenced by content digest."""

    sounds: Mapping[str, bytes]

    def __new__(cls, body: bytes, sounds: Mapping[str, bytes]) -> LongBody:
        """Create the body with its audio by digest."""
        instance = super().__new__(cls, body)
        instance.sounds = sounds
        return instance


class Gemini(BatchableModel):
    """A Gemini model.

    Args:
        safety: the threshold of every safety filter; None leaves it to the service. A filtered answer counts as
            refused, so with strict filters a benchmark measures the filters.
        inline_bytes: a longer request is sent without its audio, which is uploaded as files. A file serves every
            question about the same audio, and is deleted when the run ends.
        connection: as `RemoteModel`; `parameters` go into `generationConfig`.
    """

    checked: ClassVar[str] = (
        "the types of the package google-genai 3.4 and the documentation of its files and batches; 2026-11-22"
    )
    changes_answers: ClassVar[tuple[str, ...]] = ("safety",)
    words: ClassVar[Mapping[str, str | None]] = {
        "reasoning_tokens": "thinkingConfig.thinkingBudget", "repetition_penalty": None,
    }  # fmt: skip

    def __init__(
        self, info: ModelInfo, *, safety: str | None = "BLOCK_NONE", inline_bytes: int = INLINE_BYTES, **connection: Any
    ) -> None:
        defaults = {"base_url": BASE_URL, "key_env": "GEMINI_API_KEY", "key_header": "x-goog-api-key", "rename": NAMES}
        super().__init__(info, **{**defaults, **connection})
        self.safety, self.inline_bytes = safety, int(inline_bytes)
        self._files: GeminiFiles | None = None
        self._files_lock = asyncio.Lock()

    async def answer(self, request: Request, body: bytes) -> Response:
        """Send a request, after uploading the audio of a long one; return the response."""
        path = f"/models/{self.model}:generateContent"
        sounds = body.sounds if isinstance(body, LongBody) else {}
        try:
            sent = await self._uploaded(body) if isinstance(body, LongBody) else body
            reply = await self.client.send("POST", path, read_json, content=sent, headers=JSON)
        finally:
            for digest in sounds:
                await (await self._open_files()).release(digest)
        return self.read_body(reply.value, reply.about())

    def read_body(self, body: Any, about: dict[str, Any]) -> Response:
        """Implement `BatchableModel.read_body`."""
        about = service_facts(
            about, request=optional_text(body, "responseId"), model=optional_text(body, "modelVersion")
        )
        return parse_reply(lambda value: self._response(value, about), body)

    def batches(self) -> GeminiBatches:
        """Gemini's batch mode."""
        return GeminiBatches(self, self.model)

    async def ready(self, body: Any) -> bytes:
        """Return the body for a batch file, after uploading its audio if it is long."""
        if not isinstance(body, LongBody):
            return bytes(body)
        sent = await self._uploaded(body)
        for digest in body.sounds:
            (await self._open_files()).keep(digest)
        return sent

    async def close(self) -> None:
        """Delete the uploaded audio and close every connection."""
        if self._files is not None:
            files, self._files = self._files, None
            await files.close()
        await super().close()

    def encode(self, request: Request) -> bytes:
        """Return the body as JSON; if it is too long, its audio is apart (`LongBody`)."""
        body = super().encode(request)
        if len(body) <= self.inline_bytes:
            return body
        sounds: dict[str, bytes] = {}
        return LongBody(json_bytes(self._body(request, sounds)), sounds)

    def content(self, request: Request) -> dict[str, Any]:
        """Return the body."""
        return self._body(request, None)

    def _body(self, request: Request, sounds: dict[str, bytes] | None) -> dict[str, Any]:
        """Return the request's body.

        Args:
            sounds: gets the audio by digest, and the body refers to it; None keeps audio in the body.
        """
        config = self.named_parameters(request)
        if isinstance(config.get("stopSequences"), str):
            config["stopSequences"] = [config["stopSequences"]]
        turns = [m for m in request.messages if m.role != "system"]
        body: dict[str, Any] = {
            "contents": [
                {"role": ROLES[m.role], "parts": [self._content_part(item, sounds) for item in m.content]}
                for m in turns
            ]
        }
        system = [
            self._content_part(item, sounds) for m in request.messages if m.role == "system" for item in m.content
        ]
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

    def _content_part(self, item: str | Sound, sounds: dict[str, bytes] | None) -> dict[str, Any]:
        """Convert a text or sound to a part, with sounds inline or by reference."""
        if isinstance(item, str):
            return {"text": item}
        if sounds is not None:
            data = wav_file(item)
            digest = hashlib.sha256(self.model.encode() + data).hexdigest()[:32]
            sounds[digest] = data
            return {"fileData": {"mimeType": "audio/wav", "fileUri": f"{SOUND_PREFIX}{digest}"}}
        return {"inlineData": {"mimeType": "audio/wav", "data": wav_base64(item)}}

    async def _uploaded(self, body: LongBody) -> bytes:
        files, sent = await self._open_files(), bytes(body)
        for digest, data in body.sounds.items():
            stored = await files.sound(data, digest)
            sent = sent.replace(f"{SOUND_PREFIX}{digest}".encode(), stored.uri.encode())
        return sent

    async def _open_files(self) -> GeminiFiles:
        """Return the store of uploaded files, started once."""
        async with self._files_lock:
            if self._files is None:
                files = GeminiFiles(transfer_client(self, root_of(self.base_url)), version_of(self.base_url))
                await files.start()
                self._files = files
            return self._files

    def _response(self, body: Mapping[str, Any], about: dict[str, Any]) -> Response:
        """Convert a reply, and facts `about` it, to a response; refused if blocked."""
        about = {**about, "usage": gemini_usage(body.get("usageMetadata"))}
        blocked = (body.get("promptFeedback") or {}).get("blockReason")
        if blocked:
            return Response.refused(Diagnostic("prompt_blocked", message=clean(str(blocked))), **about)
        if not body.get("candidates"):
            raise RequestFailed(Diagnostic("no_answer_in_reply", body=clean(str(body))))
        candidate = body["candidates"][0]
        finish = candidate.get("finishReason")
        about["finish"] = {"STOP": "stop", "MAX_TOKENS": "length"}.get(finish, finish)
        parts = (candidate.get("content") or {}).get("parts") or []
        text = "".join(item.get("text") or "" for item in parts if not item.get("thought"))
        if finish in BLOCKED:
            message = clean(str(candidate.get("finishMessage") or ""))
            reason = Diagnostic("answer_stopped", finish=finish, message=message)
            return Response.refused(reason, text=text or None, **about)
        if finish in STOPPED:
            return Response.failed(Diagnostic("answer_stopped", finish=finish), text=text or None, **about)
        sounds = [item["inlineData"] for item in parts if item.get("inlineData")]
        notes: list[str] = [] if text or sounds else [EMPTY]
        if reasoning := "".join(item.get("text") or "" for item in parts if item.get("thought")):
            notes.append(Diagnostic("reasoning_excluded", characters=len(reasoning)))
            about["reasoning"] = reasoning
        try:
            audio = _audio(sounds) if sounds else None
        except UserError as error:
            return Response.failed(error.message, text=text or None, **about)
        return Response(text=None if audio is not None and not text else text, audio=audio, notes=tuple(notes), **about)


def _audio(sounds: list[Mapping[str, Any]]) -> Audio:
    """Decode the audio of an answer's parts, which are joined."""
    kind = sounds[0]["mimeType"].lower()
    rate = re.search(r"rate=(\d+)", kind)
    bare = kind.startswith(("audio/l16", "audio/pcm"))
    data = b"".join(from_base64(sound["data"]) for sound in sounds)
    name = "pcm" if bare else kind.partition(";")[0].rpartition("/")[2].removeprefix("x-").replace("mpeg", "mp3")
    return audio_of(data, name, int(rate[1]) if rate else 24_000)

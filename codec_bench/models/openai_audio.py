"""Transcription and speech endpoints as OpenAI defined them, and the fields that servers of open models add.

Sources: https://platform.openai.com/docs/api-reference/audio; cloning as vLLM-Omni's speech endpoint takes it
(https://docs.vllm.ai/projects/vllm-omni/en/stable/serving/speech_api/).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from codec_bench.audio.clip import Clip, wav_bytes
from codec_bench.errors import UserError
from codec_bench.models.accounts import openai_usage
from codec_bench.models.base import ModelInfo
from codec_bench.models.client import parts_of, read_bytes, read_json
from codec_bench.models.keys import clean
from codec_bench.models.persistence import Again, GivenUp
from codec_bench.models.remote import EMPTY, JSON, RemoteModel, json_bytes, understood
from codec_bench.models.sound import audio_of, data_uri, wav_base64
from codec_bench.types import Request, Response

if TYPE_CHECKING:
    import httpx

OPENAI_FIELDS = {"text": "input", "instruction": "instructions"}
# Without these an answer would be to another question; the rest only helps.
NEEDED = ("text", "prompt_audio", "instruction")


class OpenAiTranscription(RemoteModel):
    """A recogniser behind `/audio/transcriptions`: reads the fields `audio` and `language`.

    Args:
        info: the facts; it reads fields and gives text.
        languages: what the service calls a language code, where it has names of its own; null leaves the language out.
        path: appended to `base_url`.
        connection: as `RemoteModel`; `parameters` become fields of the form.
    """

    def __init__(
        self,
        info: ModelInfo,
        *,
        languages: Mapping[str, str | None] | None = None,
        path: str = "/audio/transcriptions",
        **connection: Any,
    ) -> None:
        super().__init__(info, **connection)
        self.languages, self.path = dict(languages or {}), path

    def settings(self) -> Mapping[str, Any]:
        """Where it is asked, and what languages are called."""
        return {"path": self.path, "languages": self.languages}

    def check(self, request: Request) -> str | None:
        """Why the recogniser does not take a request, or None."""
        if not isinstance(request.fields.get("audio"), Clip):
            return f"the model '{self.info.name}' transcribes the field 'audio', and the prompt does not fill it"
        return super().check(request)

    def encode(self, request: Request) -> bytes:
        """The sound as a WAV file."""
        return wav_bytes(request.fields["audio"].read())

    async def answer(self, request: Request, body: bytes) -> Response:
        """One transcript."""
        language = request.fields.get("language")
        form = {"model": self.model, "response_format": "json", **self.named_parameters(request)}
        if language is not None and self.languages.get(language, language) is not None:
            form["language"] = self.languages.get(language, language)
        reply = await self.client.send(
            "POST",
            self.path,
            read_json,
            data={name: str(value) for name, value in form.items()},
            files={"file": ("audio.wav", body, "audio/wav")},
        )
        text = understood(_transcript, reply.value)
        return Response(
            text=text,
            usage=openai_usage(reply.value.get("usage")),
            latency_s=reply.latency_s,
            attempts=reply.attempts,
            notes=() if text else (EMPTY,),
        )


def _transcript(body: Any) -> str:
    text = body["text"]
    if not isinstance(text, str):
        raise TypeError(f"'text' is {type(text).__name__}")
    return text


class OpenAiSpeech(RemoteModel):
    """A synthesiser behind `/audio/speech`: reads the fields `text`, `instruction`, `prompt_audio`, `prompt_text`, `language`.

    Args:
        info: the facts; it reads fields and gives audio.
        voice: name of a voice of the service, or None where it has none. It is left out where a voice is to be imitated.
        fields: what the service calls each field, beside `OPENAI_FIELDS`; a dotted name goes into lists and mappings
            (`references.0.text`), null is a field that it does not take.
        audio_as: how the voice to imitate is sent: as a `data:` address or as base64.
        languages: what the service calls a language code; null leaves the language out.
        audio_format: of the answer: `wav`, `pcm`, `mp3`, `flac`, `opus`. audio_rate_hz: rate of a `pcm` answer, in Hz.
        path: appended to `base_url`.
        connection: as `RemoteModel`; `parameters` go into the body beside the fields; `rate_hz` is that of `prompt_audio`.
    """

    def __init__(
        self,
        info: ModelInfo,
        *,
        voice: str | None = None,
        fields: Mapping[str, str | None] | None = None,
        audio_as: Literal["data-uri", "base64"] = "data-uri",
        languages: Mapping[str, str | None] | None = None,
        audio_format: str = "wav",
        audio_rate_hz: int = 24_000,
        path: str = "/audio/speech",
        **connection: Any,
    ) -> None:
        super().__init__(info, **{"rate_hz": 24_000, **connection})
        if audio_as not in ("data-uri", "base64"):
            raise UserError(f"audio_as={audio_as!r} is unknown", hint="expected data-uri or base64")
        self.voice, self.fields, self.languages = voice, {**OPENAI_FIELDS, **(fields or {})}, dict(languages or {})
        self.audio_as, self.audio_format, self.audio_rate_hz, self.path = audio_as, audio_format, audio_rate_hz, path

    def settings(self) -> Mapping[str, Any]:
        """The voice, the names of the fields, and how answers are read."""
        return {
            "path": self.path,
            "voice": self.voice,
            "fields": self.fields,
            "audio_as": self.audio_as,
            "languages": self.languages,
            "audio_format": self.audio_format,
            "audio_rate_hz": self.audio_rate_hz,
        }

    def check(self, request: Request) -> str | None:
        """Why the synthesiser does not take a request, or None."""
        if not isinstance(request.fields.get("text"), str):
            return f"the model '{self.info.name}' speaks the field 'text', and the prompt does not fill it"
        for name in NEEDED:
            if request.fields.get(name) is not None and self.fields.get(name) is None:
                return f"the model '{self.info.name}' takes no {name.replace('_', ' ')}"
        return super().check(request)

    def encode(self, request: Request) -> bytes:
        """The body."""
        return json_bytes(self._body(request))

    async def answer(self, request: Request, body: bytes) -> Response:
        """One spoken text."""
        reply = await self.client.send("POST", self.path, self._read, content=body, headers=JSON)
        data, first_s = reply.value
        about = {"latency_s": reply.latency_s, "first_s": first_s, "attempts": reply.attempts}
        try:
            audio = await asyncio.to_thread(audio_of, data, self.audio_format, self.audio_rate_hz)
        except UserError as error:
            return Response.failed(error.message, **about)
        return Response(audio=audio, **about)

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "response_format": self.audio_format}
        body |= self.named_parameters(request)
        if self.voice is not None and request.fields.get("prompt_audio") is None:
            body["voice"] = self.voice
        for name, value in request.fields.items():
            if self.fields.get(name) is None or value is None:
                continue
            if name == "language":
                value = self.languages.get(value, value)
            elif isinstance(value, Clip):
                value = data_uri(value) if self.audio_as == "data-uri" else wav_base64(value)
            if value is not None:
                put(body, self.fields[name], value)
        return body

    async def _read(self, response: httpx.Response, began: float) -> tuple[bytes, float | None]:
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if kind.startswith("text/") or kind.endswith("json"):
            said = clean((await read_bytes(response)).decode("utf-8", "replace"))
            trouble = Again if kind == "text/html" else GivenUp
            raise trouble(f"expected audio, got {clean(kind)}: {said}")
        # A reply of known length was made as a whole: its first byte says nothing about the first sound.
        if "content-length" in response.headers:
            return await read_bytes(response), None
        first_s, parts = None, []
        async for part in parts_of(response):
            first_s = time.monotonic() - began if first_s is None else first_s
            parts.append(part)
        return b"".join(parts), first_s


def put(body: dict[str, Any], path: str, value: Any) -> None:
    """Sets `references.0.text` in a body of mappings and lists, and makes those that are missing."""
    here: Any = body
    keys = path.split(".")
    for key, following in zip(keys, [*keys[1:], None]):
        fresh: Any = value if following is None else [] if following.isdigit() else {}
        if isinstance(here, list):
            here.extend({} for _ in range(int(key) + 1 - len(here)))
            if following is None:
                here[int(key)] = value
            here = here[int(key)]
        elif following is None:
            here[key] = value
        else:
            here = here.setdefault(key, fresh)


__all__ = ["OPENAI_FIELDS", "OpenAiSpeech", "OpenAiTranscription", "put"]

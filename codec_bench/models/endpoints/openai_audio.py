"""OpenAI's transcription and speech endpoints, with the fields of open servers.

Sources: https://platform.openai.com/docs/api-reference/audio; voice cloning as in vLLM-Omni
(https://docs.vllm.ai/projects/vllm-omni/en/stable/serving/speech_api/). Checked against the types of openai 3.54 and
the documentation of ElevenLabs and Azure on 2026-11-22.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from codec_bench.audio.clip import Clip
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.models.audio_payloads import audio_of, data_uri, wav_base64, wav_file
from codec_bench.models.base import EMPTY, ModelInfo
from codec_bench.models.endpoints.accounts import openai_usage
from codec_bench.models.endpoints.bodies import optional_text, parse_reply, put
from codec_bench.models.endpoints.remote import JSON, HttpModel, JsonModel, check_choice
from codec_bench.models.endpoints.replies import is_text, parts_of, read_json, read_sound
from codec_bench.types import Request, Response

if TYPE_CHECKING:
    import aiohttp

OPENAI_FIELDS = {"text": "input", "instruction": "instructions"}
# A model that does not take one of these fields refuses the request; other fields are omitted.
NEEDED = ("text", "prompt_audio", "instruction")


class OpenAiTranscription(HttpModel):
    """A recogniser behind `/audio/transcriptions`; fields `audio` and `language`.

    Args:
        languages: the service's names of language codes, where they differ; null omits the language.
        path: appended to `base_url`.
        names: the service's names of the form fields, such as `{model: model_id}`; null omits a field.
        connection: as `RemoteModel`; `parameters` become fields of the form.
    """

    checked: ClassVar[str] = "the types of openai 3.54, and the documentation of ElevenLabs; 2026-11-22"
    changes_answers: ClassVar[tuple[str, ...]] = ("path", "languages", "names")

    def __init__(
        self,
        info: ModelInfo,
        *,
        languages: Mapping[str, str | None] | None = None,
        path: str = "/audio/transcriptions",
        names: Mapping[str, str | None] | None = None,
        **connection: Any,
    ) -> None:
        super().__init__(info, **connection)
        self.languages, self.path, self.names = dict(languages or {}), path, dict(names or {})

    def check(self, request: Request) -> str | None:
        """Return why the recogniser does not accept a request, or None."""
        if not isinstance(request.fields.get("audio"), Clip):
            return Diagnostic("field_not_filled", model=self.info.name, field="audio", task="transcribe")
        return super().check(request)

    def encode(self, request: Request) -> bytes:
        """Return the audio as a WAV file."""
        return wav_file(request.fields["audio"])

    async def answer(self, request: Request, body: bytes) -> Response:
        """Send a request's audio, and return the transcript."""
        language = request.fields.get("language")
        form = {"model": self.model, "response_format": "json", **self.named_parameters(request)}
        if language is not None and self.languages.get(language, language) is not None:
            form["language"] = self.languages.get(language, language)
        reply = await self.client.send(
            "POST",
            self.path,
            read_json,
            data={called: str(v) for name, v in form.items() if (called := self.names.get(name, name)) is not None},
            files={"file": ("audio.wav", body, "audio/wav")},
        )
        text = parse_reply(_transcript, reply.value)
        about = reply.about(model=optional_text(reply.value, "model"))
        usage = openai_usage(reply.value.get("usage"))
        return Response(text=text, usage=usage, notes=() if text else (EMPTY,), **about)


def _transcript(body: Any) -> str:
    text = body["text"]
    if not isinstance(text, str):
        raise TypeError(f"'text' is {type(text).__name__}")
    return text


class OpenAiSpeech(JsonModel):
    """A synthesiser behind `/audio/speech`.

    It reads the fields `text`, `instruction`, `prompt_audio`, `prompt_text` and `language`.

    Args:
        voice: the name of a voice of the service, or None. A voice prompt replaces it.
        fields: the service's name of each field, in addition to `OPENAI_FIELDS`. A dotted name goes into lists and
            mappings (`references.0.text`). Null marks a field that the service does not take.
        audio_as: the form of the voice prompt: a `data:` URL or base64.
        languages: the service's names of language codes; null omits the language.
        audio_format: format of the answer: `wav`, `pcm`, `mp3`, `flac`, `opus`.
        audio_rate_hz: sample rate of a `pcm` answer.
        path: appended to `base_url`.
        connection: as `RemoteModel`; `parameters` go into the body next to the fields, and `rate_hz` is the rate of
            `prompt_audio`.
    """

    checked: ClassVar[str] = "the types of openai 3.54, and the documentation of Azure and of vLLM-Omni; 2026-11-22"
    changes_answers: ClassVar[tuple[str, ...]] = (
        "path", "voice", "fields", "audio_as", "languages", "audio_format", "audio_rate_hz",
    )  # fmt: skip

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
        check_choice(info, "audio_as", audio_as, ("data-uri", "base64"))
        self.voice, self.fields, self.languages = voice, {**OPENAI_FIELDS, **(fields or {})}, dict(languages or {})
        self.audio_as, self.audio_format, self.audio_rate_hz, self.path = audio_as, audio_format, audio_rate_hz, path

    def check(self, request: Request) -> str | None:
        """Return why the synthesiser cannot speak a request, or None.

        It must have the field `text`, and no field that the service does not take.
        """
        if not isinstance(request.fields.get("text"), str):
            return Diagnostic("field_not_filled", model=self.info.name, field="text", task="speak")
        for name in NEEDED:
            if request.fields.get(name) is not None and self.fields.get(name) is None:
                return Diagnostic("field_not_taken", model=self.info.name, field=name)
        return super().check(request)

    async def answer(self, request: Request, body: bytes) -> Response:
        """Send a request's text, and return the spoken audio."""
        reply = await self.client.send("POST", self.path, self._read, content=body, headers=JSON)
        data, first_s = reply.value
        about = {"first_s": first_s, **reply.about()}
        try:
            audio = await asyncio.to_thread(audio_of, data, self.audio_format, self.audio_rate_hz)
        except UserError as error:
            return Response.failed(error.message, **about)
        return Response(audio=audio, **about)

    def content(self, request: Request) -> dict[str, Any]:
        """Return the request's body, with fields under the names that the service uses."""
        body: dict[str, Any] = {"model": self.model, "response_format": self.audio_format}
        body |= self.named_parameters(request)
        if self.voice is not None and request.fields.get("prompt_audio") is None:
            body["voice"] = self.voice
        for name, value in request.fields.items():
            called = self.fields.get(name)
            if called is None or value is None:
                continue
            if name == "language":
                value = self.languages.get(value, value)
            elif isinstance(value, Clip):
                value = data_uri(value) if self.audio_as == "data-uri" else wav_base64(value)
            if value is not None:
                put(body, called, value)
        return body

    async def _read(self, response: aiohttp.ClientResponse, began: float) -> tuple[bytes, float | None]:
        """Read an audio reply; also return the seconds to its first bytes.

        They are None for a reply that was complete before it was sent.
        """
        # A reply with a content length was complete before it was sent: its first byte has no meaning.
        if "content-length" in response.headers or is_text(response):
            return await read_sound(response), None
        first_s: float | None = None
        parts = []
        async for chunk in parts_of(response):
            first_s = time.monotonic() - began if first_s is None else first_s
            parts.append(chunk)
        return b"".join(parts), first_s

"""OpenAI chat completions, also of vLLM, SGLang, llama.cpp and most vendors.

Sources: https://platform.openai.com/docs/api-reference/chat/create; for audio URLs and separate reasoning, vLLM's
documentation. Checked against the types of openai 3.54 and `transformers serve` 5.23 on 2026-11-22.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.models.audio_payloads import audio_of, data_uri, from_pieces, wav_base64
from codec_bench.models.base import EMPTY, ModelInfo
from codec_bench.models.endpoints.accounts import openai_usage
from codec_bench.models.endpoints.batches import BatchableModel
from codec_bench.models.endpoints.bodies import optional_text, parse_reply, service_facts
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.openai_batches import OpenAiBatches
from codec_bench.models.endpoints.remote import JSON, check_choice
from codec_bench.models.endpoints.replies import error_of, read_events, read_json
from codec_bench.models.endpoints.retries import RequestFailed, Retryable
from codec_bench.types import Message, Request, Response, Sound

if TYPE_CHECKING:
    import aiohttp

PCM_HZ = 24_000
INTERRUPTED = ("error", "abort", "insufficient_system_resource")
"""Finish reasons of answers that the service broke off: vLLM and SGLang, OpenRouter and Mistral, DeepSeek."""
SENT_AS = ("input_audio", "input_audio_uri", "audio_url")


@dataclass(slots=True)
class ChatReply:
    """An answer collected from a complete reply or from the events of a stream."""

    text: list[str] = field(default_factory=list)
    transcript: list[str] = field(default_factory=list)
    audio: list[str] = field(default_factory=list)
    refusal: str = ""
    reasoning: list[str] = field(default_factory=list)
    finish: str | None = None
    usage: dict[str, float] = field(default_factory=dict)
    first_s: float | None = None
    model: str | None = None
    revision: str | None = None
    tools: int = 0
    speaker: int | None = None

    def add(self, body: Mapping[str, Any], began: float) -> None:
        """Add a complete reply, or one event of a stream.

        Args:
            began: start of the attempt (`time.monotonic`).

        Raises:
            Retryable, RequestFailed: the body is an error and not an answer, or the service broke the answer off.
        """
        if body.get("error"):
            raise trouble_within(body, {"400", "413", "422", "BadRequestError"})
        self.model = optional_text(body, "model") or self.model
        self.revision = optional_text(body, "system_fingerprint") or self.revision
        if body.get("usage"):
            self.usage = openai_usage(body["usage"])
        # Text and sound of one answer may come as two choices; of two texts the first is the answer.
        for choice in body.get("choices") or ():
            delta, index = choice.get("message") or choice.get("delta") or {}, choice.get("index") or 0
            if self.speaker is None and delta.get("content"):
                self.speaker = index
            if index != (self.speaker or 0) and delta.get("content") and not delta.get("audio"):
                continue
            self._add_part(delta, began)
            self.finish = choice.get("finish_reason") or self.finish
        if self.finish in INTERRUPTED:
            raise Retryable(Diagnostic("answer_cancelled", cause=self.finish))
        if self.finish == "model_length":
            self.finish = "length"

    def _add_part(self, delta: Mapping[str, Any], began: float) -> None:
        """Add a message, or one delta of a stream, to text, audio, reasoning and refusal."""
        content = delta.get("content")
        if isinstance(content, list):
            thoughts = [block for block in content if block.get("type") in ("reasoning", "thinking")]
            self.reasoning += [block.get("text") or _thinking(block.get("thinking")) for block in thoughts]
            self.refusal += "".join(block.get("refusal") or "" for block in content)
            content = "".join(block.get("text") or "" for block in content if block not in thoughts)
        self.tools += len(delta.get("tool_calls") or ())
        audio = delta.get("audio") or {}
        self.reasoning.append(_thinking(delta.get("reasoning_content") or delta.get("reasoning")))
        self.refusal += delta.get("refusal") or ""
        if content:
            self.text.append(content)
        if audio.get("transcript"):
            self.transcript.append(audio["transcript"])
        if audio.get("data"):
            self.audio.append(audio["data"])
        if self.first_s is None and (content or audio.get("data") or audio.get("transcript")):
            self.first_s = time.monotonic() - began


class OpenAiChat(BatchableModel):
    """A model behind `/chat/completions`.

    Args:
        info: the facts of the model. If `audio` is among its outputs, audio is requested when a benchmark needs it.
        audio_as: how audio is sent: `input_audio` (WAV in base64), `input_audio_uri` (the same as a `data:` URL, for
            DashScope) or `audio_url` (a `data:` URL in its own part, which vLLM takes too).
        stream: whether the answer is streamed; the time to the first piece is then recorded.
        modalities: the modalities to request when a benchmark needs audio; null leaves the choice to the server.
        voice: the voice of spoken answers, or None.
        audio_format: the requested format of spoken answers; OpenAI streams only `pcm16`.
        audio_coding: the format of the returned audio, if it differs: DashScope streams `pcm` for `wav`.
        audio_rate_hz: sample rate of a `pcm` answer.
        reasoning_end: a marker such as `</think>`; the text before it is not part of the answer.
        path: appended to `base_url`.
        batched: whether the service takes the model in batches.
        connection: as `RemoteModel`.
    """

    checked: ClassVar[str] = "the types of the package openai 3.54, and `transformers serve` 5.23; 2026-11-22"
    changes_answers: ClassVar[tuple[str, ...]] = (
        "path", "audio_as", "modalities", "voice", "audio_format", "audio_coding", "audio_rate_hz", "reasoning_end",
    )  # fmt: skip

    def __init__(
        self,
        info: ModelInfo,
        *,
        audio_as: Literal["input_audio", "input_audio_uri", "audio_url"] = "input_audio",
        stream: bool = False,
        modalities: list[str] | None = None,
        voice: str | None = None,
        audio_format: str = "wav",
        audio_coding: str | None = None,
        audio_rate_hz: int = PCM_HZ,
        reasoning_end: str | None = None,
        path: str = "/chat/completions",
        batched: bool = True,
        **connection: Any,
    ) -> None:
        super().__init__(info, **connection)
        check_choice(info, "audio_as", audio_as, SENT_AS)
        self.audio_as, self.stream, self.path, self.batched = audio_as, stream, path, batched
        self.modalities, self.voice, self.reasoning_end = modalities, voice, reasoning_end
        self.audio_format, self.audio_rate_hz = audio_format, audio_rate_hz
        self.audio_coding = audio_coding or audio_format
        self.reasons = self.reasons or reasoning_end is not None

    async def answer(self, request: Request, body: bytes) -> Response:
        """Send a request, and return the service's answer."""
        reply = await self.client.send("POST", self.path, self._read, content=body, headers=JSON)
        written = reply.value
        return self._response(written, **reply.about(model=written.model, revision=written.revision))

    def batches(self) -> OpenAiBatches:
        """Return the service's batch interface; UserError if it has none or streams only."""
        if not self.batched:
            raise UserError(
                "model_takes_no_batches",
                model=self.info.name,
                hint=f"leave out --batch; --set {self.info.name}.batched=true tries it all the same",
            )
        if self.stream:
            raise UserError(
                "batch_of_streams",
                model=self.info.name,
                hint=f"--set {self.info.name}.stream=false if the model can do without, else leave out --batch",
            )
        return OpenAiBatches(self, self.path)

    def read_body(self, body: Any, about: dict[str, Any]) -> Response:
        """Convert a complete reply, and facts `about` it such as latency, to a response."""
        written = ChatReply()
        parse_reply(lambda body: written.add(_check_complete(body), 0.0), body)
        written.first_s = None
        return self._response(written, **service_facts(about, model=written.model, revision=written.revision))

    def content(self, request: Request) -> dict[str, Any]:
        """Return the request's body."""
        body: dict[str, Any] = {"model": self.model, "messages": [self._turn(m) for m in request.messages]}
        body |= self.named_parameters(request)
        if request.wants == "audio" and self.modalities is not None:
            body["modalities"] = list(self.modalities)
            body["audio"] = {"format": self.audio_format, **({"voice": self.voice} if self.voice else {})}
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body

    def _turn(self, message: Message) -> dict[str, Any]:
        texts = [item for item in message.content if isinstance(item, str)]
        if len(texts) == len(message.content):  # some servers take plain text only as one string
            return {"role": message.role, "content": "".join(texts)}
        return {"role": message.role, "content": [self._content_part(item) for item in message.content]}

    def _content_part(self, item: str | Sound) -> dict[str, Any]:
        """Return a text, or audio in the service's form (`audio_as`), as a content part."""
        if isinstance(item, str):
            return {"type": "text", "text": item}
        if self.audio_as == "audio_url":
            return {"type": "audio_url", "audio_url": {"url": data_uri(item)}}
        data = data_uri(item) if self.audio_as == "input_audio_uri" else wav_base64(item)
        return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}

    async def _read(self, response: aiohttp.ClientResponse, began: float) -> ChatReply:
        """Read a reply or a stream of events; Retryable if the stream ends too early."""
        written = ChatReply()
        async for body in self._pieces(response):
            parse_reply(lambda body: written.add(body, began), body)
        if self.stream and written.finish is None:
            raise Retryable(Diagnostic("stream_ended_early"))
        if not self.stream:
            written.first_s = None
        return written

    async def _pieces(self, response: aiohttp.ClientResponse) -> AsyncIterator[Any]:
        if self.stream:
            async for event in read_events(response):
                yield event
            return
        yield _check_complete(await read_json(response))

    def _response(self, written: ChatReply, **about: Any) -> Response:
        """Convert a collected answer to a response; refused if the model declined."""
        about |= {"usage": written.usage, "finish": written.finish, "first_s": written.first_s}
        if written.refusal:
            return Response.refused(
                Diagnostic("model_declined", message=clean(written.refusal)), text=written.refusal, **about
            )
        if written.finish == "content_filter":
            return Response.refused(Diagnostic("content_filter"), text="".join(written.text) or None, **about)
        notes = []
        text = "".join(written.text)
        if not text and written.transcript:
            text = "".join(written.transcript)
            notes.append(Diagnostic("transcript_of_service"))
        if self.reasoning_end and self.reasoning_end in text:
            thoughts, _, text = text.rpartition(self.reasoning_end)
            written.reasoning.append(thoughts)
            text = text.lstrip()
        if reasoning := "".join(written.reasoning):
            notes.append(Diagnostic("reasoning_excluded", characters=len(reasoning)))
            about["reasoning"] = reasoning
        audio = None
        if written.audio:
            try:
                audio = audio_of(from_pieces(written.audio), self.audio_coding, self.audio_rate_hz)
            except AudioError as error:
                return Response.failed(error.message, text=text or None, **about)
        if not text and audio is None:
            notes.append(EMPTY)
        if written.tools:
            notes.append(Diagnostic("tools_called"))
        return Response(text=text, audio=audio, notes=tuple(notes), **about)


def _thinking(thinking: Any) -> str:
    """Return reasoning as text; some services send a list of parts."""
    parts = thinking if isinstance(thinking, list) else [thinking]
    return "".join(block.get("text") or "" if isinstance(block, Mapping) else block or "" for block in parts)


def _check_complete(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict) or not (body.get("choices") or body.get("error")):
        raise RequestFailed(Diagnostic("no_answer_in_reply", body=clean(str(body))))
    return body


def trouble_within(body: Mapping[str, Any], refusals: set[str]) -> Exception:
    """Return the exception for an error in a reply of status 200 or in a stream.

    Codes in `refusals` make it `RequestFailed`; others are `Retryable`.
    """
    message, codes = error_of(json.dumps(body))
    reason = Diagnostic("service_error_in_answer", message=clean(message))
    return RequestFailed(reason, refused=True, message=json.dumps(body)) if codes & refusals else Retryable(reason)

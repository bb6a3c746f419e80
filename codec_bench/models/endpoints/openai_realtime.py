"""OpenAI's realtime models and live recognisers, a session per request.

Source: https://platform.openai.com/docs/api-reference/realtime; checked against openai 3.54 on 2026-11-22. Audio is
16-bit PCM at 24 kHz. Layouts: `beta` (preview models), `ga`, `xai`
(https://docs.x.ai/developers/model-capabilities/audio/voice-agent) and `qwen` (16 kHz,
https://www.alibabacloud.com/help/en/model-studio/client-events), the last two read on 2026-11-26. A recogniser
(https://developers.openai.com/api/docs/guides/realtime-transcription) gets the audio at once as one turn, so the answer
is the final transcript. Whether faster-than-real-time audio changes the transcript is undocumented.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from codec_bench.audio.clip import Clip
from codec_bench.messages import Diagnostic
from codec_bench.models.audio_payloads import pcm16_base64, pcm16_pieces
from codec_bench.models.base import ModelInfo
from codec_bench.models.endpoints.accounts import openai_usage
from codec_bench.models.endpoints.bodies import optional_text
from codec_bench.models.endpoints.error_texts import is_daily, wait_of
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.openai_chat import ChatReply
from codec_bench.models.endpoints.remote import check_choice
from codec_bench.models.endpoints.retries import Denied, RequestFailed, Retryable
from codec_bench.models.endpoints.sockets import UNSUPPORTED, SocketModel, Step
from codec_bench.types import Message, Request

RATE_HZ = 24_000
QWEN_HZ = 16_000
LAYOUTS = ("beta", "ga", "xai", "qwen")


class OpenAiRealtime(SocketModel):
    """A model that listens and speaks over a WebSocket.

    Args:
        info: the facts of the model; audio is requested when a benchmark needs it.
        layout: the layout of sessions and events, one of `LAYOUTS`. `qwen` converses in real time and takes no single
            requests.
        turn_detection: the service's setting of turn detection in conversations (`{type: semantic_vad, eagerness:
            low}`).
        connection: as `RemoteModel`; `parameters` go into the session; `rate_hz` is that of the layout.
    """

    checked: ClassVar[str] = "the types of the package openai 3.54; 2026-11-22"
    changes_answers: ClassVar[tuple[str, ...]] = ("layout", "voice")
    # Among decoding options, a session has only a limit.
    words: ClassVar[Mapping[str, str | None]] = dict.fromkeys(UNSUPPORTED)

    def __init__(
        self,
        info: ModelInfo,
        *,
        layout: Literal["beta", "ga", "xai", "qwen"] = "ga",
        voice: str | None = "alloy",
        turn_detection: Mapping[str, Any] | None = None,
        **connection: Any,
    ) -> None:
        check_choice(info, "layout", layout, LAYOUTS)
        self.layout, self.voice = layout, voice
        self.turn_detection = dict(turn_detection or {"type": "server_vad"})
        rename = {"max_tokens": "max_response_output_tokens" if layout == "beta" else "max_output_tokens"}
        defaults = {"base_url": "wss://api.openai.com/v1/realtime", "key_env": "OPENAI_API_KEY", "rename": rename}
        super().__init__(info, **{**defaults, **connection, "rate_hz": QWEN_HZ if layout == "qwen" else RATE_HZ})

    def socket_headers(self) -> Mapping[str, str]:
        """Implement `SocketModel.socket_headers`."""
        return {"OpenAI-Beta": "realtime=v1"} if self.layout == "beta" else {}

    def url(self) -> str:
        """Implement `SocketModel.url`."""
        return f"{self.base_url}{'&' if '?' in self.base_url else '?'}model={quote(self.model)}"

    def check(self, request: Request) -> str | None:
        """Implement `SocketModel.check`."""
        if self.layout == "qwen":
            return Diagnostic("converses_only", model=self.info.name)
        return super().check(request)

    def encode(self, request: Request) -> list[str]:
        """Return the events of the conversation as JSON."""
        return [json.dumps(event) for event in self._events(request)]

    def _events(self, request: Request) -> list[dict[str, Any]]:
        """Return the events for a request: session, turns, and the start of the answer."""
        system = "\n".join(p for m in request.messages if m.role == "system" for p in m.content if isinstance(p, str))
        session = self.session_update(
            system, self.named_parameters(request), audio_output=request.wants == "audio", turn_detection=None
        )
        items = [self._item(m) for m in request.messages if m.role != "system"]
        creates = [{"type": "conversation.item.create", "item": item} for item in items]
        return [session, *creates, {"type": "response.create"}]

    def session_update(
        self,
        system: str,
        parameters: Mapping[str, Any],
        *,
        audio_output: bool,
        turn_detection: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        """Return the event that configures a session.

        Args:
            system: the instructions.
            turn_detection: the service's turn detection; None if the sender marks the ends.
        """
        kinds = ["audio"] if audio_output else ["text"]
        session: dict[str, Any] = {"instructions": system} if system else {}
        session |= parameters
        speaks = {"voice": self.voice} if self.voice and audio_output else {}
        if self.layout in ("beta", "qwen"):
            modalities = ["text", *kinds] if audio_output else kinds
            pcm16 = "pcm16" if self.layout == "beta" else "pcm"
            sound = {"input_audio_format": pcm16, "output_audio_format": pcm16, "turn_detection": turn_detection}
            session |= {"modalities": modalities, **sound, **speaks}
        elif self.layout == "xai":
            formats = {"format": {"type": "audio/pcm", "rate": RATE_HZ}}
            session |= {"turn_detection": turn_detection, "audio": {"input": formats, "output": formats}, **speaks}
        else:
            pcm = {"type": "audio/pcm", "rate": RATE_HZ}
            audio = {"input": {"format": pcm, "turn_detection": turn_detection}, "output": {"format": pcm, **speaks}}
            session |= {"type": "realtime", "output_modalities": kinds, "audio": audio}
        return {"type": "session.update", "session": session}

    def _item(self, message: Message) -> dict[str, Any]:
        """Return a turn, with texts and audio, as an item of the conversation."""
        kind = "text" if self.layout == "beta" else "output_text"
        text = "input_text" if message.role == "user" else kind
        parts = [
            {"type": text, "text": item}
            if isinstance(item, str)
            else {"type": "input_audio", "audio": pcm16_base64(item)}
            for item in message.content
        ]
        return {"type": "message", "role": message.role, "content": parts}

    def enter(self, event: Mapping[str, Any], written: ChatReply, began: float) -> Step:
        """Add an event to the answer so far; return `done` at its end, else ""."""
        kind = event["type"]
        if kind == "error":
            raise trouble_of(event["error"])
        if kind in ("session.created", "session.updated"):
            written.model = optional_text(event.get("session"), "model") or written.model
        if kind == "response.done":
            self.finish(event["response"], written)
            return "done"
        if kind.startswith("response.") and kind.endswith(".delta"):
            name = kind.removeprefix("response.").removesuffix(".delta").removeprefix("output_")
            if name in ("text", "audio", "audio_transcript") and written.first_s is None:
                written.first_s = time.monotonic() - began
            if name == "text":
                written.text.append(event["delta"])
            elif name == "audio_transcript":
                written.transcript.append(event["delta"])
            elif name == "audio":
                written.audio.append(event["delta"])
        return ""

    def finish(self, response: Mapping[str, Any], written: ChatReply) -> None:
        """Add the usage and finish reason of a complete response to the answer.

        Raises:
            Retryable, RequestFailed, Denied: the response failed or was cancelled.
        """
        written.usage = openai_usage(response.get("usage"))
        details = response.get("status_details") or {}
        status = response.get("status", "completed")
        if status == "failed":
            raise trouble_of(details.get("error") or {})
        if status == "cancelled":
            raise Retryable(Diagnostic("answer_cancelled", cause=clean(str(details.get("reason")))))
        reason = details.get("reason") if status == "incomplete" else None
        written.finish = {None: "stop", "max_output_tokens": "length"}.get(reason, reason)


def trouble_of(error: Mapping[str, Any]) -> Exception:
    """Return the exception for an error event: retry, fail or deny."""
    kind = f"{error.get('type', '')} {error.get('code', '')}"
    reason = Diagnostic("service_error", message=clean(str(error.get("message") or kind)))
    if "rate_limit" in kind:
        return Retryable(reason, wait_s=wait_of({}, reason), crowded=True, daily=is_daily(reason))
    if "insufficient_quota" in kind:
        return Denied(reason, "the account has no credit left or is not active", final=True)
    if "invalid_api_key" in kind or "authentication" in kind:
        return Denied(reason, "is the key right?", final=True)
    if "model_not_found" in kind:
        return Denied(reason, "is the name of the model right?")
    return (
        RequestFailed(reason, refused=True, message=json.dumps(error))
        if "invalid_request" in kind
        else Retryable(reason)
    )


PIECE_S = 10.0
_EVENT = "conversation.item.input_audio_transcription."


class OpenAiLiveTranscription(SocketModel):
    """A recogniser of live speech. It reads the fields `audio` and `language`.

    Args:
        languages: the service's names of language codes, where they differ; null omits the language.
        connection: as `RemoteModel`; `parameters` go into the session next to the name of the model, such as
            `keywords`.
    """

    checked: ClassVar[str] = "the types of the package openai 3.54; 2026-11-22"
    changes_answers: ClassVar[tuple[str, ...]] = ("languages",)
    words: ClassVar[Mapping[str, str | None]] = dict.fromkeys(("max_tokens", *UNSUPPORTED))

    def __init__(
        self, info: ModelInfo, *, languages: Mapping[str, str | None] | None = None, **connection: Any
    ) -> None:
        defaults = {"base_url": "wss://api.openai.com/v1/realtime?intent=transcription", "key_env": "OPENAI_API_KEY"}
        super().__init__(info, **{**defaults, **connection, "rate_hz": RATE_HZ})
        self.languages = dict(languages or {})

    def check(self, request: Request) -> str | None:
        """Return why the recogniser does not accept a request, or None."""
        if not isinstance(request.fields.get("audio"), Clip):
            return Diagnostic("field_not_filled", model=self.info.name, field="audio", task="transcribe")
        return super().check(request)

    def encode(self, request: Request) -> list[str]:
        """Return the messages of a session: its start, audio in chunks, end of the turn."""
        transcription: dict[str, Any] = {"model": self.model, **self.named_parameters(request)}
        language = request.fields.get("language")
        if language is not None and self.languages.get(language, language) is not None:
            transcription["languages"] = [self.languages.get(language, language)]
        pcm = {"type": "audio/pcm", "rate": RATE_HZ}
        audio_input = {"format": pcm, "transcription": transcription, "turn_detection": None}
        session = {"type": "transcription", "audio": {"input": audio_input}}
        appends = [
            {"type": "input_audio_buffer.append", "audio": chunk}
            for chunk in pcm16_pieces(request.fields["audio"], PIECE_S)
        ]
        events = [{"type": "session.update", "session": session}, *appends, {"type": "input_audio_buffer.commit"}]
        return [json.dumps(event) for event in events]

    def enter(self, event: Mapping[str, Any], written: ChatReply, began: float) -> Step:
        """Add an event to the transcript so far; return `done` at its end, else ""."""
        kind = event["type"]
        if kind in ("error", f"{_EVENT}failed"):
            raise trouble_of(event["error"])
        if kind == f"{_EVENT}delta" and written.first_s is None:
            written.first_s = time.monotonic() - began
        if kind in ("session.created", "session.updated"):
            written.model = _model_of(event.get("session")) or written.model
        if kind != f"{_EVENT}completed":
            return ""
        transcript = event["transcript"]
        if not isinstance(transcript, str):
            raise TypeError(f"'transcript' is {type(transcript).__name__}")
        written.text, written.usage = [transcript], openai_usage(event.get("usage"))
        return "done"


def _model_of(session: Any) -> str | None:
    for name in ("audio", "input", "transcription", "model"):
        session = session.get(name) if isinstance(session, Mapping) else None
    return session if isinstance(session, str) else None

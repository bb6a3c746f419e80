"""Conversations with models behind a WebSocket, which detect the ends of turns.

Frames are sent at the speed of speech. Each class wraps a model of `models/endpoints`, which has connection, key and
session layout.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from base64 import b64encode
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

from codec_bench.apps.conversation.session import Partner, ServiceEvent
from codec_bench.messages import Diagnostic
from codec_bench.models.audio_payloads import from_base64
from codec_bench.models.endpoints.accounts import openai_usage
from codec_bench.models.endpoints.bodies import optional_text
from codec_bench.models.endpoints.gemini_live import GeminiLive, live_usage
from codec_bench.models.endpoints.openai_chat import ChatReply
from codec_bench.models.endpoints.openai_live import OpenAiLive, append_message
from codec_bench.models.endpoints.openai_realtime import OpenAiRealtime, trouble_of
from codec_bench.models.endpoints.retries import RequestFailed
from codec_bench.models.endpoints.sockets import SocketModel, read_event
from codec_bench.types import Message, Request

Socket = TypeVar("Socket", bound=SocketModel)


class SocketPartner(Partner, Generic[Socket]):
    """A model behind a WebSocket as a partner of a conversation."""

    model: Socket

    def __init__(self, model: Socket) -> None:
        super().__init__(model)
        self.rate_hz, self.output_rate_hz, self.prices = model.rate_hz, model.output_rate_hz, model.prices

    @property
    def closed(self) -> tuple[type[Exception], ...]:
        """Implement `Partner.closed`."""
        from websockets.exceptions import ConnectionClosed

        return (ConnectionClosed,)

    def connected(self) -> AbstractAsyncContextManager[Any]:
        """Implement `SocketModel.connected`."""
        return self.model.connected()

    def read_message(self, message: str | bytes) -> ServiceEvent:
        """Parse one message; raises as `read`, and `Retryable` for one that is not JSON."""
        return read_event(message, self.read)

    @abstractmethod
    def read(self, event: Mapping[str, Any]) -> ServiceEvent:
        """Parse one event.

        Raises:
            Retryable, RequestFailed, Denied: the event is an error.
        """


class RealtimeService(SocketPartner[OpenAiRealtime]):
    """OpenAI's realtime models, and services with the same protocol."""

    def conversation(self, instructions: str) -> list[str]:
        """Return the event that configures the session."""
        model = self.model
        update = model.session_update(
            instructions, model.parameters, audio_output=True, turn_detection=model.turn_detection
        )
        return [json.dumps(update)]

    def frame(self, samples: bytes) -> str:
        """Implement `Partner.frame`."""
        return f'{{"type":"input_audio_buffer.append","audio":"{b64encode(samples).decode("ascii")}"}}'

    def read(self, event: Mapping[str, Any]) -> ServiceEvent:
        """As `SocketPartner.read`; speech stops playback unless `turn_detection` is off."""
        kind = event["type"]
        about: dict[str, Any] = {"answer": str(event.get("response_id") or ""), "item": str(event.get("item_id") or "")}
        about["id"] = str(event.get("event_id") or "")
        if kind == "error":
            raise trouble_of(event["error"])
        if kind == "session.updated":
            _check_session_rate(event.get("session"), self.output_rate_hz)
            return ServiceEvent(ready=True, model=optional_text(event.get("session"), "model"))
        if kind == "input_audio_buffer.speech_started":
            stops = self.model.turn_detection.get("interrupt_response") is not False
            return ServiceEvent(stops=stops, id=about["id"])
        if kind in ("response.output_audio.delta", "response.audio.delta"):
            return ServiceEvent(sound=from_base64(event["delta"]), **about)
        if kind.startswith("response.") and kind.endswith(("text.delta", "transcript.delta")):
            return ServiceEvent(text=event["delta"], **about)
        if kind != "response.done":
            return ServiceEvent(id=about["id"])
        response = event["response"]
        cut = response.get("status") == "cancelled"
        if not cut:
            self.model.finish(response, ChatReply())
        about["answer"] = about["answer"] or str(response.get("id") or "")
        return ServiceEvent(ended="cut" if cut else "whole", usage=openai_usage(response.get("usage")), **about)

    def cut_off(self, item: str, played_s: float) -> str | None:
        """Implement `Partner.cut_off`."""
        about = {"item_id": item, "content_index": 0, "audio_end_ms": int(1000 * played_s)}
        return json.dumps({"type": "conversation.item.truncate", **about}) if item else None


class LiveService(SocketPartner[OpenAiLive]):
    """OpenAI's Live models: a stream without turns; the service stops itself."""

    def conversation(self, instructions: str) -> list[str]:
        """Return the message that starts the session."""
        return [self.model.session_start(Request("", (Message("system", (instructions,)),)))]

    def frame(self, samples: bytes) -> str:
        """Implement `Partner.frame`."""
        return append_message(b64encode(samples).decode("ascii"))

    def read(self, event: Mapping[str, Any]) -> ServiceEvent:
        """Parse one event of the service; raises as `SocketPartner.read`."""
        kind = event["type"]
        if kind == "error":
            raise trouble_of(event["error"])
        if kind == "session.started":
            return ServiceEvent(ready=True, model=optional_text(event["session"], "model"))
        if kind == "session.output_audio.delta":
            return ServiceEvent(sound=from_base64(event["delta"]))
        return ServiceEvent(text=event["delta"]) if kind == "session.output_transcript.delta" else ServiceEvent()


class GeminiService(SocketPartner[GeminiLive]):
    """Gemini's Live models. Answers have no names here."""

    def conversation(self, instructions: str) -> list[str]:
        """Return the setup; the service detects speech unless switched off."""
        system = [{"text": instructions}] if instructions else []
        return [json.dumps({"setup": self.model.session_setup(self.model.parameters, system)})]

    def frame(self, samples: bytes) -> str:
        """Implement `Partner.frame`."""
        data = b64encode(samples).decode("ascii")
        return f'{{"realtimeInput":{{"audio":{{"mimeType":"audio/pcm;rate={self.rate_hz}","data":"{data}"}}}}}}'

    def read(self, event: Mapping[str, Any]) -> ServiceEvent:
        """Parse one event of the service, as `SocketPartner.read` does."""
        content = event.get("serverContent") or {}
        parts = (content.get("modelTurn") or {}).get("parts") or ()
        sounds = [item["inlineData"] for item in parts if item.get("inlineData")]
        for sound in sounds:
            stated = str(sound.get("mimeType") or "").partition("rate=")[2].partition(";")[0]
            _check_rate(stated or None, self.output_rate_hz)
        reported = event.get("usageMetadata")
        return ServiceEvent(
            ready="setupComplete" in event,
            sound=b"".join(from_base64(sound["data"]) for sound in sounds),
            text=(content.get("outputTranscription") or {}).get("text") or "",
            stops=bool(content.get("interrupted")),
            ended="cut" if content.get("interrupted") else "whole" if content.get("turnComplete") else "",
            usage=live_usage(reported) if reported else {},
        )


SERVICES: dict[type[SocketModel], type[SocketPartner[Any]]] = {
    OpenAiRealtime: RealtimeService,
    OpenAiLive: LiveService,
    GeminiLive: GeminiService,
}


def _check_session_rate(session: Any, rate_hz: int) -> None:
    """Check that a session speaks at the requested rate; raises as `_check_rate`."""
    for name in ("audio", "output", "format", "rate"):
        session = session.get(name) if isinstance(session, Mapping) else None
    _check_rate(session, rate_hz)


def _check_rate(stated: Any, rate_hz: int) -> None:
    """Raise RequestFailed for another sample rate than stated, if any."""
    if stated not in (None, rate_hz, str(rate_hz)):
        raise RequestFailed(Diagnostic("service_rate", stated=stated, expected=rate_hz))

"""Gemini's Live API over a WebSocket, with a new session for each request.

Source: https://ai.google.dev/api/live, read on 2026-11-22, and the types of google-genai 3.4. Audio is 16-bit PCM, sent
at 16 kHz and received at 24 kHz. Voice activity detection is off; the sender marks the turn. The service does not name
the answering model.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from codec_bench.messages import Diagnostic
from codec_bench.models.audio_payloads import pcm16_base64
from codec_bench.models.base import ModelInfo
from codec_bench.models.endpoints.accounts import gemini_usage
from codec_bench.models.endpoints.gemini import NAMES, ROLES
from codec_bench.models.endpoints.openai_chat import ChatReply
from codec_bench.models.endpoints.retries import Retryable
from codec_bench.models.endpoints.sockets import SocketModel, Step
from codec_bench.types import Message, Request

SERVICE = "google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
BASE_URL = f"wss://generativelanguage.googleapis.com/ws/{SERVICE}"
RATE_HZ = 16_000
FILTERED = ("PROHIBITED", "REJECTED", "SAFETY", "BLOCKED")
"""Parts of the names of reasons for which a filter ends a turn."""


class GeminiLive(SocketModel):
    """A Gemini model over a WebSocket. Written answers are transcripts of spoken ones.

    Args:
        voice: the voice of spoken answers; None leaves it to the service.
        connection: as `RemoteModel`; `parameters` go into `generationConfig`; `rate_hz` is always 16 kHz.
    """

    checked: ClassVar[str] = "the types of the package google-genai 3.4; 2026-11-22"
    sound_last: ClassVar[bool] = True
    changes_answers: ClassVar[tuple[str, ...]] = ("voice",)
    words: ClassVar[Mapping[str, str | None]] = {
        "reasoning_tokens": "thinkingConfig.thinkingBudget", "repetition_penalty": None, "seed": None, "stop": None,
    }  # fmt: skip
    opening: ClassVar[int | None] = 1

    def __init__(self, info: ModelInfo, *, voice: str | None = None, **connection: Any) -> None:
        rename = {name: there for name, there in NAMES.items() if name != "stop"}
        defaults = {"base_url": BASE_URL, "key_env": "GEMINI_API_KEY", "key_header": "x-goog-api-key", "rename": rename}
        super().__init__(info, **{**defaults, **connection, "rate_hz": RATE_HZ})
        self.voice = voice

    def encode(self, request: Request) -> list[str]:
        """Return the messages of the session as JSON."""
        return [json.dumps(message) for message in [self._setup(request), *self._turns(request)]]

    def _setup(self, request: Request) -> dict[str, Any]:
        system = [{"text": p} for m in request.messages if m.role == "system" for p in m.content if isinstance(p, str)]
        setup = self.session_setup(self.named_parameters(request), system)
        return {"setup": {**setup, "realtimeInputConfig": {"automaticActivityDetection": {"disabled": True}}}}

    def session_setup(self, parameters: Mapping[str, Any], system: list[dict[str, str]]) -> dict[str, Any]:
        """Return the setup of a session: decoding parameters, voice and instructions."""
        config = {"responseModalities": ["AUDIO"], **parameters}
        if self.voice is not None:
            config["speechConfig"] = {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": self.voice}}}
        setup: dict[str, Any] = {
            "model": f"models/{self.model}", "generationConfig": config, "outputAudioTranscription": {},
        }  # fmt: skip
        if system:
            setup["systemInstruction"] = {"parts": system}
        return setup

    def _turns(self, request: Request) -> list[dict[str, Any]]:
        """Return the messages for a request's turns: written ones, then the last audio."""
        turns = [m for m in request.messages if m.role != "system"]
        sounds = [pcm16_base64(item) for item in turns[-1].content if not isinstance(item, str)]
        written = [turn for m in turns if (turn := _written(m)) is not None]
        out: list[dict[str, Any]] = []
        if written:
            out.append({"clientContent": {"turns": written, "turnComplete": not sounds}})
        if sounds:
            kind = f"audio/pcm;rate={RATE_HZ}"
            audio = [{"audio": {"mimeType": kind, "data": sound}} for sound in sounds]
            out += [{"realtimeInput": item} for item in ({"activityStart": {}}, *audio, {"activityEnd": {}})]
        return out

    def enter(self, event: Mapping[str, Any], written: ChatReply, began: float) -> Step:
        """Add an event of the service to the answer so far (`written`).

        Returns `ready` when the session is set up, `done` at the end of the answer, else "".
        """
        if "setupComplete" in event:
            return "ready"
        if event.get("usageMetadata"):
            written.usage = live_usage(event["usageMetadata"])
        content = event.get("serverContent") or {}
        for item in (content.get("modelTurn") or {}).get("parts") or ():
            if item.get("thought"):
                written.reasoning.append(item.get("text") or "")
                continue
            if written.first_s is None:
                written.first_s = time.monotonic() - began
            if item.get("text"):
                written.text.append(item["text"])
            if item.get("inlineData"):
                written.audio.append(item["inlineData"]["data"])
        if (content.get("outputTranscription") or {}).get("text"):
            written.transcript.append(content["outputTranscription"]["text"])
        if content.get("interrupted"):
            raise Retryable(Diagnostic("answer_interrupted"))
        if not content.get("turnComplete"):
            return ""
        reason = content.get("turnCompleteReason")
        filtered = reason is not None and any(word in str(reason) for word in FILTERED)
        written.finish = "content_filter" if filtered else "stop"
        return "done"


def _written(message: Message) -> dict[str, Any] | None:
    parts = [{"text": text} for text in message.content if isinstance(text, str)]
    return {"role": ROLES[message.role], "parts": parts} if parts else None


def live_usage(usage: Mapping[str, Any]) -> dict[str, float]:
    """Parse the counts of a session. Live calls the candidates the response."""
    details = {
        "candidatesTokenCount": usage.get("responseTokenCount"),
        "candidatesTokensDetails": usage.get("responseTokensDetails"),
    }
    return gemini_usage({**usage, **details})

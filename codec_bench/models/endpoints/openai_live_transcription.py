"""OpenAI's recognisers of live speech over a WebSocket, with a new session for each request.

Source: https://developers.openai.com/api/docs/guides/realtime-transcription and the types of the package openai 3.54, read on
2026-11-22. The whole sound is sent at once and committed as one turn, so that the answer is the transcript of the turn and not
the text that is shown while somebody still speaks. Whether the service transcribes sound that comes faster than speech in
the same way is not documented.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from codec_bench.audio.clip import Clip
from codec_bench.models.base import ModelInfo
from codec_bench.models.endpoints.accounts import openai_usage
from codec_bench.models.endpoints.openai_chat import Written
from codec_bench.models.endpoints.openai_realtime import RATE_HZ, trouble_of
from codec_bench.models.endpoints.sockets import SocketModel, Step
from codec_bench.models.sound import pcm16_pieces
from codec_bench.types import Request

PIECE_S = 10.0
_EVENT = "conversation.item.input_audio_transcription."


class OpenAiLiveTranscription(SocketModel):
    """A recogniser of live speech. It reads the fields `audio` and `language`.

    Args:
        info: the facts of the model, which reads fields and gives text.
        languages: the service's name of a language code, if it has its own names; null leaves the language out.
        connection: as `RemoteModel`; `parameters` go into the session beside the name of the model, such as `keywords`;
            `rate_hz` is always 24 kHz.
    """

    checked: ClassVar[str] = "the types of the package openai 3.54; 2026-11-22"
    changes_answers: ClassVar[tuple[str, ...]] = ("languages",)
    # A session cannot be told how answers are decoded.
    words: ClassVar[Mapping[str, str | None]] = dict.fromkeys(
        ("max_tokens", "reasoning_tokens", "temperature", "repetition_penalty", "top_p", "stop", "seed")
    )

    def __init__(
        self, info: ModelInfo, *, languages: Mapping[str, str | None] | None = None, **connection: Any
    ) -> None:
        own = {"base_url": "wss://api.openai.com/v1/realtime?intent=transcription", "key_env": "OPENAI_API_KEY"}
        super().__init__(info, **{**own, **connection, "rate_hz": RATE_HZ})
        self.languages = dict(languages or {})

    def check(self, request: Request) -> str | None:
        """Why the recogniser does not take a request; None if it does."""
        if not isinstance(request.fields.get("audio"), Clip):
            return f"the model '{self.info.name}' transcribes the field 'audio', and the prompt does not fill it"
        return super().check(request)

    def encode(self, request: Request) -> list[str]:
        """The session, the sound in pieces, and the end of the turn, as JSON."""
        transcription: dict[str, Any] = {"model": self.model, **self.named_parameters(request)}
        language = request.fields.get("language")
        if language is not None and self.languages.get(language, language) is not None:
            transcription["languages"] = [self.languages.get(language, language)]
        pcm = {"type": "audio/pcm", "rate": RATE_HZ}
        heard = {"format": pcm, "transcription": transcription, "turn_detection": None}
        session = {"type": "transcription", "audio": {"input": heard}}
        appends = [
            {"type": "input_audio_buffer.append", "audio": piece}
            for piece in pcm16_pieces(request.fields["audio"], PIECE_S)
        ]
        events = [{"type": "session.update", "session": session}, *appends, {"type": "input_audio_buffer.commit"}]
        return [json.dumps(event) for event in events]

    def enter(self, event: Mapping[str, Any], written: Written, began: float) -> Step:
        """As `SocketModel.enter`."""
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
    """The model that a session names; None if it names none."""
    for name in ("audio", "input", "transcription", "model"):
        session = session.get(name) if isinstance(session, Mapping) else None
    return session if isinstance(session, str) else None


__all__ = ["OpenAiLiveTranscription"]

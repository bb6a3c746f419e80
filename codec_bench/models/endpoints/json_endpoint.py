"""Any JSON service: a template builds the body, a path finds the answer.

The body is a mapping whose texts are sandboxed Jinja templates. A single expression such as `{{ audio }}` keeps its
type; null omits the value. Names: `text` (the user's text, or the field), `system`, `audio` (the first clip as WAV in
base64), `messages` (`[{role, text}]`), `parameters`, and every field of the request (audio as WAV in base64; null
without a value).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from codec_bench.audio.clip import Clip
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.models.audio_payloads import audio_of, clips_of, from_base64, from_hex, joined, wav_base64
from codec_bench.models.base import EMPTY, ModelInfo
from codec_bench.models.endpoints.bodies import parse_reply
from codec_bench.models.endpoints.json_text import parse_json
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.remote import JSON, JsonModel, check_choice
from codec_bench.models.endpoints.replies import read_bytes, read_json, read_sound
from codec_bench.models.endpoints.retries import Retryable
from codec_bench.types import Audio, Request, Response

if TYPE_CHECKING:
    import aiohttp

FIELDS = ("text", "instruction", "audio", "prompt_audio", "prompt_text", "language")
_EXPRESSION = re.compile(r"\{\{((?:(?!\}\}).)*)\}\}", re.DOTALL)


class JsonEndpoint(JsonModel):
    """A service with JSON requests and replies, such as a custom one.

    Args:
        body: the template of the request; see the module.
        text_path, audio_path: where the answer is in the reply, such as `result.0.text`; None for no text or audio.
            Audio is base64 (a file, or samples without a header) or a list of numbers in [-1, 1].
        error_path: where a success reply reports an error; any value except null, false, 0 and an empty text is one.
        rate_path: where the reply states the sample rate of samples without a header, or None.
        reply: `json`; `pieces` for JSON objects separated by line ends or zero bytes (server-sent events too); `sound`
            for the audio itself.
        pieces_text: `append` joins the texts of the pieces; `last` if each piece repeats the text before it.
        text_after: a marker; the answer is the text after its last occurrence.
        audio_format, audio_rate_hz: format of the audio: `wav`, `mp3`, ..., or `pcm` with its sample rate.
        audio_coding: how audio is written in JSON, `base64` or `hex`.
        path: appended to `base_url`.
        model: name of the model for the record, if the URL does not name it.
        connection: as `RemoteModel`.

    Raises:
        UserError: the body is not a valid template, or both paths are missing.
    """

    checked: ClassVar[str] = "the documentation that each config names; 2026-11-22"
    changes_answers: ClassVar[tuple[str, ...]] = (
        "body", "method", "path", "text_path", "audio_path", "rate_path", "reply", "pieces_text", "text_after",
        "audio_format", "audio_rate_hz", "audio_coding",
    )  # fmt: skip

    def __init__(
        self,
        info: ModelInfo,
        *,
        body: Mapping[str, Any],
        text_path: str | None = None,
        audio_path: str | None = None,
        error_path: str | None = None,
        rate_path: str | None = None,
        reply: Literal["json", "pieces", "sound"] = "json",
        pieces_text: Literal["append", "last"] = "append",
        text_after: str | None = None,
        audio_format: str = "wav",
        audio_rate_hz: int = 16_000,
        audio_coding: Literal["base64", "hex"] = "base64",
        method: str = "POST",
        path: str = "",
        model: str = "",
        **connection: Any,
    ) -> None:
        super().__init__(info, model=model, **connection)
        check_choice(info, "reply", reply, ("json", "pieces", "sound"))
        check_choice(info, "audio_coding", audio_coding, ("base64", "hex"))
        check_choice(info, "pieces_text", pieces_text, ("append", "last"))
        if text_path is None and audio_path is None and reply != "sound":
            raise UserError(
                "no_path_in_reply",
                model=info.name,
                hint="give the path of the answer in the reply, such as text_path=result.0.text",
            )
        self.body, self.method, self.path = body, method.upper(), path
        self.text_path, self.audio_path, self.error_path, self.rate_path = text_path, audio_path, error_path, rate_path
        self.reply, self.pieces_text, self.text_after = reply, pieces_text, text_after
        self.audio_format, self.audio_rate_hz, self.audio_coding = audio_format, audio_rate_hz, audio_coding
        self._template = _compiled(body, info.name)

    def service_parameter(self, name: str) -> str | None:
        """Return the service's name of a parameter; None if the template has none."""
        return super().service_parameter(name) if "parameters" in str(self.body) else None

    async def answer(self, request: Request, body: bytes) -> Response:
        """Send a request, and return the service's answer."""
        reply = await self.client.send(self.method, self.path, self._read, content=body, headers=JSON)
        about = reply.about()
        try:
            response = parse_reply(self._response, reply.value)
        except UserError as error:
            return Response.failed(error.message, **about)
        return replace(response, **about)

    def content(self, request: Request) -> Any:
        """Return the body: the template, filled with the request's texts and audio."""
        sounds = {id(clip): wav_base64(clip) for clip in clips_of(request)}
        turns = [
            {"role": m.role, "text": "".join(text for text in m.content if isinstance(text, str))}
            for m in request.messages
        ]
        words = {
            role: "\n".join(t["text"] for t in turns if t["role"] == role and t["text"]) for role in ("user", "system")
        }
        values: dict[str, Any] = dict.fromkeys(FIELDS)
        values |= {
            "text": words["user"] or None,
            "system": words["system"] or None,
            "audio": next(iter(sounds.values()), None),
        }
        values |= {k: sounds[id(v)] if isinstance(v, Clip) else v for k, v in request.fields.items()}
        return self._template({**values, "messages": turns, "parameters": self.named_parameters(request)})

    async def _read(self, response: aiohttp.ClientResponse, _began: float) -> list[Any]:
        """Read a reply: JSON documents, or audio bytes; Retryable if it states an error."""
        if self.reply == "sound":
            return [await read_sound(response)]
        pieces = [await read_json(response)] if self.reply == "json" else _pieces(await read_bytes(response))
        for document in pieces:
            problem = value_at(document, self.error_path) if self.error_path else None
            if problem:
                raise Retryable(Diagnostic("service_error_in_answer", message=clean(str(problem))))
        return pieces

    def _response(self, pieces: list[Any]) -> Response:
        """Convert documents to a response by the configured paths; KeyError if missing."""
        if self.reply == "sound":
            return Response(audio=audio_of(pieces[0], self.audio_format, self.audio_rate_hz))
        texts = (
            []
            if self.text_path is None
            else [t for t in (value_at(p, self.text_path) for p in pieces) if t is not None]
        )
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(f"'{self.text_path}' is not text")
        text = (texts[-1] if self.pieces_text == "last" else "".join(texts)) if texts else None
        if text is not None and self.text_after is not None:
            text = text.rpartition(self.text_after)[2]
        audio = None if self.audio_path is None else self._join_audio(pieces, self.audio_path)
        if text is None and audio is None:
            raise KeyError(self.text_path or self.audio_path)
        return Response(text=text, audio=audio, notes=() if text or audio else (EMPTY,))

    def _join_audio(self, pieces: list[Any], path: str) -> Audio | None:
        """Join the audio of all documents; None without audio."""
        parts = []
        for document in pieces:
            sound = value_at(document, path)
            declared = value_at(document, self.rate_path) if self.rate_path else None
            rate = int(declared) if declared else self.audio_rate_hz
            if isinstance(sound, list) and sound:
                parts.append(Audio(np.asarray(sound, dtype=np.float32).reshape(-1), rate))
            elif sound:
                data = from_base64(sound) if self.audio_coding == "base64" else from_hex(sound)
                parts.append(audio_of(data, self.audio_format, rate))
        return joined(parts) if parts else None


def value_at(body: Any, path: str) -> Any:
    """Return the value at a path such as `result.0.text`, or None."""
    for key in path.split("."):
        if isinstance(body, Mapping):
            body = body.get(key)
        elif isinstance(body, list) and key.lstrip("-").isdigit() and -len(body) <= int(key) < len(body):
            body = body[int(key)]
        else:
            return None
    return body


def _pieces(data: bytes) -> list[Any]:
    """Parse a streamed reply of JSON lines or events; Retryable if it is not JSON."""
    out = []
    for line in re.split(r"[\n\r\0]+", data.decode("utf-8", "replace")):
        line = line.strip().removeprefix("data:").strip()
        if not line or line == "[DONE]" or line.startswith((":", "event:", "id:")):
            continue
        try:
            out.append(parse_json(line))
        except ValueError:
            raise Retryable(Diagnostic("piece_not_json", text=clean(line))) from None
    if not out:
        raise Retryable(Diagnostic("reply_empty"))
    return out


def _compiled(body: Any, name: str) -> Any:
    """Compile the Jinja templates in a request body to a function of the values."""
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)

    def compile_node(node: Any, where: str) -> Any:
        """Return a function from values to the filled node; fields that are None vanish."""
        if isinstance(node, Mapping):
            inner = {key: compile_node(value, f"{where}.{key}") for key, value in node.items()}
            return lambda values: {k: v for k, make in inner.items() if (v := make(values)) is not None}
        if isinstance(node, list):
            several = [compile_node(value, f"{where}.{at}") for at, value in enumerate(node)]
            return lambda values: [v for make in several if (v := make(values)) is not None]
        if not isinstance(node, str):
            return lambda values: node
        match = _EXPRESSION.fullmatch(node.strip())
        try:
            if match:
                render = environment.compile_expression(match[1], undefined_to_none=False)
            else:
                template = environment.from_string(node)
        except (TemplateError, RecursionError, ValueError) as error:
            raise UserError("endpoint_template", model=name, field=where, cause=error) from None

        def fill(values: Mapping[str, Any]) -> Any:
            try:
                value = render(**values) if match else template.render(values)
                if isinstance(value, StrictUndefined):
                    str(value)
                return value
            except TemplateError as error:
                known = ", ".join(sorted(values))
                raise UserError(
                    "endpoint_template_not_filled", model=name, field=where, cause=error, hint=f"known: {known}"
                ) from None

        return fill

    return compile_node(body, "body")

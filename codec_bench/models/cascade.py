"""A recogniser followed by a language model, which gets transcripts for audio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.config.custom_code import is_custom_code
from codec_bench.features.recognisers.names import resolve_recognisers
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.models import code_identity, is_custom_file, load_model, model_names
from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.recogniser import Recogniser
from codec_bench.types import Message, Request, Response, Sound

TEMPLATE = "<transcript {number}>\n{transcript}\n</transcript {number}>"


class Cascade(Model):
    """A cascade: a language model answers on a recogniser's transcripts.

    Non-speech and prosody are lost. The notes of the response hold the transcripts. If the recogniser refuses audio,
    the response has its status and reason.

    Papers: Whisper + GPT-4 in Q. Yang et al., "AIR-Bench", ACL 2024; Whisper + Llama 3 in B. Wang et al., "AudioBench",
    NAACL 2025.

    Args:
        recogniser: a recogniser of `codec_bench.features` (`whisper-large-v3`, `pocketsphinx`), or a model that
            transcribes.
        llm: a model that answers text.
        template: the text in place of audio, with `{transcript}` and optionally `{number}` (clips of a conversation are
            counted from 1).
        recogniser_options, llm_options: options of the recogniser and of the language model.

    Raises:
        UserError: a model is unknown or of the wrong kind, or the template has no `{transcript}`.
    """

    def __init__(
        self,
        info: ModelInfo,
        *,
        recogniser: str,
        llm: str,
        template: str = TEMPLATE,
        recogniser_options: Mapping[str, Any] | None = None,
        llm_options: Mapping[str, Any] | None = None,
    ) -> None:
        if "{transcript}" not in template:
            raise UserError("cascade_template", model=info.name, template=template)
        self.info, self.template = info, template
        self.recogniser = _recogniser(info, recogniser, dict(recogniser_options or {}))
        self.answers = load_model(llm, dict(llm_options or {}))
        if self.answers.info.reads != "messages" or "text" not in self.answers.info.outputs:
            raise UserError("cascade_language_model", language_model=llm, model=info.name)
        self._code = {
            "recogniser": code_identity(recogniser, recogniser_options),
            "llm": code_identity(llm, llm_options),
        }
        # Both models work at the same time, on different requests.
        self.concurrency = self.recogniser.concurrency + self.answers.concurrency

    @property
    def identity(self) -> Mapping[str, Any]:
        """The identities of both models, and the template."""
        return {
            "kind": type(self).__name__,
            "recogniser": {**self.recogniser.identity, **self._code["recogniser"]},
            "llm": {**self.answers.identity, **self._code["llm"]},
            "template": self.template,
        }

    @property
    def reasons(self) -> bool:  # type: ignore[override]
        """Whether the language model reasons before it answers."""
        return self.answers.reasons

    @property
    def charges(self) -> bool:  # type: ignore[override]
        """Whether either model may cost money."""
        return self.recogniser.charges or self.answers.charges

    @property
    def tells_apart(self) -> bool:
        """Whether both identities tell checkpoints apart."""
        return self.recogniser.tells_apart and self.answers.tells_apart

    async def describe(self) -> Mapping[str, Any]:
        """Return what the language model's service reports."""
        return await self.answers.describe()

    @property
    def unsupported(self) -> Mapping[str, str]:
        """Parameters that the language model does not support."""
        return self.answers.unsupported

    def set_waiting(self, notify: Callable[[str], None], *, patient: bool = False) -> None:
        """Implement `Model.set_waiting`, for both models."""
        self.recogniser.set_waiting(notify, patient=patient)
        self.answers.set_waiting(notify, patient=patient)

    async def start(self) -> None:
        """Start both models."""
        await self.recogniser.start()
        try:
            await self.answers.start()
        except BaseException:
            await self.recogniser.close()
            raise

    async def close(self) -> None:
        """Close both models."""
        try:
            await self.recogniser.close()
        finally:
            await self.answers.close()

    async def ask(self, request: Request) -> Response:
        """Transcribe a request's audio, and let the language model answer the transcripts.

        A failed transcription fails the response. Latencies add up, and the transcripts become notes.
        """
        if not request.messages:
            return Response.refused(Diagnostic("needs_conversation", model=self.info.name))
        if request.wants != "text":
            return Response.refused(Diagnostic("gives_text_only", model=self.info.name, wants=request.wants))
        clips = [item for message in request.messages for item in message.content if isinstance(item, Clip)]
        language = request.fields.get("language")
        fields = {"language": language} if isinstance(language, str) else {}
        transcriptions = await asyncio.gather(
            *(self._transcribe(f"{request.id}#{number}", clip, fields) for number, clip in enumerate(clips, 1))
        )
        for number, answer in enumerate(transcriptions, 1):
            if answer.status != "ok":
                return replace(
                    answer,
                    reason=Diagnostic("recording_not_transcribed", number=number, cause=answer.reason),
                    text=None,
                )
        transcripts = [answer.text or "" for answer in transcriptions]
        response = await self.answers.ask(self.written(request, transcripts))
        waited = [answer.latency_s or 0.0 for answer in transcriptions]
        return replace(
            response,
            latency_s=response.latency_s + max(waited, default=0.0) if response.latency_s is not None else None,
            first_s=response.first_s + max(waited, default=0.0) if response.first_s is not None else None,
            cut_s=response.cut_s + sum(answer.cut_s for answer in transcriptions),
            sound_s=sum(known)
            if len(known := [a.sound_s for a in transcriptions if a.sound_s is not None]) == len(transcriptions)
            else None,
            notes=(
                *(Diagnostic("transcript_read", number=n, text=text) for n, text in enumerate(transcripts, 1)),
                *(note for answer in transcriptions for note in answer.notes),
                *response.notes,
            ),
        )

    async def _transcribe(self, id: str, clip: Clip, fields: Mapping[str, str]) -> Response:
        """Return the transcript of a clip, which requests that share the clip share."""

        def ask() -> asyncio.Task[Response]:
            return asyncio.create_task(self.recogniser.ask(Request(id, fields={"audio": clip, **fields})))

        # Cancelling one request must not cancel the transcript of the others.
        return await asyncio.shield(clip.once(("transcript", fields.get("language")), ask))

    def written(self, request: Request, transcripts: list[str]) -> Request:
        """Replace audio by transcripts. Each turn becomes one text with a line per part.

        Args:
            transcripts: of all recordings, in order.
        """
        numbers = count(1)

        def text(item: str | Sound) -> str:
            """Return a text as it is, and for audio the template filled with its transcript."""
            if isinstance(item, str):
                return item
            number = next(numbers)
            # The transcript is inserted last, because it may contain braces.
            head, _, tail = self.template.partition("{transcript}")
            marked = (marker.replace("{number}", str(number)) for marker in (head, tail))
            return transcripts[number - 1].join(marked)

        turns = tuple(Message(m.role, ("\n".join(text(item) for item in m.content),)) for m in request.messages)
        return replace(
            request, messages=turns, fields={k: v for k, v in request.fields.items() if not isinstance(v, Clip)}
        )


def _recogniser(info: ModelInfo, name: str, options: dict[str, Any]) -> Model:
    """Build the first stage: a model that transcribes audio, or a recogniser by name."""
    is_model = is_custom_code(name) or is_custom_file(name) or (name in model_names() and not _is_feature(name))
    if is_model:
        model = load_model(name, options)
        if model.info.reads != "fields" or "audio" not in model.info.inputs or "text" not in model.info.outputs:
            raise UserError("cascade_recogniser", recogniser=name, model=info.name)
        return model
    return Recogniser(ModelInfo(f"{info.name}/{name}", inputs=("audio",), reads="fields"), feature=name, **options)


def _is_feature(name: str) -> bool:
    try:
        resolve_recognisers("recogniser", name)
    except UserError:
        return False
    return True

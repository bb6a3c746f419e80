"""A recogniser followed by a language model, which gets transcripts in place of the sounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.errors import UserError
from codec_bench.messages import Diagnostic
from codec_bench.metrics.error_rate import recognisers
from codec_bench.models import is_own_file, load_model, model_names
from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.recogniser import Recogniser
from codec_bench.registry import is_own_code
from codec_bench.types import Message, Request, Response, Sound

TEMPLATE = "<transcript {number}>\n{transcript}\n</transcript {number}>"


class Cascade(Model):
    """The baseline of several papers: transcripts of a recogniser replace the sounds, and a language model answers.

    Sounds that are not speech, and the manner of speaking, are lost. The notes of the response hold the transcripts. If
    the recogniser does not take a sound, the response has the recogniser's status and reason.

    Papers: Whisper + GPT-4 in Q. Yang et al., "AIR-Bench", ACL 2024; Whisper + Llama 3 in B. Wang et al., "AudioBench",
    NAACL 2025.

    Args:
        info: the facts of the cascade.
        recogniser: a recogniser of `codec_bench.features` (`whisper-large-v3`, `pocketsphinx`), or a model that
            transcribes.
        llm: a model that answers text.
        template: the text that replaces a sound, with `{transcript}` and, if wanted, `{number}` (the sounds of a
            conversation are counted from 1).
        recogniser_options, llm_options: options of the recogniser and of the language model.

    Raises:
        UserError: there is no such recogniser or model, the recogniser does not transcribe, the language model does not
            answer text, or the template has no `{transcript}`.
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
            raise UserError(
                f"the template of the cascade '{info.name}' is {template!r}; expected a text with {{transcript}}"
            )
        self.info, self.template = info, template
        self.recogniser = _recogniser(info, recogniser, dict(recogniser_options or {}))
        self.answers = load_model(llm, dict(llm_options or {}))
        if self.answers.info.reads != "messages" or "text" not in self.answers.info.outputs:
            raise UserError(
                f"the model '{llm}' does not take a conversation and answer in text, so it cannot be the language model of "
                f"the cascade '{info.name}'"
            )
        # The recogniser and the language model work at the same time, on different requests.
        self.concurrency = self.recogniser.concurrency + self.answers.concurrency

    @property
    def identity(self) -> Mapping[str, Any]:
        """The identities of both models, and the template."""
        return {
            "kind": type(self).__name__,
            "recogniser": dict(self.recogniser.identity),
            "llm": dict(self.answers.identity),
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
        """What the service of the language model says."""
        return await self.answers.describe()

    @property
    def untold(self) -> Mapping[str, str]:
        """What the language model could not be told."""
        return self.answers.untold

    def set_waiting(self, notify: Callable[[str], None], *, patient: bool = False) -> None:
        """As `Model.set_waiting`, for both models."""
        self.recogniser.set_waiting(notify, patient=patient)
        self.answers.set_waiting(notify, patient=patient)

    async def start(self) -> None:
        """Starts both models.

        Raises:
            UserError: one of them cannot be started.
        """
        await self.recogniser.start()
        try:
            await self.answers.start()
        except BaseException:
            await self.recogniser.close()
            raise

    async def close(self) -> None:
        """Closes both models."""
        try:
            await self.recogniser.close()
        finally:
            await self.answers.close()

    async def ask(self, request: Request) -> Response:
        """One answer to the request with transcripts in place of its sounds."""
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
                *(f"transcript {number}: {text}" for number, text in enumerate(transcripts, 1)),
                *(note for answer in transcriptions for note in answer.notes),
                *response.notes,
            ),
        )

    async def _transcribe(self, id: str, clip: Clip, fields: Mapping[str, str]) -> Response:
        """The transcript of a sound.

        Requests that share the sound, such as one in several wordings, share its transcript.
        """

        def ask() -> asyncio.Task[Response]:
            return asyncio.create_task(self.recogniser.ask(Request(id, fields={"audio": clip, **fields})))

        # A request that is given up must not take the transcript from the others.
        return await asyncio.shield(clip.once(("transcript", fields.get("language")), ask))

    def written(self, request: Request, transcripts: list[str]) -> Request:
        """The request with transcripts in place of its sounds. Each turn becomes one text with a line for each part."""
        numbers = count(1)

        def text(item: str | Sound) -> str:
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
    is_model = is_own_code(name) or is_own_file(name) or (name in model_names() and not _is_feature(name))
    if is_model:
        model = load_model(name, options)
        if model.info.reads != "fields" or "audio" not in model.info.inputs or "text" not in model.info.outputs:
            raise UserError(
                f"the model '{name}' does not transcribe recordings, so it cannot be the recogniser of the cascade "
                f"'{info.name}'"
            )
        return model
    return Recogniser(ModelInfo(f"{info.name}/{name}", inputs=("audio",), reads="fields"), feature=name, **options)


def _is_feature(name: str) -> bool:
    try:
        recognisers("recogniser", name)
    except UserError:
        return False
    return True

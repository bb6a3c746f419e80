"""A recogniser and a language model in a row: what is heard is written down, and the text alone is asked about."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.errors import UserError
from codec_bench.metrics.error_rate import recognisers
from codec_bench.models import is_own_file, load_model, model_names
from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.recogniser import Recogniser
from codec_bench.registry import is_own_code
from codec_bench.types import Message, Request, Response

TEMPLATE = "<transcript {number}>\n{transcript}\n</transcript {number}>"


class Cascade(Model):
    """The baseline of the papers: a recogniser's transcripts stand where the sounds stood, and a text model answers.

    What is not speech, and how something was said, is lost on the way. The transcripts are in the response's notes, and
    sounds that the recogniser cannot take fail the request with its reason.

    Papers: Whisper + GPT-4 in Q. Yang et al., "AIR-Bench", ACL 2024; Whisper + Llama 3 in B. Wang et al., "AudioBench",
    NAACL 2025.

    Args:
        info: the facts.
        recogniser: a recogniser of `codec_bench.features` (`whisper-large-v3`, `pocketsphinx`), or a model that transcribes.
        llm: a model that answers text.
        template: what stands for a sound: `{transcript}` and, counted from 1 in the conversation, `{number}`.
        recogniser_options, llm_options: of those two, in place of their own.

    Raises:
        UserError: there is no such recogniser or model, or it cannot take that part.
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
            raise UserError(f"the template of the cascade '{info.name}' has no {{transcript}}: {template!r}")
        self.info, self.template = info, template
        self.hears = _recogniser(info, recogniser, dict(recogniser_options or {}))
        self.answers = load_model(llm, dict(llm_options or {}))
        if self.answers.info.reads != "messages" or "text" not in self.answers.info.outputs:
            raise UserError(f"the model '{llm}' is not asked in words, and cannot be the language model of a cascade")
        # Either may be busy while the other waits.
        self.concurrency = self.hears.concurrency + self.answers.concurrency

    @property
    def identity(self) -> Mapping[str, Any]:
        """Both models and the template."""
        return {
            "kind": type(self).__name__,
            "recogniser": dict(self.hears.identity),
            "llm": dict(self.answers.identity),
            "template": self.template,
        }

    async def start(self) -> None:
        """Starts both.

        Raises:
            UserError: as one of them does.
        """
        await self.hears.start()
        try:
            await self.answers.start()
        except BaseException:
            await self.hears.close()
            raise

    async def close(self) -> None:
        """Closes both."""
        try:
            await self.hears.close()
        finally:
            await self.answers.close()

    async def ask(self, request: Request) -> Response:
        """One answer to a text in which transcripts stand for sounds."""
        if not request.messages:
            return Response.refused(f"the model '{self.info.name}' is asked in words, and the prompt has no messages")
        if request.wants != "text":
            return Response.refused(f"the model '{self.info.name}' gives text, and the benchmark needs {request.wants}")
        clips = [part for message in request.messages for part in message.content if isinstance(part, Clip)]
        language = request.fields.get("language")
        told = {"language": language} if isinstance(language, str) else {}
        heard = await asyncio.gather(
            *(
                self.hears.ask(Request(f"{request.id}#{number}", fields={"audio": clip, **told}))
                for number, clip in enumerate(clips, 1)
            )
        )
        for number, answer in enumerate(heard, 1):
            if answer.status != "ok":
                return replace(answer, reason=f"recording {number} was not transcribed: {answer.reason}", text=None)
        transcripts = [answer.text or "" for answer in heard]
        said = await self.answers.ask(self.written(request, transcripts))
        waited = [answer.latency_s or 0.0 for answer in heard]
        return replace(
            said,
            latency_s=said.latency_s + max(waited, default=0.0) if said.latency_s is not None else None,
            first_s=said.first_s + max(waited, default=0.0) if said.first_s is not None else None,
            cut_s=said.cut_s + sum(answer.cut_s for answer in heard),
            notes=(
                *(f"transcript {number}: {text}" for number, text in enumerate(transcripts, 1)),
                *(note for answer in heard for note in answer.notes),
                *said.notes,
            ),
        )

    def written(self, request: Request, transcripts: list[str]) -> Request:
        """The request with transcripts in place of its sounds; every turn is one text, its parts on lines of their own."""
        numbers = count(1)

        def text(part: str | Clip) -> str:
            if isinstance(part, str):
                return part
            number = next(numbers)
            # One pass over the template's own marks: a transcript may hold braces of its own.
            head, _, tail = self.template.partition("{transcript}")
            marked = (piece.replace("{number}", str(number)) for piece in (head, tail))
            return transcripts[number - 1].join(marked)

        turns = tuple(Message(m.role, ("\n".join(text(part) for part in m.content),)) for m in request.messages)
        return replace(
            request, messages=turns, fields={k: v for k, v in request.fields.items() if not isinstance(v, Clip)}
        )


def _recogniser(info: ModelInfo, name: str, options: dict[str, Any]) -> Model:
    is_model = is_own_code(name) or is_own_file(name) or (name in model_names() and not _is_feature(name))
    if is_model:
        model = load_model(name, options)
        if model.info.reads != "fields" or "audio" not in model.info.inputs or "text" not in model.info.outputs:
            raise UserError(f"the model '{name}' does not transcribe what it is given, and cannot hear for a cascade")
        return model
    return Recogniser(ModelInfo(f"{info.name}/{name}", inputs=("audio",), reads="fields"), feature=name, **options)


def _is_feature(name: str) -> bool:
    try:
        recognisers("recogniser", name)
    except UserError:
        return False
    return True

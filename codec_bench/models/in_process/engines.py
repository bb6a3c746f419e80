"""vLLM and SGLang in this process, for clusters on which no server may run. One model may lie on several GPUs.

Sources, read on 2026-11-22: `vllm/entrypoints/llm.py` (`LLM`, `LLM.chat`) and `vllm/sampling_params.py` of
https://github.com/vllm-project/vllm; `python/sglang/srt/entrypoints/engine.py` (`Engine.generate`) of
https://github.com/sgl-project/sglang. Nobody has run these two with real weights yet; the tests check what is sent to them
against stand-ins with the same parameters.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

from codec_bench.errors import UserError
from codec_bench.models.base import EMPTY, BatchModel, ModelInfo
from codec_bench.models.in_process.families.checkpoint import locate
from codec_bench.models.in_process.families.settings import Settings, one_limit
from codec_bench.models.sound import data_uri
from codec_bench.types import Message, Request, Response
from codec_bench.weights.find import Found


class EngineModel(BatchModel):
    """A checkpoint that an inference engine runs in this process. Answers are greedy unless a request has a temperature.

    An engine forms its batches itself, so that rounding may make two greedy answers differ between runs.

    Args:
        info: the facts of the model, which takes a conversation and answers in text.
        weights: a folder, or a hub id. A hub id is searched in the folders that hold weights; nothing is downloaded.
        revision: commit, tag or branch that a copy from the hub must have.
        gpus: the number of GPUs that the model lies on (tensor parallelism).
        dtype: `auto`, `float32`, `bfloat16`, `float16`.
        engine: further arguments of the engine, under its own names.
        reasoning_end: the text that ends the reasoning of a model that writes it down, such as `</think>`.
        parameters: generation parameters for requests without their own.
        batch_s: seconds of sound in the requests that the engine gets at once.
        trust_remote_code: whether code in the folder of the checkpoint may run. Only the caller can allow this.

    Raises:
        UserError: an option has a wrong value.
    """

    package: ClassVar[str]
    """The package of the engine."""
    checked: ClassVar[str] = ""
    """What this way to a model was checked against, and when."""

    def __init__(
        self,
        info: ModelInfo,
        *,
        weights: str,
        revision: str | None = None,
        gpus: int = 1,
        dtype: str = "auto",
        engine: Mapping[str, Any] | None = None,
        reasoning_end: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        batch_s: float = 3600.0,
        trust_remote_code: bool = False,
    ) -> None:
        if isinstance(gpus, bool) or not isinstance(gpus, int) or gpus < 1:
            raise UserError(f"the model '{info.name}' has gpus={gpus!r}; expected a whole number of at least 1")
        self.info, self.batch_s = info, float(batch_s)
        self._weights, self._revision, self._gpus, self._dtype = str(weights), revision, gpus, dtype
        self._further, self._trust = dict(engine or {}), bool(trust_remote_code)
        self._reasoning_end, self.reasons = reasoning_end, reasoning_end is not None
        self._defaults = Settings.parse(parameters or {})
        self._place: Found | None = None
        self._engine: Any = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """The checkpoint, the version of the engine, and every option that changes an answer.

        Raises:
            WeightsError: the weights are not on this machine.
            UserError: the engine is not installed.
        """
        return {
            "kind": type(self).__name__, "weights": self._found().identity, self.package: self._version(),
            "gpus": self._gpus, "dtype": self._dtype, "engine": self._further, "reasoning_end": self._reasoning_end,
            "parameters": {field: getattr(self._defaults, field) for field in Settings.__slots__} | {"stop": list(self._defaults.stop)},
            "limit_s": self.info.limit_s, "window_s": self.info.window_s,
        }  # fmt: skip

    def choose_device(self) -> str:
        """The first GPU; the engine finds the others itself."""
        return "cuda:0"

    async def start(self) -> None:
        """Loads the weights.

        Raises:
            UserError: the engine is not installed, or the weights are not on this machine or do not fit it.
        """
        self._version()
        folder = str(self._found().folder)
        try:
            self._engine = await asyncio.to_thread(self.made, folder)
        except (ValueError, RuntimeError, TypeError, OSError) as error:
            raise UserError(
                f"{self.package} cannot run the model '{self.info.name}': {type(error).__name__}: {error}",
                hint=f"--set {self.info.name}.engine='{{NAME: VALUE}}' passes arguments to {self.package}",
            ) from error

    async def close(self) -> None:
        """Frees the memory of the weights."""
        await super().close()
        engine, self._engine = self._engine, None
        if engine is not None:
            await asyncio.to_thread(self.ended, engine)

    def answer(self, batch: Sequence[Request]) -> list[Response]:
        """One response per request, in order."""
        refused: dict[int, Response] = {}
        settings: dict[int, Settings] = {}
        for place, request in enumerate(batch):
            try:
                settings[place] = Settings.parse(one_limit(request.parameters, self.reasons), self._defaults)
            except UserError as error:
                refused[place] = Response.refused(str(error))
        asked = [batch[place] for place in settings]
        answers = dict(zip(settings, self.asked(self._engine, asked, list(settings.values())))) if asked else {}
        return [refused[place] if place in refused else answers[place] for place in range(len(batch))]

    @abstractmethod
    def made(self, folder: str) -> Any:
        """The engine, with the weights of a folder."""

    @abstractmethod
    def ended(self, engine: Any) -> None:
        """Ends the engine."""

    @abstractmethod
    def asked(self, engine: Any, requests: Sequence[Request], settings: Sequence[Settings]) -> list[Response]:
        """One response per request, in order."""

    def response(self, text: str, finish: str | None, **usage: float) -> Response:
        """The response for a text that the model wrote."""
        notes = []
        if self._reasoning_end and self._reasoning_end in text:
            thoughts, _, text = text.rpartition(self._reasoning_end)
            text = text.lstrip()
            notes.append(f"{len(thoughts)} characters of reasoning are not part of the answer")
        if not text:
            notes.append(EMPTY)
        return Response(text=text, finish=finish, usage=usage, notes=tuple(notes))

    def _found(self) -> Found:
        if self._place is None:
            self._place = locate(self.info.name, self._weights, self._revision)
        return self._place

    def _version(self) -> str:
        try:
            return version(self.package)
        except PackageNotFoundError as error:
            raise UserError(
                f"the model '{self.info.name}' needs the package '{self.package}', which is not installed",
                hint=f"pip install {self.package}",
            ) from error


class VllmModel(EngineModel):
    """A checkpoint that vLLM runs in this process. Arguments as `EngineModel`."""

    package: ClassVar[str] = "vllm"
    checked: ClassVar[str] = "the parameters of `LLM.chat` in its source; not run with real weights; 2026-11-22"

    def made(self, folder: str) -> Any:
        """As `EngineModel.made`."""
        own = {
            "model": folder, "tensor_parallel_size": self._gpus, "dtype": self._dtype, "trust_remote_code": self._trust,
            "seed": 0,
        }  # fmt: skip
        return import_module("vllm").LLM(**{**own, **self._further})

    def ended(self, engine: Any) -> None:
        """As `EngineModel.ended`. vLLM ends its workers when nothing refers to it any more."""

    def asked(self, engine: Any, requests: Sequence[Request], settings: Sequence[Settings]) -> list[Response]:
        """As `EngineModel.asked`."""
        made = import_module("vllm").SamplingParams
        sampling = [
            made(
                max_tokens=one.max_tokens, min_tokens=one.min_tokens, temperature=one.temperature, top_p=one.top_p,
                top_k=one.top_k, repetition_penalty=one.repetition_penalty, stop=list(one.stop),
                seed=one.seed if one.sampled else None,
            )
            for one in settings
        ]  # fmt: skip
        conversations = [[_turn(message) for message in request.messages] for request in requests]
        return [
            self.response(
                out.outputs[0].text,
                out.outputs[0].finish_reason,
                input_tokens=float(len(out.prompt_token_ids or ())),
                output_tokens=float(len(out.outputs[0].token_ids)),
            )
            for out in engine.chat(conversations, sampling, use_tqdm=False)
        ]


class SglangModel(EngineModel):
    """A checkpoint that SGLang runs in this process. Arguments as `EngineModel`.

    The prompt is made by the chat template of the checkpoint's processor.
    """

    package: ClassVar[str] = "sglang"
    checked: ClassVar[str] = "the parameters of `Engine.generate` in its source; not run with real weights; 2026-11-22"

    def made(self, folder: str) -> Any:
        """As `EngineModel.made`."""
        from transformers import AutoProcessor

        own = {
            "model_path": folder, "tp_size": self._gpus, "dtype": self._dtype, "trust_remote_code": self._trust,
            "random_seed": 0,
        }  # fmt: skip
        self._processor = AutoProcessor.from_pretrained(folder, trust_remote_code=self._trust)
        return import_module("sglang").Engine(**{**own, **self._further})

    def ended(self, engine: Any) -> None:
        """As `EngineModel.ended`."""
        engine.shutdown()

    def asked(self, engine: Any, requests: Sequence[Request], settings: Sequence[Settings]) -> list[Response]:
        """As `EngineModel.asked`."""
        sampling = [
            {
                "max_new_tokens": one.max_tokens, "min_new_tokens": one.min_tokens, "temperature": one.temperature,
                "top_p": one.top_p, "top_k": one.top_k or -1, "repetition_penalty": one.repetition_penalty,
                "stop": list(one.stop), **({"sampling_seed": one.seed} if one.sampled else {}),
            }
            for one in settings
        ]  # fmt: skip
        prompts = [
            self._processor.apply_chat_template(
                [_turn(message, kind="audio") for message in request.messages],
                tokenize=False,
                add_generation_prompt=True,
            )
            for request in requests
        ]
        sounds = [
            [str(data_uri(p)) for m in request.messages for p in m.content if not isinstance(p, str)] or None
            for request in requests
        ]
        given = {"audio_data": sounds} if any(sounds) else {}
        outputs = engine.generate(prompt=prompts, sampling_params=sampling, **given)
        return [self._read(out) for out in outputs]

    def _read(self, out: Mapping[str, Any]) -> Response:
        about = out["meta_info"]
        usage = {"input_tokens": float(about["prompt_tokens"]), "output_tokens": float(about["completion_tokens"])}
        return self.response(out["text"], (about.get("finish_reason") or {}).get("type"), **usage)


def _turn(message: Message, kind: str = "audio_url") -> dict[str, Any]:
    """A turn as OpenAI's chats have it; a sound is a `data:` URL."""
    if all(isinstance(part, str) for part in message.content):
        return {"role": message.role, "content": "".join(map(str, message.content))}
    parts: list[dict[str, Any]] = []
    for part in message.content:
        if isinstance(part, str):
            parts.append({"type": "text", "text": part})
        elif kind == "audio":
            parts.append({"type": "audio", "audio_url": str(data_uri(part))})
        else:
            parts.append({"type": "audio_url", "audio_url": {"url": str(data_uri(part))}})
    return {"role": message.role, "content": parts}


__all__ = ["EngineModel", "SglangModel", "VllmModel"]

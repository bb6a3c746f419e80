"""Models of transformers in this process, with batches that do not change answers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any, get_args

from codec_bench.machine.memory import give_back, placed
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.models.base import ModelInfo
from codec_bench.models.batching import BatchModel
from codec_bench.models.in_process.families import family_of
from codec_bench.models.in_process.families.base import Family, FamilyRow, FamilySettings, Loading, Template, one_limit
from codec_bench.models.in_process.families.checkpoint import codec_of, locate, parse_dtype, read_config
from codec_bench.types import Request, Response
from codec_bench.weights.find import LocalCheckpoint


class TransformersModel(BatchModel):
    """A checkpoint that transformers can load.

    Answers are greedy unless a request has a temperature. In float32, a greedy answer from a batch equals the answer to
    the request alone, token for token, except for ties by rounding. In bfloat16 and float16, rounding depends on the
    shape of the batch. Sampled requests are answered one at a time, each from its own seed.

    Reference: each request alone through the processor and `generate` of transformers.

    Args:
        weights: a folder, or a hub id, looked up in the weight folders; nothing is downloaded.
        revision: commit, tag or branch of a hub copy.
        device: `auto` (the first GPU, or the CPU if there is none), `cpu` or `cuda:N`.
        dtype: `auto` (float32 on the CPU, the type of the checkpoint on a GPU), `float32`, `bfloat16`, `float16`.
        batch_s: padded seconds in the first batches.
        template: `chat`, or `plain` for models that were not trained to converse.
        system: the system text of a request without one.
        reasoning_end: the text that ends a model's reasoning, such as `</think>`.
        speaker: the voice, for models with several.
        parameters: default generation parameters.
        trust_remote_code: whether code in the folder of the checkpoint may run. Only the caller can allow this.

    Raises:
        UserError: an option has a wrong value.
    """

    def __init__(
        self,
        info: ModelInfo,
        *,
        weights: str,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        batch_s: float = 240.0,
        template: str = "chat",
        system: str | None = None,
        reasoning_end: str | None = None,
        speaker: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        if template not in get_args(Template):
            raise UserError(
                "model_template", model=info.name, template=template, hint=f"expected {' or '.join(get_args(Template))}"
            )
        if not isinstance(batch_s, (int, float)) or isinstance(batch_s, bool) or batch_s <= 0:
            raise UserError("model_batch_seconds", model=info.name, value=batch_s)
        self.info, self.batch_s = info, float(batch_s)
        self._requested_device = str(device)
        self._weights, self._revision, self._dtype = str(weights), revision, dtype
        self._loading_options: dict[str, Any] = {
            "template": template, "system": system, "reasoning_end": reasoning_end, "speaker": speaker,
            "trust": bool(trust_remote_code),
        }  # fmt: skip
        self._defaults = FamilySettings.parse(parameters or {})
        self.reasons = reasoning_end is not None
        self.draws = "audio" in info.outputs
        self._checkpoint: LocalCheckpoint | None = None
        self._family: Family | None = None

    def choose_device(self) -> str:
        """Resolve the device option; an unknown device raises UserError."""
        return _resolved(self.info.name, self._requested_device)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The checkpoint, the dtype, and every option that changes an answer, for records.

        Raises:
            WeightsError: the weights are not on this machine.
        """
        checkpoint = self._find_checkpoint()
        codec = codec_of(checkpoint.folder)
        return {
            "kind": type(self).__name__,
            "weights": checkpoint.identity,
            **({} if codec is None else {"codec": codec.identity}),
            "dtype": self._computes_in(),
            "transformers": version("transformers"),
            "outputs": list(self.info.outputs),
            "limit_s": self.info.limit_s,
            "window_s": self.info.window_s,
            "parameters": {**asdict(self._defaults), "stop": list(self._defaults.stop)},
            **self._loading_options,
        }

    async def start(self) -> None:
        """Load the weights.

        Raises:
            UserError: the weights are missing, do not fit the network or the device's memory, or need a missing
                package.
        """
        await asyncio.to_thread(self.load)

    def load(self) -> None:
        """As `start`, but blocks."""
        self._loaded()

    def _loaded(self) -> Family:
        """Return the loaded network with its family's code, loading it at the first call."""
        if self._family is not None:
            return self._family
        checkpoint = self._find_checkpoint()
        config = read_config(checkpoint.folder)
        speaks = "audio" in self.info.outputs
        options = {"speaks": speaks, **self._loading_options}
        loading = Loading(checkpoint.folder, config["model_type"], self.device, self._computes_in(), **options)
        family = family_of(loading.model_type)(loading)
        placed(f"the model '{self.info.name}'", self.device, family.load)
        self._family, self.rate_hz = family, family.rate_hz
        return family

    async def close(self) -> None:
        """Free the memory of the weights."""
        await super().close()
        was_loaded, self._family = self._family is not None, None
        if was_loaded:
            give_back(self.device)

    def answer(self, batch: Sequence[Request]) -> list[Response]:
        """Return one response per request, in order."""
        family = self._loaded()
        answers: dict[int, Response] = {}
        groups: defaultdict[Hashable, list[tuple[int, FamilyRow, FamilySettings]]] = defaultdict(list)
        for index, request in enumerate(batch):
            try:
                settings = FamilySettings.parse(one_limit(request.parameters, self.reasons), self._defaults)
                row = family.prepare(request)
            except UserError as error:
                answers[index] = Response.refused(error.message)
            except (ValueError, TypeError, KeyError, IndexError) as error:  # raised by processors and templates
                answers[index] = Response.failed(
                    Diagnostic("processor_refused", type=type(error).__name__, message=error)
                )
            else:
                alone = settings.sampled or not family.together
                groups[settings, row.wants, row.group, index if alone else None].append((index, row, settings))
        for members in groups.values():
            responses = family.answer([row for _, row, _ in members], members[0][2])
            for (index, _, _), response in zip(members, responses, strict=True):
                answers[index] = response
        return [answers[index] for index in range(len(batch))]

    def _find_checkpoint(self) -> LocalCheckpoint:
        if self._checkpoint is None:
            self._checkpoint = locate(self.info.name, self._weights, self._revision)
        return self._checkpoint

    def _computes_in(self) -> str:
        return parse_dtype(self.info.name, self._dtype, self.device, read_config(self._find_checkpoint().folder))


def _resolved(name: str, device: str) -> str:
    """Return the torch device of a name; `auto` is the first GPU, else the CPU."""
    import torch

    if device == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    known = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    chosen = "cuda:0" if device == "cuda" else device
    if chosen not in known:
        raise UserError("model_device", model=name, device=device, hint=f"expected one of {', '.join(known)}")
    return chosen

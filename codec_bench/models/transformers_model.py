"""Models of transformers in this process: batches that are as exact as one by one, from a folder of weights."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, get_args

from codec_bench.errors import UserError
from codec_bench.models.base import BatchModel, ModelInfo
from codec_bench.models.families import family_of
from codec_bench.models.families.base import Family, Loading, Row, Template
from codec_bench.models.families.checkpoint import locate, parse_dtype, read_config
from codec_bench.models.families.settings import Settings
from codec_bench.types import Request, Response
from codec_bench.weights.find import Found


class TransformersModel(BatchModel):
    """A checkpoint of a model that transformers knows, asked by the rules of its family.

    Answers are greedy unless a request has a temperature. A greedy answer does not depend on what shares its batch: in
    float32 it is that of the request alone, token for token, unless two tokens are as probable to within rounding; in
    bfloat16 and float16 rounding differs between shapes, and answers may. Requests with a temperature are answered one
    at a time, each from its own seed.

    Reference: each request alone through the processor and `generate` of transformers.

    Args:
        info: the facts.
        weights: a folder, or a hub id; looked for where all weights are, never fetched.
        revision: commit, tag or branch that a copy from the hub must be of.
        device: `auto` (the first GPU, else the CPU), `cpu` or `cuda:N`.
        dtype: `auto` (float32 on the CPU, on a GPU what the checkpoint says), `float32`, `bfloat16`, `float16`.
        batch_s: padded seconds per batch to begin with.
        template: `chat`, or `plain` for models that were not trained to converse.
        system: what the system's turn says where a request has none.
        reasoning_end: what ends the thoughts of a model that thinks aloud, such as `</think>`.
        speaker: whose voice speaks, for models with several.
        parameters: of the generation, where a request has none of its own.
        trust_remote_code: runs code that lies in the checkpoint's folder. Only ever by the caller's own word.

    Raises:
        UserError: an option has no meaning.
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
                f"the model '{info.name}' has template={template!r}", hint=f"expected {' or '.join(get_args(Template))}"
            )
        if not isinstance(batch_s, (int, float)) or isinstance(batch_s, bool) or batch_s <= 0:
            raise UserError(f"the model '{info.name}' has batch_s={batch_s!r}; expected a number of seconds over 0")
        self.info, self.batch_s = info, float(batch_s)
        self._asked_device, self._device = str(device), None
        self._weights, self._revision, self._dtype = str(weights), revision, dtype
        self._how = {
            "template": template, "system": system, "reasoning_end": reasoning_end, "speaker": speaker,
            "trust": bool(trust_remote_code),
        }  # fmt: skip
        self._defaults = Settings.parse(parameters or {})
        self._place: Found | None = None
        self._family: Family | None = None

    @property
    def device(self) -> str:
        """What it computes on.

        Raises:
            UserError: there is no such device.
        """
        if self._device is None:  # not before it is asked for: looking for a GPU takes torch
            self._device = _resolved(self.info.name, self._asked_device)
        return self._device

    @property
    def identity(self) -> Mapping[str, Any]:
        """The checkpoint, how it computes, and every setting that changes an answer.

        Raises:
            WeightsError: the weights are not on this machine.
        """
        return {
            "kind": type(self).__name__,
            "weights": self._found().identity,
            "dtype": self._computes_in(),
            "transformers": version("transformers"),
            "outputs": list(self.info.outputs),
            "limit_s": self.info.limit_s,
            "window_s": self.info.window_s,
            "parameters": {field: getattr(self._defaults, field) for field in Settings.__slots__} | {"stop": list(self._defaults.stop)},
            **self._how,
        }  # fmt: skip

    async def start(self) -> None:
        """Loads the weights.

        Raises:
            UserError: they are not on this machine, do not fit, or need a package that is not installed.
        """
        await asyncio.to_thread(self.load)

    def load(self) -> None:
        """As `start`, for callers that do not wait for anything else meanwhile."""
        if self._family is not None:
            return
        found = self._found()
        config = read_config(found.folder)
        speaks = "audio" in self.info.outputs
        loading = Loading(
            found.folder, config["model_type"], self.device, self._computes_in(), speaks=speaks, **self._how
        )
        family = family_of(loading.model_type)(loading)
        family.load()
        self._family, self.rate_hz = family, family.rate_hz

    async def close(self) -> None:
        """Gives the weights' memory back."""
        await super().close()
        self._family = None
        if self._device not in (None, "cpu"):
            import torch

            torch.cuda.empty_cache()

    def answer(self, batch: Sequence[Request]) -> list[Response]:
        """One response per request, in order."""
        self.load()
        answers: list[Response | None] = [None] * len(batch)
        groups: defaultdict[Hashable, list[tuple[int, Row, Settings]]] = defaultdict(list)
        for place, request in enumerate(batch):
            try:
                settings = Settings.parse(request.parameters, self._defaults)
                row = self._family.prepare(request)
            except UserError as error:
                answers[place] = Response.refused(str(error))
            except (ValueError, TypeError, KeyError, IndexError) as error:  # what a processor or a template raises
                answers[place] = Response.failed(f"the processor cannot take it: {type(error).__name__}: {error}")
            else:
                alone = settings.sampled or not self._family.together
                groups[settings, row.wants, row.group, place if alone else None].append((place, row, settings))
        for members in groups.values():
            responses = self._family.answer([row for _, row, _ in members], members[0][2])
            for (place, _, _), response in zip(members, responses, strict=True):
                answers[place] = response
        return answers

    def _found(self) -> Found:
        if self._place is None:
            self._place = locate(self.info.name, self._weights, self._revision)
        return self._place

    def _computes_in(self) -> str:
        return parse_dtype(self.info.name, self._dtype, self.device, read_config(self._found().folder))


def _resolved(name: str, device: str) -> str:
    import torch

    if device == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    known = ["cpu", *(f"cuda:{place}" for place in range(torch.cuda.device_count()))]
    chosen = "cuda:0" if device == "cuda" else device
    if chosen not in known:
        raise UserError(f"the model '{name}' has device={device!r}", hint=f"a model runs on one of {', '.join(known)}")
    return chosen

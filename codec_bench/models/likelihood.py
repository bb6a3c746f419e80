"""How likely a model finds each of two sounds, for benchmarks that ask which of a pair it takes for the likelier.

Conventions
    A model of this machine defines `log_likelihood(request)` and nothing else is needed: `Model` for one that also
    answers, `LikelihoodModel` for one that does not. One that takes many sounds in one pass defines
    `log_likelihoods(batch)` in its place: `BatchModel` or `LikelihoodBatchModel`. The request of a pair has the fields
    `preferred` and `other`. The answer is a JSON object with a number for each.
"""

from __future__ import annotations

import asyncio
import json
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from time import perf_counter
from typing import Any, TypeGuard
from weakref import WeakKeyDictionary

from codec_bench.messages import Diagnostic
from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.batching import BatchModel, number
from codec_bench.types import Message, Request, Response, Wants

PAIR = ("preferred", "other")
"""The fields of a pair: the sound that the data take for the likelier, and the other one."""
_LOCKS: WeakKeyDictionary[Model, Lock] = WeakKeyDictionary()


class LikelihoodModel(Model):
    """The base of a model that says how likely a sound is, and answers nothing: it defines `info`, `identity` and
    `log_likelihood`.
    """

    @abstractmethod
    def log_likelihood(self, request: Request) -> float:
        """As of `Model`."""

    async def ask(self, request: Request) -> Response:
        """Refuses: there are no answers."""
        return Response.refused(Diagnostic("likelihood_model", model=self.info.name))


class LikelihoodBatchModel(BatchModel):
    """As `LikelihoodModel` for a model that takes many sounds in one pass: it defines `info`, `identity` and
    `log_likelihoods`.
    """

    @abstractmethod
    def log_likelihoods(self, batch: Sequence[Request]) -> Sequence[float]:
        """As of `BatchModel`."""

    def answer(self, batch: Sequence[Request]) -> list[Response]:
        """Refuses: there are no answers."""
        reason = Diagnostic("likelihood_model", model=self.info.name)
        return [Response.refused(reason) for _ in batch]


def facts_of(model: Model) -> ModelInfo:
    """The facts of a model, with `likelihood` among its outputs if it defines `log_likelihood`, and only then."""
    gives: list[Wants] = [kind for kind in model.info.outputs if kind != "likelihood"]
    if isinstance(model, (LikelihoodModel, LikelihoodBatchModel)):
        gives = []
    if _in_batches(model) or type(model).log_likelihood is not Model.log_likelihood:
        gives.append("likelihood")
    return replace(model.info, outputs=tuple(gives))


def _in_batches(model: Model) -> TypeGuard[BatchModel]:
    return isinstance(model, BatchModel) and type(model).log_likelihoods is not BatchModel.log_likelihoods


async def weighed(model: Model, request: Request) -> Response:
    """How likely a model finds the two sounds of a request, as a JSON object with `preferred` and `other`.

    Fails if one of them is no finite number.
    """
    missing = [name for name in PAIR if name not in request.fields]
    if missing:
        return Response.failed(Diagnostic("no_sound_to_weigh", name=missing[0]))
    if _in_batches(model):
        return await _weighed_in_batches(model, request)
    start = perf_counter()
    likelihoods = await asyncio.to_thread(_pair, model, request)
    return _to_response(likelihoods, perf_counter() - start)


async def _weighed_in_batches(model: BatchModel, request: Request) -> Response:
    sides = await asyncio.gather(*(model.weigh(_single(request, name)) for name in PAIR))
    for response in sides:
        if response.status != "ok":
            return response
    likelihoods = {name: json.loads(response.text or "null") for name, response in zip(PAIR, sides)}
    return _to_response(likelihoods, sum(response.latency_s or 0.0 for response in sides))


def _to_response(likelihoods: Mapping[str, Any], seconds: float) -> Response:
    for name, value in likelihoods.items():
        if not isinstance(value, float) or not math.isfinite(value):
            return Response.failed(Diagnostic("likelihood_not_finite", name=name, value=value))
    return Response(text=json.dumps(likelihoods), latency_s=seconds)


def _pair(model: Model, request: Request) -> dict[str, Any]:
    with _LOCKS.setdefault(model, Lock()):
        return {name: number(model.log_likelihood(_single(request, name))) for name in PAIR}


def _single(request: Request, name: str) -> Request:
    """The request for one sound of a pair."""
    sound = request.fields[name]
    turn = Message("user", (sound,))
    return replace(request, id=f"{request.id}/{name}", messages=(turn,), fields={"audio": sound})

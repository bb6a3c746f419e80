"""Likelihoods of two clips, for benchmarks that ask which of a pair is likelier.

A local model defines `log_likelihood(request)`, or `log_likelihoods(batch)` for batches: `Model` or `BatchModel` if it
also answers, else `LikelihoodModel` or `LikelihoodBatchModel`. A pair's request has the fields `preferred` and `other`.
The answer is a JSON object with a number for each.
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
"""The fields of a pair: the clip that should be likelier, and the other."""
_LOCKS: WeakKeyDictionary[Model, Lock] = WeakKeyDictionary()


class LikelihoodModel(Model):
    """The base of a model that only computes `log_likelihood`."""

    @abstractmethod
    def log_likelihood(self, request: Request) -> float:
        """As of `Model`."""

    async def ask(self, request: Request) -> Response:
        """Refuse: there are no answers."""
        return Response.refused(Diagnostic("likelihood_model", model=self.info.name))


class LikelihoodBatchModel(BatchModel):
    """The base of a model that only computes `log_likelihoods` of batches."""

    @abstractmethod
    def log_likelihoods(self, batch: Sequence[Request]) -> Sequence[float]:
        """Return the log-likelihood of each request's audio in nats, in order."""

    def answer(self, batch: Sequence[Request]) -> list[Response]:
        """Refuse: there are no answers."""
        reason = Diagnostic("likelihood_model", model=self.info.name)
        return [Response.refused(reason) for _ in batch]


def facts_of(model: Model) -> ModelInfo:
    """Return a model's facts, with `likelihood` as an output only if it computes it.

    A `LikelihoodModel` or `LikelihoodBatchModel` has no other output.
    """
    gives: list[Wants] = [kind for kind in model.info.outputs if kind != "likelihood"]
    if isinstance(model, (LikelihoodModel, LikelihoodBatchModel)):
        gives = []
    if _in_batches(model) or type(model).log_likelihood is not Model.log_likelihood:
        gives.append("likelihood")
    return replace(model.info, outputs=tuple(gives))


def _in_batches(model: Model) -> TypeGuard[BatchModel]:
    return isinstance(model, BatchModel) and type(model).log_likelihoods is not BatchModel.log_likelihoods


async def pair_likelihoods(model: Model, request: Request) -> Response:
    """Return the log-likelihoods of `preferred` and `other` audio as a JSON object.

    The response is failed unless both are finite.
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
    """Compute both likelihoods of a pair through the model's batches."""
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
    sound = request.fields[name]
    turn = Message("user", (sound,))
    return replace(request, id=f"{request.id}/{name}", messages=(turn,), fields={"audio": sound})

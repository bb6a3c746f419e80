"""How likely a model finds each of two sounds, for benchmarks that ask which of a pair it takes for the likelier.

Conventions
    A model of this machine defines `log_likelihood(request)` and nothing else is needed: `Model` for one that also answers,
    `LikelihoodModel` for one that does not.
    The request of a pair has the fields `preferred` and `other`. The answer is a JSON object with a number for each.
"""

from __future__ import annotations

import asyncio
import json
import math
from abc import abstractmethod
from dataclasses import replace
from threading import Lock
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Message, Request, Response, Wants

PAIR = ("preferred", "other")
"""The fields of a pair: the sound that the data take for the likelier, and the other one."""
_LOCKS: WeakKeyDictionary[Model, Lock] = WeakKeyDictionary()


class LikelihoodModel(Model):
    """The base of a model that says how likely a sound is, and answers nothing: it defines `info`, `identity` and `log_likelihood`."""

    @abstractmethod
    def log_likelihood(self, request: Request) -> float:
        """As of `Model`."""

    async def ask(self, request: Request) -> Response:
        """Refuses: there are no answers."""
        return Response.refused(f"the model '{self.info.name}' says how likely a sound is, and gives no answers")


def told(model: Model) -> ModelInfo:
    """The facts of a model, with `likelihood` among its outputs if it defines `log_likelihood`, and only then."""
    gives: list[Wants] = [kind for kind in model.info.outputs if kind != "likelihood"]
    if isinstance(model, LikelihoodModel):
        gives = []
    if type(model).log_likelihood is not Model.log_likelihood:
        gives.append("likelihood")
    return replace(model.info, outputs=tuple(gives))


async def weighed(model: Model, request: Request) -> Response:
    """How likely a model finds the two sounds of a request, as a JSON object with `preferred` and `other`.

    Fails if one of them is no finite number.
    """
    missing = [name for name in PAIR if name not in request.fields]
    if missing:
        return Response.failed(f"the request has no sound '{missing[0]}' to weigh")
    start = perf_counter()
    found = await asyncio.to_thread(_pair, model, request)
    for name, value in found.items():
        if not isinstance(value, float) or not math.isfinite(value):
            return Response.failed(f"the log-likelihood of the sound '{name}' is {value!r}; expected a finite number")
    return Response(text=json.dumps(found), latency_s=perf_counter() - start)


def _pair(model: Model, request: Request) -> dict[str, Any]:
    with _LOCKS.setdefault(model, Lock()):
        return {name: _number(model.log_likelihood(_single(request, name))) for name in PAIR}


def _single(request: Request, name: str) -> Request:
    """The request for one sound of a pair."""
    sound = request.fields[name]
    turn = Message("user", (sound,))
    return replace(request, id=f"{request.id}/{name}", messages=(turn,), fields={"audio": sound})


def _number(given: Any) -> Any:
    """A number as a float, also one that a tensor or array holds alone; anything else as it is."""
    if isinstance(given, bool):
        return given
    try:
        return float(given)
    except (TypeError, ValueError):
        return given

"""The base classes of models. A model takes requests (texts, sounds, named fields) and gives back text, sound or both.

Conventions
    Every request gets one response. If something goes wrong, the response has a status and a reason.
    `ask` may be awaited many times at once; `concurrency` says how many requests to keep in flight.
    `identity` holds everything that changes an answer. It is part of the key of the response cache, and is recorded in
    the run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codec_bench.models.batching import Batches
from codec_bench.models.info import Modality, ModelInfo
from codec_bench.types import Request, Response

EMPTY = "the answer is empty"
"""The note of a response whose answer holds neither text nor sound."""


class Model(ABC):
    """Something that answers requests. `start` is called once before the first request, `close` once after the last.

    Attributes
        info: the facts that the model declares.
        concurrency: how many requests to keep in flight.
        identity: everything that changes an answer (checkpoint and revision, endpoint, parameters), as JSON values.
        reasons: whether the model writes its reasoning before an answer, so that it is given tokens for it.
        tells_apart: whether `identity` differs between any two checkpoints; without it, answers are reused within a run alone.
        untold: parameters of requests that the model could not be told, each with the reason; known once it has answered.
    """

    info: ModelInfo
    concurrency: int = 1
    reasons: bool = False

    @property
    def tells_apart(self) -> bool:
        """Whether `identity` differs between any two checkpoints that could answer."""
        return True

    @property
    def untold(self) -> Mapping[str, str]:
        """Parameters of requests that the model could not be told, each with the reason."""
        return {}

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """Everything that changes an answer, as JSON values; never a key or a password."""

    def unpriced(self, response: Response) -> tuple[str, ...]:
        """What is missing to say what an answer cost: names of prices, or of counts; empty for a model without prices."""
        return ()

    def set_waiting(self, tell: Callable[[str], None], *, patient: bool = False) -> None:  # noqa: B027 - most never wait
        """Says how the model waits for a service that takes no requests.

        Args:
            tell: called with a sentence whenever it waits.
            patient: whether it waits for as long as it takes, also for a quota of the day.
        """

    async def start(self) -> None:  # noqa: B027 - nothing to do is a good default
        """Prepares the model: loads weights, connects, or starts workers.

        Raises:
            UserError: the model cannot be reached, its key or its weights are missing, or its environment cannot be made.
        """

    async def describe(self) -> Mapping[str, Any]:
        """What the service of a started model says of it, in `model`, and of itself, in `server`; empty if it says nothing."""
        return {}

    @abstractmethod
    async def ask(self, request: Request) -> Response:
        """One answer. An error of one request gives a failed or refused response; no exception is raised."""

    async def close(self) -> None:  # noqa: B027 - nothing to do is a good default
        """Frees memory, closes connections and ends worker processes."""


class BatchModel(Model):
    """A model that answers many requests in one pass. `codec_bench.models.batching` forms the batches.

    The sounds of the requests that `answer` gets are in memory: one channel at `rate_hz`, already cut or split into
    windows.

    Attributes
        batch_s: the most padded seconds in the first batches; halved when memory runs out.
        rate_hz: sample rate of the audio that the model reads.
        device: the device that it computes on. Only one batch at a time runs on a device.
    """

    batch_s: float = 60.0
    rate_hz: int = 16_000
    concurrency: int = 256
    _device: str | None = None
    _batches: Batches | None = None

    @property
    def device(self) -> str:
        """The device that it computes on, `cpu` or `cuda:N`. It is chosen when it is first asked for."""
        if self._device is None:
            self._device = self.choose_device()
        return self._device

    @device.setter
    def device(self, device: str) -> None:
        self._device = device

    def choose_device(self) -> str:
        """Chooses the device. Not called before the device is used, because looking for a GPU loads torch."""
        return "cpu"

    @abstractmethod
    def answer(self, batch: Sequence[Request]) -> list[Response]:
        """One response per request, in order, independent of the rest of the batch under greedy decoding."""

    async def ask(self, request: Request) -> Response:
        """One answer. Requests that are asked at the same time share batches."""
        if self._batches is None:
            self._batches = Batches(self)
        return await self._batches.ask(request)

    async def close(self) -> None:
        """Waits for the batch that runs. Requests that still wait get a failed response."""
        if self._batches is not None:
            batches, self._batches = self._batches, None
            await batches.close()


__all__ = ["EMPTY", "BatchModel", "Modality", "Model", "ModelInfo"]

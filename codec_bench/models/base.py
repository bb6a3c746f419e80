"""What a model is: it takes requests (texts, sounds, named fields) and gives back text, sound or both.

Conventions
    One request in, one response out, whatever goes wrong: an item that fails is a `Response` with a status and a reason.
    `ask` may be awaited many times at once; `concurrency` says how many are worth having in flight.
    Whatever changes an answer is in `identity`, which keys the response cache and is recorded in the run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from codec_bench.types import Request, Response

if TYPE_CHECKING:
    from codec_bench.models.batching import Batches

Modality = Literal["text", "audio"]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The facts a model declares.

    Args:
        name: as on the command line. family: whose prompts it takes where it has none of its own.
        inputs, outputs: what it takes and gives.
        reads: `messages` for a model that is asked in words, `fields` for one that fills named inputs (speech synthesis,
            transcription).
        limit_s: longest audio it takes in one request, or None. window_s: the model hears longer audio in windows of so
            many seconds and joins the answers; None cuts at `limit_s` and says so.
        languages: ISO 639-1 codes it knows, or () for no statement.
        licence: SPDX name of the weights, or None. paper: where it is described.
    """

    name: str
    family: str | None = None
    inputs: tuple[Modality, ...] = ("text", "audio")
    outputs: tuple[Modality, ...] = ("text",)
    reads: Literal["messages", "fields"] = "messages"
    limit_s: float | None = None
    window_s: float | None = None
    languages: tuple[str, ...] = ()
    licence: str | None = None
    paper: str = ""


class Model(ABC):
    """Something that answers. `start` before the first request and `close` after the last are called once each.

    Attributes
        info: the facts.
        concurrency: how many requests to keep in flight.
        identity: everything that changes an answer, as JSON values (checkpoint and revision, endpoint, parameters).
    """

    info: ModelInfo
    concurrency: int = 1

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """Everything that changes an answer, as JSON values; never a key or a password."""

    async def start(self) -> None:  # noqa: B027 - nothing to do is a good default
        """Loads, connects, starts workers.

        Raises:
            UserError: it cannot be reached, has no key, its weights are missing, its environment cannot be made.
        """

    @abstractmethod
    async def ask(self, request: Request) -> Response:
        """One answer. Never raises for what goes wrong with one request."""

    async def close(self) -> None:  # noqa: B027 - nothing to do is a good default
        """Leaves nothing behind."""


class BatchModel(Model):
    """A model that answers many requests in one pass; `codec_bench.models.batching` forms the batches.

    What `answer` is given has been read, cut or split into windows: its sounds are in memory, one channel at `rate_hz`.

    Attributes
        batch_s: first guess of a batch's budget in padded seconds of input audio; halved on out-of-memory.
        rate_hz: rate of the audio it reads, by which lengths are compared.
        device: what it computes on; one batch at a time runs on a device.
    """

    batch_s: float = 60.0
    rate_hz: int = 16_000
    device: str = "cpu"
    concurrency: int = 256
    _batches: Batches | None = None

    @abstractmethod
    def answer(self, batch: Sequence[Request]) -> list[Response]:
        """One response per request, in order, independent of the rest of the batch under greedy decoding."""

    async def ask(self, request: Request) -> Response:
        """One answer, from a batch with what else was asked meanwhile."""
        from codec_bench.models.batching import Batches  # it needs this module's classes

        if self._batches is None:
            self._batches = Batches(self)
        return await self._batches.ask(request)

    async def close(self) -> None:
        """Waits for the batch that runs; what still waits is answered as failed."""
        if self._batches is not None:
            batches, self._batches = self._batches, None
            await batches.close()

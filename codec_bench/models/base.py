"""The base classes of models. A model takes requests (texts, sounds, named fields) and gives back text, sound or both.

Conventions
    Every request gets one response. If something goes wrong, the response has a status and a reason.
    `ask` may be awaited many times at once; `concurrency` says how many requests to keep in flight.
    `identity` holds everything that changes an answer. It is part of the key of the response cache, and is recorded in
    the run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from codec_bench.messages import Diagnostic
from codec_bench.types import Request, Response, Wants

Modality = Literal["text", "audio"]
"""What a model takes."""
EMPTY = Diagnostic("answer_empty")
"""The note of a response whose answer holds neither text nor sound."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The facts a model declares.

    Args:
        name: the name on the command line.
        family: the family whose prompts the model uses if a benchmark has no prompt for the model itself.
        inputs, outputs: the kinds of data that it takes and gives. `likelihood` need not be named: a model that defines
            `log_likelihood` gives it.
        reads: `messages` for a model that takes a conversation, `fields` for a model that takes named inputs (speech
            synthesis, transcription).
        limit_s: the longest audio in one request, in seconds; None for no limit.
        window_s: longer audio is split into windows of at most this many seconds, and the answers are joined. None:
            longer audio is cut at `limit_s`, and the response says how much was cut.
        languages: ISO 639-1 codes of the languages that it knows; empty if that is not stated.
        licence: SPDX name of the licence of the weights; None if unknown. paper: where the model is described.

    Examples:
        >>> ModelInfo("mine", inputs=("text",)).outputs
        ('text',)
    """

    name: str
    family: str | None = None
    inputs: tuple[Modality, ...] = ("text", "audio")
    outputs: tuple[Wants, ...] = ("text",)
    reads: Literal["messages", "fields"] = "messages"
    limit_s: float | None = None
    window_s: float | None = None
    languages: tuple[str, ...] = ()
    licence: str | None = None
    paper: str = ""


class Model(ABC):
    """Something that answers requests. `start` is called once before the first request, `close` once after the last.

    Attributes
        info: the facts that the model declares.
        concurrency: how many requests to keep in flight.
        identity: everything that changes an answer (checkpoint and revision, endpoint, parameters), as JSON values.
        reasons: whether the model writes its reasoning before an answer, so that it is given tokens for it.
        charges: whether an answer may cost money, so that each one is kept before the next is requested in its place.
        tells_apart: whether `identity` differs between any two checkpoints; without it, answers are reused within a run
        alone.
        weighs: whether `ask` also answers how likely sounds are.
        draws: whether spoken answers are drawn at random from the seed of the request, whatever its temperature.
        untold: parameters of requests that the model could not be told, each with the reason; known once it has
            answered.

    Examples:
        >>> import asyncio
        >>> from codec_bench import Message
        >>> class Echo(Model):
        ...     info = ModelInfo("echo", inputs=("text",))
        ...     identity = {"version": 1}
        ...
        ...     async def ask(self, request):
        ...         return Response(text=request.messages[-1].content[-1])
        >>> asyncio.run(Echo().ask(Request("a", (Message("user", ("Good morning",)),)))).text
        'Good morning'
    """

    info: ModelInfo
    concurrency: int = 1
    reasons: bool = False
    charges: bool = False
    draws: bool = False
    weighs: bool = False

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

    def set_waiting(self, notify: Callable[[str], None], *, patient: bool = False) -> None:  # noqa: B027 - most never wait
        """Says how the model waits for a service that takes no requests.

        Args:
            notify: called with a sentence whenever it waits.
            patient: whether it waits for as long as it takes, also for a quota of the day.
        """

    async def start(self) -> None:  # noqa: B027 - nothing to do is a good default
        """Prepares the model: loads weights, connects, or starts workers.

        Raises:
            UserError: the model cannot be reached, its key or its weights are missing, or its environment cannot be
                made.
        """

    async def describe(self) -> Mapping[str, Any]:
        """What the service of a started model says of it, in `model`, and of itself, in `server`; empty if it says
        nothing.
        """
        return {}

    @abstractmethod
    async def ask(self, request: Request) -> Response:
        """One answer. An error of one request gives a failed or refused response; no exception is raised."""

    def log_likelihood(self, request: Request) -> float:
        """The natural logarithm of how likely a sound is to the model; a speech language model may define it.

        It is called in a thread, one call at a time. Whether the logarithms of tokens are summed or averaged is the
        model's to choose and to say in its `identity`: a sum favours the shorter of two sounds.

        Args:
            request: its field `audio` is the sound (`request.fields["audio"].signal(16_000)`), which is also its only
                message.
        """
        raise NotImplementedError

    async def close(self) -> None:  # noqa: B027 - nothing to do is a good default
        """Frees memory, closes connections and ends worker processes."""

"""The base classes of models: requests (texts, audio, named fields) to responses.

Every request gets one response; errors have a status and a reason. `ask` may be awaited concurrently, `concurrency`
times. `identity` holds everything that changes an answer. It is part of the cache key and recorded in the run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from codec_bench.messages import Diagnostic
from codec_bench.types import Request, Response, Wants

Modality = Literal["text", "audio"]
"""A kind of input."""
EMPTY = Diagnostic("answer_empty")
"""The note of a response without text and audio."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The facts a model declares.

    Args:
        name: the name on the command line.
        family: the family whose prompts the model uses if a benchmark has no prompt for the model itself.
        inputs, outputs: the kinds of data that it takes and gives. `likelihood` follows from `log_likelihood`.
        reads: `messages` for conversations, `fields` for named inputs (speech synthesis, transcription).
        limit_s: the longest audio in one request, in seconds; None for no limit.
        window_s: longer audio is split into windows of at most this many seconds, and the answers are joined. None:
            longer audio is cut at `limit_s`, and the response says how much was cut.
        languages: ISO 639-1 codes of its languages; empty if unknown.
        licence: SPDX name of the licence of the weights; None if unknown.
        paper: where the model is described.

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
    """A model that answers requests; `start` is called before, `close` after them.

    Attributes
        info: the facts that the model declares.
        concurrency: how many requests to keep in flight.
        identity: everything that changes an answer (checkpoint and revision, endpoint, parameters), as JSON values.
        reasons: whether the model writes its reasoning before an answer, and needs tokens for it.
        charges: whether an answer may cost money, so that it is stored before the next request.
        tells_apart: whether `identity` differs between any two checkpoints; otherwise answers are reused within a run
            only.
        weighs: whether `ask` also returns likelihoods of audio.
        draws: whether spoken answers are sampled from the request's seed, whatever its temperature.
        unsupported: refused parameters of requests, each with the reason; known after the first answers.

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
    def unsupported(self) -> Mapping[str, str]:
        """Unsupported parameters of requests, each with the reason."""
        return {}

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """Everything that changes an answer, as JSON values; never a key or a password."""

    def unpriced(self, response: Response) -> tuple[str, ...]:
        """Return the prices or counts that are missing for the cost of an answer."""
        return ()

    def set_waiting(self, notify: Callable[[str], None], *, patient: bool = False) -> None:  # noqa: B027
        """Set how the model waits for a service that throttles.

        Args:
            notify: called with a sentence whenever it waits.
            patient: whether it waits without limit, also for a daily quota.
        """

    async def start(self) -> None:  # noqa: B027 - nothing to do is a good default
        """Prepare the model: load weights, connect, or start workers.

        Raises:
            UserError: the model is unreachable, its key or weights are missing, or its environment cannot be created.
        """

    async def describe(self) -> Mapping[str, Any]:
        """Return the service's facts about the model (`model`) and itself (`server`)."""
        return {}

    @abstractmethod
    async def ask(self, request: Request) -> Response:
        """Send a request and return its response; errors give failed responses."""

    def log_likelihood(self, request: Request) -> float:
        """Return the log-likelihood of the request's audio in nats, for speech LMs.

        Called in a thread, one call at a time. Sum or mean over tokens is the model's choice, which its `identity`
        states: a sum favours the shorter of two clips.

        Args:
            request: its field `audio` is the audio (`request.fields["audio"].signal(16_000)`), which is also its only
                message.
        """
        raise NotImplementedError

    async def close(self) -> None:  # noqa: B027 - nothing to do is a good default
        """Free memory, close connections and end worker processes."""

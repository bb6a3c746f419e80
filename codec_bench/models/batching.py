"""Dynamic batches for a model that answers many requests in one pass.

A request's length is in seconds: its audio, `TEXT_S` per character, and `REQUEST_S`. A batch holds requests of similar
length, and runs when it is full or no request is being read that could join it. There is no time-out. Batching never
changes an answer.
"""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Lock
from time import perf_counter
from typing import Any, Literal

from codec_bench.audio.budget import Budget
from codec_bench.machine.memory import give_back, out_of_memory
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.models.audio_payloads import clips_of
from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.windows import join, split_windows
from codec_bench.types import Request, Response

TEXT_S = 0.01
"""Seconds per character of text: about 4 characters a token, 25 tokens a second."""
REQUEST_S = 1.0
"""Seconds added per request, because its answer takes memory."""

_DEVICES: defaultdict[str, Lock] = defaultdict(Lock)

Outcome = list[Response] | Literal["oom"] | str


@dataclass(slots=True, eq=False)
class Pending:
    """One request that waits for an answer.

    Args:
        alone: needs its own batch, because a batch that contained it failed.
    """

    request: Request
    length_s: float
    done: Callable[[Response], None]
    alone: bool = False


@dataclass(slots=True)
class Waiting(Budget):
    """The requests that wait, oldest first."""

    budget_s: float
    growing: bool
    items: list[Pending] = field(default_factory=list)

    def is_full(self) -> bool:
        """Whether the items fill `budget_s`, or one must be sent alone."""
        return any(item.alone for item in self.items) or sum(item.length_s for item in self.items) >= self.budget_s

    def take(self) -> list[Pending]:
        """Remove and return a batch: the oldest request and those nearest in length.

        Together they stay within the budget of padded seconds.
        """
        oldest = self.items[0]
        near = [] if oldest.alone else [item for item in self.items[1:] if not item.alone]
        chosen, longest = [oldest], oldest.length_s
        for item in sorted(near, key=lambda item: abs(item.length_s - oldest.length_s)):
            longest = max(longest, item.length_s)
            if longest * (len(chosen) + 1) > self.budget_s:
                break
            chosen.append(item)
        selected = set(map(id, chosen))
        self.items = [item for item in self.items if id(item) not in selected]
        return chosen

    def requeue(self, items: list[Pending]) -> None:
        """Put unanswered requests back in front."""
        self.items[:0] = items


class Batches:
    """Collects the requests to one model into batches.

    Args:
        model: the model; at any time only one thread uses its device.
        answer: answers a batch in a thread; None for the model's `answer`.
        info: the facts by which requests are refused, cut or split; None for the model's own.
    """

    def __init__(
        self,
        model: BatchModel,
        answer: Callable[[Sequence[Request]], list[Response]] | None = None,
        info: ModelInfo | None = None,
    ) -> None:
        self._model, self._answer, self._info = model, answer or model.answer, info or model.info
        # On the CPU a larger batch is not faster; on a GPU the budget grows until a batch does not fit.
        self.waiting = Waiting(model.batch_s, growing=model.device != "cpu")
        self._coming = 0
        self._closed = False
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="codec-bench-model")
        self._runner: asyncio.Task[None] | None = None

    async def ask(self, request: Request) -> Response:
        """Queue a request, in windows if its audio is long, and return the response.

        An error of this request gives a failed or refused response.
        """
        if (reason := refusal(request, self._info)) is not None:
            return Response.refused(reason)
        if self._runner is None:
            self._runner = asyncio.get_running_loop().create_task(self._run())
        self._coming += 1
        try:
            windowed = await asyncio.to_thread(split_windows, request, self._info, self._model.rate_hz)
            waiting = [self._put(window) for window in windowed.requests]
        except UserError as error:
            return Response.failed(error.message)
        finally:
            self._coming -= 1
            self._wake.set()
        answers: list[Response] = []
        for future in waiting:
            answers.append(await future)
            if answers[-1].status != "ok":
                break
        return join(answers, windowed)

    async def close(self) -> None:
        """Wait for the current batch. Requests that still wait get a failed response."""
        self._closed = True
        self._wake.set()
        if self._runner is not None:
            await self._runner
        await asyncio.to_thread(self._thread.shutdown)

    def _put(self, request: Request) -> asyncio.Future[Response]:
        """Queue a request; return a future of its response, failed at once after `close`."""
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

        def done(response: Response) -> None:
            if not future.done():  # the caller may have been cancelled
                future.set_result(response)

        if self._closed:
            done(Response.failed(Diagnostic("model_closed")))
        else:
            self.waiting.items.append(Pending(request, length_s(request), done))
        return future

    async def _run(self) -> None:
        """Form batches of queued requests and run them until closed."""
        while not self._closed:
            if not self.waiting.items or (self._coming and not self.waiting.is_full()):
                self._wake.clear()
                await self._wake.wait()
                continue
            items = self.waiting.take()
            start = perf_counter()
            outcome = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._answers, [item.request for item in items]
            )
            self._follow(items, outcome, perf_counter() - start)
            # Callers that were answered can ask again and join the next batch before it is formed.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        for item in self.waiting.items:
            item.done(Response.failed(Diagnostic("model_closed")))

    def _answers(self, requests: Sequence[Request]) -> Outcome:
        """Run a batch; return its responses, `oom`, or an error message."""
        with _DEVICES[self._model.device]:
            try:
                answers = self._answer(requests)
            except (Exception, SystemExit) as error:  # a user's model can raise anything; only this batch fails
                if not out_of_memory(error):
                    return error.message if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            else:
                if len(answers) != len(requests):
                    return Diagnostic("answers_miscounted", answers=len(answers), requests=len(requests))
                return list(answers)
            # Outside the handler, where the exception and the tensors in its frames are freed.
            give_back(self._model.device)
            return "oom"

    def _follow(self, items: list[Pending], outcome: Outcome, seconds: float) -> None:
        """Deliver a batch's responses; requeue its items after an error."""
        padded_s = max(item.length_s for item in items) * len(items)
        if isinstance(outcome, list):
            self.waiting.fitted(padded_s)
            for item, response in zip(items, outcome):
                timed = response.latency_s is not None
                item.done(response if timed else replace(response, latency_s=seconds / len(items)))
        elif len(items) == 1:
            items[0].done(Response.failed(Diagnostic("model_out_of_memory") if outcome == "oom" else outcome))
        elif outcome == "oom":
            self.waiting.did_not_fit(padded_s)
            self.waiting.requeue(items)
        else:
            for item in items:
                item.alone = True
            self.waiting.requeue(items)


class BatchModel(Model):
    """A model that answers many requests in one pass, through `Batches`.

    The audio of the requests to `answer` is in memory: one channel at `rate_hz`, cut or split into windows.

    Attributes
        batch_s: the most padded seconds in the first batches; halved when memory runs out.
        rate_hz: sample rate of the audio that the model reads.
    """

    batch_s: float = 60.0
    rate_hz: int = 16_000
    concurrency: int = 256
    _device: str | None = None
    _batches: Batches | None = None
    _weighing: Batches | None = None

    @property
    def device(self) -> str:
        """The device, `cpu` or `cuda:N`, chosen on first use. It runs one batch at a time."""
        if self._device is None:
            self._device = self.choose_device()
        return self._device

    @device.setter
    def device(self, device: str) -> None:
        self._device = device

    def choose_device(self) -> str:
        """Choose the device. Called late, because looking for a GPU loads torch."""
        return "cpu"

    @abstractmethod
    def answer(self, batch: Sequence[Request]) -> list[Response]:
        """Return one response per request, in order, independent of the rest of the batch."""

    def log_likelihoods(self, batch: Sequence[Request]) -> Sequence[float]:
        """Return `log_likelihood` of each request, in order, in place of that method.

        A value is independent of the rest of the batch. The audio is in memory, as for `answer`, and uncut.
        """
        raise NotImplementedError

    async def weigh(self, request: Request) -> Response:
        """Return the likelihood of a request's audio as JSON, in shared batches."""
        if self._weighing is None:
            info = ModelInfo(self.info.name, outputs=("likelihood",))
            self._weighing = Batches(self, self._weighed, info)
        return await self._weighing.ask(request)

    def _weighed(self, batch: Sequence[Request]) -> list[Response]:
        return [Response(text=json.dumps(number(value), default=repr)) for value in self.log_likelihoods(batch)]

    async def ask(self, request: Request) -> Response:
        """Return the answer to a request; concurrent requests share batches."""
        if self._batches is None:
            self._batches = Batches(self)
        return await self._batches.ask(request)

    async def close(self) -> None:
        """Wait for the current batch. Requests that still wait get a failed response."""
        batches = [self._batches, self._weighing]
        self._batches = self._weighing = None
        for one in filter(None, batches):
            await one.close()


def number(value: Any) -> Any:
    """Return a number or scalar tensor as a float; anything else as it is."""
    if isinstance(value, bool):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def length_s(request: Request) -> float:
    """Estimate a request's size in seconds of audio; text counts by its characters."""
    texts = [text for message in request.messages for text in message.content if isinstance(text, str)]
    texts += [value for value in request.fields.values() if isinstance(value, str)]
    return REQUEST_S + sum(clip.duration_s for clip in clips_of(request)) + TEXT_S * sum(map(len, texts))


def refusal(request: Request, info: ModelInfo) -> str | None:
    """Return why a model cannot answer a request, by its facts; None if it can."""
    if info.reads == "messages" and not request.messages:
        return Diagnostic("needs_conversation", model=info.name)
    if request.wants not in info.outputs:
        return Diagnostic(
            "gives_other_outputs", model=info.name, outputs=" and ".join(info.outputs), wants=request.wants
        )
    if "audio" not in info.inputs and next(clips_of(request), None) is not None:
        return Diagnostic("takes_no_audio", model=info.name)
    return None

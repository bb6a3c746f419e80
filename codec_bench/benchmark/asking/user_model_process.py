"""Run a user's own model in a separate process, isolated from the run.

The main process builds the model only for its facts, and never starts it. The child builds it again from its name and
options, and gets its requests over a pipe.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import pickle
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Thread
from typing import Any

from codec_bench.config.custom_code import is_custom_code
from codec_bench.config.registry import load_attribute
from codec_bench.engine.main_pipe import MainPipe
from codec_bench.engine.pool import describe_exit, end_process, start_process
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, describe
from codec_bench.models import load_model
from codec_bench.models.base import Model
from codec_bench.models.endpoints.remote import RemoteModel
from codec_bench.types import Request, Response

SERVE = f"{__name__}:serve"
_ENDED_AT_MOST = 3
"""After this many processes in a row without an answer, no more are started."""
_CLOSE_S = 30.0
_STDERR = 2


class ProcessEnded(Exception):
    """The process of a model ended; `reason` says how."""

    def __init__(self, reason: Diagnostic) -> None:
        super().__init__(reason)
        self.reason = reason


def load_apart(name: str, options: Mapping[str, Any] | None, device: str) -> Model:
    """Load a model; the user's custom code runs in a separate process.

    Models of a service stay in this process, because they compute nothing here.

    Args:
        name: a registered model, a configuration file or custom code (`FILE.py:CLASS`).

    Raises:
        UserError: as for `load_model`.
    """
    model = load_model(name, options, device=device)
    if not is_custom_code(name) or isinstance(model, RemoteModel):
        return model
    try:
        build = pickle.dumps((name, dict(options or {}), device))
    except Exception:  # an option is a Python object
        return model
    return ModelProcess(model, build)


class ModelProcess(Model):
    """A model that runs in a separate process.

    Args:
        model: this process's instance, for its facts.
        build: the pickled arguments of `load_model`.
    """

    weighs = True

    def __init__(self, model: Model, build: bytes) -> None:
        self.info, self.concurrency, self.reasons = model.info, model.concurrency, model.reasons
        self.charges, self.draws = model.charges, model.draws
        self._model, self._build = model, build
        self._known: Mapping[str, Any] = {}
        self.notify: Callable[[str], None] = lambda words: None
        self._patient = False
        self._child: _Child | None = None
        self._ended = 0
        self._why: Diagnostic | None = None
        self._starting = asyncio.Lock()

    @property
    def identity(self) -> Mapping[str, Any]:
        """The identity that the model states."""
        return self._known.get("identity") or self._model.identity

    @property
    def tells_apart(self) -> bool:
        """Whether the model's identity differs between checkpoints."""
        return self._model.tells_apart

    @property
    def unsupported(self) -> Mapping[str, str]:
        """The parameters that the model does not support, with reasons."""
        return self._known.get("unsupported") or self._model.unsupported

    def unpriced(self, response: Response) -> tuple[str, ...]:
        """The prices or counts that are missing for the cost of an answer."""
        return self._model.unpriced(response)

    def set_waiting(self, notify: Callable[[str], None], *, patient: bool = False) -> None:
        """Set how the model waits for its service; its messages come over the pipe."""
        self.notify, self._patient = notify, patient

    async def start(self) -> None:
        """Start the process and its model; returns once the model can answer.

        Raises:
            UserError: the model cannot be started, or its process ended.
        """
        try:
            await self._started()
        except ProcessEnded as error:
            raise UserError("model_not_started", model=self.info.name, cause=error.reason) from error

    async def describe(self) -> Mapping[str, Any]:
        """Return what the model's service reports."""
        description: Mapping[str, Any] = await (await self._started()).call("describe")
        return description

    async def ask(self, request: Request) -> Response:
        """Get one answer from the process, which is started if there is none.

        If the process ends, the response is a failure. After three such processes in a row, none is started.
        """
        child = None
        try:
            child = await self._started()
            response: Response = await child.call("ask", request)
        except ProcessEnded as error:
            if child is not None and child is self._child:
                self._child, self._why = None, error.reason
                self._ended += 1
            return Response.failed(error.reason)
        self._ended, self._known = 0, child.known
        return response

    async def close(self) -> None:
        """Close the model and end the process."""
        if self._child is not None:
            with suppress(ProcessEnded, UserError, TimeoutError):
                await asyncio.wait_for(self._child.call("close"), _CLOSE_S)
            self._child.end()
            self._child = None

    async def _started(self) -> _Child:
        """Return the process of the model; start one if there is none."""
        async with self._starting:
            if self._child is None:
                if self._ended >= _ENDED_AT_MOST:
                    raise ProcessEnded(Diagnostic("model_given_up", processes=self._ended, cause=self._why))
                child = _Child(self._build, lambda words: self.notify(words))
                try:
                    await child.call("start", self._patient)
                except BaseException as error:
                    child.end()
                    if isinstance(error, ProcessEnded):
                        self._ended, self._why = self._ended + 1, error.reason
                    raise
                self._child, self._known = child, child.known
            return self._child


class _Child:
    """The process and its pending calls, on one event loop."""

    def __init__(self, build: bytes, notify: Callable[[str], None]) -> None:
        self.known: Mapping[str, Any] = {}
        self._loop, self.notify = asyncio.get_running_loop(), notify
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._why: Diagnostic | None = None
        # A separate thread, because a full pipe must not block the event loop.
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._process, self._pipe = start_process([SERVE, "1"], dict(os.environ), _STDERR)
        self._pipe.send((build, [os.path.abspath(entry) for entry in sys.path]))
        Thread(target=self._read, daemon=True).start()

    async def call(self, action: str, *arguments: Any) -> Any:
        """Call a method of the model in the child, and return its result.

        Args:
            action: `start`, `describe`, `ask` or `close`.

        Raises:
            ProcessEnded: the process ended.
            UserError: the model raised an exception.
        """
        number, answer = next(self._numbers), self._loop.create_future()
        if self._why is not None:
            raise ProcessEnded(self._why)
        self._waiting[number] = answer
        try:
            await self._loop.run_in_executor(self._sender, self._send, (number, action, arguments))
            is_right, value = await answer
        except asyncio.CancelledError:
            with suppress(RuntimeError):
                self._sender.submit(self._send, (number, "cancel", ()))
            raise
        finally:
            self._waiting.pop(number, None)
        if not is_right:
            message, hint = value
            raise UserError(message, hint=hint)
        return value

    def end(self) -> None:
        """End the process and the programs that it started."""
        end_process(self._process)
        self._sender.shutdown(wait=False, cancel_futures=True)

    def _send(self, message: Any) -> None:
        with suppress(OSError):  # it ended: the reading thread says how
            self._pipe.send(message)

    def _read(self) -> None:
        """Pass messages from the process to the event loop until its pipe closes."""
        while True:
            try:
                message = self._pipe.recv()
                number, kind, value, known = message
            except Exception:  # the pipe is closed, or the model wrote to it
                break
            with suppress(RuntimeError):  # the loop may be closed by now
                self._loop.call_soon_threadsafe(self._take, number, kind, value, known)
        why = Diagnostic("model_process_ended", cause=describe_exit(self._process))
        self._pipe.close()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._lose, why)

    def _take(self, number: int, kind: str, value: Any, known: Mapping[str, Any]) -> None:
        """Handle a message of the process: a notice or the result of a call.

        Args:
            number: of the call.
            kind: `tell` for a notice, `right` for a result, `wrong` for an error.
            known: the model's identity and unsupported parameters at present.
        """
        if kind == "tell":
            self.notify(value)
            return
        self.known = known
        answer = self._waiting.get(number)  # none for a call that was cancelled, or that nobody made
        if answer is not None and not answer.done():
            answer.set_result((kind == "right", value))

    def _lose(self, why: Diagnostic) -> None:
        self._why = why
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ProcessEnded(why))


def serve(pipe: MainPipe) -> None:
    """Entry point of the child process: load the model, answer until the pipe closes."""
    build, path = pipe.recv()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # its end may come at any time
    sys.path[:] = path  # a model of a package may be in a folder of the caller
    asyncio.run(_serve(pipe, build))


async def _serve(pipe: MainPipe, build: bytes) -> None:
    """Load the model and answer calls over the pipe until it closes.

    Args:
        build: the pickled arguments of `load_model`.
    """
    loop, inbox = asyncio.get_running_loop(), asyncio.Queue[Any]()
    model: Model | None = None
    tasks: dict[int, asyncio.Task[None]] = {}

    def read() -> None:
        message = None
        while True:
            try:
                message = pipe.recv()
            except (EOFError, OSError):
                message = None
            loop.call_soon_threadsafe(inbox.put_nowait, message)
            if message is None:
                return

    def send(number: int, kind: str, value: Any) -> None:
        known = {} if model is None else {"identity": dict(model.identity), "unsupported": dict(model.unsupported)}
        pipe.send((number, kind, value, known))

    async def answer(number: int, action: str, arguments: tuple[Any, ...]) -> None:
        nonlocal model
        try:
            if action == "start":
                name, options, device = pickle.loads(build)  # from the main process, which is ours
                model = load_model(name, options, device=device)
                model.set_waiting(lambda words: send(-1, "tell", words), patient=arguments[0])
                await load_attribute("codec_bench.benchmark.run_request:started_model")(model)
                send(number, "right", None)
                return
            assert model is not None  # it is started before its first request
            if action == "ask":
                value = await load_attribute("codec_bench.benchmark.asking.sending:send_request")(model, arguments[0])
            else:
                value = await getattr(model, action)()
            send(number, "right", value)
        except UserError as error:
            send(number, "wrong", (error.message, error.hint))
        except (Exception, SystemExit) as error:
            send(number, "wrong", (f"the model '{action}' failed: {describe(error)}", None))
        finally:
            tasks.pop(number, None)

    Thread(target=read, daemon=True).start()
    while (message := await inbox.get()) is not None:
        number, action, arguments = message
        if action == "cancel":
            if number in tasks:
                tasks[number].cancel()
        else:
            tasks[number] = loop.create_task(answer(number, action, arguments))

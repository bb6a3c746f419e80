"""A model in its own Python environment: a file of worker code with two functions.

`load(**options) -> state` runs once per worker, `answer(state, batch) -> list` per batch. An item is a dictionary with
`id`, `messages` (each with `role` and `content`), `fields`, `wants` and `parameters`; audio is `{"samples": float32
(channels, samples), "sample_rate_hz": int}`. An answer has `text` or `audio`, and optionally `usage`, `finish` and
`notes`; or a sentence as `error` or `refused`.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from codec_bench.audio.clip import Clip, bytes_digest
from codec_bench.config.file_content import path_hash
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import UserError
from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.windows import join, split_windows
from codec_bench.types import Audio, Request, Response
from codec_bench.workers import wire
from codec_bench.workers.environment import make_environment, read_env
from codec_bench.workers.host import WorkerEnded, WorkerSettings
from codec_bench.workers.pool import WorkerPool, WorkerReply, device_variables

_Answer: TypeAlias = "asyncio.Future[tuple[WorkerReply, float]]"
_Pending: TypeAlias = "tuple[wire.Packed, _Answer]"
_CLOSED = WorkerReply(None, Diagnostic("model_closed"), 1)
_AHEAD = 2  # batches per worker in flight: one is answered while the sounds of the next are read


class Isolated(Model):
    """A model that answers in worker processes with their own packages.

    Args:
        env: an environment of `configs/env`, or the path of a custom YAML file.
        code: the file with `load` and `answer`; None uses the environment's.
        load: keyword arguments of `load`, as JSON values.
        batch_items: the most requests in one batch.
        batch_limit_s: time limit of one batch in seconds; None for no limit.
        start_limit_s: time limit of starting and loading, in seconds.
        workers: number of processes; None for one per device.
        devices: the devices of the workers, in turn (`cuda:0`, or `cpu`); None leaves the choice to the worker code.
        rate_hz: sample rate of the worker's audio, one channel.
        folder: the base of relative paths; None is the working folder.
        notify: called with a sentence when creating the environment takes long.

    Raises:
        UserError: the environment or the code does not exist, or an option has a wrong value.
    """

    def __init__(
        self,
        info: ModelInfo,
        *,
        env: str,
        code: str | None = None,
        load: Mapping[str, Any] | None = None,
        batch_items: int = 8,
        batch_limit_s: float | None = 600.0,
        start_limit_s: float = 1800.0,
        workers: int | None = None,
        devices: Sequence[str | int] | str | None = None,
        rate_hz: int = 16_000,
        folder: str | os.PathLike[str] | None = None,
        notify: Callable[[str], None] = lambda line: None,
    ) -> None:
        base = None if folder is None else Path(folder)
        if isinstance(devices, str):
            devices = [device.strip() for device in devices.split(",")]
        count = (len(devices) if devices else 1) if workers is None else workers
        if not 1 <= batch_items <= wire.BATCH_ITEMS:
            raise UserError("batch_items_out_of_range", model=info.name, items=batch_items, most=wire.BATCH_ITEMS)
        if count < 1:
            raise UserError("no_model_workers", model=info.name, count=count)
        self.info = info
        self.concurrency = _AHEAD * count * batch_items
        self._spec = read_env(env, base)
        file = self._spec.code if code is None else (base or Path()) / Path(code).expanduser()
        if file is None or not file.is_file():
            raise UserError(
                "no_worker_code",
                model=info.name,
                path=file,
                hint="name a file with the functions 'load' and 'answer' as the option 'code'",
            )
        self._code = file
        try:
            json.dumps(load or {}, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UserError("load_options_not_json", model=info.name, cause=error) from error
        self._load = dict(load or {})
        self._batch_items, self._limit_s, self._start_s = batch_items, batch_limit_s, start_limit_s
        self._variables = device_variables(count, devices)
        self._rate_hz, self._notify = rate_hz, notify
        self._waiting: list[_Pending] = []
        self._running: set[asyncio.Task[None]] = set()
        self._pool: WorkerPool | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """Packages, worker code, options, variables, contents of named files, rate."""
        python = self._spec.python or f"{sys.version_info.major}.{sys.version_info.minor}"
        return {
            "kind": "isolated", "env": self._spec.digest, "python": python, "variables": dict(self._spec.variables),
            "code": bytes_digest(self._code.read_bytes()), "load": self._load, "rate_hz": self._rate_hz,
            "files": dict(_contents(self._load)),
            "limit_s": self.info.limit_s, "window_s": self.info.window_s,
        }  # fmt: skip

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of Python and all packages; empty before `start`."""
        return {} if self._pool is None else self._pool.versions

    async def start(self) -> None:
        """Create the environment if missing, start the workers and load the model in each."""
        environment = await asyncio.to_thread(make_environment, self._spec, self._notify)
        settings = WorkerSettings(
            self.info.name, environment.python, self._code.resolve(), self._load, self._spec.variables,
            start_s=self._start_s, limit_s=self._limit_s,
        )  # fmt: skip
        self._pool = WorkerPool(settings, self._variables)
        try:
            await self._pool.start()
        except WorkerEnded as error:
            raise UserError("model_not_loaded", model=self.info.name, cause=error.reason) from error

    async def ask(self, request: Request) -> Response:
        """Send a request to a worker, in a batch with others that wait; return the answer."""
        try:
            windowed = await asyncio.to_thread(split_windows, request, self.info, self._rate_hz)
            items = [wire.pack(_plain(window)) for window in windowed.requests]
        except UserError as error:
            return Response.failed(error.message)
        except wire.WireError as error:
            return Response.failed(Diagnostic("worker_request", message=error))
        answers = await asyncio.gather(*(self._answer(item, request.wants) for item in items))
        first_failed = next((at for at, answer in enumerate(answers) if answer.status != "ok"), len(answers) - 1)
        return join(answers[: first_failed + 1], windowed)

    async def _answer(self, item: wire.Packed, wants: str) -> Response:
        """Queue a packed request for the workers, and await its response."""
        answer: _Answer = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if len(self._running) < len(self._variables):
            self._running.add(asyncio.create_task(self._work()))
        reply, latency_s = await answer
        return _build_response(reply, wants, {"latency_s": latency_s, "attempts": reply.attempts})

    async def _work(self) -> None:
        """Send batches of waiting requests until none is left."""
        try:
            while self._waiting:
                await asyncio.sleep(0)  # concurrent callers can join the batch
                batch, self._waiting = self._waiting[: self._batch_items], self._waiting[self._batch_items :]
                batch = [(packed, answer) for packed, answer in batch if not answer.done()]
                if batch:
                    await self._send_batch(batch)
        finally:
            # Not in a callback: a request that arrives in between would never be sent.
            work = asyncio.current_task()
            if work is not None:
                self._running.discard(work)

    async def _send_batch(self, pending: Sequence[_Pending]) -> None:
        """Send a batch to the pool, and deliver responses or the failure."""
        began = asyncio.get_running_loop().time()
        try:
            if self._pool is None:
                raise RuntimeError("the model was not started")
            replies = await self._pool.ask([packed for packed, _ in pending])
        except asyncio.CancelledError:
            _deliver(pending, [_CLOSED] * len(pending), 0.0)
            raise
        except Exception as error:  # these requests get a failed response, and the next batch is tried
            replies = [WorkerReply(None, of_error(error), 1)] * len(pending)
        _deliver(pending, replies, (asyncio.get_running_loop().time() - began) / len(pending))

    async def close(self) -> None:
        """End the workers. Requests that still wait get a failed response."""
        works = list(self._running)
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        waiting, self._waiting = self._waiting, []
        _deliver(waiting, [_CLOSED] * len(waiting), 0.0)
        if self._pool is not None:
            await self._pool.close()


def _deliver(pending: Sequence[_Pending], replies: Sequence[WorkerReply], took_s: float) -> None:
    for (_, answer), reply in zip(pending, replies, strict=True):
        if not answer.done():  # the caller may have been cancelled
            answer.set_result((reply, took_s))


def _plain(request: Request) -> dict[str, Any]:
    """Convert a request to plain dicts, with audio as arrays, for a worker process."""

    def sound(value: Any) -> Any:
        if not isinstance(value, Clip):
            return value
        audio = value.read()
        return {"samples": audio.samples, "sample_rate_hz": audio.sample_rate_hz}

    messages = [{"role": m.role, "content": [sound(item) for item in m.content]} for m in request.messages]
    fields = {name: sound(value) for name, value in request.fields.items()}
    return {
        "id": request.id, "messages": messages, "fields": fields, "wants": request.wants,
        "parameters": dict(request.parameters),
    }  # fmt: skip


def _contents(options: Any) -> Iterator[tuple[str, str]]:
    """Yield each option that names a file or folder, with a hash of its content."""
    if isinstance(options, Mapping):
        options = list(options.values())
    if isinstance(options, list):
        for one in options:
            yield from _contents(one)
    elif isinstance(options, str):
        path = Path(options)
        with suppress(OSError, ValueError):  # most texts are no paths
            # A folder of folders alone may be a complete download cache.
            if path.is_file() or (path.is_dir() and any(one.is_file() for one in path.iterdir())):
                yield options, path_hash(path)


def _build_response(reply: WorkerReply, wants: str, more: dict[str, Any]) -> Response:
    """Convert a worker's reply to a response."""
    if reply.reason is not None:
        return Response.failed(reply.reason, **more)
    try:
        return _read(reply.answer, wants, more)
    except (UserError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        return Response.failed(Diagnostic("worker_answer", message=error), **more)


def _read(answer: Any, wants: str, more: dict[str, Any]) -> Response:
    """Convert a worker's answer to a response; ValueError or TypeError if it is wrong.

    Args:
        wants: the requested output, `text` or `audio`.
        more: further fields of the response.
    """
    for status, build in (("error", Response.failed), ("refused", Response.refused)):
        if answer.get(status) is not None:
            return build(str(answer[status]), **more)
    if answer.get(wants) is None:
        held = ", ".join(f"'{key}'" for key, value in answer.items() if value is not None) or "nothing"
        raise ValueError(f"it holds {held}; expected '{wants}'")
    text, audio = answer.get("text"), answer.get("audio")
    notes = [str(note) for note in answer.get("notes") or ()]
    if text is not None and not isinstance(text, str):
        raise TypeError(f"its text is {type(text).__name__}; expected str")
    if text is not None:
        encodable = text.encode("utf-8", "replace").decode("utf-8")
        if encodable != text:
            notes.append(Diagnostic("characters_replaced"))
            text = encodable
    if audio is not None:
        samples = np.frombuffer(audio["samples"], np.float32).reshape(audio["channels"], -1)
        audio = Audio(samples, audio["sample_rate_hz"])
        audio.check("the answer's audio")
    usage = {str(name): float(value) for name, value in (answer.get("usage") or {}).items()}
    if not all(math.isfinite(value) for value in usage.values()):
        raise ValueError(f"its usage is {usage}; expected finite numbers")
    finish = answer.get("finish")
    return Response(
        text=text, audio=audio, usage=usage, finish=None if finish is None else str(finish), notes=tuple(notes), **more
    )

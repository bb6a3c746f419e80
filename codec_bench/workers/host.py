"""Starts, queries, watches and ends one worker process.

Every error of the process raises `WorkerEnded`. The process is then gone, and the next `start` creates a new one.
Replies are the worker code's dictionaries, unchecked.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codec_bench.messages import Diagnostic
from codec_bench.workers import wire
from codec_bench.workers.environment import foreign_variables

LOG_BYTES = 4 << 20  # a longer log is cut to its end
_TAIL_BYTES, _TAIL_LINES = 4096, 8
_ENDING_S = 5.0
_CHILD = Path(__file__).with_name("child.py")


class WorkerEnded(Exception):
    """A worker process ended; `reason` is a code of `codec_bench.messages.workers`."""

    def __init__(self, reason: Diagnostic) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The settings of workers.

    Args:
        code: the file with the functions `load` and `answer`.
        options: keyword arguments of `load`, as JSON values.
        start_s: time limit of starting and loading. limit_s: time limit of one batch; None for no limit.
        silence_s: the longest gap between heartbeats during an answer; native code that holds the interpreter lock
            stops them. beat_s: the interval between heartbeats. All in seconds.
    """

    name: str
    python: Path
    code: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    start_s: float = 1800.0
    limit_s: float | None = 600.0
    silence_s: float = 300.0
    beat_s: float = 1.0


class WorkerHost:
    """The host's side of one worker, for one event loop and one batch at a time."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self.versions: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = ""
        self._number = 0
        self._waiting: dict[int | str, asyncio.Future[dict[str, Any]]] = {}
        self._last_sign = 0.0
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether the process exists."""
        return self._process is not None

    async def start(self) -> None:
        """Start the process and wait until its code is loaded.

        Raises:
            WorkerEnded: the process cannot be started, its code cannot be loaded, or loading took too long.
        """
        settings = self._settings
        self._spawn()
        try:
            self._reader, self._writer = await asyncio.open_unix_connection(sock=self._link, limit=1 << 20)
            self._listening = asyncio.create_task(self._listen())
            body = json.dumps({"code": str(settings.code), "options": dict(settings.options)}).encode()
            ready = await self._ask("load", wire.frame(wire.LOAD, body), settings.start_s)
            self.versions = ready["versions"]
        except BaseException:
            await asyncio.shield(self.close())
            raise

    def _spawn(self) -> None:
        """Start the worker process, with its folder, log, memory and connection."""
        settings = self._settings
        variables = {**foreign_variables(), **settings.variables}
        variables["PATH"] = os.pathsep.join([str(settings.python.parent), variables.get("PATH", os.defpath)])
        try:
            with ExitStack() as undo:  # an error leaves nothing behind
                # Log and temporary files are in a folder that is removed with the worker.
                self._folder = variables["TMPDIR"] = tempfile.mkdtemp(prefix="codec-bench-worker-")
                undo.callback(shutil.rmtree, self._folder, ignore_errors=True)
                log = os.path.join(self._folder, "worker.log")
                self._log = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
                undo.callback(os.close, self._log)
                self._request_memory = wire.Memory(wire.new_memory_file())
                undo.callback(self._request_memory.close)
                self._reply_memory = wire.Memory(wire.new_memory_file())
                undo.callback(self._reply_memory.close)
                self._link, theirs = socket.socketpair()
                undo.callback(self._link.close)
                self._link.setblocking(False)
                with theirs:
                    handles = [theirs.fileno(), self._request_memory.handle, self._reply_memory.handle]
                    last = [str(os.getpid()), str(settings.beat_s)]
                    self._process = subprocess.Popen(
                        [str(settings.python), "-I", "-u", str(_CHILD), *map(str, handles), *last],
                        pass_fds=handles, env=variables, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
                        start_new_session=True,  # Ctrl-C goes to the main process only, which then ends its workers
                    )  # fmt: skip
                undo.pop_all()
        except (OSError, ValueError) as error:
            raise WorkerEnded(Diagnostic("worker_not_started", worker=settings.name, cause=error)) from error

    async def ask(self, batch: Sequence[wire.Packed]) -> list[Any]:
        """Return one reply per packed item of a batch, in order.

        Raises:
            WorkerEnded: the process ended, hung or took too long; it is gone.
        """
        self._number += 1
        number = self._number
        body = wire.batch_body(number, batch, self._request_memory)
        reply = await self._ask(number, wire.frame(wire.ASK, body), self._settings.limit_s)
        try:
            items = wire.unpack(reply["items"], reply["sounds"], self._reply_memory)
            if len(items) != len(batch):
                raise wire.WireError(f"it gave {len(items)} replies to {len(batch)} requests")
        except (wire.WireError, LookupError, TypeError, ValueError) as error:
            raise await self._ended("worker_reply_unreadable", cause=error) from error
        return items

    async def _ask(self, key: int | str, frame: bytes, limit_s: float | None) -> dict[str, Any]:
        """Send a message, and wait for its answer; raises WorkerEnded."""
        loop = asyncio.get_running_loop()
        answer = self._waiting[key] = loop.create_future()
        began = self._last_sign = loop.time()
        try:
            if self._listening is None or self._listening.done() or self._writer is None:
                raise await self._ended()
            self._writer.write(frame)
            while not answer.done():
                now = loop.time()
                silent = self._last_sign + self._settings.silence_s - now
                left = silent if limit_s is None else min(silent, began + limit_s - now)
                if left <= 0:
                    if left == silent:
                        raise await self._ended("worker_silent", silence_s=self._settings.silence_s)
                    late = "worker_load_late" if key == "load" else "worker_reply_late"
                    raise await self._ended(late, limit_s=limit_s)
                await asyncio.wait([answer], timeout=left)
            return answer.result()
        except _Broken as error:
            raise await self._ended(error.code, **error.parameters) from error
        except asyncio.CancelledError:
            # Otherwise the worker would go on and read audio that the next batch overwrites.
            await asyncio.shield(self.close())
            raise
        finally:
            del self._waiting[key]
            answer.cancel()

    async def _listen(self) -> None:
        """Receive messages until the connection ends, and pass answers on."""
        broken = _Broken()
        try:
            while True:
                kind, size = wire.length(await self._reader.readexactly(wire.START.size))
                message = wire.read_body(await self._reader.readexactly(size))
                self._last_sign = asyncio.get_running_loop().time()
                if kind in (wire.READY, wire.REPLY):
                    answer = self._waiting.get("load" if kind == wire.READY else message["id"])
                    if answer is not None and not answer.done():
                        answer.set_result(message)
                elif kind == wire.BEAT:
                    self._cut_log()
                elif kind == wire.BROKEN:
                    broken = _Broken("worker_stopped", cause=message["reason"])
                    return
                elif kind == wire.HELLO and message["protocol"] != wire.PROTOCOL:
                    raise wire.WireError(
                        f"it uses version {message['protocol']} of the protocol; expected {wire.PROTOCOL}"
                    )
        except (asyncio.IncompleteReadError, OSError):
            return
        except (wire.WireError, LookupError, TypeError) as error:
            broken = _Broken("worker_reply_unreadable", cause=str(error))
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(broken)

    async def _ended(self, code: str | None = None, **parameters: Any) -> WorkerEnded:
        """End the process and return the exception with this reason; without a code the exit status is the reason."""
        name = self._settings.name
        if self._process is None:
            return WorkerEnded(Diagnostic("worker_closed", worker=name))
        log = self.log_tail
        status = await self._end()
        if code == "worker_stopped":  # the worker itself stated this reason
            return WorkerEnded(Diagnostic(code, worker=name, **parameters))
        if code is not None:
            return WorkerEnded(Diagnostic(code, worker=name, log=log, **parameters))
        if status is not None and status > 128:
            killed_by = _signal_name(status - 128)
            return WorkerEnded(Diagnostic("worker_killed", worker=name, log=log, signal=killed_by))
        return WorkerEnded(Diagnostic("worker_exited", worker=name, log=log, exit_status=status))

    @property
    def log_tail(self) -> str:
        """The last lines of the worker's output and errors, on one line."""
        size = os.fstat(self._log).st_size
        text = os.pread(self._log, _TAIL_BYTES, max(0, size - _TAIL_BYTES)).decode("utf-8", "replace")
        lines = ["".join(c for c in line if c.isprintable()).strip() for line in text.splitlines()]
        return " | ".join([line for line in lines if line][-_TAIL_LINES:])

    def _cut_log(self) -> None:
        size = os.fstat(self._log).st_size
        if size > LOG_BYTES:
            end = os.pread(self._log, _TAIL_BYTES, size - _TAIL_BYTES)
            os.ftruncate(self._log, 0)
            os.write(self._log, end)

    async def close(self) -> None:
        """End the process and remove its files; no-op without a process."""
        if self._process is not None:
            await self._end()

    async def _end(self) -> int | None:
        """End the process and return its exit status."""
        process, self._process = self._process, None
        if process is None:
            return None
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.cancel()
        # The guardian at the other end ends the worker when the connection closes.
        if self._writer is None:
            self._link.close()
        else:
            self._writer.transport.abort()
            self._writer = None
        try:
            status = await asyncio.to_thread(process.wait, _ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            status = await asyncio.to_thread(process.wait)
        if listening is not None:
            await asyncio.wait([listening])
        self._request_memory.close()
        self._reply_memory.close()
        os.close(self._log)
        shutil.rmtree(self._folder, ignore_errors=True)
        return status


class _Broken(Exception):
    def __init__(self, code: str | None = None, **parameters: Any) -> None:
        super().__init__(code)
        self.code, self.parameters = code, parameters


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

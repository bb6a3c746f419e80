"""The lanes of a worker: on a GPU, it prepares a batch while another one runs.

Lane one, the main thread, loads stages and computes. Lane two receives messages and prepares the next batch (`prepare`
in `stage.py`) on its own GPU stream.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any

from codec_bench.engine.main_pipe import MainPipe
from codec_bench.machine.memory import MemoryWatch, device_works, is_device_error, own_device

LOCK_S = 0.0005
"""How long lane two may keep Python's lock while lane one waits for a launch; Python's default is ten times as long."""

Seen = Callable[[], tuple[int, int] | None]
"""Returns the result of `Watch.seen` of `memory.py`, or None."""


def watch_nothing() -> Seen:
    """Watch no memory."""
    return lambda: None


class ComputeDevice:
    """The device of a worker; this is the CPU, `Gpu` has two lanes."""

    device, lanes = "cpu", 1

    def acquire(self, others: int = 0) -> None:
        """Reserve the device, shared with `others`, before the first network uses memory."""

    def ahead(self, make: Callable[[], Any]) -> Any:
        """Run `make` in the second thread; return an object whose `wait` gives the result."""
        raise NotImplementedError

    def watch(self) -> Seen:
        """Start to watch the memory for a batch; call the result at its end."""
        return watch_nothing()

    def is_unusable(self, reason: str, alone: bool) -> bool:
        """Whether the device caused a batch's failure; `alone`: the batch has one item."""
        return False


class Gpu(ComputeDevice):
    """`cuda:N`, shared by so many workers (`processes`)."""

    lanes = 2

    def __init__(self, device: str, processes: int) -> None:
        self.device, self._processes = device, processes
        self._uploads: Any = None

    def acquire(self, others: int = 0) -> None:
        """Make it the current device with this process's share of its memory."""
        sys.setswitchinterval(LOCK_S)
        own_device(self.device, self._processes + others)

    def ahead(self, make: Callable[[], Any]) -> Any:
        """Run `make` with all uploads on a separate stream."""
        from codec_bench.networks.transfer import UploadStream

        self._uploads = self._uploads or UploadStream(self.device)
        return self._uploads.run(make)

    def watch(self) -> Seen:
        """Watch torch's memory."""
        return MemoryWatch(self.device).seen

    def is_unusable(self, reason: str, alone: bool) -> bool:
        """Whether the reason says so, or the device fails after a lone failure."""
        return is_device_error(reason) or (alone and not device_works(self.device))


Ready = Callable[[], Any]
"""Waits for lane two, and returns its prepared batch, or None."""


def receive_messages(pipe: MainPipe, prepare: Callable[[Any], Any] | None) -> Iterator[tuple[Any, Ready]]:
    """Yield each message with its prepared input until the pipe closes.

    `prepare` runs in a second thread, on the next message while this one is in use.
    """
    if prepare is None:
        while (message := _next(pipe)) is not None:
            yield message, lambda: None
        return
    inbox: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_receive, args=(pipe, inbox, prepare), daemon=True).start()
    while (got := inbox.get()) is not None:
        if isinstance(got, BaseException):
            raise got
        yield got


def _next(pipe: MainPipe) -> Any:
    try:
        return pipe.recv()
    except (EOFError, OSError):
        return None


def _receive(pipe: MainPipe, inbox: SimpleQueue[Any], prepare: Callable[[Any], Any]) -> None:
    """Receive messages in a thread and prepare each one ahead of its turn."""
    try:
        while (message := _next(pipe)) is not None:
            ahead: Future[Any] = Future()
            inbox.put((message, ahead.result))  # before it is ready, so that its time limit counts while lane one waits
            try:
                ahead.set_result(prepare(message))
            except BaseException as error:  # lane one must not wait for ever
                ahead.set_exception(error)
                raise
    except BaseException as error:  # a message that cannot be read ends the process, as it does with one lane
        inbox.put(error)
    else:
        inbox.put(None)

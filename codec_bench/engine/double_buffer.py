"""The lanes of a worker: on a GPU, the next batch is received and made ready while the present one computes.

Lane one is the worker's main thread, which loads stages and computes. Lane two is a thread that receives what comes
over the pipe. It makes a batch ready if the stage of the batch is loaded and can do so (`prepare` in `stage.py`): audio
is cut, padded, and sent to the GPU on a stream of its own. A worker holds two batches at most, so no more than one is
ahead.

Only lane one decides what becomes of a batch. If lane two cannot make a batch ready, lane one does it when the batch's
turn comes, and meets the same error where it counts for this batch. The CPU has one lane: there, a second thread would
take the core that the first one computes on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any

from codec_bench.engine.main_pipe import MainPipe
from codec_bench.memory import Watch, device_works, is_device_error, own_device

LOCK_S = 0.0005
"""How long lane two may keep Python's lock when lane one wants it for a launch; Python's own value is ten times as
long.
"""

Seen = Callable[[], tuple[int, int] | None]
"""Says what `Watch.seen` of `memory.py` does, or None."""


def unwatched() -> Seen:
    """Watches no memory."""
    return lambda: None


class ComputeDevice:
    """What a worker does with its device, beside computing on it. This is the CPU.

    Attributes
        device: `cpu` or `cuda:N`. lanes: 2 if the next batch is made ready while one computes.
    """

    device, lanes = "cpu", 1

    def acquire(self, others: int = 0) -> None:
        """Takes the device for this process; called before the first network takes memory.

        Args:
            others: how many further processes, of somebody else's code, may share it.
        """

    def ahead(self, make: Callable[[], Any]) -> Any:
        """What `make` gives, made by lane two. Lane one takes it with its method `wait`."""
        raise NotImplementedError

    def watch(self) -> Seen:
        """Begins to watch the memory for a batch; what it gives is called at the end of the batch."""
        return unwatched()

    def is_unusable(self, reason: str, alone: bool) -> bool:
        """Whether a batch failed because this process cannot use the device any more.

        Args:
            reason: why it failed. alone: whether it held a single item.
        """
        return False


class Gpu(ComputeDevice):
    """A GPU.

    Args:
        device: `cuda:N`. processes: how many workers share it.
    """

    lanes = 2

    def __init__(self, device: str, processes: int) -> None:
        self.device, self._processes = device, processes
        self._uploads: Any = None

    def acquire(self, others: int = 0) -> None:
        """Makes it the current device and takes this process's share of its memory."""
        sys.setswitchinterval(LOCK_S)
        own_device(self.device, self._processes + others)

    def ahead(self, make: Callable[[], Any]) -> Any:
        """What `make` gives, all of whose uploads go through a stream of their own."""
        from codec_bench.networks.transfer import UploadStream

        self._uploads = self._uploads or UploadStream(self.device)
        return self._uploads.run(make)

    def watch(self) -> Seen:
        """Watches torch's memory."""
        return Watch(self.device).seen

    def is_unusable(self, reason: str, alone: bool) -> bool:
        """Whether the reason says so or, after an item that failed by itself, the device does not compute any more."""
        return is_device_error(reason) or (alone and not device_works(self.device))


Ready = Callable[[], Any]
"""Waits for lane two, and gives what it made of a batch, or None if lane one is to make it ready."""


def received(pipe: MainPipe, prepare: Callable[[Any], Any] | None) -> Iterator[tuple[Any, Ready]]:
    """The messages that come over a pipe, in order, until it closes.

    Args:
        prepare: called with every message in a second thread, while the caller is busy with an earlier one; it does not
            raise. None for one lane.
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
